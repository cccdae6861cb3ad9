"""What a batch's schema must be like, known before its rows are: a refusal leaves no trace."""

from __future__ import annotations

import pyarrow as pa

from cepheid.hosts.event_reader import unknown_column
from cepheid.hosts.type_codes import bad_type_column
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.planner.prepare import Prepared, time_domain


def check_batch_schema(batch: pa.Schema, prepared: Prepared) -> None:
    """Refuse a batch without type, time or id, or that counts time in another way."""
    options = prepared.options
    for name in (options.type, options.end_column, options.id):
        if name is not None and batch.get_field_index(name) < 0:
            raise unknown_column(name, batch.names)
    _check_type_column(batch, options)
    counted = time_domain(batch, options)
    is_known = not pa.types.is_null(batch.field(options.end_column).type)
    if is_known and counted.is_timestamp != prepared.domain.is_timestamp:
        before, now = ("timestamps", "integers")[:: 1 if prepared.domain.is_timestamp else -1]
        raise DataError.of(
            "mixed-types",
            f"the time column `{options.end_column}` held {before} before and holds {now} now",
            help="give every batch times of one kind",
        )


def _check_type_column(batch: pa.Schema, options: Options) -> None:
    kind = batch.field(options.type).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    fits = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_null)
    if not any(test(kind) for test in fits):
        raise bad_type_column(options.type, kind)


def merged_schema(known: pa.Schema | None, batch: pa.Schema) -> pa.Schema:
    """The columns of both, each wide enough for both."""
    if known is None:
        return batch
    try:
        return pa.unify_schemas([known, batch], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        for name in batch.names:
            before, now = known.get_field_index(name), batch.field(name).type
            if before >= 0 and not _fit(known.field(before), batch.field(name)):
                raise DataError.of(
                    "mixed-types",
                    f"column `{name}` was {known.field(before).type} before and is {now} now",
                    help="give every batch the same column types",
                ) from None
        raise


def _fit(one: pa.Field, other: pa.Field) -> bool:
    try:
        pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True
