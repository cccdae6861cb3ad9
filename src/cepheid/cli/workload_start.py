"""`cepheid workload start`: the manager itself."""

from __future__ import annotations

import gc
import json
import secrets
import signal
import subprocess
import sys
import threading
import time as clock
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.arguments import GivenOptions, takes_options
from cepheid.cli.failures import painted
from cepheid.cli.lean_imports import leave_out_unused_libraries
from cepheid.cli.workload_arguments import USUAL_STATE, State
from cepheid.manager.client import ask_manager
from cepheid.manager.setting import Setting, Wish
from cepheid.model.errors import CepheidError, EnvironmentProblem, OptionError
from cepheid.model.options import make_options
from cepheid.model.strategy import Strategy

_NODES = "Nodes and sinks"
_STARTING = 60.0
"""Seconds within which a manager in the background should answer."""

_POLL = 0.1
"""Seconds after which the server sees that it should end."""


@takes_options
def start(
    state: State = USUAL_STATE,
    events: Annotated[
        Path | None,
        typer.Option(
            "--events", "-e", metavar="FOLDER",
            help="Where event files appear: Parquet, CSV, JSON lines. [default: events]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER",
            help="Where matches are written, as JSON lines. [default: matches]",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 is any.")] = 0,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; return when it is ready.")
    ] = False,
    nodes: Annotated[
        int | None,
        typer.Option(min=1, max=64, rich_help_panel=_NODES, help="Worker processes. [default: 2]"),
    ] = None,
    sink_proxies: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, rich_help_panel=_NODES, help="Processes that deliver. [default: 1]"
        ),
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(
            metavar="STRATEGY", rich_help_panel=_NODES,
            help="greedy (with reuse), greedy-without-reuse or round-robin. [default: greedy]",
        ),
    ] = None,
    checkpoint_every: Annotated[
        int,
        typer.Option(
            min=1, rich_help_panel=_NODES, help="Batches of events between two checkpoints."
        ),
    ] = 64,
    *,
    given: GivenOptions,
) -> None:  # fmt: skip
    """
    Start a manager: it runs the queries that are submitted to it until it is stopped.

    Event files are taken from a folder in the order of their names, each once.
    A file is taken when it has not changed for a second; or write it elsewhere
    and rename it into the folder. Names that begin with . or _ are left alone.
    A file that was taken may be removed. Events wait for the first query.

    Matches are written to one file for each batch of events and sink proxy. A
    file appears when it is whole, and is written once, even if the manager or
    a node is killed: with the same --state a new start goes on where it was.

    Who can read the state folder can give the manager orders, nobody else.

    [bold]Examples[/bold]

      cepheid workload start --events incoming/ --out matches/
      cepheid workload start --nodes 4 --sink-proxies 2 --detach
      cepheid workload start --state .cepheid    [dim](go on after a stop)[/dim]
    """
    if given.statistics is not None:
        given = replace(given, statistics=given.statistics.absolute())
    options = json.loads(json.dumps(given.as_keywords()))
    make_options(options)  # what is wrong with them is told now
    wish = Wish(
        options=None if given == GivenOptions() else options,
        events=events,
        out=out,
        nodes=nodes,
        sinks=sink_proxies,
        strategy=None if placement is None else Strategy.named(placement),
        checkpoint_every=checkpoint_every,
    )
    if detach:
        _detach(state)
    else:
        _run(state, wish, port)


def _run(state: Path, wish: Wish, port: int) -> None:
    leave_out_unused_libraries()
    # Loaded now, so that what is left out stays out.
    from cepheid.cli.workload_events import is_event_file, reader  # noqa: PLC0415
    from cepheid.manager.event_folder import EventFolder  # noqa: PLC0415
    from cepheid.manager.manager import Manager  # noqa: PLC0415
    from cepheid.manager.server import ManagerServer  # noqa: PLC0415
    from cepheid.manager.serving import Serving  # noqa: PLC0415
    from cepheid.manager.setting import settle  # noqa: PLC0415
    from cepheid.manager.state_folder import StateFolder  # noqa: PLC0415

    gc.enable()  # short commands do without
    folder = StateFolder(state)
    try:
        setting = settle(folder, wish)
        setting.events.mkdir(parents=True, exist_ok=True)
        manager = Manager(folder, setting)
        try:
            serving = Serving(
                manager,
                EventFolder(setting.events, is_event_file),
                reader(manager.options.type),
                _tell,
            )
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: serving.end())
            token = secrets.token_urlsafe(32)
            with ManagerServer(port, token, serving.ask) as server:
                threading.Thread(target=server.serve_forever, args=(_POLL,), daemon=True).start()
                folder.publish(server.port, token)
                _introduce(state, setting, server.port)
                try:
                    serving.run()
                finally:
                    server.shutdown()
        finally:
            manager.end()
    finally:
        folder.close()
    typer.echo("the manager has ended; its state is kept")


def _introduce(state: Path, setting: Setting, port: int) -> None:
    proxies = f"{setting.sinks} sink {'proxy' if setting.sinks == 1 else 'proxies'}"
    nodes = f"{setting.nodes} {'node' if setting.nodes == 1 else 'nodes'}"
    typer.echo(
        f"the manager runs on 127.0.0.1:{port}, state in {state}\n"
        f"{nodes}, {proxies}, placement {setting.strategy.value}\n"
        f"events from {_short(setting.events)}, matches to {_short(setting.out)}\n"
        "end it with: cepheid workload stop --all"
    )
    sys.stdout.flush()


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _tell(text: str) -> None:
    sys.stderr.write(painted(text, sys.stderr) + "\n")
    sys.stderr.flush()


def _detach(state: Path) -> None:
    """Start the same command as a process of its own, and wait until it answers."""
    with suppress(EnvironmentProblem):
        ask_manager(state, {"do": "list"}, patience=5.0)
        raise OptionError.of(
            "manager-runs",
            f"a manager runs already with the state in `{state}`",
            help="end it with: cepheid workload stop --all; or give another --state",
        )
    arguments = [each for each in sys.argv[1:] if each != "--detach"]
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = state / "log"
    log.unlink(missing_ok=True)
    log.touch(mode=0o600)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "cepheid", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    until = clock.monotonic() + _STARTING
    while process.poll() is None and clock.monotonic() < until:
        with suppress(CepheidError):
            ask_manager(state, {"do": "list"}, patience=5.0)
            if _is_of(state, process.pid):
                sys.stdout.write(log.read_text("utf-8", "replace"))
                return
        clock.sleep(0.1)
    sys.stderr.write(log.read_text("utf-8", "replace"))
    raise typer.Exit(process.poll() or 1)


def _is_of(state: Path, process: int) -> bool:
    """Whether the manager that answers is this process, not another one on the same folder."""
    with suppress(OSError, ValueError):
        return bool(json.loads((state / "manager.json").read_text("utf-8"))["process"] == process)
    return False
