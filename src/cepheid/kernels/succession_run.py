"""NEXT's operators at work: one function for all queries, whose conditions it calls.

Events come in the stable order (end, start, arrival), a set of one end at a time and complete.
Operators work bottom up on each set: all they find ends now. Nothing that ends now can follow what
also ends now, so an operator first serves its waiting instances and then lets the new ones wait.

The function is compiled once, for every query; only a query's conditions are its own code, behind a
function pointer (docs/decisions/0010). `operators` has a row for each operator (succession_shape.
table), `extra` what does not fit into rows.
"""

from __future__ import annotations

from numba import float64, int64, njit, types

from cepheid.kernels.match_nodes import (
    ALIVE,
    DEADLINE,
    END,
    ENDED,
    LENGTH,
    MASK,
    NEXT,
    NO_KEY,
    NODE,
    OPERATOR,
    START,
    TAKEN,
    USED,
    admit,
    copy_finding,
    failed,
    joined,
    latest,
    mixed,
    more_lists,
    order_of,
    released,
    same_stamps,
    sort_found,
    take_out,
    wider,
    written_out,
)
from cepheid.kernels.succession_shape import (
    CAPPED,
    EXCLUDE,
    EXTRA,
    EXTRAS,
    FIRST,
    FIRST_KEY,
    FLAGS,
    KIND,
    LEAF,
    MERGE,
    REPEAT,
    REPORTS,
    SECOND,
    SECOND_KEY,
    SKIP,
    STARTS,
    TEST,
    TESTS,
    UNORDERED,
)

DONE, UPKEEP, OUTPUT = range(3)
"""Why it stopped: at the end, to have its arrays tidied, or with enough to deliver."""

NODES, RUNS, MATCHES, ROWS, WITNESSES, COUNTS = range(6)
"""Places in `control`; the counts of waiting rows come last."""

TOUCHED, STARTED, FINISHED = range(3)
"""Counters: instances looked at, instances that began to wait, matches found."""

_FAR = 2**62

CONDITION = int64(
    int64, int64[:, ::1], int64, int64, int64, int64[:, :], float64[:, :], int64[::1], float64[::1]
)
"""(which, nodes, m, q, base, facts, numbers, ci, cf): a truth value as 0 or 1, or a hash."""


_TABLE, _LIST = int64[:, ::1], int64[::1]
_SIGNATURE = types.Tuple((int64, int64, *[_TABLE] * 7))(  # type: ignore[no-untyped-call]
    types.FunctionType(CONDITION),
    *(_TABLE, _LIST),  # operators, extra
    *(_LIST, int64, int64, int64),  # order, begin, end, base
    *(int64[:, :], float64[:, :], _LIST, float64[::1]),  # facts, numbers, ci, cf
    *(int64, int64, int64),  # most, upkeep_at, output_at
    *(_LIST, _LIST, _TABLE, _LIST),  # counters, control, spans, heads
    *[_TABLE] * 7,  # nodes to out_ends, as returned
)


