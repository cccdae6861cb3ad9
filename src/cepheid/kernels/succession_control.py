"""What the kernel of successors tells its caller: why it stopped, what it needs and counted."""

from __future__ import annotations

from numba import float64, int64

DONE, UPKEEP, OUTPUT, ROOM = range(4)
"""Why it stopped: at the end, to have its arrays tidied, with enough to deliver, for more room."""

(
    NODES,
    RUNS,
    MATCHES,
    ROWS,
    WITNESSES,
    IS_RESUMED,
    TOP,
    SEEN,
    DUE,
    NEEDED,
) = range(10)
"""Places in `control`; what is needed of each array comes next, then the counts of waiting rows.

DUE is the next instant of a timer.
"""

OF_NODES, OF_FOUND, OF_WAITING, OF_LISTS, OF_WITNESSES, OF_OUT, OF_ENDS, ARRAYS = range(8)
"""The arrays that can become too small: what is needed of them, 0 if they are large enough."""

COUNTS = NEEDED + ARRAYS

TOUCHED, STARTED, FINISHED, VISITED, COUNTERS = range(5)
"""Counters: instances looked at, instances that began to wait, matches, operators at work."""

FAR = 2**62

CONDITION = int64(
    int64, int64[:, ::1], int64, int64, int64, int64[:, :], float64[:, :], int64[::1], float64[::1]
)
"""(call, nodes, m, q, base, facts, numbers, ci, cf): a truth value as 0 or 1, or a hash."""
