"""Matches that wait for a successor, as arrays: in lists by hash, and in queues of timers.

They stand in lists by the hash of their operator and of what they are compared by, the earliest
first, so that an event touches only those that may want it (SPEC A1.4: "index").

Arrays of int64 with a row each:
  waiting    [node, end, next, taken, deadline, length, hash, operator]    next also links free rows
  lists      [first, last]                         rows of `waiting`, by hash
  queues     [first, last]                         the same, of one timer each: the first due first
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import allocating, compiled
from cepheid.kernels.match_nodes import END

(
    NODE,
    ENDED,
    NEXT,
    TAKEN,
    DEADLINE,
    LENGTH,
    HASH,
    OPERATOR,
    WAITING_WIDTH,
) = range(9)

ALIVE, USED, FREE = range(3)
"""Counts of waiting rows: that wait, that were ever used, and the first free one."""


@compiled
def admit(waiting, lists, counts, operator, code, node, end, deadline, length):  # type: ignore[no-untyped-def]
    """Let a match wait at the end of its list; there must be room."""
    row = _new_row(waiting, counts, operator, node, end, deadline, length)
    waiting[row, HASH] = code
    _append(waiting, lists, code & (lists.shape[0] - 1), row)


@compiled
def schedule(waiting, queues, counts, queue, operator, node, end, due, length):  # type: ignore[no-untyped-def]
    """Let a match wait for a timer's instant, behind those that came before it."""
    row = _new_row(waiting, counts, operator, node, end, due, length)
    waiting[row, HASH] = 0
    _append(waiting, queues, queue, row)


@compiled
def earliest_due(waiting, queues):  # type: ignore[no-untyped-def]
    """The next instant of any timer."""
    due = np.int64(2**62)
    for queue in range(queues.shape[0]):
        if queues[queue, 0] >= 0:
            due = min(due, waiting[queues[queue, 0], DEADLINE])
    return due


@compiled
def _new_row(waiting, counts, operator, node, end, deadline, length):  # type: ignore[no-untyped-def]
    row = counts[FREE]
    if row >= 0:
        counts[FREE] = waiting[row, NEXT]
    else:
        row = counts[USED]
        counts[USED] += 1
    counts[ALIVE] += 1
    waiting[row, NODE] = node
    waiting[row, ENDED] = end
    waiting[row, TAKEN] = -1
    waiting[row, DEADLINE] = deadline
    waiting[row, LENGTH] = length
    waiting[row, OPERATOR] = operator
    return row


@compiled
def _append(waiting, lists, bucket, row):  # type: ignore[no-untyped-def]
    waiting[row, NEXT] = -1
    if lists[bucket, 0] < 0:
        lists[bucket, 0] = row
    else:
        waiting[lists[bucket, 1], NEXT] = row
    lists[bucket, 1] = row


@compiled
def take_out(waiting, lists, counts, bucket, before, row):  # type: ignore[no-untyped-def]
    """Remove the row behind `before` (-1: the first) from its list; the row that followed it."""
    follower = waiting[row, NEXT]
    if before < 0:
        lists[bucket, 0] = follower
    else:
        waiting[before, NEXT] = follower
    if follower < 0:
        lists[bucket, 1] = before
    waiting[row, NEXT] = counts[FREE]
    counts[FREE] = row
    counts[ALIVE] -= 1
    return follower


@compiled
def released(waiting, lists, counts, bucket, run):  # type: ignore[no-untyped-def]
    """Remove what a set of simultaneous successors has taken from a list."""
    before = -1
    row = lists[bucket, 0]
    while row >= 0:
        if waiting[row, TAKEN] == run:
            row = take_out(waiting, lists, counts, bucket, before, row)
        else:
            before = row
            row = waiting[row, NEXT]


@allocating
def more_lists(waiting, lists):  # type: ignore[no-untyped-def]
    """Four times as many lists; each keeps its order. Their number is a power of two."""
    more = np.full((4 * lists.shape[0], 2), np.int64(-1))
    for bucket in range(lists.shape[0]):
        row = lists[bucket, 0]
        while row >= 0:
            follower = waiting[row, NEXT]
            _append(waiting, more, waiting[row, HASH] & (more.shape[0] - 1), row)
            row = follower
    return more


# -- upkeep, between calls of a kernel ------------------------------------------------------------


@compiled
def mark_waiting(nodes, marks, waiting, lists, counts, now, facts, base):  # type: ignore[no-untyped-def]
    """Drop what is past its deadline, mark the nodes of the rest; the earliest end of any event."""
    earliest = 2**62
    for bucket in range(lists.shape[0]):
        before = -1
        row = lists[bucket, 0]
        while row >= 0:
            if waiting[row, DEADLINE] < now:
                row = take_out(waiting, lists, counts, bucket, before, row)
                continue
            node = waiting[row, NODE]
            while node >= 0 and not marks[node]:
                earliest = min(earliest, facts[END, nodes[node, 2] - base])
                marks[node] = True
                node = nodes[node, 0]
            before = row
            row = waiting[row, NEXT]
    return earliest


@allocating
def first_events(nodes, waiting, lists, alive):  # type: ignore[no-untyped-def]
    """The first event of every waiting match."""
    found = np.empty(alive, np.int64)
    count = 0
    for bucket in range(lists.shape[0]):
        row = lists[bucket, 0]
        while row >= 0:
            node = waiting[row, NODE]
            while nodes[node, 0] >= 0:
                node = nodes[node, 0]
            found[count] = nodes[node, 2]
            count += 1
            row = waiting[row, NEXT]
    return found[:count]


@compiled
def renumber(waiting, lists, numbers):  # type: ignore[no-untyped-def]
    """New numbers for the nodes of all waiting rows."""
    for bucket in range(lists.shape[0]):
        row = lists[bucket, 0]
        while row >= 0:
            waiting[row, NODE] = numbers[waiting[row, NODE]]
            row = waiting[row, NEXT]
