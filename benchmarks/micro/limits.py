"""The memory-scan limit: how fast one core can read the columns every detector has to read."""

import numba

from benchmarks.workload import Columns, Int8s, Int64s


@numba.njit(cache=True)
def _sum_columns(types: Int8s, keys: Int64s, times: Int64s) -> int:
    total = 0
    for row in range(types.shape[0]):
        total += types[row] + keys[row] + times[row]
    return total


def memory_scan(events: Columns) -> int:
    """Read int8 type, int64 key and int64 time once; their sum proves that all rows were read."""
    return int(_sum_columns(events.type, events.key, events.time))
