"""Partial matches of NEXT's automata as arrays: chains of nodes, waiting lists, and their upkeep.

A match is the number of its last node; a node names the event before it, so matches that begin in
the same way share their nodes, and every prefix of an iteration costs one node. Instances that wait
for a successor stand in lists by the hash of what they are compared by, the earliest first, so that
an event touches only instances that may want it (NEXT section 4.3, "index").

Arrays of int64 with a row each:
  nodes    [before, variable, event]               before < own number; -1 for none
  waiting  [node, end, next, taken, deadline, length, hash]     next also links free rows
  lists    [first, last]                           a list per bucket
  found    [node, start, length]                   what an operator found among events of one end
Time of an event `e`: starts[e - base], ends[e - base].
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "NO_KEY",
    "admit",
    "bucket_of",
    "failed",
    "first_start",
    "joined",
    "latest",
    "mixed",
    "order_of",
    "released",
    "sort_found",
    "take_out",
    "whole",
    "wider",
    "wider_lists",
]
"""The names that generated kernel source may use."""

NODE, END, NEXT, TAKEN, DEADLINE, LENGTH, HASH = range(7)
WIDTH = 7
NO_KEY = -(2**63)
"""The hash of an undefined value: it equals nothing."""

_inlined = njit(forceinline=True, nogil=True)


@njit(cache=True, nogil=True)
def wider(rows, needed):  # type: ignore[no-untyped-def]
    """The same rows with room for `needed` of them."""
    if needed <= rows.shape[0]:
        return rows
    more = np.empty((max(needed, 2 * rows.shape[0]), rows.shape[1]), np.int64)
    more[: rows.shape[0]] = rows
    return more


@_inlined
def latest(nodes, node, variable):  # type: ignore[no-untyped-def]
    """The last event that a match binds to a variable; -1 for none."""
    while node >= 0:
        if nodes[node, 1] == variable:
            return nodes[node, 2]
        node = nodes[node, 0]
    return -1


@_inlined
def joined(nodes, count, first, second):  # type: ignore[no-untyped-def]
    """The match `first` followed by `second`, whose nodes are copied; there must be room for them.

    Returns the new last node, which is also the new count of nodes less one.
    """
    length = 0
    node = second
    while node >= 0:
        length += 1
        node = nodes[node, 0]
    place = count + length - 1
    node = second
    while node >= 0:
        nodes[place, 0] = place - 1 if place > count else first
        nodes[place, 1] = nodes[node, 1]
        nodes[place, 2] = nodes[node, 2]
        place -= 1
        node = nodes[node, 0]
    return count + length - 1


@njit(cache=True, nogil=True)
def failed(nodes, count, node, fatal):  # type: ignore[no-untyped-def]
    """A chain that tells of a match's failure: its events under other numbers, then the fatal one.

    There must be room. Returns the new last node.
    """
    copy = joined(nodes, count, -1, node)
    for each in range(count, copy + 1):
        nodes[each, 1] = -2 - nodes[each, 1]
    nodes[copy + 1, 0] = copy
    nodes[copy + 1, 1] = -1
    nodes[copy + 1, 2] = nodes[fatal, 2]
    return copy + 1


@_inlined
def first_start(nodes, node, starts, base):  # type: ignore[no-untyped-def]
    """The first stamp of a match: where its first event starts."""
    while nodes[node, 0] >= 0:
        node = nodes[node, 0]
    return starts[nodes[node, 2] - base]


@njit(cache=True, nogil=True)
def order_of(nodes, one, other, starts, ends, base):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 as one match's stamps come before, equal or after the other's (SPEC A1.1).

    Compared from the end; where one is the rest of the other, the longer one is smaller.
    """
    while one >= 0 and other >= 0:
        if one == other:
            return 0
        e, f = nodes[one, 2] - base, nodes[other, 2] - base
        if ends[e] != ends[f]:
            return -1 if ends[e] < ends[f] else 1
        if starts[e] != starts[f]:
            return -1 if starts[e] < starts[f] else 1
        one, other = nodes[one, 0], nodes[other, 0]
    if one >= 0:
        return -1
    return 1 if other >= 0 else 0


@njit(cache=True, nogil=True)
def sort_found(found, count, nodes, starts, ends, base):  # type: ignore[no-untyped-def]
    """Put what was found into the stable order; equal ones stay as they are. Short lists only."""
    for i in range(1, count):
        node, start, length = found[i, 0], found[i, 1], found[i, 2]
        j = i
        while j > 0 and order_of(nodes, node, found[j - 1, 0], starts, ends, base) < 0:
            found[j, 0] = found[j - 1, 0]
            found[j, 1] = found[j - 1, 1]
            found[j, 2] = found[j - 1, 2]
            j -= 1
        found[j, 0], found[j, 1], found[j, 2] = node, start, length


