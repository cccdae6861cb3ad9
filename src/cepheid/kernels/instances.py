"""Waiting instances as plain rows, to be kept and taken up again.

Where a query keeps running totals, the events do not tell its instances any more. So these are
written out: rows [operator, node, end, deadline, length], by which lists and queues can be made
anew. Hashes are left out, since they depend on the numbers that texts got in this process.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types

from cepheid.kernels.machine_code import allocating, compiled_for
from cepheid.kernels.match_nodes import NO_KEY, mixed
from cepheid.kernels.succession_control import CONDITION
from cepheid.kernels.succession_shape import DELAY, FIRST_KEY, KIND, SECOND
from cepheid.kernels.waiting_lists import (
    DEADLINE,
    ENDED,
    LENGTH,
    NEXT,
    NODE,
    OPERATOR,
    admit,
    earliest_due,
    schedule,
)

_TABLE, _LIST = int64[:, ::1], int64[::1]
_SIGNATURE = int64(
    types.FunctionType(CONDITION),
    *(_TABLE, _TABLE, _TABLE, int64),  # operators, rows, nodes, base
    *(int64[:, :], float64[:, :], _LIST, float64[::1]),  # facts, numbers, ci, cf
    *(_TABLE, _TABLE, _TABLE, _LIST),  # waiting, lists, queues, counts
)


@allocating
def write_waiting(waiting, lists, alive):  # type: ignore[no-untyped-def]
    """The rows of all that stands in some lists, each list from its first on."""
    rows = np.empty((alive, 5), np.int64)
    count = 0
    for bucket in range(lists.shape[0]):
        row = lists[bucket, 0]
        while row >= 0:
            rows[count, 0] = waiting[row, OPERATOR]
            rows[count, 1] = waiting[row, NODE]
            rows[count, 2] = waiting[row, ENDED]
            rows[count, 3] = waiting[row, DEADLINE]
            rows[count, 4] = waiting[row, LENGTH]
            count += 1
            row = waiting[row, NEXT]
    return rows[:count]


@compiled_for(_SIGNATURE)
def readmit(  # type: ignore[no-untyped-def]
    condition,
    operators,
    rows,
    nodes,
    base,
    facts,
    numbers,
    ci,
    cf,
    waiting,
    lists,
    queues,
    counts,
):
    """Let rows wait again, the earliest first; there must be room. When the next timer fires."""
    for x in range(rows.shape[0]):
        k, node, end = rows[x, 0], rows[x, 1], rows[x, 2]
        deadline, length = rows[x, 3], rows[x, 4]
        if operators[k, KIND] == DELAY:
            queue = operators[k, SECOND]
            schedule(waiting, queues, counts, queue, k, node, end, deadline, length)
            continue
        code = mixed(0, k)
        if operators[k, FIRST_KEY] >= 0:
            code = mixed(
                code,
                condition(operators[k, FIRST_KEY], nodes, node, node, base, facts, numbers, ci, cf),
            )
        if code != NO_KEY:
            admit(waiting, lists, counts, k, code, node, end, deadline, length)
    return earliest_due(waiting, queues)
