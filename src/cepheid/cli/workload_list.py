"""`cepheid workload list`: the queries of a running manager."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

import typer

from cepheid.cli.failures import painted
from cepheid.cli.workload_arguments import USUAL_STATE, AsJson, State
from cepheid.cli.workload_busy import busy_lines
from cepheid.manager.client import ask_manager
from cepheid.manager.wire import error_from_json

_SHOWN = 3


def list_queries(json_output: AsJson = False, state: State = USUAL_STATE) -> None:
    """
    List the queries: whether they run, since when, what they found, on which node.

    A query shares with those on its node that have something in common with it
    which runs once for all of them; `explain` tells what.

    [bold]Examples[/bold]

      cepheid workload list
      cepheid workload list --json
    """
    answer = ask_manager(state, {"do": "list"})
    if json_output:
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    if not answer["queries"]:
        typer.echo("no queries; give one with: cepheid workload submit QUERY_FILE")
        return
    from cepheid.cli.workload_tables import print_table  # noqa: PLC0415 (rich, for a table only)

    print_table(
        ["query", "language", "state", "since", ">matches", ">node", "shares with"],
        [
            [
                each["name"],
                each["language"],
                each["state"],
                _local(each["since"]),
                f"{each['matches']:,}",
                str(each["node"]),
                _some(each["shares_with"]),
            ]
            for each in answer["queries"]
        ],
    )
    for each in answer["queries"]:
        if each["error"] is not None:
            _tell(f"{each['name']} failed:\n{error_from_json(each['error'])}")
    if answer["changed_files"]:
        names = _some(answer["changed_files"])
        _tell(f"note: changed after being taken, and not read again: {names}")
    for line in busy_lines(answer["busy"]):
        _tell(f"note: {line}")
    if answer["trouble"] is not None:
        _tell(f"{error_from_json(answer['trouble'])}")
        _tell("note: events wait until a query is stopped or paused")


def _tell(text: str) -> None:
    sys.stderr.write(painted(text, sys.stderr) + "\n")


def _local(when: str) -> str:
    return f"{datetime.fromisoformat(when).astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
