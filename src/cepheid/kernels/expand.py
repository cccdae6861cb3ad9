"""Factorised matches made flat: ranges of shared first events become rows."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def expand_groups(later, start, count, listed, out):  # type: ignore[no-untyped-def]
    """out[row] = (first event, later events...) for every first event of every group.

    `later[g, :]` are the events of group g after the first; its first events are
    listed[start[g] : start[g] + count[g]].
    """
    width = later.shape[1]
    row = 0
    for g in range(later.shape[0]):
        for j in range(start[g], start[g] + count[g]):
            out[row, 0] = listed[j]
            for s in range(width):
                out[row, 1 + s] = later[g, s]
            row += 1
    return row
