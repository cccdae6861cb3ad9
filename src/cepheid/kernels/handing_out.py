"""What the roots of a graph have found, handed to the queries that have these roots."""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import allocating


@allocating
def by_query(  # type: ignore[no-untyped-def]
    ends, rows, roots, delays, query_starts, queries, name_starts, names
):
    """Chains of rows [variable, event] for each query, in its own names of the variables.

    Operator r is the root of queries[query_starts[r] : query_starts[r + 1]]; query q calls variable
    v names[name_starts[q] + v]. Negative numbers tell of failures (match_nodes.failed). Returns
    where each query's matches and rows begin, the ends, counted from there, the rows, and how long
    after its last event each match ends.
    """
    count = name_starts.shape[0] - 1
    match_starts = np.zeros(count + 1, np.int64)
    row_starts = np.zeros(count + 1, np.int64)
    begin = 0
    for m in range(ends.shape[0]):
        for at in range(query_starts[roots[m]], query_starts[roots[m] + 1]):
            match_starts[queries[at] + 1] += 1
            row_starts[queries[at] + 1] += ends[m] - begin
        begin = ends[m]
    for q in range(count):
        match_starts[q + 1] += match_starts[q]
        row_starts[q + 1] += row_starts[q]
    own_ends = np.empty(match_starts[count], np.int64)
    own_rows = np.empty((row_starts[count], 2), np.int64)
    own_delays = np.empty(match_starts[count], np.int64)
    next_match = match_starts.copy()
    next_row = row_starts.copy()
    begin = 0
    for m in range(ends.shape[0]):
        for at in range(query_starts[roots[m]], query_starts[roots[m] + 1]):
            q = queries[at]
            place = next_row[q]
            for row in range(begin, ends[m]):
                v = rows[row, 0]
                if v >= 0:
                    v = names[name_starts[q] + v]
                elif v < -1:
                    v = -2 - names[name_starts[q] - 2 - v]
                own_rows[place, 0] = v
                own_rows[place, 1] = rows[row, 1]
                place += 1
            next_row[q] = place
            own_ends[next_match[q]] = place - row_starts[q]
            own_delays[next_match[q]] = delays[m]
            next_match[q] += 1
        begin = ends[m]
    return match_starts, row_starts, own_ends, own_rows, own_delays
