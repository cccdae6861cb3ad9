"""The columns of a batch by name, and numbers in the memory where Arrow has them.

Arrow makes a new object whenever a column is asked for, which takes longer than much of what is
then done with it; a few columns at once cost less than each of them alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

ColumnOf = Callable[[str], pa.Array | None]
"""The column of a name, or None."""

NO_NUMBERS = np.zeros(0, np.int64)
NO_NUMBERS.flags.writeable = False

_FEW = 4


class BatchColumns:
    """Columns of batches that mostly have the same schema."""

    def __init__(self) -> None:
        """No schema is known yet."""
        self._schema: pa.Schema | None = None
        self._names: list[str] = []

    def of(self, batch: pa.RecordBatch) -> ColumnOf:
        """The columns of one batch."""
        schema = batch.schema
        if self._schema is None or schema != self._schema:
            self._schema, self._names = schema, schema.names
        if len(self._names) <= _FEW:
            return dict(zip(self._names, batch.columns, strict=True)).get
        return lambda name: batch.column(name) if name in self._names else None


def int64_values(column: pa.Array) -> np.ndarray:
    """A column of int64 without nulls, read-only, where it lies."""
    if not len(column):
        return NO_NUMBERS
    values = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
    values.flags.writeable = False
    return values
