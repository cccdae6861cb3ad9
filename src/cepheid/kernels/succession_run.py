"""NEXT's operators at work: one function for all queries, whose conditions it calls.

Events come in the stable order (end, start, arrival), a set of one end at a time and complete.
Operators work bottom up on each set: all they find ends now. Nothing that ends now can follow what
also ends now, so an operator first serves its waiting instances and then lets the new ones wait.

Only operators that an event can reach are visited: the leaves it touches, and the users of each
operator that has found something. Those still to visit are bits of `active`, with a bit of `groups`
for each word of it; operands have lower numbers than their users, so the lowest comes first.

The function is compiled once, for every query; only a query's conditions are its own code, behind a
function pointer (docs/decisions/0010). `operators` has a row for each operator (succession_shape.
table), `extra` what does not fit into rows.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, njit, types, uint64

from cepheid.kernels.match_nodes import (
    ALIVE,
    DEADLINE,
    END,
    ENDED,
    LENGTH,
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
    renamed,
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
    MERGE,
    NO_VARIABLE,
    REPEAT,
    REPORTS,
    ROOT,
    SECOND,
    SECOND_KEY,
    SHIFT,
    SKIP,
    STARTS,
    TEST,
    TESTS,
    UNORDERED,
    USERS,
)

DONE, UPKEEP, OUTPUT = range(3)
"""Why it stopped: at the end, to have its arrays tidied, or with enough to deliver."""

NODES, RUNS, MATCHES, ROWS, WITNESSES, COUNTS = range(6)
"""Places in `control`; the counts of waiting rows come last."""

TOUCHED, STARTED, FINISHED, VISITED, COUNTERS = range(5)
"""Counters: instances looked at, instances that began to wait, matches, operators at work."""

_FAR = 2**62

CONDITION = int64(
    int64, int64[:, ::1], int64, int64, int64, int64[:, :], float64[:, :], int64[::1], float64[::1]
)
"""(call, nodes, m, q, base, facts, numbers, ci, cf): a truth value as 0 or 1, or a hash."""


_ONE, _SIX, _TWELVE, _LAST = np.uint64(1), np.uint64(6), np.uint64(12), np.uint64(63)
_LOW_BIT = np.zeros(64, np.int64)
_LOW_BIT[[(0x03F79D71B4CB0A89 << n) % 2**64 >> 58 for n in range(64)]] = np.arange(64)


@njit(cache=True, nogil=True)
def activate(operators, users, operator, active, groups):  # type: ignore[no-untyped-def]
    """Note that the users of an operator have to be visited."""
    for at in range(operators[operator, USERS], operators[operator + 1, USERS]):
        user = np.uint64(users[at])
        active[user >> _SIX] |= _ONE << (user & _LAST)
        groups[user >> _TWELVE] |= _ONE << ((user >> _SIX) & _LAST)


@njit(cache=True, nogil=True)
def next_active(active, groups):  # type: ignore[no-untyped-def]
    """The lowest operator that has to be visited, which is done with that; -1 for none."""
    for group in range(groups.shape[0]):
        if groups[group] != 0:
            word = (np.uint64(group) << _SIX) + _lowest(groups[group])
            operator = (word << _SIX) + _lowest(active[word])
            active[word] &= active[word] - _ONE
            if active[word] == 0:
                groups[group] &= groups[group] - _ONE
            return np.int64(operator)
    return np.int64(-1)


@njit(cache=True, nogil=True)
def _lowest(bits):  # type: ignore[no-untyped-def]
    """The number of the lowest bit that is set: de Bruijn's sequence tells it from its weight."""
    weight = bits & (~bits + _ONE)
    return np.uint64(_LOW_BIT[(weight * np.uint64(0x03F79D71B4CB0A89)) >> np.uint64(58)])


_TABLE, _LIST, _BITS = int64[:, ::1], int64[::1], uint64[::1]
_SIGNATURE = types.Tuple((int64, int64, *[_TABLE] * 7))(  # type: ignore[no-untyped-call]
    types.FunctionType(CONDITION),
    *(_TABLE, _LIST, _LIST),  # operators, extra, users
    *(_LIST, _LIST, _LIST),  # order, touch_starts, touched
    *(int64, int64, int64),  # begin, end, base
    *(int64[:, :], float64[:, :], _LIST, float64[::1]),  # facts, numbers, ci, cf
    *(int64, int64, int64),  # most, upkeep_at, output_at
    *(_LIST, _LIST, _TABLE, _LIST),  # counters, control, spans, heads
    *(_BITS, _BITS, _LIST),  # active, groups, visited
    *[_TABLE] * 7,  # nodes to out_ends, as returned
)


