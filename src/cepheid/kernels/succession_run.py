"""NEXT's operators at work: one function for all queries, whose conditions it calls.

Events come in the stable order (end, start, arrival), a set of one end at a time and complete.
Operators work bottom up on each set: all they find ends now. Nothing that ends now can follow what
also ends now, so an operator first serves its waiting instances and then lets the new ones wait.

An instant that a timer has set belongs to the set of its own time, with the events that end then,
or to a set without events; a set is worked on if its time is before `until`. A timer's delay is
always the same, so what waits for it stands in a queue.

Only operators that an event can reach are visited: the leaves it touches, and the users of each
operator that has found something. Those still to visit are bits of `active`, with a bit of `groups`
for each word of it; operands have lower numbers than their users, so the lowest comes first.

Arrays do not grow here: before an operator works, it is known how much room it needs at most. If
that is not there, the function returns and is called again with larger arrays (`ROOM`). Numba
counts references wherever a name may get another array, which took half of the time once.

The function is compiled once, for every query; only a query's conditions are its own code, behind a
function pointer (docs/decisions/0010). `operators` has a row for each operator (succession_shape.
table), `extra` what does not fit into rows.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types, uint64

from cepheid.kernels.active_operators import activate, activate_timers, mark, next_active
from cepheid.kernels.machine_code import compiled_for
from cepheid.kernels.match_nodes import (
    COUNT,
    END,
    INSTANT,
    NO_KEY,
    NODE_WIDTH,
    START,
    copy_finding,
    failed,
    first_start,
    given_before,
    given_chain,
    is_failure,
    joined,
    last_stamps,
    latest,
    length_of,
    mixed,
    order_of,
    output_of,
    renamed,
    same_stamps,
    sort_found,
    without_twins,
    write_out,
)
from cepheid.kernels.running_totals import begin_run, extend_run, rank_runs
from cepheid.kernels.succession_control import (
    CONDITION,
    COUNTS,
    DONE,
    DUE,
    FAR,
    FINISHED,
    IS_RESUMED,
    MATCHES,
    NEEDED,
    NODES,
    OF_ENDS,
    OF_FOUND,
    OF_LISTS,
    OF_NODES,
    OF_OUT,
    OF_WAITING,
    OF_WITNESSES,
    OUTPUT,
    ROOM,
    ROWS,
    RUNS,
    SEEN,
    STARTED,
    TOP,
    TOUCHED,
    UPKEEP,
    VISITED,
    WITNESSES,
)
from cepheid.kernels.succession_shape import (
    CAPPED,
    DELAY,
    EXCLUDE,
    EXTRA,
    EXTRAS,
    FIRST,
    FIRST_KEY,
    FLAGS,
    FOLLOW,
    GIVEN,
    HANDS_ON,
    KIND,
    MERGE,
    NO_VARIABLE,
    OWN_START,
    RANKED,
    REPEAT,
    REPEATED,
    REPORTS,
    SECOND,
    SECOND_KEY,
    SHIFT,
    SKIP,
    STARTS,
    TEST,
    TESTS,
    TOTALS,
    UNORDERED,
)
from cepheid.kernels.waiting_lists import (
    ALIVE,
    DEADLINE,
    ENDED,
    LENGTH,
    NEXT,
    NODE,
    OPERATOR,
    TAKEN,
    USED,
    admit,
    earliest_due,
    released,
    schedule,
    take_out,
)

_TABLE, _LIST, _BITS = int64[:, ::1], int64[::1], uint64[::1]
_SIGNATURE = types.UniTuple(int64, 2)(  # type: ignore[no-untyped-call]
    types.FunctionType(CONDITION),
    *(_TABLE, _LIST, _LIST, _LIST),  # operators, extra, users, timers
    *(_LIST, _LIST, _LIST),  # order, touch_starts, touched
    *(int64, int64, int64, int64),  # begin, end, until, base
    *(int64[:, :], float64[:, :], _LIST, float64[::1]),  # facts, numbers, ci, cf
    *(int64, int64, int64),  # most, upkeep_at, output_at
    *(_LIST, _LIST, _TABLE, _LIST, _TABLE),  # counters, control, spans, heads, queues
    *(_BITS, _BITS, _LIST),  # active, groups, visited
    *[_TABLE] * 7,  # nodes to out_ends
)


@compiled_for(_SIGNATURE)
def work(  # type: ignore[no-untyped-def]
    condition,
    operators,
    extra,
    users,
    timers,
    order,
    touch_starts,
    touched,
    begin,
    end,
    until,
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
    queues,
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
    """Work on events order[begin:end]; where and why it stopped.

    Event order[x] touches the leaves touched[touch_starts[x] : touch_starts[x + 1]].
    """
    counts = control[COUNTS:]
    node_count = control[NODES]
    run = control[RUNS]
    matches = control[MATCHES]
    rows = control[ROWS]
    status = DONE
    i = begin
    while i < end or control[DUE] < until:
        is_resumed = control[IS_RESUMED]
        top = control[TOP]
        seen = control[SEEN]
        control[IS_RESUMED] = 0
        if not is_resumed:
            if node_count >= upkeep_at:
                status = UPKEEP
                break
            if rows >= output_at:
                status = OUTPUT
                break
        now = control[DUE]
        j = i
        if i < end:
            now = min(now, facts[END, order[i] - base])
        while j < end and facts[END, order[j] - base] == now:
            j += 1
        if not is_resumed:
            top = touch_starts[j] - touch_starts[i]
            more = top
            if operators[operators.shape[0] - 1, FLAGS] & GIVEN:
                more += given_before(order, touch_starts, i, j, facts, base)
            control[NEEDED + OF_NODES] = node_count + more
            control[NEEDED + OF_FOUND] = top
            control[NEEDED + OF_LISTS] = counts[ALIVE] // 2
            if (
                node_count + more > nodes.shape[0]
                or top > found.shape[0]
                or counts[ALIVE] > 2 * lists.shape[0]
            ):
                status = ROOM
                break
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
            for x in range(i, j):
                event = order[x]
                for at in range(touch_starts[x], touch_starts[x + 1]):
                    leaf = touched[at]
                    place = spans[leaf, 1]
                    spans[leaf, 1] = place + 1
                    if operators[leaf, FLAGS] & GIVEN:
                        node_count = given_chain(nodes, node_count, event, facts, base) + 1
                        found[place, 0] = node_count - 1
                        found[place, 1] = first_start(nodes, node_count - 1, facts, base)
                        found[place, 2] = 1
                        continue
                    nodes[node_count, 0] = -1
                    nodes[node_count, 1] = operators[leaf, SECOND]
                    nodes[node_count, 2] = event
                    if operators[leaf, FLAGS] & TOTALS:
                        told = operators[leaf, EXTRA]
                        told_to = told + operators[leaf, EXTRAS]
                        begin_run(nodes, node_count, facts, numbers, base, extra, told, told_to)
                    elif nodes.shape[1] > NODE_WIDTH:
                        nodes[node_count, COUNT] = 0
                    found[place, 0] = node_count
                    found[place, 1] = facts[START, event - base]
                    found[place, 2] = 1
                    node_count += 1
            if control[DUE] == now:
                activate_timers(timers, waiting, queues, now, active, groups)
        while True:
            k = next_active(active, groups)
            if k < 0:
                break
            kind = operators[k, KIND]
            first = operators[k, FIRST]
            second = operators[k, SECOND]
            extras = operators[k, EXTRAS]
            hands_on = operators[k, FLAGS] & HANDS_ON
            # What waiting instances are served with (u to last), what then waits (begins to ends),
            # and how much room all this may need.
            u = last = begins = ends = 0
            more_nodes = more_found = more_waiting = more_witnesses = 0
            if kind == FOLLOW or kind == REPEAT:
                u, last = spans[second, 0], spans[second, 1]
                begins, ends = spans[first, 0], spans[first, 1]
                if last - u > 1 and operators[k, FLAGS] & UNORDERED:
                    sort_found(found, u, last, nodes, facts, base)
                for x in range(u, last):
                    q = found[x, 0]
                    code = mixed(0, k)
                    if kind == REPEAT and hands_on and is_failure(nodes, q):
                        code = NO_KEY
                    elif operators[k, SECOND_KEY] >= 0:
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
                    found[x, 3] = code
                    row = lists[code & (lists.shape[0] - 1), 0] if code != NO_KEY else -1
                    length = length_of(nodes, q)
                    while row >= 0 and waiting[row, ENDED] < found[x, 1]:
                        more_found += 1
                        more_nodes += length
                        row = waiting[row, NEXT]
                more_waiting = ends - begins
                if kind == REPEAT:
                    more_waiting += more_found
                if kind == REPEAT or hands_on:
                    more_found += ends - begins
            elif kind == MERGE:
                for each in range(extras // 2):
                    at = operators[k, EXTRA] + 2 * each
                    of = extra[at]
                    more_found += spans[of, 1] - spans[of, 0]
                    if extra[at + 1] >= 0:
                        for x in range(spans[of, 0], spans[of, 1]):
                            more_nodes += length_of(nodes, found[x, 0])
            elif kind == DELAY:
                more_waiting = spans[first, 1] - spans[first, 0]
                more_found = more_waiting if hands_on or extra[operators[k, EXTRA]] == 0 else 0
                row = queues[second, 0]
                while row >= 0 and waiting[row, DEADLINE] == now:
                    more_found += 1
                    row = waiting[row, NEXT]
                more_nodes = more_found
            else:  # TESTS and EXCLUDE
                more_found = spans[first, 1] - spans[first, 0]
                if kind == EXCLUDE:
                    more_witnesses = spans[second, 1] - spans[second, 0]
                    if operators[k, FLAGS] & REPORTS:
                        for x in range(spans[first, 0], spans[first, 1]):
                            more_nodes += length_of(nodes, found[x, 0]) + 2
            if (
                node_count + more_nodes > nodes.shape[0]
                or top + more_found > found.shape[0]
                or counts[USED] + more_waiting > waiting.shape[0]
                or control[WITNESSES] + more_witnesses > witnesses.shape[0]
            ):
                control[NEEDED + OF_NODES] = node_count + more_nodes
                control[NEEDED + OF_FOUND] = top + more_found
                control[NEEDED + OF_WAITING] = counts[USED] + more_waiting
                control[NEEDED + OF_WITNESSES] = control[WITNESSES] + more_witnesses
                mark(np.uint64(k), active, groups)
                status = ROOM
                break
            visited[seen] = k
            seen += 1
            spans[k, 0] = top
            if kind == MERGE:
                for each in range(extras // 2):
                    of = extra[operators[k, EXTRA] + 2 * each]
                    names = extra[operators[k, EXTRA] + 2 * each + 1]
                    for x in range(spans[of, 0], spans[of, 1]):
                        copy_finding(found, x, top)
                        if names >= 0:
                            node_count = renamed(nodes, node_count, found[x, 0], extra, names) + 1
                            found[top, 0] = node_count - 1
                        top += 1
            elif kind == TESTS:
                for x in range(spans[first, 0], spans[first, 1]):
                    m = found[x, 0]
                    if (hands_on and is_failure(nodes, m)) or condition(
                        operators[k, TEST], nodes, m, m, base, facts, numbers, ci, cf
                    ):
                        copy_finding(found, x, top)
                        top += 1
            elif kind == DELAY:
                delay = extra[operators[k, EXTRA]]
                for x in range(spans[first, 0], spans[first, 1]):
                    m = found[x, 0]
                    if hands_on and is_failure(nodes, m):
                        copy_finding(found, x, top)
                        top += 1
                        continue
                    counters[STARTED] += 1
                    schedule(waiting, queues, counts, second, k, m, now, now + delay, found[x, 2])
                    control[DUE] = min(control[DUE], now + delay)
                row = queues[second, 0]
                while row >= 0 and waiting[row, DEADLINE] == now:
                    m = waiting[row, NODE]
                    nodes[node_count, 0] = m
                    nodes[node_count, 1] = INSTANT + (now - facts[END, nodes[m, 2] - base])
                    nodes[node_count, 2] = nodes[m, 2]
                    if nodes.shape[1] > NODE_WIDTH:
                        nodes[node_count, COUNT] = 0
                    found[top, 0] = node_count
                    found[top, 1] = first_start(nodes, m, facts, base)
                    found[top, 2] = waiting[row, LENGTH]
                    node_count += 1
                    top += 1
                    row = take_out(waiting, queues, counts, second, np.int64(-1), row)
            elif kind == EXCLUDE:
                for x in range(spans[second, 0], spans[second, 1]):
                    row = control[WITNESSES]
                    control[WITNESSES] += 1
                    q = found[x, 0]
                    witnesses[row, 0] = q
                    witnesses[row, 1] = found[x, 1]
                    witnesses[row, 2] = now
                    witnesses[row, 3] = last_stamps(nodes, q, facts, base)[1]
                    witnesses[row, 4] = heads[k]
                    heads[k] = row
                for x in range(spans[first, 0], spans[first, 1]):
                    m = found[x, 0]
                    if hands_on and is_failure(nodes, m):
                        copy_finding(found, x, top)
                        top += 1
                        continue
                    since = -FAR
                    for each in range(extras):
                        event = latest(nodes, m, extra[operators[k, EXTRA] + each])
                        if event >= 0:
                            since = max(since, facts[END, event - base])
                    own = last_stamps(nodes, m, facts, base)[1]
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
                        node_count = failed(nodes, node_count, m, fatal) + 1
                        found[top, 0] = node_count - 1
                        found[top, 1] = now
                        found[top, 2] = 1
                        top += 1
            # Waiting instances get their successors.
            while u < last:
                v = same_stamps(found, u, last, nodes, facts, base)
                run += 1
                for x in range(u, v):
                    q = found[x, 0]
                    start = found[x, 1]
                    code = found[x, 3]
                    bucket = code & (lists.shape[0] - 1)
                    # The earliest stand first: behind one that q does not follow, it follows none.
                    # What is undefined follows nothing.
                    before = -1
                    row = lists[bucket, 0] if code != NO_KEY else -1
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
                                if kind == REPEAT and operators[k, FLAGS] & TOTALS:
                                    told = operators[second, EXTRA]
                                    told_to = told + operators[second, EXTRAS]
                                    extend_run(
                                        nodes, node_count, m, q, facts, base, extra, told, told_to
                                    )
                                    node_count += 1
                                else:
                                    shift = operators[k, SHIFT]
                                    node_count = joined(nodes, node_count, m, q, shift) + 1
                                found[top, 0] = node_count - 1
                                found[top, 1] = first_start(nodes, m, facts, base)
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
                        if found[x, 3] != NO_KEY:
                            bucket = found[x, 3] & (lists.shape[0] - 1)
                            released(waiting, lists, counts, bucket, run)
                u = v
            # New instances wait: of an iteration, all of its runs.
            if kind == REPEAT:
                for x in range(spans[first, 0], spans[first, 1]):
                    q = found[x, 0]
                    if (
                        operators[k, STARTS] < 0
                        or (hands_on and is_failure(nodes, q))
                        or condition(
                            operators[k, STARTS], nodes, -1, q, base, facts, numbers, ci, cf
                        )
                    ):
                        copy_finding(found, x, top)
                        found[top, 2] = 1
                        top += 1
                if operators[k, FLAGS] & REPEATED:
                    top = without_twins(found, spans[k, 0], top, nodes, facts, base)
                begins, ends = spans[k, 0], top
                if operators[k, FLAGS] & RANKED:
                    rank_runs(nodes, found, begins, ends, facts, base)
            for x in range(begins, ends):
                m = found[x, 0]
                if hands_on and is_failure(nodes, m):
                    if kind == FOLLOW:
                        copy_finding(found, x, top)
                        top += 1
                    continue
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
                deadline = -FAR if extras else FAR
                limit = FAR
                for each in range(extras // 2):
                    at = operators[k, EXTRA] + 2 * each
                    if extra[at] == NO_VARIABLE:
                        deadline = max(deadline, limit)
                        limit = FAR
                        continue
                    if extra[at] == OWN_START:
                        limit = min(limit, found[x, 1] + extra[at + 1])
                        continue
                    event = latest(nodes, m, extra[at])
                    if event >= 0:
                        limit = min(limit, facts[END, event - base] + extra[at + 1])
                counters[STARTED] += 1
                admit(waiting, lists, counts, k, code, m, now, deadline, found[x, 2])
            spans[k, 1] = top
            if spans[k, 0] < top:
                activate(operators, users, k, active, groups)
        more_matches = more_rows = 0
        if status == DONE:
            more_matches, more_rows = output_of(nodes, found, operators, spans, visited, seen)
            if matches + more_matches > out_ends.shape[0] or rows + more_rows > out.shape[0]:
                control[NEEDED + OF_ENDS] = matches + more_matches
                control[NEEDED + OF_OUT] = rows + more_rows
                status = ROOM
        if status == ROOM:
            control[IS_RESUMED] = 1
            control[TOP] = top
            control[SEEN] = seen
            break
        if more_matches:
            counters[FINISHED] += more_matches
            write_out(nodes, found, operators, spans, visited, seen, out, out_ends, matches, rows)
            matches += more_matches
            rows += more_rows
        counters[VISITED] += seen
        for at in range(seen):
            spans[visited[at], 0] = 0
            spans[visited[at], 1] = 0
        if control[DUE] == now:
            control[DUE] = earliest_due(waiting, queues)
        i = j
    control[NODES] = node_count
    control[RUNS] = run
    control[MATCHES] = matches
    control[ROWS] = rows
    return i, status
