"""Several queries in one text: their names, and which may read the events of which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cepheid.languages.findings import Findings
from cepheid.languages.terms import Name
from cepheid.model.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class QueryPlace:
    """One query of a text, as the others see it.

    `name` is what it is called, `makes` the type of the events it makes, each if the text tells;
    `reads` are the types it reads.
    """

    name: Name | None
    makes: Name | None
    reads: tuple[Name, ...]


def query_names(
    queries: Sequence[QueryPlace], first_word: str, findings: Findings
) -> tuple[str, ...]:
    """The name of every query: what the text calls it, else `query` or `query_1`, ..."""
    names: list[str] = []
    places: dict[str, Name] = {}
    for position, query in enumerate(queries, start=1):
        given = query.name
        if given is None:
            names.append("query" if len(queries) == 1 else f"query_{position}")
            continue
        first = places.setdefault(given.text, given)
        if first is not given:
            findings.error(
                "duplicate-query",
                f"two queries have the name `{given.text}`",
                given.span,
                "used a second time",
                notes=(f"first used at {findings.place(first.span)}",),
                help=f"name the query with QUERY and a name before {first_word}",
            )
        names.append(given.text)
    return tuple(names)


def read_types(queries: Sequence[QueryPlace]) -> frozenset[str]:
    """The types that some query of the text reads."""
    return frozenset(name.text for query in queries for name in query.reads)


def check_references(
    queries: Sequence[QueryPlace], catalogue: Catalogue, rename: str, findings: Findings
) -> None:
    """Refuse a query that reads its own events, or those of a query that stands after it.

    `rename` is the help for a query that reads its own events.
    """
    makers: dict[str, list[tuple[int, Name]]] = {}
    for position, query in enumerate(queries):
        if query.makes is not None:
            makers.setdefault(query.makes.text, []).append((position, query.makes))
    for position, query in enumerate(queries):
        for name in query.reads:
            made_by = makers.get(name.text, [])
            if any(maker == position for maker, _ in made_by):
                findings.error(
                    "cyclic-reference",
                    f"the query makes events of type `{name.text}` and reads them, too",
                    name.span,
                    "its own result",
                    help=rename,
                )
            elif made_by and made_by[0][0] > position and name.text not in catalogue.types:
                findings.error(
                    "forward-reference",
                    f"events of type `{name.text}` are made by a query that stands further down",
                    name.span,
                    "not made yet",
                    notes=(f"`{name.text}` is made at {findings.place(made_by[0][1].span)}",),
                    help="move that query before this one",
                )
