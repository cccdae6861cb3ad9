"""What a manager is started with; it stays the same for one state folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cepheid.manager.durable import SUM
from cepheid.manager.state_folder import StateFolder
from cepheid.model.errors import OptionError
from cepheid.model.options import make_options
from cepheid.model.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Setting:
    """Options of the queries as keywords, how many processes, and how queries are placed.

    `begin` is how the journal tells it; one of more than `longest_journal` bytes begins anew.
    """

    options: Mapping[str, Any]
    events: Path
    out: Path
    nodes: int = 2
    sinks: int = 1
    strategy: Strategy = Strategy.GREEDY
    checkpoint_every: int = 64
    longest_journal: int = 1 << 20
    begin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user gave; None is what was not given."""

    options: Mapping[str, Any] | None = None
    events: Path | None = None
    out: Path | None = None
    nodes: int | None = None
    sinks: int | None = None
    strategy: Strategy | None = None
    checkpoint_every: int = 64
    longest_journal: int = 1 << 20


def settle(folder: StateFolder, wish: Wish) -> Setting:
    """The setting of the folder's first manager; another one cannot go on with its state.

    Folders may change, and how queries are placed: that decides for queries still to come.
    """
    journal = folder.journal
    if journal.records:
        first = journal.records[0]
        begin = first["begin"] if first["op"] == SUM else first
    else:
        begin = {
            "op": "begin",
            "options": {} if wish.options is None else dict(wish.options),
            "events": str((wish.events or Path("events")).absolute()),
            "out": str((wish.out or Path("matches")).absolute()),
            "nodes": wish.nodes or 2,
            "sinks": wish.sinks or 1,
            "strategy": (wish.strategy or Strategy.GREEDY).value,
        }
        journal.append(begin)
    _refuse_other(begin, wish, folder.path)
    events = (wish.events or Path(begin["events"])).absolute()
    out = (wish.out or Path(begin["out"])).absolute()
    _refuse_loop(events, out, folder.path)
    return Setting(
        begin["options"],
        events,
        out,
        begin["nodes"],
        begin["sinks"],
        wish.strategy or Strategy(begin["strategy"]),
        wish.checkpoint_every,
        wish.longest_journal,
        begin,
    )


def _refuse_loop(events: Path, out: Path, state: Path) -> None:
    """Matches are written as JSON lines, which would be read as events."""
    events, out, state = events.resolve(), out.resolve(), state.resolve()
    if events == out or events.is_relative_to(state) or out.is_relative_to(state):
        raise OptionError.of(
            "same-folder",
            f"events in `{events}`, matches in `{out}`, state in `{state}`: they would be mixed up",
            help="give --events, --out and --state a folder each",
        )


def _refuse_other(begin: Mapping[str, Any], wish: Wish, state: Path) -> None:
    """Refuse what was not so before; the message names the first option that differs."""
    for flag, before, now in _differences(begin, wish):
        raise OptionError.of(
            "other-setting",
            f"`{state}` was begun with {_told(before)} for {flag}, not with {_told(now)}",
            help="leave it out to go on as before, or give another --state",
        )


def _differences(begin: Mapping[str, Any], wish: Wish) -> Iterator[tuple[str, object, object]]:
    """Options, as the command line names them, with their values before and now."""
    counts = (
        ("--nodes", begin["nodes"], wish.nodes),
        ("--sink-proxies", begin["sinks"], wish.sinks),
    )
    yield from (each for each in counts if each[2] is not None and each[2] != each[1])
    if wish.options is None:
        return
    before, now = make_options(begin["options"]), make_options(wish.options)
    for name in {**begin["options"], **wish.options}:
        old, new = getattr(before, name), getattr(now, name)
        if old == new:
            continue
        if name == "discrete":
            yield "--continuous", not old, not new
        else:
            flag = _FLAGS.get(name, f"--{name}")
            yield flag, begin["options"].get(name, old), wish.options.get(name, new)


_FLAGS = {"params": "--param", "type": "--type-column"}


def _told(value: object) -> str:
    match value:
        case Mapping():
            return " ".join(f"{name}={each}" for name, each in value.items()) or "none"
        case bool():
            return "yes" if value else "no"
        case _:
            return "none" if value is None else str(value)
