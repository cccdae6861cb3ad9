"""The queries of a manager planned here, node by node: what they share, told and drawn."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from cepheid import Workload, compile
from cepheid.cli.event_files import EventFiles
from cepheid.planner.workload_graph import GraphOfGroup
from cepheid.statistics.event_statistics import from_json


def tell_sharing(answer: dict[str, Any], measure: Path | None, picture: Path | None) -> None:
    """Print what a manager's answer of its queries means, and draw it where that is asked for."""
    # Arrow cannot write a schema as JSON, only as bytes.
    told = answer["schema"]
    schema = None if told is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(told)))
    graphs: list[GraphOfGroup] = []
    for node in sorted({each["node"] for each in answer["queries"]}):
        workload = workload_of(answer, node)
        events = schema if measure is None else _events(measure, workload)
        typer.echo(f"Node {node}\n{workload.explain(events, measure=measure is not None)}")
        graphs += workload.graph(events)
    if picture is not None:
        from cepheid.report.workload_graph import draw_workload_graph  # noqa: PLC0415 (matplotlib)

        typer.echo(f"drawn: {draw_workload_graph(graphs, picture)}")


def workload_of(answer: dict[str, Any], node: int) -> Workload:
    """The queries of a node, which run together, as the node has them."""
    known = answer["statistics"]
    statistics = {} if known is None else {"statistics": from_json(known)}
    workload = Workload(**{**answer["options"], **statistics})
    for each in answer["queries"]:
        if each["node"] == node:
            query = compile(each["text"], each["language"], name=each["source"])[each["query"]]
            # Equal queries that began at different times do not run as one.
            workload.add(query, name=each["name"], at=each["since"])
    return workload


def _events(path: Path, workload: Workload) -> pa.Table:
    return EventFiles.find(path, text_column=workload.options.type).table()
