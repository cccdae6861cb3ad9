"""`cepheid workload explain`: what the queries of a running manager share, and what that saves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.workload_arguments import USUAL_STATE, State
from cepheid.manager.client import ask_manager


def explain(
    measure: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Event files: run the queries over them, together and each by itself.",
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the graph, as PNG.")
    ] = None,
    state: State = USUAL_STATE,
) -> None:
    """
    Show what the running queries share on each node, and what that saves.

    Savings are estimated by the rates of the events so far. With --measure
    they are measured, too, in this process: the manager is not disturbed.

    [bold]Examples[/bold]

      cepheid workload explain
      cepheid workload explain --picture graph.png
      cepheid workload explain --measure events.parquet
    """
    answer = ask_manager(state, {"do": "queries"})
    if not answer["queries"]:
        typer.echo("no query runs; give one with: cepheid workload submit QUERY_FILE")
        return
    from cepheid.cli.workload_sharing import tell_sharing  # noqa: PLC0415 (plans, as nodes do)

    tell_sharing(answer, measure, picture)
