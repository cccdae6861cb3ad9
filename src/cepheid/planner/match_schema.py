"""The form of a query's matches as a table: columns, types, and how rows are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expression import Absent, ScalarType, attributes
from cepheid.algebra.query import Output
from cepheid.algebra.typing import infer
from cepheid.model.errors import DataError
from cepheid.model.match_columns import MATCH_COLUMNS
from cepheid.model.options import Options
from cepheid.planner.aggregates import Elements, ElementsOf
from cepheid.planner.chains import FAILURE, Chains
from cepheid.planner.column_expression import evaluate_value
from cepheid.planner.columns import Column, to_arrow
from cepheid.planner.gathering import gathered, repeated

if TYPE_CHECKING:
    from cepheid.planner.run_totals import RunValues  # loads the kernels of successors

_ARROW = {
    ScalarType.BOOL: pa.bool_(),
    ScalarType.INT: pa.int64(),
    ScalarType.FLOAT: pa.float64(),
    ScalarType.STRING: pa.string(),
    ScalarType.TIMESTAMP: pa.timestamp("us", "UTC"),
    ScalarType.UNKNOWN: pa.null(),
}


@dataclass(frozen=True, slots=True)
class MatchForm:
    """How matches of one query look; `deadline` is set when a match ends that long after it starts.

    SASE's negated end moves the match's end to first + T - 1 (docs/semantics.md#guard).
    `numbers` tell what the variables are called in chains of events; an iterated variable's column
    holds lists.
    """

    name: str
    variables: tuple[str, ...]
    options: Options
    fingerprint: str
    events: pa.Schema
    output: Output | None = None
    deadline: int | None = None
    absent: Absent = Absent.TRUE
    iterated: frozenset[str] = frozenset()
    numbers: tuple[int, ...] = ()

    def with_events(self, events: pa.Schema) -> MatchForm:
        """The same form over events of another schema."""
        return replace(self, events=events)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the match table."""
        time = self.events.field(self.options.end_column).type
        types = (pa.string(), pa.string(), time, time)
        fields = [pa.field(*each) for each in zip(MATCH_COLUMNS, types, strict=True)]
        if self.output is None:
            event = pa.struct(list(self.events))
            lists = pa.list_(event)
            kinds = {v: lists if v in self.iterated else event for v in self.variables}
            return pa.schema([*fields, *(pa.field(v, kind) for v, kind in kinds.items())])
        known = {
            (variable, column.name): scalar_type(column.type)
            for variable in self.variables
            for column in self.events
        }
        return pa.schema(
            [
                *fields,
                *(
                    pa.field(name, _ARROW[infer(expression, known)])
                    for name, expression in self.output.attributes
                ),
            ]
        )

    def empty(self) -> pa.Table:
        """A table of no matches."""
        return self.schema.empty_table()

    def write(
        self,
        events: pa.Table,
        index: np.ndarray,
        ids: pa.Array,
        column: Callable[[str], Column],
    ) -> pa.Table:
        """The matches whose events are rows index[match, variable] of `events`.

        `column` gives an attribute of these events as RETURN expressions read it.
        """
        rows = [np.ascontiguousarray(index[:, v]) for v in range(index.shape[1])]
        times = events.column_names.index(self.options.end_column)
        whole = self.output is None  # else only the times of the first and last event are asked for
        needed = range(events.num_columns) if whole else (times,)
        plain = {number: _one(events.column(number)) for number in needed}
        taken = [{n: gathered(c, each) for n, c in plain.items()} for each in rows]
        start = taken[0][times]
        end = taken[-1][times] if self.deadline is None else _later(start, self.deadline)
        columns: list[pa.Array] = [ids, repeated(self.name, len(index)), start, end]
        names = list(MATCH_COLUMNS)
        if whole:
            for variable, fields in zip(self.variables, taken, strict=True):
                names.append(variable)
                columns.append(
                    pa.StructArray.from_arrays(list(fields.values()), names=events.column_names)
                )
            return pa.table(columns, names=names)
        values = self._derived(len(index), self._lookup(index, column), None)
        return pa.table([*columns, *values.values()], names=[*names, *values])

    def write_chains(
        self,
        events: pa.Table,
        chains: Chains,
        ids: pa.Array,
        column: Callable[[str], Column],
    ) -> pa.Table:
        """The same for matches of any length, whose events are rows of `events`."""
        ends = _one(events.column(self.options.end_column))
        starts = ends if self.options.start is None else _one(events.column(self.options.start))
        first, last = chains.rows[chains.begins, 1], chains.rows[chains.ends - 1, 1]
        columns: list[pa.Array] = [ids, repeated(self.name, len(chains))]
        end = gathered(ends, last)
        if chains.delays is not None:
            end = _later(end, chains.delays)
        is_failure = chains.rows[chains.ends - 1, 0] == FAILURE
        start = gathered(starts, first)
        if chains.totals is not None:
            totals = chains.totals.chosen(chains.begins)
            is_run = pa.array(totals.counts > 0)
            start = pc.if_else(is_run, _as_times(totals.starts, start.type), start)
        if is_failure.any():
            start = pc.if_else(pa.array(is_failure), end, start)
        columns += [start, end]
        names = list(MATCH_COLUMNS)
        if self.output is not None:
            values = self._derived(
                len(chains), self._chain_lookup(chains, column), self._elements(chains, column)
            )
            return pa.table([*columns, *values.values()], names=[*names, *values])
        for variable, number in zip(self.variables, self.numbers, strict=True):
            names.append(variable)
            if variable in self.iterated:
                offsets, rows = chains.elements(number)
                columns.append(
                    pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _structs(events, rows))
                )
            else:
                columns.append(_structs(events, chains.last_of(number)))
        return pa.table(columns, names=names)

    def chain_ids(self, chains: Chains, name: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """name(event) of every match and variable; numbers alone if every match has one of each."""
        columns: list[np.ndarray] = []
        for variable, number in zip(self.variables, self.numbers, strict=True):
            if variable not in self.iterated:
                events = chains.last_of(number)
                if (events >= 0).all():
                    columns.append(name(events))
                    continue
            offsets, events = chains.elements(number)
            lists = [tuple(part) for part in np.split(name(events), offsets[1:-1])]
            column = np.empty(len(chains), object)
            column[:] = lists
            if variable not in self.iterated:
                column[:] = [part[0] if part else None for part in lists]
            columns.append(column)
        return np.stack(columns, axis=1)

    def absent_values(
        self, index: np.ndarray | Chains, column: Callable[[str], Column]
    ) -> dict[str, np.ndarray]:
        """For each returned attribute, the matches whose event does not have it."""
        if isinstance(index, Chains):
            lookup = self._chain_lookup(index, column)
        else:
            lookup = self._lookup(index, column)
        found = {}
        for name, expression in self.output.attributes if self.output else ():
            lacking = np.zeros(len(index), np.bool_)
            for variable, of in attributes(expression):
                absent = lookup(variable, of).absent_rows()
                lacking |= False if absent is None else absent
            found[name] = lacking
        return found

    def _derived(
        self,
        matches: int,
        lookup: Callable[[str, str], Column],
        elements: ElementsOf | None,
    ) -> dict[str, pa.Array]:
        assert self.output is not None
        types = self.schema
        return {
            name: to_arrow(
                evaluate_value(
                    expression,
                    lookup,
                    matches,
                    self.absent,
                    variables=self.variables,
                    elements=elements,
                )
            ).cast(types.field(name).type)
            for name, expression in self.output.attributes
        }

    def _chain_lookup(
        self, chains: Chains, column: Callable[[str], Column]
    ) -> Callable[[str, str], Column]:
        """Attributes of the last event of a variable; undefined where it has none."""
        number_of = dict(zip(self.variables, self.numbers, strict=True))

        def lookup(variable: str, name: str) -> Column:
            return column(name).take(chains.last_of(number_of[variable]))

        return lookup

    def _elements(self, chains: Chains, column: Callable[[str], Column]) -> ElementsOf:
        """All events of a variable, or their totals, for aggregates."""
        number_of = dict(zip(self.variables, self.numbers, strict=True))
        totals = chains.totals

        def elements(variable: str, name: str | None) -> Elements | RunValues:
            number = number_of[variable]
            if totals is not None and number in totals.variables:
                return totals.values(number, name, *chains.places(number), len(chains))
            offsets, rows = chains.elements(number)
            return Elements(offsets, None if name is None else column(name).take(rows))

        return elements

    def _lookup(
        self, index: np.ndarray, column: Callable[[str], Column]
    ) -> Callable[[str, str], Column]:
        position = {variable: v for v, variable in enumerate(self.variables)}
        known: dict[str, Column] = {}

        def lookup(variable: str, name: str) -> Column:
            if name not in known:
                known[name] = column(name)
            return known[name].take(index[:, position[variable]])

        return lookup


def scalar_type(kind: pa.DataType) -> ScalarType:
    """The scalar type of an Arrow type; UNKNOWN for what queries cannot compare."""
    if pa.types.is_dictionary(kind):
        return scalar_type(kind.value_type)
    if pa.types.is_boolean(kind):
        return ScalarType.BOOL
    if pa.types.is_integer(kind):
        return ScalarType.INT
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return ScalarType.FLOAT
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return ScalarType.STRING
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return ScalarType.TIMESTAMP
    return ScalarType.UNKNOWN


def wider_type(name: str, old: ScalarType, new: ScalarType) -> ScalarType:
    """The type that fits the values of a column seen so far and the new ones."""
    if new is ScalarType.UNKNOWN or new is old:
        return old
    if old is ScalarType.UNKNOWN:
        return new
    if {old, new} == {ScalarType.INT, ScalarType.FLOAT}:
        return ScalarType.FLOAT
    raise DataError.of(
        "mixed-types",
        f"column `{name}` was {old.value} before and is {new.value} now",
        help="give every batch the same column types",
    )


def _structs(events: pa.Table, rows: np.ndarray) -> pa.Array:
    """Whole events; null where the row is -1."""
    missing = rows < 0
    some = bool(missing.any())
    if some and not len(events):
        return pa.nulls(len(rows), pa.struct(list(events.schema)))
    chosen = np.where(missing, 0, rows) if some else rows
    fields = [gathered(_one(events.column(n)), chosen) for n in range(events.num_columns)]
    mask = pa.array(missing) if some else None
    return pa.StructArray.from_arrays(fields, names=events.column_names, mask=mask)


def _one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _as_times(times: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Times as the engine counts them, as values of the time column."""
    if not pa.types.is_timestamp(kind):
        return pa.array(times).cast(kind)
    return pa.array(times).cast(pa.timestamp("us", kind.tz)).cast(kind, safe=False)


def _later(start: pa.Array, deadline: int | np.ndarray) -> pa.Array:
    """start + deadline, in the unit of the column (microseconds for timestamps)."""
    kind = start.type
    if not pa.types.is_timestamp(kind):
        moved = start.cast(pa.int64()).to_numpy(zero_copy_only=False) + deadline
        return pa.array(moved).cast(kind)
    micro = start.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    moved = micro.to_numpy(zero_copy_only=False) + deadline
    return pa.array(moved).cast(pa.timestamp("us", kind.tz)).cast(kind, safe=False)
