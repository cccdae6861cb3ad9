"""Matches of different queries in one table: the events as a list, each with its variable's name.

Queries have different variables, so their own tables cannot be put under one another. What a RETURN
clause makes stands in a column of its own, as JSON.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.matches import Matches
from cepheid.hosts.plain_types import python_rows

_FIXED = ("match_id", "query", "start", "end")


def union_schema(events: pa.Schema, time: str) -> pa.Schema:
    """The columns of the table for events of this schema, whose time column is `time`."""
    plain = _plain_struct(pa.struct(list(events)))
    kind = events.field(time).type
    element = pa.struct([pa.field("variable", pa.string()), pa.field("event", plain)])
    return pa.schema(
        [
            pa.field("match_id", pa.string()),
            pa.field("query", pa.string()),
            pa.field("start", kind),
            pa.field("end", kind),
            pa.field("events", pa.list_(element)),
            pa.field("returned", pa.string()),
        ]
    )


def empty_union() -> pa.Table:
    """A table of no matches of events that nobody has seen."""
    return pa.table(
        {
            "match_id": pa.array([], pa.string()),
            "query": pa.array([], pa.string()),
            "start": pa.array([], pa.int64()),
            "end": pa.array([], pa.int64()),
            "events": pa.array([], pa.list_(pa.struct([pa.field("variable", pa.string())]))),
            "returned": pa.array([], pa.string()),
        }
    )


def union_table(matches: Matches) -> pa.Table:
    """The matches of one query in the common form."""
    return as_union(matches.table(), matches.form.events, matches.form.options.end_column)


def as_union(table: pa.Table, events: pa.Schema, time: str) -> pa.Table:
    """A query's own table of matches in the common form."""
    schema = union_schema(events, time)
    columns = [table.column(name) for name in _FIXED]
    variables = [name for name in table.column_names if name not in _FIXED]
    element = schema.field("events").type.value_type
    of_variables = [v for v in variables if _is_event(table.schema.field(v).type)]
    if len(of_variables) < len(variables):  # a RETURN clause
        rows = python_rows(table.select(variables))
        returned = pa.array([json.dumps(row, default=str) for row in rows], pa.string())
        listed: pa.Array = pa.nulls(len(table), schema.field("events").type)
    else:
        returned = pa.nulls(len(table), pa.string())
        listed = _listed([(v, table.column(v)) for v in variables], element)
    return pa.table([*columns, listed, returned], schema=schema)


def _is_event(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) or (
        pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    )


def _listed(columns: list[tuple[str, pa.ChunkedArray]], element: pa.DataType) -> pa.Array:
    """For each match its events in the order of the variables; an unbound one has none."""
    rows = len(columns[0][1])
    structs, of_match, names = [], [], []
    for name, column in columns:
        array = _one(column)
        if pa.types.is_list(array.type):
            matched = np.asarray(pc.list_parent_indices(array))
            array = pc.list_flatten(array)
        else:
            matched = np.arange(rows)
        bound = array.is_valid().to_numpy(zero_copy_only=False)
        if not bound.all():
            array, matched = array.filter(pa.array(bound)), matched[bound]
        structs.append(_plain(array, element.field("event").type))
        of_match.append(matched)
        names.append(pa.repeat(pa.scalar(name), len(array)))
    matched = np.concatenate(of_match)
    order = pa.array(np.argsort(matched, kind="stable"))
    whole = pa.StructArray.from_arrays(
        [pa.concat_arrays(names).take(order), pa.concat_arrays(structs).take(order)],
        fields=list(element),
    )
    offsets = np.searchsorted(np.sort(matched), np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), whole)


def _plain(array: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """The same events without dictionaries, whose tables would have to agree."""
    fields = [array.field(n).cast(kind.field(n).type) for n in range(kind.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(kind))


def _plain_struct(kind: pa.StructType) -> pa.StructType:
    return pa.struct([pa.field(f.name, _decoded(f.type)) for f in kind])


def _decoded(kind: Any) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
