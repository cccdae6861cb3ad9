"""Batches whose columns a kernel can read as they are: close integer keys, numbers, no nulls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.event_columns import EventColumns
from cepheid.model.undefined import ABSENT_FLOAT, MIN_INT
from cepheid.planner.sequence_layout import Layout

MOST_PLAIN_TYPES = 12
"""Beyond this many event types a lookup table beats comparing with each."""


class PlainColumns:
    """Hands a batch's own buffers to the kernel, or says that it cannot."""

    def __init__(self, columns: EventColumns, key: str | None) -> None:
        """For a layout without tests on strings and with at most one integer key column."""
        self._columns = columns
        self._key = key

    @classmethod
    def of(cls, columns: EventColumns, layout: Layout) -> PlainColumns | None:
        """None when the layout needs more than the raw columns."""
        groups = layout.key_attributes
        numbers = all(kind in (ScalarType.INT, ScalarType.FLOAT) for _, kind in layout.columns)
        if layout.bit_tests or not numbers or len(groups) > 1 or layout.bits_of_any_type:
            return None
        if layout.selection:  # tests on top of the kernel look at candidates, not at its matches
            return None
        if layout.scan != "stacks":
            return None
        if groups and layout.key_kinds != (ScalarType.INT,):
            return None
        return cls(columns, groups[0][0] if groups else None)

    def inputs(self, batch: pa.RecordBatch) -> dict[str, Any] | None:
        """The kernel's column arguments; None when this batch has nulls or other types."""
        values: dict[str, Any] = {"key_base": 0, "key_size": 0}
        if self._key is not None:
            key = _numbers(batch, self._key, ScalarType.INT)
            keys = self._columns.keys
            assert keys is not None
            close = None if key is None else keys.close_range(key)
            if close is None:
                return None
            values |= {"k0": key, "key_base": close[0], "key_size": close[1]}
        for c, (name, kind) in enumerate(self._columns.layout.columns):
            column = _numbers(batch, name, kind)
            if column is None or (len(column) and column.min() < _LEAST[kind]):
                return None
            values[f"c{c}"] = column
        return values


_LEAST = {ScalarType.INT: MIN_INT, ScalarType.FLOAT: np.nextafter(ABSENT_FLOAT, 0.0)}


def whole_numbers(batch: pa.RecordBatch, name: str) -> np.ndarray | None:
    """A column of integers without nulls; None when it is not like that."""
    return _numbers(batch, name, ScalarType.INT)


def _numbers(batch: pa.RecordBatch, name: str, kind: ScalarType) -> np.ndarray | None:
    where = batch.schema.get_field_index(name)
    if where < 0:
        return None
    column = batch.column(where)
    wanted = pa.float64() if kind is ScalarType.FLOAT else pa.int64()
    if column.type != wanted or column.null_count:
        return None
    return np.asarray(column)
