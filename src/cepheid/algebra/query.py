"""A query: one pattern with its name and output, and a program of several queries."""

from __future__ import annotations

from dataclasses import dataclass, field

from cepheid.algebra.expression import Expression
from cepheid.algebra.pattern import Pattern
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText


@dataclass(frozen=True, slots=True)
class Output:
    """A RETURN clause: the match becomes an event of type `type` with these attributes."""

    type: str
    attributes: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A named pattern; `columns` are the match table's variable columns, in pattern order.

    `pattern` never holds the RETURN's Map at its root: `output` does, so that every host can
    deliver either the match's events or the derived event. Where a query is another's input, the
    other reads events of type `output.type` (or of type `name` when there is no RETURN). Such an
    event is an instant at the match's end, or, if `lasting`, it lasts as long as the match.
    """

    name: str
    language: str
    pattern: Pattern
    columns: tuple[str, ...]
    output: Output | None = None
    source: SourceText | None = field(default=None, compare=False)
    lasting: bool = False

    @property
    def event_type(self) -> str:
        """The type of the events this query makes for other queries."""
        return self.output.type if self.output else self.name


@dataclass(frozen=True, slots=True)
class Program:
    """Queries in the order written; each may read the events of those before it.

    `catalogue` knows what the queries were checked against, with the sources and sinks that the
    text itself registers.
    """

    queries: tuple[Query, ...]
    catalogue: Catalogue = field(default_factory=Catalogue, compare=False)

    def query(self, name: str) -> Query:
        """The query of that name."""
        return next(query for query in self.queries if query.name == name)
