"""A session of Spark Connect for tests, on a port that nobody else has.

`SparkSession.builder.remote("local[2]")` starts its server on port 15002 and nowhere else: two
tests at a time, or a server of the machine's own, and the second does not start.
"""

from __future__ import annotations

import os
import secrets

from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as RemoteSession


def connect_session(master: str) -> RemoteSession:
    """Start a server in this process and be its client, as `remote(master)` does.

    Call it in a process of its own: one Python holds either a classic session or a remote one.
    """
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = secrets.token_hex(16)
    server = (
        SparkSession.builder.master(master)
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", "0")
        .config("spark.sql.artifact.isolation.enabled", "true")
        .config("spark.sql.artifact.isolation.alwaysApplyClassloader", "true")
        .getOrCreate()
    )
    service = "org.apache.spark.sql.connect.service.SparkConnectService$"
    port = getattr(getattr(server._jvm, service), "MODULE$").localPort()
    # What `remote(master)` sets: functions are now the client's, and its `stop` ends the server.
    os.environ.update(SPARK_LOCAL_REMOTE="1", SPARK_CONNECT_MODE_ENABLED="1")
    return RemoteSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
