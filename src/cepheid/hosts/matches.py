"""Matches as a host delivers them: lazy, so that counting is cheap and tables wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.hosts.event_identity import chain_ids, event_lanes, match_ids
from cepheid.hosts.match_columns import event_column
from cepheid.hosts.plain_types import python_rows
from cepheid.hosts.store import View
from cepheid.kernels.expand import expand_columns, expand_groups
from cepheid.kernels.memory import room
from cepheid.kernels.sequence_shape import SequenceShape
from cepheid.model.errors import LimitExceeded
from cepheid.planner.chains import Chains
from cepheid.planner.match_schema import MatchForm


@dataclass(slots=True)
class Flat:
    """Matches as rows of ordinals, one column per variable."""

    rows: np.ndarray

    def __len__(self) -> int:
        """How many matches."""
        return len(self.rows)

    @property
    def is_empty(self) -> bool:
        """Whether there is no match."""
        return not len(self.rows)


@dataclass(slots=True)
class Groups:
    """Matches that differ in their first event only, kept together (factorised).

    `later[:, g]` are the events of group g after the first.
    """

    later: np.ndarray
    start: np.ndarray
    count: np.ndarray
    listed: np.ndarray

    def __len__(self) -> int:
        """How many matches, not groups."""
        return int(self.count.sum())

    @property
    def is_empty(self) -> bool:
        """Whether there is no match; a group has at least one."""
        return not len(self.count)


def kernel_output(
    shape: SequenceShape, out: dict[str, np.ndarray], filled: int, listed: int
) -> Flat | Groups:
    """What a kernel wrote."""
    if shape.factorised:
        return Groups(
            out["later"][:, :filled],
            out["out_from"][:filled],
            out["out_count"][:filled],
            out["listed"][:listed],
        )
    rows = room(filled, shape.length)
    for state in range(shape.length):
        rows[:, state] = out[f"out{state}"][:filled]
    return Flat(rows)


@dataclass(slots=True)
class Piece:
    """Some matches and the events they refer to: by ordinals or, groups, by arrival numbers."""

    part: Flat | Groups | Chains
    view: View
    by_arrival: bool = False

    @property
    def rows(self) -> np.ndarray:
        """The ordinals of the matches' events, one row per match."""
        p = self._located()
        assert not isinstance(p, Chains)
        if isinstance(p, Groups):
            p = self.part = Flat(flat_rows(p.later, p.start, p.count, p.listed))
        return p.rows

    def index(self) -> np.ndarray | Chains:
        """The matches' events as rows of the view's table; each variable's lie side by side."""
        p = self._located()
        if isinstance(p, Chains):
            return p.moved(self.view.base)
        return _index(p, self.view.base)

    def portions(self, rows: int) -> Iterator[np.ndarray | Chains]:
        """The same, about `rows` matches at a time; groups are expanded as they come."""
        part, base = self._located(), self.view.base
        if isinstance(part, Chains):
            for begin in range(0, len(part), rows):
                yield part.part(begin, min(begin + rows, len(part))).moved(base)
            return
        if isinstance(part, Flat):
            for begin in range(0, len(part.rows), rows):
                yield _index(Flat(part.rows[begin : begin + rows]), base)
            return
        ends = np.cumsum(part.count)
        begin = 0
        while begin < len(ends):
            done = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + rows, side="right")))
            some = slice(begin, end)
            group = Groups(part.later[:, some], part.start[some], part.count[some], part.listed)
            yield _index(group, base)
            begin = end

    def named(self, name: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The matches with name(ordinal) in place of ordinals.

        Names are looked up once per group, not once per match.
        """
        p = self._located()
        if isinstance(p, Groups):
            later, listed = name(p.later), name(p.listed)
            if later.dtype == np.int64:
                return flat_rows(later, p.start, p.count, listed)
        return name(self.rows)

    def write_arrival_numbers(self, out: np.ndarray) -> None:
        """The matches with arrival numbers in place of ordinals, into rows that are theirs."""
        p, number = self.part, self.view.positions_of
        if not isinstance(p, Groups):
            out[:] = number(self.rows)
            return
        later, listed = (p.later, p.listed)
        if not self.by_arrival:
            later, listed = number(later), number(listed)
        expand_groups(later, p.start, p.count, listed, out)

    def _located(self) -> Flat | Groups | Chains:
        """The part with ordinals in any case: they tell where an event's attributes are."""
        p = self.part
        if self.by_arrival and isinstance(p, Groups):
            later, listed = self.view.ordinals_of(p.later), self.view.ordinals_of(p.listed)
            self.part, self.by_arrival = Groups(later, p.start, p.count, listed), False
        return self.part


def _index(part: Flat | Groups, base: int) -> np.ndarray:
    if isinstance(part, Flat):
        return np.asfortranarray(part.rows - base)
    columns = room(part.later.shape[0] + 1, len(part))
    expand_columns(part.later, part.start, part.count, part.listed, base, columns)
    return columns.T


def flat_rows(
    later: np.ndarray, start: np.ndarray, count: np.ndarray, listed: np.ndarray
) -> np.ndarray:
    """All matches of the groups as rows, one column per variable."""
    out = room(int(count.sum()), later.shape[0] + 1)
    expand_groups(later, start, count, listed, out)
    return out


class Matches:
    """The matches one call delivered: `len(m)`, `m.ids`, `m.table()`, or iterate over dicts."""

    def __init__(self, form: MatchForm, pieces: Sequence[Piece] = ()) -> None:
        """Matches of one query; `pieces` keep the events alive until they are written out."""
        self._form = form
        self._pieces = [piece for piece in pieces if not piece.part.is_empty]

    def __len__(self) -> int:
        """How many matches there are; nothing is expanded for it."""
        return sum(len(piece.part) for piece in self._pieces)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each match as a dict, variables as dicts of their attributes."""
        table = self.table()
        for begin in range(0, len(table), 4096):
            yield from python_rows(table.slice(begin, 4096))

    @property
    def form(self) -> MatchForm:
        """How these matches look as a table."""
        return self._form

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The matches as the engine delivered them, for hosts that choose among them."""
        return tuple(self._pieces)

    @property
    def ids(self) -> np.ndarray:
        """Event references, matches x variables: the id column's values, or arrival numbers.

        Of an iterated variable's events there is a tuple; of a variable that is not bound, None.
        Where running totals are kept instead of the events, the tuple has the last one alone.
        """
        id = self._form.options.id
        if id is None and not any(isinstance(piece.part, Chains) for piece in self._pieces):
            return self._arrival_numbers()
        parts = [np.zeros((0, len(self._form.variables)), np.int64)] if not self._pieces else []
        for piece in self._pieces:
            if isinstance(piece.part, Chains):
                name = piece.view.positions_of if id is None else piece.view.ids_of(id)
                parts.append(self._form.chain_ids(piece.part, name))
            else:
                assert id is not None
                parts.append(piece.named(piece.view.ids_of(id)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _arrival_numbers(self) -> np.ndarray:
        """Of all pieces in one array: they may be too many to write them out and then copy them."""
        sizes = [len(piece.part) for piece in self._pieces]
        out = room(sum(sizes), len(self._form.variables))
        begin = 0
        for piece, size in zip(self._pieces, sizes, strict=True):
            piece.write_arrival_numbers(out[begin : begin + size])
            begin += size
        return out

    def table(self) -> pa.Table:
        """The matches as a table: match_id, query, start, end, then a struct per variable."""
        limit = self._form.options.limits.matches_per_table
        if len(self) > limit:
            raise LimitExceeded.of(
                "too-many-matches",
                f"{len(self)} matches do not fit one table (the limit is {limit})",
                help="feed smaller batches, narrow the query, or raise limits.matches_per_table",
            )
        tables = list(self._written((piece.view, piece.index()) for piece in self._pieces))
        if not tables:
            return self._form.empty()
        return (
            tables[0]
            if len(tables) == 1
            else pa.concat_tables(tables, promote_options="permissive")
        )

    def as_events(self) -> tuple[pa.Table, dict[str, np.ndarray]]:
        """The table, and for each returned attribute the matches whose event does not have it."""
        lacks: dict[str, list[np.ndarray]] = {}
        for piece in self._pieces:
            column = partial(event_column, piece.view, self._form.options)
            for name, rows in self._form.absent_values(piece.index(), column).items():
                lacks.setdefault(name, []).append(rows)
        return self.table(), {name: np.concatenate(rows) for name, rows in lacks.items()}

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """The same table in portions of about `rows` rows, never held or expanded as a whole."""
        yield from self._written(
            (piece.view, portion) for piece in self._pieces for portion in piece.portions(rows)
        )

    def _written(self, parts: Iterable[tuple[View, np.ndarray | Chains]]) -> Iterator[pa.Table]:
        view: View | None = None
        lanes = np.zeros((2, 0), np.uint64)
        by_content = self._form.options.id is None
        for of, index in parts:
            # Few matches among many live events: look at their own events only. Among ties the
            # others are needed, too, to number those that are alike.
            events = index.rows[:, 1] if isinstance(index, Chains) else index
            if 2 * events.size < of.rows and not (by_content and of.ties):
                of, events = of.narrowed(events)
                if isinstance(index, Chains):
                    index = index.with_events(events)
                else:
                    index = events
            if of is not view:  # pieces of one run share their events
                view, lanes = of, event_lanes(of, self._form.options)
            column = partial(event_column, of, self._form.options)
            fingerprint = self._form.fingerprint
            if isinstance(index, Chains):
                ids = chain_ids(lanes, index, fingerprint)
                yield self._form.write_chains(of.table, index, ids, column)
            else:
                ids = match_ids(lanes, index, fingerprint)
                yield self._form.write(of.table, index, ids, column)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return self.table().to_pandas()

    def renamed(self, name: str) -> Matches:
        """The same matches under another query's name."""
        if name == self._form.name:
            return self
        return Matches(replace(self._form, name=name), self._pieces)

    def __add__(self, other: Matches) -> Matches:
        """The matches of two calls of the same query together."""
        return Matches(self._form, [*self._pieces, *other._pieces])

    def __repr__(self) -> str:
        """A short description; it does not write the matches out."""
        return f"<{len(self)} matches of {self._form.name}>"
