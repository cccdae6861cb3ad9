"""A streaming query in a process of its own, for tests that kill it or put it on a cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

import cepheid
from cepheid.hosts.spark_session import local_session

QUERY = "EVENT SEQ(A x, !(B n), C z, !(D w)) WHERE [id] WITHIN 40"
LATENESS = 5
SCHEMA = "event long, type string, ts long, id long"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("events", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("sink", type=Path)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", default="1", help="fewer start in less time")
    parser.add_argument("--files-per-batch", type=int, default=1)
    parser.add_argument("--for-ever", action="store_true", help="do not stop at the last file")
    given = parser.parse_args()
    spark = local_session(
        given.master,
        **{
            "spark.sql.shuffle.partitions": given.partitions,
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        },
    )
    events = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", given.files_per_batch)
        .parquet(str(given.events))
    )
    matches = cepheid.detect(events, QUERY, id="event", lateness=LATENESS, buckets=4)
    writer = matches.writeStream.format("parquet").option("path", str(given.sink))
    writer = writer.option("checkpointLocation", str(given.checkpoint))
    if not given.for_ever:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
