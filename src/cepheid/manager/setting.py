"""What a manager is started with; it stays the same for one state folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cepheid.manager.durable import SUM
from cepheid.manager.state_folder import StateFolder
from cepheid.model.errors import OptionError
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
    for name, wished, flag in (
        ("options", wish.options, "the options of events and meaning"),
        ("nodes", wish.nodes, "--nodes"),
        ("sinks", wish.sinks, "--sink-proxies"),
    ):
        if wished is not None and wished != begin[name]:
            raise OptionError.of(
                "other-setting",
                f"`{folder.path}` was begun with {_told(begin[name])} for {flag}, "
                f"not with {_told(wished)}",
                help="leave it out to go on as before, or give another --state",
            )
    return Setting(
        begin["options"],
        (wish.events or Path(begin["events"])).absolute(),
        (wish.out or Path(begin["out"])).absolute(),
        begin["nodes"],
        begin["sinks"],
        wish.strategy or Strategy(begin["strategy"]),
        wish.checkpoint_every,
        wish.longest_journal,
        begin,
    )


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each!r}" for name, each in value.items()) or "none"
    return str(value)
