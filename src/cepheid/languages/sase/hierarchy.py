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


def check_references(text: ProgramText, catalogue: Catalogue, findings: Findings) -> None:
    """Refuse a query that reads its own events, or those of a query that stands after it."""
    made = [_made_type(query) for query in text.queries]
    for position, query in enumerate(text.queries):
        own, later = made[position], made[position + 1 :]
        earlier = {name.text for name in made[:position] if name is not None}
        for name in (each for component in query.components for each in component.types):
            if own is not None and name.text == own.text:
                findings.error(
                    "cyclic-reference",
                    f"the query makes events of type `{name.text}` and reads them, too",
                    name.span,
                    "its own result",
                    help="give the query or its RETURN clause another name",
                )
                continue
            after = next((each for each in later if each and each.text == name.text), None)
            if after is None or name.text in earlier or name.text in catalogue.types:
                continue
            findings.error(
                "forward-reference",
                f"events of type `{name.text}` are made by a query that stands further down",
                name.span,
                "not made yet",
                notes=(f"`{name.text}` is made at {findings.place(after.span)}",),
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