@_inlined
def mixed(code, value):  # type: ignore[no-untyped-def]
    """A hash of one more value; an undefined value makes the whole undefined."""
    if code == NO_KEY or value < NO_KEY + 2:
        return NO_KEY
    x = (np.uint64(code) ^ np.uint64(value)) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(1))


@_inlined
def whole(value):  # type: ignore[no-untyped-def]
    """A float for `mixed`: equal numbers give equal results, whether integers or floats."""
    if value != value or value == -1.7976931348623157e308:
        return NO_KEY
    if value >= 9.0e18 or value <= -9.0e18:
        return 0
    return np.int64(value)


@_inlined
def bucket_of(code, lists):  # type: ignore[no-untyped-def]
    """The list for a hash; the number of lists is a power of two."""
    return code & (lists.shape[0] - 1)


@_inlined
def admit(waiting, lists, counts, code, node, end, deadline, length):  # type: ignore[no-untyped-def]
    """Let a match wait at the end of its list; there must be room. counts: [used, free, alive]."""
    bucket = bucket_of(code, lists)
    row = counts[1]
    if row >= 0:
        counts[1] = waiting[row, NEXT]
    else:
        row = counts[0]
        counts[0] += 1
    counts[2] += 1
    waiting[row, NODE] = node
    waiting[row, END] = end
    waiting[row, NEXT] = -1
    waiting[row, TAKEN] = -1
    waiting[row, DEADLINE] = deadline
    waiting[row, LENGTH] = length
    waiting[row, HASH] = code
    if lists[bucket, 0] < 0:
        lists[bucket, 0] = row
    else:
        waiting[lists[bucket, 1], NEXT] = row
    lists[bucket, 1] = row


@_inlined
def take_out(waiting, lists, counts, bucket, before, row):  # type: ignore[no-untyped-def]
    """Remove the row behind `before` (-1: the first) from its list; the row that followed it."""
    follower = waiting[row, NEXT]
    if before < 0:
        lists[bucket, 0] = follower
    else:
        waiting[before, NEXT] = follower
    if follower < 0:
        lists[bucket, 1] = before
    waiting[row, NEXT] = counts[1]
    counts[1] = row
    counts[2] -= 1
    return follower


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def wider_lists(waiting, lists):  # type: ignore[no-untyped-def]
    """Four times as many lists; each keeps its order."""
    more = np.full((4 * lists.shape[0], 2), np.int64(-1))
    for bucket in range(lists.shape[0]):
        row = lists[bucket, 0]
        while row >= 0:
            follower = waiting[row, NEXT]
            waiting[row, NEXT] = -1
            place = bucket_of(waiting[row, HASH], more)
            if more[place, 0] < 0:
                more[place, 0] = row
            else:
                waiting[more[place, 1], NEXT] = row
            more[place, 1] = row
            row = follower
    return more


# -- upkeep, between calls of a kernel ---------------------------------------------------------


@njit(cache=True, nogil=True)
def mark_waiting(nodes, marks, waiting, lists, counts, now, ends, base):  # type: ignore[no-untyped-def]
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
            while node >= 0:
                earliest = min(earliest, ends[nodes[node, 2] - base])
                if marks[node]:
                    break
                marks[node] = True
                node = nodes[node, 0]
            before = row
            row = waiting[row, NEXT]
    return earliest


@njit(cache=True, nogil=True)
def keep_witnesses(nodes, marks, witnesses, count, earliest):  # type: ignore[no-untyped-def]
    """Drop the exceptions that no waiting match can meet; [node, start, end, last start] rows."""
    kept = 0
    for row in range(count):
        if witnesses[row, 2] > earliest:
            witnesses[kept] = witnesses[row]
            kept += 1
            node = witnesses[row, 0]
            while node >= 0 and not marks[node]:
                marks[node] = True
                node = nodes[node, 0]
    return kept


@njit(cache=True, nogil=True)
def close_ranks(nodes, count, marks):  # type: ignore[no-untyped-def]
    """Move the marked nodes together; the new number of each, and how many there are."""
    numbers = np.empty(count, np.int64)
    kept = 0
    for node in range(count):
        if marks[node]:
            before = nodes[node, 0]
            nodes[kept, 0] = numbers[before] if before >= 0 else -1
            nodes[kept, 1] = nodes[node, 1]
            nodes[kept, 2] = nodes[node, 2]
            numbers[node] = kept
            kept += 1
    return numbers, kept


@njit(cache=True, nogil=True)
def renumber(rows, lists, numbers):  # type: ignore[no-untyped-def]
    """New numbers for the nodes of all waiting rows."""
    for bucket in range(lists.shape[0]):
        row = lists[bucket, 0]
        while row >= 0:
            rows[row, NODE] = numbers[rows[row, NODE]]
            row = rows[row, NEXT]
