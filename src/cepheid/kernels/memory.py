"""Room for large results, from Arrow's memory pool.

The pool keeps freed blocks, where malloc gives blocks of this size back to the system and gets them
page by page again: for results of every batch that costs more than filling them. What is small
malloc keeps as well, and sooner.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

_SMALL = 1 << 16


def room(*shape: int, dtype: Any = np.int64) -> np.ndarray:
    """An array with any contents."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _SMALL:
        return np.empty(shape, dtype)
    return np.frombuffer(pa.allocate_buffer(size), dtype).reshape(shape)
