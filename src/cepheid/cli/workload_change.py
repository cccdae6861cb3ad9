"""`cepheid workload pause`, `resume`, `stop`: queries come to rest, and the manager to its end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.workload_arguments import USUAL_STATE, At, State
from cepheid.manager.client import ask_manager
from cepheid.model.errors import EnvironmentProblem, OptionError

_ENDING = 60.0
"""Seconds within which a manager should have ended."""

Name = Annotated[str, typer.Argument(metavar="NAME", help="The query.")]


def pause(name: Name, at: At = None, state: State = USUAL_STATE) -> None:
    """
    Let a query rest: it sees no events until it is resumed, and costs nothing.

    [bold]Examples[/bold]

      cepheid workload pause thefts
    """
    _change("pause", name, at, state)


def resume(name: Name, at: At = None, state: State = USUAL_STATE) -> None:
    """
    Let a paused query see events again; those from before the pause are forgotten.

    [bold]Examples[/bold]

      cepheid workload resume thefts
    """
    _change("resume", name, at, state)


def stop(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The query.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="End the manager; its state is kept for a new start.")
    ] = False,
    at: At = None,
    state: State = USUAL_STATE,
) -> None:
    """
    Stop a query for good, or with --all the manager with all its nodes.

    [bold]Examples[/bold]

      cepheid workload stop thefts
      cepheid workload stop --all
    """
    if everything == (name is not None):
        message = "give the name of a query, or --all to end the manager"
        raise OptionError.of("which-query", message, help="cepheid workload stop NAME")
    if name is not None:
        _change("stop", name, at, state)
        return
    answer = ask_manager(state, {"do": "end"})
    _wait_for_end(state)
    left = answer["waiting"]
    tail = f"; {left:,} batches of events wait for a new start" if left else ""
    typer.echo(f"the manager has ended{tail}")


def _change(do: str, name: str, at: str | None, state: Path) -> None:
    answer = ask_manager(state, {"do": do, "name": name, "at": at})
    typer.echo(f"{name} is {answer['state']}")


def _wait_for_end(state: Path) -> None:
    """The manager takes its address away when all is kept."""
    until = time.monotonic() + _ENDING
    while (state / "manager.json").exists():
        if time.monotonic() > until:
            raise EnvironmentProblem.of(
                "manager-silent", "the manager has not ended yet", help="it may be at a large batch"
            )
        time.sleep(0.05)
