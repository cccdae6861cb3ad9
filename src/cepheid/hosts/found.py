"""What the queries of a workload found in one call: matches by the names of the queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from cepheid.hosts.many_matches import ManyMatches
from cepheid.hosts.match_union import as_union, empty_union, union_table
from cepheid.hosts.matches import Matches


class Found(Mapping[str, Matches]):
    """Matches by query; queries without any are not listed, but can be asked for.

    `found.total` is the number of all matches, `found.table()` all of them in one table.
    """

    def __init__(self, parts: Sequence[tuple[Sequence[str], ManyMatches | Matches]] = ()) -> None:
        """Parts of several queries, told apart when they are asked for, or of one."""
        self._parts = list(parts)
        self._by_name: dict[str, Matches] | None = None

    @classmethod
    def of_many(cls, names: Sequence[str], found: ManyMatches) -> Found:
        """What a shared engine found."""
        return cls([(names, found)]) if len(found) else cls()

    @classmethod
    def of_one(cls, names: Sequence[str], found: Matches) -> Found:
        """What an engine found for a query that has one or several names."""
        return cls([(names, found)]) if len(found) else cls()

    @classmethod
    def of_each(cls, names: Sequence[str], found: Sequence[Matches]) -> Found:
        """What several queries found, in the order of their names."""
        return cls([((name,), own) for name, own in zip(names, found, strict=True) if len(own)])

    @property
    def total(self) -> int:
        """How many matches all queries have; nothing is expanded for it."""
        return sum(
            len(part) * (1 if isinstance(part, ManyMatches) else len(names))
            for names, part in self._parts
        )

    def __getitem__(self, name: str) -> Matches:
        """The matches of one query."""
        return self._named()[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the queries that have matches."""
        return iter(self._named())

    def __len__(self) -> int:
        """How many queries have matches."""
        return len(self._named())

    def __add__(self, other: Found) -> Found:
        """The matches of two calls together."""
        return Found([*self._parts, *other._parts])

    def table(self) -> pa.Table:
        """All matches in one table: match_id, query, start, end, and the events by variable."""
        tables = [union_table(matches) for matches in self.values()]
        return pa.concat_tables(tables, promote_options="permissive") if tables else empty_union()

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """The same in portions of about `rows` matches of one query, never held as a whole."""
        for matches in self.values():
            form = matches.form
            for table in matches.tables(rows):
                yield as_union(table, form.events, form.options.end_column)

    def chosen(self, choose: Callable[[Matches], Matches]) -> Found:
        """The matches that a host keeps of each query's."""
        return Found([((name,), choose(matches)) for name, matches in self.items()])

    def _named(self) -> dict[str, Matches]:
        if self._by_name is None:
            found: dict[str, Matches] = {}
            for names, part in self._parts:
                if isinstance(part, ManyMatches):
                    own = {names[q]: part.of(q) for q in part.counts().nonzero()[0].tolist()}
                else:
                    own = {name: part.renamed(name) for name in names}
                for name, matches in own.items():
                    before = found.get(name)
                    found[name] = matches.renamed(name) if before is None else before + matches
            self._by_name = {n: m for n, m in found.items() if len(m)}
        return self._by_name

    def __repr__(self) -> str:
        """How many there are; they are not written out."""
        return f"<{self.total} matches of {len(self)} queries>"
