"""Rows of events in the order in which matches name them: what a table of matches is made of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.kernels.relevance import take_into

_LONGEST_KEPT = 1 << 20
_repeated: dict[str, pa.Array] = {}


def gathered(column: pa.Array, rows: np.ndarray) -> pa.Array:
    """The column's values at these rows, all of which it has."""
    kind = column.type
    is_wide = pa.types.is_primitive(kind) and kind.bit_width == 64
    if not is_wide or column.null_count or not len(rows):
        return column.take(pa.array(rows))
    values = np.frombuffer(column.buffers()[1], np.int64)[column.offset :]
    buffer = pa.allocate_buffer(8 * len(rows))
    take_into(values, rows, np.frombuffer(buffer, np.int64))
    return pa.Array.from_buffers(kind, len(rows), [None, buffer])


def repeated(text: str, times: int) -> pa.Array:
    """A column of one text; asked for with every batch, so a long one is kept and cut."""
    known = _repeated.get(text)
    if known is None or len(known) < times:
        known = pa.repeat(pa.scalar(text), max(times, 1024))
        if times <= _LONGEST_KEPT:
            if len(_repeated) > 100:
                _repeated.clear()
            _repeated[text] = known
    return known.slice(0, times)
