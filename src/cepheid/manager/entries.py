"""The queries that a manager knows, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cepheid.hosts.query_names import free_name, known_query, refuse_taken
from cepheid.manager.wire import error_from_json
from cepheid.model.errors import CepheidError, LimitExceeded, OptionError
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.fused_placement import Place

MOST_QUERIES = 10_000
LONGEST_NAME = 100


@dataclass(slots=True)
class Entry:
    """A query: its text, where it runs, since when, and what it found."""

    name: str
    text: str
    source: str
    language: str
    query: str
    place: Place
    when: str
    is_paused: bool = False
    problem: CepheidError | None = None
    matches: int = 0

    @property
    def compiled(self) -> CompiledQuery:
        """The query itself."""
        return compile_text(self.text, self.language, name=self.source)[self.query]

    @property
    def state(self) -> str:
        """In one word."""
        if self.problem is not None:
            return "failed"
        return "paused" if self.is_paused else "running"


@dataclass(slots=True)
class Entries:
    """All queries by name, as the journal's records make them.

    Matches of a query that was stopped may still come, up to the time at which it stops; its sink
    is remembered.
    """

    by_name: dict[str, Entry] = field(default_factory=dict)
    sinks: dict[str, int] = field(default_factory=dict)

    def apply(self, record: Mapping[str, Any]) -> None:
        """What a record of the journal changes; records of other things change nothing here."""
        name = record.get("name", "")
        match record["op"]:
            case "add":
                place = Place(record["node"], record["sink"])
                self.by_name[name] = Entry(
                    name,
                    record["text"],
                    record["source"],
                    record["language"],
                    record["query"],
                    place,
                    record["when"],
                )
                self.sinks[name] = place.sink
            case "remove":
                del self.by_name[name]
            case "pause" | "resume" as op:
                self.by_name[name].is_paused = op == "pause"
            case "fail":
                self.by_name[name].problem = error_from_json(record["error"])
            case "done":
                for each, count in record["matches"].items():
                    if each in self.by_name:
                        self.by_name[each].matches += count
            case _:
                pass

    def known(self, name: str) -> Entry:
        """A query by its name."""
        return known_query(name, self.by_name)

    def free_name(self, wished: str | None, usual: str) -> str:
        """The name that was asked for, if it is free; else one like the usual one."""
        if len(self.by_name) >= MOST_QUERIES:
            raise LimitExceeded.of(
                "too-many-queries",
                f"the manager has {MOST_QUERIES:,} queries, which is all it takes",
                help="stop some with: cepheid workload stop NAME",
            )
        name = usual[:LONGEST_NAME] if wished is None else wished
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise OptionError.of(
                "bad-name",
                f"{name[: LONGEST_NAME + 1]!r} is no name for a query",
                help=f"1 to {LONGEST_NAME} characters that can be printed",
            )
        if wished is None:
            return free_name(name, self.by_name)
        stop = f"give another --name, or stop it first: cepheid workload stop {name}"
        refuse_taken(name, self.by_name, stop)
        return name
