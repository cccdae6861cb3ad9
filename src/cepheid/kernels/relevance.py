"""First pass over a batch: which rows matter to the query, which are late, is it in order.

Called by hosts/engine.py for every batch; O(rows), reads type codes and times only. Twin:
`tests/kernels/naive.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def select_in_order(types, times, wanted, frontier, selected):  # type: ignore[no-untyped-def]
    """Rows of wanted types while times do not fall below `frontier` or each other.

    Returns (selected count, rows read, greatest time): rows read < len(times) says that the row
    there is out of order and the caller must take the careful road.
    """
    count = 0
    latest = frontier
    for i in range(types.shape[0]):
        now = times[i]
        if now < latest:
            return count, i, latest
        latest = now
        selected[count] = i
        count += wanted[types[i]]
    return count, types.shape[0], latest


@njit(cache=True, nogil=True)
def select_any_order(  # type: ignore[no-untyped-def]
    types, times, wanted, latest, watermark, lateness, selected, late
):
    """Rows of wanted types in any order; a row older than the running watermark is late.

    The watermark after row i is max(watermark, latest time up to i - lateness), so what is late
    depends on the order of arrival alone, never on how arrivals were cut into batches.
    """
    count = 0
    late_count = 0
    for i in range(types.shape[0]):
        now = times[i]
        if now < watermark:
            late[late_count] = i
            late_count += 1
            continue
        if now > latest:
            latest = now
            if latest - lateness > watermark:
                watermark = latest - lateness
        selected[count] = i
        count += wanted[types[i]]
    return count, late_count, latest, watermark


def type_table(size: int) -> np.ndarray:
    """An all-zero lookup table from type code to 0/1, as the selectors expect it."""
    return np.zeros(size, np.int64)
