"""Events one query derives, merged with the stream for the queries that read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.hosts.ingest import EventBatch
from cepheid.model.options import Options


def with_derived(
    events: EventBatch | None, derived: Sequence[pa.Table], options: Options
) -> EventBatch | None:
    """One batch of given and derived events; what either side lacks is absent, not null."""
    if not derived:
        return events
    parts = [] if events is None else [pa.Table.from_batches([events.batch])]
    parts += [_like(table, parts[0].schema if parts else None) for table in derived]
    whole = pa.concat_tables(parts, promote_options="permissive")
    lacks: dict[str, np.ndarray] = {}
    for name in whole.column_names:
        if name in (options.type, options.end_column, options.id):
            continue
        pieces = []
        for number, part in enumerate(parts):
            has = name in part.column_names
            if events is not None and number == 0 and has:
                nulls = part.column(name).is_null().to_numpy()
                pieces.append(events.lacks.get(name, nulls))
            else:
                pieces.append(np.full(len(part), not has, np.bool_))
        lacks[name] = np.concatenate(pieces)
    batch = whole.unify_dictionaries().combine_chunks().to_batches()[0]
    return EventBatch(batch, lacks, open_schema=True)


def _like(table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """Derived columns in the types the stream already has for them, where they can be cast."""
    if schema is None:
        return table
    for number, name in enumerate(table.column_names):
        where = schema.get_field_index(name)
        if where < 0 or schema.field(where).type == table.schema.field(number).type:
            continue
        kind = schema.field(where).type
        column = table.column(number)
        if pa.types.is_dictionary(kind):
            column = column.dictionary_encode().cast(pa.dictionary(pa.int32(), kind.value_type))
        elif not pa.types.is_null(kind):
            column = column.cast(kind)
        table = table.set_column(number, name, column)
    return table