@njit(_SIGNATURE, cache=True, nogil=True)
def work(  # type: ignore[no-untyped-def]
    condition,
    operators,
    extra,
    users,
    order,
    touch_starts,
    touched,
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
    active,
    groups,
    visited,
    nodes,
    found,
    waiting,
    lists,
    witnesses,
    out,
    out_ends,
):
    """Work on events order[begin:end]; where and why it stopped, and the arrays, which may grow.

    Event order[x] touches the leaves touched[touch_starts[x] : touch_starts[x + 1]].
    """
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
        # Leaves depend on nothing: first how much each of them finds, then where, then what.
        top = 0
        seen = 0
        for at in range(touch_starts[i], touch_starts[j]):
            leaf = touched[at]
            if spans[leaf, 1] == 0:
                visited[seen] = leaf
                seen += 1
            spans[leaf, 1] += 1
        for at in range(seen):
            leaf = visited[at]
            size = spans[leaf, 1]
            spans[leaf, 0] = top
            spans[leaf, 1] = top
            top += size
            activate(operators, users, leaf, active, groups)
        nodes = wider(nodes, node_count + top)
        found = wider(found, top)
        for x in range(i, j):
            event = order[x]
            for at in range(touch_starts[x], touch_starts[x + 1]):
                leaf = touched[at]
                place = spans[leaf, 1]
                spans[leaf, 1] = place + 1
                nodes[node_count, 0] = -1
                nodes[node_count, 1] = operators[leaf, SECOND]
                nodes[node_count, 2] = event
                found[place, 0] = node_count
                found[place, 1] = facts[START, event - base]
                found[place, 2] = 1
                node_count += 1
        while True:
            k = next_active(active, groups)
            if k < 0:
                break
            visited[seen] = k
            seen += 1
            spans[k, 0] = top
            kind = operators[k, KIND]
            first = operators[k, FIRST]
            if kind == MERGE:
                for each in range(operators[k, EXTRAS] // 2):
                    of = extra[operators[k, EXTRA] + 2 * each]
                    names = extra[operators[k, EXTRA] + 2 * each + 1]
                    found = wider(found, top + spans[of, 1] - spans[of, 0])
                    for x in range(spans[of, 0], spans[of, 1]):
                        copy_finding(found, x, top)
                        if names >= 0:
                            nodes = wider(nodes, 2 * node_count + 2)
                            node_count = renamed(nodes, node_count, found[x, 0], extra, names) + 1
                            found[top, 0] = node_count - 1
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
                                    node_count = (
                                        joined(nodes, node_count, m, q, operators[k, SHIFT]) + 1
                                    )
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
                    deadline = -_FAR if operators[k, EXTRAS] else _FAR
                    limit = _FAR
                    for each in range(operators[k, EXTRAS] // 2):
                        at = operators[k, EXTRA] + 2 * each
                        if extra[at] == NO_VARIABLE:
                            deadline = max(deadline, limit)
                            limit = _FAR
                            continue
                        event = latest(nodes, m, extra[at])
                        if event >= 0:
                            limit = min(limit, facts[END, event - base] + extra[at + 1])
                    waiting = wider(waiting, counts[USED] + 1)
                    if counts[ALIVE] > 2 * lists.shape[0]:
                        lists = more_lists(waiting, lists)
                    counters[STARTED] += 1
                    admit(waiting, lists, counts, k, code, m, now, deadline, found[x, 2])
            spans[k, 1] = top
            if spans[k, 0] < top:
                activate(operators, users, k, active, groups)
        counters[VISITED] += seen
        for at in range(seen):
            k = visited[at]
            if operators[k, FLAGS] & ROOT and spans[k, 0] < spans[k, 1]:
                counters[FINISHED] += spans[k, 1] - spans[k, 0]
                out, out_ends, matches, rows = written_out(
                    nodes, found, spans[k, 0], spans[k, 1], k, out, out_ends, matches, rows
                )
            spans[k, 0] = 0
            spans[k, 1] = 0
        i = j
    control[NODES] = node_count
    control[RUNS] = run
    control[MATCHES] = matches
    control[ROWS] = rows
    return i, status, nodes, found, waiting, lists, witnesses, out, out_ends
