"""Batches whose rows a kernel can take as they are: in order of time, with close integer keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import attributes
from cepheid.hosts.batch_columns import NO_NUMBERS, ColumnOf, int64_values
from cepheid.hosts.event_columns import EventColumns
from cepheid.kernels.plain_rows import PlainRows
from cepheid.model.event_time import MAX_TIME

_MOST_TYPES = 12
"""Beyond this many event types a lookup table beats comparing with each."""


@dataclass(slots=True)
class PlainBatch:
    """The first rows of a batch: how many, and the relevant ones among them.

    The arrays, but for `selected`, are the reader's own: they last until it is used again.
    """

    taken: int
    selected: np.ndarray
    mask: np.ndarray
    times: np.ndarray
    keys: np.ndarray


class PlainColumns:
    """Reads a batch's types, times and keys in the buffers they came in, or says that it cannot."""

    def __init__(self, columns: EventColumns) -> None:
        """For a layout that `is_plain`."""
        self._columns = columns
        layout = columns.layout
        self._key = layout.key_attributes[0][0] if layout.key_attributes else None
        tests = [test for _, _, test in layout.bit_tests] + [test for _, test in layout.computed]
        self._needed = {name for test in tests for _, name in attributes(test)}
        self._needed |= {name for name, _ in layout.columns} - {name for name, _ in layout.computed}
        self._rows = PlainRows()

    def read(
        self,
        batch: pa.RecordBatch,
        column: ColumnOf,
        codes: np.ndarray,
        times: np.ndarray,
        latest: int,
    ) -> PlainBatch | None:
        """The rows up to the first block that is not in order, or has a key far from the others.

        None when not even the first rows can be taken; `codes` and `times` are the whole batch's.
        """
        types = self._columns.types
        wanted = types.wanted_codes(codes.dtype)
        ends = times[0] > -MAX_TIME and times[-1] < MAX_TIME
        if not ends or not 0 < len(wanted) <= _MOST_TYPES:
            return None
        keys, close = NO_NUMBERS, (0, 0)
        if self._key is not None:
            values = column(self._key)
            if not isinstance(values, pa.Int64Array) or values.null_count:
                return None
            keys = int64_values(values)
            assert self._columns.keys is not None
            found = self._columns.keys.close_range(keys)
            if found is None:
                return None
            close = found
        if self._needed and not self._needed.issubset(batch.schema.names):
            return None
        read = self._rows.select(codes, types.bits, wanted, times, latest, keys, close)
        return PlainBatch(*read) if read[0] else None