@njit(_SIGNATURE, cache=True, nogil=True)
def work(  # type: ignore[no-untyped-def]
    condition,
    operators,
    extra,
    order,
    begin,
    end,
    base,
    facts,
    numbers,
    ci,
    cf,
    most,
    upkeep_at,
    output_at,
    counters,
    control,
    spans,
    heads,
    nodes,
    found,
    waiting,
    lists,
    witnesses,
    out,
    out_ends,
):
    """Work on events order[begin:end]; where and why it stopped, and the arrays, which may grow."""
    counts = control[COUNTS:]
    node_count = control[NODES]
    run = control[RUNS]
    matches = 0
    rows = 0
    status = DONE
    i = begin
    while i < end:
        if node_count >= upkeep_at:
            status = UPKEEP
            break
        if rows >= output_at:
            status = OUTPUT
            break
        now = facts[END, order[i] - base]
        j = i + 1
        while j < end and facts[END, order[j] - base] == now:
            j += 1
        top = 0
        for k in range(operators.shape[0]):
            spans[k, 0] = top
            kind = operators[k, KIND]
            first = operators[k, FIRST]
            if kind == LEAF:
                nodes = wider(nodes, node_count + j - i)
                found = wider(found, top + j - i)
                for x in range(i, j):
                    event = order[x]
                    if facts[MASK, event - base] & first:
                        nodes[node_count, 0] = -1
                        nodes[node_count, 1] = operators[k, SECOND]
                        nodes[node_count, 2] = event
                        found[top, 0] = node_count
                        found[top, 1] = facts[START, event - base]
                        found[top, 2] = 1
                        node_count += 1
                        top += 1
            elif kind == MERGE:
                for each in range(operators[k, EXTRAS]):
                    of = extra[operators[k, EXTRA] + each]
                    found = wider(found, top + spans[of, 1] - spans[of, 0])
                    for x in range(spans[of, 0], spans[of, 1]):
                        copy_finding(found, x, top)
                        top += 1
            elif kind == TESTS:
                found = wider(found, top + spans[first, 1] - spans[first, 0])
                for x in range(spans[first, 0], spans[first, 1]):
                    m = found[x, 0]
                    if condition(operators[k, TEST], nodes, m, m, base, facts, numbers, ci, cf):
                        copy_finding(found, x, top)
                        top += 1
            elif kind == EXCLUDE:
                second = operators[k, SECOND]
                for x in range(spans[second, 0], spans[second, 1]):
                    row = control[WITNESSES]
                    control[WITNESSES] += 1
                    witnesses = wider(witnesses, row + 1)
                    q = found[x, 0]
                    witnesses[row, 0] = q
                    witnesses[row, 1] = found[x, 1]
                    witnesses[row, 2] = now
                    witnesses[row, 3] = facts[START, nodes[q, 2] - base]
                    witnesses[row, 4] = heads[k]
                    heads[k] = row
                found = wider(found, top + spans[first, 1] - spans[first, 0])
                for x in range(spans[first, 0], spans[first, 1]):
                    m = found[x, 0]
                    since = -_FAR
                    for each in range(operators[k, EXTRAS]):
                        event = latest(nodes, m, extra[operators[k, EXTRA] + each])
                        if event >= 0:
                            since = max(since, facts[END, event - base])
                    own = facts[START, nodes[m, 2] - base]
                    fatal = -1
                    row = heads[k]
                    while row >= 0 and witnesses[row, 2] > since:
                        # Detection wins a tie: an exception counts only with smaller last stamps.
                        is_earlier = witnesses[row, 2] < now or witnesses[row, 3] < own
                        q = witnesses[row, 0]
                        if (
                            is_earlier
                            and witnesses[row, 1] > since
                            and (fatal < 0 or order_of(nodes, q, fatal, facts, base) < 0)
                            and (
                                operators[k, TEST] < 0
                                or condition(
                                    operators[k, TEST], nodes, m, q, base, facts, numbers, ci, cf
                                )
                            )
                        ):
                            fatal = q
                            if not operators[k, FLAGS] & REPORTS:
                                break
                        row = witnesses[row, 4]
                    if fatal < 0:
                        copy_finding(found, x, top)
                        top += 1
                    elif operators[k, FLAGS] & REPORTS:
                        nodes = wider(nodes, 2 * node_count + 2)
                        node_count = failed(nodes, node_count, m, fatal) + 1
                        found[top, 0] = node_count - 1
                        found[top, 1] = now
                        found[top, 2] = 1
                        top += 1
            else:  # FOLLOW and REPEAT: instances wait for their successors
                second = operators[k, SECOND]
                u, last = spans[second, 0], spans[second, 1]
                if last - u > 1 and operators[k, FLAGS] & UNORDERED:
                    sort_found(found, u, last, nodes, facts, base)
                while u < last:
                    v = same_stamps(found, u, last, nodes, facts, base)
                    run += 1
                    for x in range(u, v):
                        q = found[x, 0]
                        start = found[x, 1]
                        code = mixed(0, k)
                        if operators[k, SECOND_KEY] >= 0:
                            code = mixed(
                                code,
                                condition(
                                    operators[k, SECOND_KEY],
                                    nodes,
                                    q,
                                    q,
                                    base,
                                    facts,
                                    numbers,
                                    ci,
                                    cf,
                                ),
                            )
                            if code == NO_KEY:
                                continue
                        bucket = code & (lists.shape[0] - 1)
                        before = -1
                        row = lists[bucket, 0]
                        # The earliest stand first: behind one that q does not follow, it follows
                        # none.
                        while row >= 0 and waiting[row, ENDED] < start:
                            counters[TOUCHED] += 1
                            if waiting[row, DEADLINE] < now:
                                row = take_out(waiting, lists, counts, bucket, before, row)
                                continue
                            m = waiting[row, NODE]
                            if waiting[row, OPERATOR] == k and (
                                operators[k, SKIP] < 0
                                or condition(
                                    operators[k, SKIP], nodes, m, q, base, facts, numbers, ci, cf
                                )
                            ):
                                if operators[k, TEST] < 0 or condition(
                                    operators[k, TEST], nodes, m, q, base, facts, numbers, ci, cf
                                ):
                                    nodes = wider(nodes, 2 * node_count + 2)
                                    found = wider(found, top + 1)
                                    node_count = joined(nodes, node_count, m, q) + 1
                                    begins = m
                                    while nodes[begins, 0] >= 0:
                                        begins = nodes[begins, 0]
                                    found[top, 0] = node_count - 1
                                    found[top, 1] = facts[START, nodes[begins, 2] - base]
                                    found[top, 2] = waiting[row, LENGTH] + 1
                                    top += 1
                                if v - u == 1:
                                    row = take_out(waiting, lists, counts, bucket, before, row)
                                    continue
                                # Simultaneous successors share it: it goes when all had it.
                                waiting[row, TAKEN] = run
                            before = row
                            row = waiting[row, NEXT]
                    if v - u > 1:
                        for x in range(u, v):
                            q = found[x, 0]
                            code = mixed(0, k)
                            if operators[k, SECOND_KEY] >= 0:
                                code = mixed(
                                    code,
                                    condition(
                                        operators[k, SECOND_KEY],
                                        nodes,
                                        q,
                                        q,
                                        base,
                                        facts,
                                        numbers,
                                        ci,
                                        cf,
                                    ),
                                )
                            if code != NO_KEY:
                                released(waiting, lists, counts, code & (lists.shape[0] - 1), run)
                    u = v
                source = first
                if kind == REPEAT:
                    found = wider(found, top + spans[first, 1] - spans[first, 0])
                    for x in range(spans[first, 0], spans[first, 1]):
                        if operators[k, STARTS] < 0 or condition(
                            operators[k, STARTS],
                            nodes,
                            -1,
                            found[x, 0],
                            base,
                            facts,
                            numbers,
                            ci,
                            cf,
                        ):
                            copy_finding(found, x, top)
                            found[top, 2] = 1
                            top += 1
                    spans[k, 1] = top
                    source = k
                for x in range(spans[source, 0], spans[source, 1]):
                    m = found[x, 0]
                    if operators[k, FLAGS] & CAPPED and found[x, 2] >= most:
                        continue
                    code = mixed(0, k)
                    if operators[k, FIRST_KEY] >= 0:
                        code = mixed(
                            code,
                            condition(
                                operators[k, FIRST_KEY], nodes, m, m, base, facts, numbers, ci, cf
                            ),
                        )
                        if code == NO_KEY:
                            continue  # it equals nothing, so nothing follows it
                    deadline = _FAR
                    for each in range(operators[k, EXTRAS] // 2):
                        at = operators[k, EXTRA] + 2 * each
                        event = latest(nodes, m, extra[at])
                        if event >= 0:
                            deadline = min(deadline, facts[END, event - base] + extra[at + 1])
                    waiting = wider(waiting, counts[USED] + 1)
                    if counts[ALIVE] > 2 * lists.shape[0]:
                        lists = more_lists(waiting, lists)
                    counters[STARTED] += 1
                    admit(waiting, lists, counts, k, code, m, now, deadline, found[x, 2])
            spans[k, 1] = top
        root = operators.shape[0] - 1
        counters[FINISHED] += spans[root, 1] - spans[root, 0]
        out, out_ends, matches, rows = written_out(
            nodes, found, spans[root, 0], spans[root, 1], out, out_ends, matches, rows
        )
        i = j
    control[NODES] = node_count
    control[RUNS] = run
    control[MATCHES] = matches
    control[ROWS] = rows
    return i, status, nodes, found, waiting, lists, witnesses, out, out_ends
