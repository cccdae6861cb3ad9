"""Orders to a workload that runs on a stream: they travel as rows and take effect at an event time.

An order without a time takes effect after all events that any bucket can have seen: one later than
the watermark and the allowed lateness, which is the same in every bucket and when it is replayed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from cepheid.model.errors import OptionError
from cepheid.planner.active import Active
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.workload_plan import Member

BEGIN, END, REMOVE = "begin", "end", "remove"


@dataclass(frozen=True, slots=True)
class Order:
    """Begin or end to show events to the query `name`, from the time `at` on.

    To remove it is to end it, and to forget its name. Orders are carried out in the order of their
    numbers, also those that arrive together.
    """

    kind: str
    name: str
    lane: int
    at: int | None = None
    query: tuple[str, str, str] | None = None
    number: int = 0

    def text(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Order:
        """The other way round."""
        values = json.loads(text)
        query = values.pop("query")
        return cls(**values, query=None if query is None else tuple(query))

    def carried_out(self, members: tuple[Member, ...], earliest: int) -> tuple[Member, ...]:
        """The members after it; it cannot take effect before `earliest`."""
        at = earliest if self.at is None else max(self.at, earliest)
        if self.kind == BEGIN:
            assert self.query is not None
            return (*members, Member(self.name, read_query(self.query), Active(since=at)))
        return tuple(
            replace(m, active=replace(m.active, until=min(m.active.until, at)))
            if m.name == self.name
            else m
            for m in members
        )


def refuse_sources(query: CompiledQuery) -> None:
    """A query that joins a stream under way reads its events as they are made already."""
    if query.program.catalogue.sources:
        raise OptionError.of(
            "sources-in-workload",
            "the text registers sources, and a stream under way can have no others",
            help="leave out `register`; the query reads the events that are there",
        )


def written_query(query: CompiledQuery) -> tuple[str, str, str]:
    """A query as texts: its text, its language and which of the text's queries it is."""
    return query.source.text, query.language, query.name


def read_query(query: tuple[str, str, str]) -> CompiledQuery:
    """The other way round."""
    text, language, name = query
    return compile_text(text, language)[name]


def written_member(member: Member) -> list[Any]:
    """A member as JSON knows it."""
    return [member.name, *written_query(member.query), member.active.since, member.active.until]


def read_member(values: list[Any]) -> Member:
    """The other way round."""
    name, text, language, query, since, until = values
    return Member(name, read_query((text, language, query)), Active(since, until))
