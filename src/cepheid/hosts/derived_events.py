"""Events one query derives, merged with the stream for the queries that read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expression import ScalarType
from cepheid.algebra.query import Query
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.set_aside import MATCH_START
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.planner.match_schema import scalar_type

_NUMBERS = (ScalarType.INT, ScalarType.FLOAT)
_HEXADECIMAL_DIGITS = 15
"""Digits of a match id that make an integer id: 60 bits, so that it is never negative."""


@dataclass(frozen=True, slots=True)
class DerivedEvents:
    """Events of a query; `lacks[attribute]` marks those that do not have it."""

    table: pa.Table
    lacks: Mapping[str, np.ndarray]


def derived_events(
    table: pa.Table, lacks: Mapping[str, np.ndarray], query: Query, options: Options
) -> DerivedEvents:
    """Matches as events of their query's type, at the time the match ends.

    Events that last as long as their match say when it started (`set_aside.event_starts`).
    """
    names = [name for name, _ in (query.output.attributes if query.output else ())]
    kept = {name: table.column(name) for name in names}
    kept[options.end_column] = table.column("end")
    if options.start is not None:
        kept[options.start] = table.column("start" if query.lasting else "end")
    elif query.lasting:
        kept[MATCH_START] = table.column("start")
    kept[options.type] = pa.chunked_array([pa.repeat(pa.scalar(query.event_type), len(table))])
    if options.id is not None and options.id not in kept:
        kept[options.id] = table.column("match_id")
    return DerivedEvents(pa.table(kept), lacks)


def with_derived(
    events: EventBatch | None,
    derived: Sequence[DerivedEvents],
    options: Options,
    stream: pa.Schema,
) -> EventBatch | None:
    """One batch of given and derived events; what either side lacks is absent, not null.

    `stream` is the schema of the given events, of which there may be none this time.
    """
    if not derived:
        return events
    parts = [_like(each.table, stream, options) for each in derived]
    lacks = [each.lacks for each in derived]
    if events is not None:
        given = pa.Table.from_batches([events.batch])
        parts.insert(0, given)
        lacks.insert(0, {n: events.lacks.get(n, _nulls(given, n)) for n in given.column_names})
    whole = pa.concat_tables(_agreeing(parts), promote_options="permissive")
    lacking: dict[str, np.ndarray] = {}
    for name in whole.column_names:
        told = (options.type, options.start, options.end_column, options.id, MATCH_START)
        if name not in told:
            everywhere = [np.full(len(p), name not in p.column_names, np.bool_) for p in parts]
            known = [own.get(name, all_) for own, all_ in zip(lacks, everywhere, strict=True)]
            lacking[name] = np.concatenate(known)
    batch = whole.unify_dictionaries().combine_chunks().to_batches()[0]
    return EventBatch(batch, lacking, open_schema=True)


def _nulls(table: pa.Table, name: str) -> np.ndarray:
    rows: np.ndarray = table.column(name).is_null().to_numpy()
    return rows


def _like(table: pa.Table, stream: pa.Schema, options: Options) -> pa.Table:
    """Derived columns in the types the stream already has for them, where they can be cast."""
    for number, name in enumerate(table.column_names):
        where = stream.get_field_index(name)
        if where < 0 or stream.field(where).type == table.schema.field(number).type:
            continue
        kind = stream.field(where).type
        column = table.column(number)
        if name == options.id:
            column = _ids(column, kind, name)
        table = table.set_column(number, name, _cast(column, kind, name))
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    of, wanted = scalar_type(column.type), scalar_type(kind)
    if ScalarType.UNKNOWN in (of, wanted) or (of in _NUMBERS and wanted in _NUMBERS):
        return column  # numbers find a common type with the stream's when they are put together
    if of is not wanted:
        raise DataError.of(
            "mixed-types",
            f"a query returns `{name}` as {of.value}, but in the events it is {wanted.value}",
            help="give the returned value another name with AS",
        )
    if pa.types.is_dictionary(kind):
        return column.dictionary_encode().cast(pa.dictionary(pa.int32(), kind.value_type))
    return column.cast(kind, safe=False)


def _first_digits(match_ids: pa.ChunkedArray) -> np.ndarray:
    """The number that the first hexadecimal digits of each id are."""
    digits = pc.binary_slice(match_ids.cast(pa.binary()), 0, _HEXADECIMAL_DIGITS)
    fixed = pa.concat_arrays(digits.chunks or [pa.array([], pa.binary())])
    data = np.frombuffer(fixed.cast(pa.binary(_HEXADECIMAL_DIGITS)).buffers()[1], np.uint8)
    letters = data[: len(fixed) * _HEXADECIMAL_DIGITS].reshape(-1, _HEXADECIMAL_DIGITS)
    numbers = np.zeros(len(fixed), np.int64)
    for column in letters.T:
        # "0" to "9" end with their value, "a" to "f" with theirs less nine.
        numbers = numbers << 4 | (column & 15) + 9 * (column >> 6)
    return numbers


def _ids(match_ids: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """Ids of derived events, made of the match ids, in the type of the stream's id column."""
    if pa.types.is_integer(kind):
        return pa.chunked_array([pa.array(_first_digits(match_ids))])
    if scalar_type(kind) in (ScalarType.STRING, ScalarType.UNKNOWN):
        return match_ids
    raise DataError.of(
        "bad-id-column",
        f"the id column `{name}` holds {kind}; events that a query derives cannot have such ids",
        help="use ids that are integers or strings, or leave out id=",
    )


def _agreeing(tables: list[pa.Table]) -> list[pa.Table]:
    """The tables with numbers of one name in one type: whole ones stay so where all of them are."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            if scalar_type(field.type) in _NUMBERS:
                kinds.setdefault(field.name, set()).add(field.type)
    return [_with_numbers(table, kinds) for table in tables]


def _with_numbers(table: pa.Table, kinds: dict[str, set[pa.DataType]]) -> pa.Table:
    for number, field in enumerate(table.schema):
        if len(kinds.get(field.name, ())) > 1:
            whole = all(pa.types.is_integer(kind) for kind in kinds[field.name])
            kind = pa.int64() if whole else pa.float64()
            table = table.set_column(
                number, field.name, table.column(number).cast(kind, safe=False)
            )
    return table
