"""`cepheid workload nodes`: the processes of a running manager."""

from __future__ import annotations

import json
from typing import Any

import typer

from cepheid.cli.workload_arguments import USUAL_STATE, AsJson, State
from cepheid.cli.workload_busy import busy_lines
from cepheid.manager.client import ask_manager


def nodes(json_output: AsJson = False, state: State = USUAL_STATE) -> None:
    """
    Show the nodes and sink proxies: their processes, queries, load and events.

    The load is estimated from the rates of the events: how many the operators
    of a node handle, shared ones counted once, per second or tick of event
    time. Events per second of the clock are measured over the last batches.
    Events of nodes, and files and bytes of sink proxies, are counted since the
    manager was started, those of the stream below since its state was begun.

    [bold]Examples[/bold]

      cepheid workload nodes
      cepheid workload nodes --json
    """
    answer = ask_manager(state, {"do": "nodes"})
    if json_output:
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    from cepheid.cli.workload_tables import print_table  # noqa: PLC0415 (rich, for a table only)

    print_table(
        [
            ">node", ">process", ">queries", ">operators", f">load/{answer['load_unit']}",
            ">events", ">events/s", ">live events", ">restarts",
        ],
        [
            [
                str(each["node"]),
                str(each["process"]),
                f"{each['queries']:,}",
                f"{each['operators']:,}",
                f"{each['load']:,.3g}",
                f"{each['events']:,}",
                "-" if each["events_per_second"] is None else f"{each['events_per_second']:,.0f}",
                f"{each['live_events']:,}",
                str(each["restarts"]),
            ]
            for each in answer["nodes"]
        ],
    )  # fmt: skip
    print_table(
        [">sink proxy", ">process", ">queries", ">files", ">bytes"],
        [
            [
                str(each["proxy"]),
                str(each["process"]),
                f"{each['queries']:,}",
                f"{each['files']:,}",
                f"{each['bytes']:,}",
            ]
            for each in answer["proxies"]
        ],
    )
    for line in busy_lines(answer["busy"]):
        typer.echo(line)
    typer.echo(_stream_text(answer["stream"], answer["strategy"]))


def _stream_text(stream: dict[str, Any], strategy: str) -> str:
    parts = [f"{_counted(stream['events'], 'event')} of {_counted(stream['files'], 'file')}"]
    for count, what in (
        (stream["late"], "too late"),
        (stream["unusable"], "without a type or a time"),
    ):
        if count:
            parts.append(f"{count:,} {what}")
    if stream["refused"]:
        parts.append(f"{_counted(stream['refused'], 'file')} left out")
    if stream["changed"]:
        parts.append(f"{_counted(stream['changed'], 'file')} changed after being taken")
    if stream["waiting"]:
        parts.append(f"batches that wait: {stream['waiting']:,}")
    if stream["to_do_again"]:
        parts.append(f"batches to be done again after the start: {stream['to_do_again']:,}")
    return f"{', '.join(parts)}; placement {strategy}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
