"""The queries that a manager knows, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cepheid.hosts.query_names import free_name, known_query, refuse_taken
from cepheid.manager.registered_sink import Target
from cepheid.manager.wire import error_as_json, error_from_json
from cepheid.model.errors import CepheidError, LimitExceeded, OptionError
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.fused_placement import Place

MOST_QUERIES = 10_000
LONGEST_NAME = 100


@dataclass(slots=True)
class Entry:
    """A query: its text, where it runs, since when, and what it found.

    `when` is a time of the clock, `since` the event time from which on it sees events.
    """

    name: str
    text: str
    source: str
    language: str
    query: str
    place: Place
    when: str
    since: int | None = None
    is_paused: bool = False
    problem: CepheidError | None = None
    matches: int = 0

    @property
    def compiled(self) -> CompiledQuery:
        """The query itself."""
        return compile_text(self.text, self.language, name=self.source)[self.query]

    def as_json(self) -> dict[str, Any]:
        """For a journal that begins anew."""
        kept = {name: getattr(self, name) for name in _KEPT}
        problem = None if self.problem is None else error_as_json(self.problem)
        return {**kept, "node": self.place.node, "sink": self.place.sink, "problem": problem}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Entry:
        """The other way round."""
        problem = values["problem"]
        return cls(
            **{name: values[name] for name in _KEPT if name in values},
            place=Place(values["node"], values["sink"]),
            problem=None if problem is None else error_from_json(problem),
        )

    @property
    def state(self) -> str:
        """In one word."""
        if self.problem is not None:
            return "failed"
        return "paused" if self.is_paused else "running"


_KEPT = ("name", "text", "source", "language", "query", "when", "since", "is_paused", "matches")


@dataclass(frozen=True, slots=True)
class Route:
    """Which sink proxy delivers the matches of a query, and where to.

    They may come until time has passed `until`, at which the query was stopped.
    """

    proxy: int
    target: Target
    is_stopped: bool = False
    until: int | None = None

    def is_over(self, watermark: int) -> bool:
        """Whether no match can come any more."""
        return self.is_stopped and (self.until is None or self.until <= watermark)


@dataclass(slots=True)
class Entries:
    """All queries by name, as the journal's records make them.

    Matches of a query that was stopped may still come, up to the time at which it stops; its route
    is remembered. `ends` are the lengths of files that grow.
    """

    by_name: dict[str, Entry] = field(default_factory=dict)
    routes: dict[str, Route] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)

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
                    record["at"],
                )
                target = Target.from_json(record.get("target"))
                self.routes[name] = Route(place.sink, target)
                if target.path is not None:
                    self.ends[target.path] = 0
            case "remove":
                del self.by_name[name]
                stopped = replace(self.routes[name], is_stopped=True, until=record["at"])
                self.routes[name] = stopped
            case "drop":
                self.routes[name] = replace(self.routes[name], until=None)
            case "pause" | "resume" as op:
                self.by_name[name].is_paused = op == "pause"
                if op == "resume":
                    self.by_name[name].since = record["at"]
            case "fail":
                self.by_name[name].problem = error_from_json(record["error"])
            case "done":
                for each, count in record["matches"].items():
                    if each in self.by_name:
                        self.by_name[each].matches += count
                self.ends.update(record.get("ends", {}))
            case "shortened":
                self.ends[record["path"]] = record["end"]
            case _:
                pass

    def is_ending(self, name: str) -> bool:
        """Whether a query was stopped, and its end may not have come yet."""
        route = self.routes.get(name)
        is_stopped = route is not None and route.is_stopped and route.until is not None
        return is_stopped and name not in self.by_name

    def paths(self, watermark: int) -> set[str]:
        """The files and folders of sinks to which something may still be written."""
        routes = (each for each in self.routes.values() if not each.is_over(watermark))
        return {each.target.path for each in routes if each.target.path is not None}

    def as_json(self, watermark: int) -> dict[str, Any]:
        """All that is known, for a journal that begins anew; what is over is left out."""
        routes = {name: each for name, each in self.routes.items() if not each.is_over(watermark)}
        paths = self.paths(watermark)
        return {
            "queries": [each.as_json() for each in self.by_name.values()],
            "routes": {
                name: [each.proxy, each.target.as_json(), each.is_stopped, each.until]
                for name, each in routes.items()
            },
            "ends": {path: end for path, end in self.ends.items() if path in paths},
        }

    def set_json(self, values: Mapping[str, Any]) -> None:
        """The other way round."""
        queries = [Entry.from_json(each) for each in values["queries"]]
        self.by_name = {each.name: each for each in queries}
        self.routes = {
            name: Route(proxy, Target.from_json(target), is_stopped, until)
            for name, (proxy, target, is_stopped, until) in values["routes"].items()
        }
        self.ends = dict(values["ends"])

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
