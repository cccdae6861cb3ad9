"""Composites on their way from the graph that finds them to those that use them.

Each is a row: when it ends, which part of a pattern it is of, and its events whole, in order, with
the numbers of their variables. So they can be sorted among the events by their ends, and whoever
gets them needs nothing else: neither the events they are made of nor the graph they come from.
Without an id column an event is known by its content and its number among equal ones; the latter
is lost on the way, so it travels too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.event_identity import event_contents, twin_numbers
from cepheid.hosts.plain_types import fit, plain_schema
from cepheid.hosts.store import View
from cepheid.model.options import Options
from cepheid.planner.chains import Chains

END, PART, EVENTS = "__cepheid_end__", "__cepheid_part__", "__cepheid_events__"
"""The columns of composites that travel."""

_VARIABLE, _TWIN, _EVENT = "variable", "twin", "event"


def travelling_schema(events: pa.Schema, options: Options) -> pa.Schema:
    """The columns of composites over events of this schema; names of attributes become numbers."""
    plain = plain_schema(events)
    event = pa.struct([pa.field(f"c{number}", each.type) for number, each in enumerate(plain)])
    element = pa.struct(
        [
            pa.field(_VARIABLE, pa.int32()),
            pa.field(_TWIN, pa.int64()),
            pa.field(_EVENT, event),
        ]
    )
    return pa.schema(
        [
            pa.field(END, plain.field(options.end_column).type),
            pa.field(PART, pa.int32()),
            pa.field(EVENTS, pa.list_(element)),
        ]
    )


@dataclass(frozen=True, slots=True)
class FoundComposites:
    """What a graph found of some parts: the part of each chain, and the events they name."""

    chains: Chains
    parts: np.ndarray
    view: View

    def with_parts(self, parts: np.ndarray) -> FoundComposites:
        """The same under other numbers of parts."""
        return replace(self, parts=parts)

    def portions(self, most: int) -> Iterator[FoundComposites]:
        """The same, at most so many at a time."""
        for begin in range(0, len(self.chains), most):
            end = min(begin + most, len(self.chains))
            yield FoundComposites(self.chains.part(begin, end), self.parts[begin:end], self.view)

    def table(self, options: Options, schema: pa.Schema) -> pa.Table:
        """The composites as rows of `travelling_schema`."""
        chains = self.chains.moved(self.view.base)
        rows = chains.rows[:, 1]
        twins = None
        if options.id is None:
            twins = twin_numbers(event_contents(self.view, options), self.view)
        names = self.view.table.column_names
        events = self.view.table.take(pa.array(rows)).rename_columns(
            [f"c{number}" for number in range(len(names))]
        )
        element = schema.field(EVENTS).type.value_type
        event = element.field(_EVENT).type
        whole = pa.StructArray.from_arrays(
            [_one(column) for column in fit(events, pa.schema(list(event))).columns],
            fields=list(event),
        )
        elements = pa.StructArray.from_arrays(
            [
                pa.array(chains.rows[:, 0].astype(np.int32)),
                pa.array(np.zeros(len(rows), np.int64) if twins is None else twins[rows]),
                whole,
            ],
            fields=list(element),
        )
        offsets = np.concatenate([np.zeros(1, np.int64), chains.ends]).astype(np.int32)
        ends = whole.field(names.index(options.end_column)).take(pa.array(chains.ends - 1))
        return pa.table(
            [
                ends,
                pa.array(self.parts.astype(np.int32)),
                pa.ListArray.from_arrays(pa.array(offsets), elements),
            ],
            schema=schema,
        )


@dataclass(frozen=True, slots=True)
class Composites:
    """Composites that arrived: their events one after the other, and how many each has."""

    events: pa.RecordBatch
    variables: np.ndarray
    twins: np.ndarray
    lengths: np.ndarray
    parts: np.ndarray

    @classmethod
    def read(cls, table: pa.Table, events: pa.Schema) -> Composites:
        """What has travelled, over events of this schema, the columns PART and EVENTS."""
        listed = _one(table.column(EVENTS))
        elements = pc.list_flatten(listed)
        whole = elements.field(_EVENT)
        columns = [
            whole.field(number).cast(each.type, safe=False) for number, each in enumerate(events)
        ]
        return cls(
            pa.RecordBatch.from_arrays(columns, schema=events),
            elements.field(_VARIABLE).to_numpy().astype(np.int64),
            elements.field(_TWIN).to_numpy(),
            pc.list_value_length(listed).to_numpy().astype(np.int64),
            table.column(PART).to_numpy().astype(np.int64),
        )

    def with_parts(self, parts: np.ndarray) -> Composites:
        """The same under other numbers of parts."""
        return replace(self, parts=parts)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.lengths)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
