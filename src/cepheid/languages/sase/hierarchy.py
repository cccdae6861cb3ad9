"""Several queries in one text: their names, and which may read the events of which."""

from __future__ import annotations

from cepheid.languages.findings import Findings
from cepheid.languages.sase.returning import listed
from cepheid.languages.sase.syntax import Name, ProgramText, QueryText
from cepheid.model.catalogue import Catalogue


def query_names(text: ProgramText, findings: Findings) -> tuple[str, ...]:
    """The name of every query: its own, else its RETURN type, else `query` or `query_1`, ..."""
    names: list[str] = []
    places: dict[str, Name] = {}
    for position, query in enumerate(text.queries, start=1):
        given = _given_name(query)
        if given is None:
            names.append("query" if len(text.queries) == 1 else f"query_{position}")
            continue
        first = places.setdefault(given.text, given)
        if first is not given:
            findings.error(
                "duplicate-query",
                f"two queries have the name `{given.text}`",
                given.span,
                "used a second time",
                notes=(f"first used at {findings.place(first.span)}",),
                help="name the query with QUERY and a name before EVENT",
            )
        names.append(given.text)
    return tuple(names)


def read_types(text: ProgramText) -> frozenset[str]:
    """The types that some query of the text reads."""
    return frozenset(
        name.text
        for query in text.queries
        for component in query.components
        for name in component.types
    )


def check_references(text: ProgramText, catalogue: Catalogue, findings: Findings) -> None:
    """Refuse a query that reads its own events, or those of a query that stands after it."""
    makers: dict[str, list[tuple[int, Name]]] = {}
    for position, query in enumerate(text.queries):
        made = _made_type(query)
        if made is not None:
            makers.setdefault(made.text, []).append((position, made))
    for position, query in enumerate(text.queries):
        for name in (each for component in query.components for each in component.types):
            made_by = makers.get(name.text, [])
            if any(maker == position for maker, _ in made_by):
                findings.error(
                    "cyclic-reference",
                    f"the query makes events of type `{name.text}` and reads them, too",
                    name.span,
                    "its own result",
                    help="give the query or its RETURN clause another name",
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


def _given_name(query: QueryText) -> Name | None:
    if query.name is not None:
        return query.name
    return None if query.returning is None else listed(query.returning)[0]


def _made_type(query: QueryText) -> Name | None:
    """The type of the events a query makes, if the text names it."""
    made = None if query.returning is None else listed(query.returning)[0]
    return made or query.name
