"""Partial matches of NEXT's automata as arrays: chains of nodes, their order, and their upkeep.

A match is the number of its last node; a node names the one before it, so matches that begin in the
same way share their nodes, and every prefix of an iteration costs one node. Where they wait for a
successor is told in `waiting_lists`.

Arrays of int64 with a row each:
  nodes      [before, variable, event, totals]     before < own number; -1 for none
  found      [node, start, length, hash]           what operators found among events of one end
  witnesses  [node, start, end, last start, next]  exceptions, the latest first
Facts of an event `e` are columns of `facts`: its mask, end and start, then what conditions read.
An event of a composite that was found elsewhere has in place of a mask how many events of it come
before (from bit GIVEN_PLACE on), and its variable below that.

A timer adds an instant to a match (SPEC A1.3). Its node names the event before it, and instead of a
variable how long after the end of that event it is: INSTANT + delay, lower than any variable.

Nodes have totals only where a query keeps runs as running totals (running_totals): there a whole
run is one node, which names the last event of it. Elsewhere they end with the event.
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import allocating, compiled
from cepheid.kernels.succession_shape import FLAGS, ROOT

__all__ = ["END", "latest", "mixed", "whole"]
"""The names that generated conditions may use."""

MASK, END, START, FACTS = range(4)
"""Rows of `facts`; the columns that conditions read come after them."""

NULL_INT = -(2**63)
NO_KEY = NULL_INT
"""The hash of an undefined value: it equals nothing."""

INSTANT = -(2**62)
NO_INSTANT = INSTANT // 2
"""What stands below this in place of a variable is an instant."""

GIVEN_PLACE = 32
"""The bit of a given event's mask at which its place begins."""

_FEW = 32
"""So many findings are sorted fastest by putting each in its place."""

NODE_WIDTH = 3
(
    COUNT,
    RUN_START,
    LANE,
    OTHER_LANE,
    BEFORE_END,
    BEFORE_START,
    BEFORE_RANK,
    RANK,
    MEASURES,
) = range(NODE_WIDTH, NODE_WIDTH + 9)
"""Columns of totals: how many events a run has (0: it is no run), when it starts, the hash of its
events, and what tells its place among runs of equal last stamps: the last stamps of the run without
its last event, and its own rank among those of one end. Measures of attributes come after them.
"""


def wider(rows: np.ndarray, needed: int) -> np.ndarray:
    """The same rows with room for `needed` of them."""
    if needed <= len(rows):
        return rows
    more = np.empty((max(needed, 2 * len(rows)), rows.shape[1]), np.int64)
    more[: len(rows)] = rows
    return more


# -- chains -------------------------------------------------------------------------------------


@compiled
def latest(nodes, node, variable):  # type: ignore[no-untyped-def]
    """The last event that a match binds to a variable; -1 for none."""
    while node >= 0:
        if nodes[node, 1] == variable:
            return nodes[node, 2]
        node = nodes[node, 0]
    return -1


@compiled
def length_of(nodes, node):  # type: ignore[no-untyped-def]
    """How many nodes a match has."""
    length = 0
    while node >= 0:
        length += 1
        node = nodes[node, 0]
    return length


@compiled
def joined(nodes, count, first, second, shift):  # type: ignore[no-untyped-def]
    """The match `first` followed by `second`, whose nodes are copied; there must be room for them.

    Its variables get numbers that are `shift` higher. Returns the new last node, which is also the
    new count of nodes less one.
    """
    last = count + length_of(nodes, second) - 1
    place = last
    node = second
    while node >= 0:
        nodes[place, 0] = place - 1 if place > count else first
        variable = nodes[node, 1]
        nodes[place, 1] = variable + shift if variable > NO_INSTANT else variable
        nodes[place, 2] = nodes[node, 2]
        for total in range(NODE_WIDTH, nodes.shape[1]):
            nodes[place, total] = nodes[node, total]
        place -= 1
        node = nodes[node, 0]
    return last


@compiled
def given_before(order, touch_starts, begin, end, facts, base):  # type: ignore[no-untyped-def]
    """How many events come before the last ones of given composites, for each leaf they touch.

    The mask of other events is the number of their type, which stays below the place.
    """
    before = 0
    for x in range(begin, end):
        touches = touch_starts[x + 1] - touch_starts[x]
        before += touches * (facts[MASK, order[x] - base] >> GIVEN_PLACE)
    return before


@compiled
def given_chain(nodes, count, last, facts, base):  # type: ignore[no-untyped-def]
    """A composite that was found elsewhere, whose last event this is; there must be room.

    Returns the new last node.
    """
    place = facts[MASK, last - base] >> GIVEN_PLACE
    for each in range(place + 1):
        event = last - place + each
        node = count + each
        nodes[node, 0] = node - 1 if each > 0 else -1
        nodes[node, 1] = facts[MASK, event - base] & ((1 << GIVEN_PLACE) - 1)
        nodes[node, 2] = event
    return count + place


@compiled
def renamed(nodes, count, node, names, at):  # type: ignore[no-untyped-def]
    """A copy of a match whose variable v is called names[at + v]; as `joined`."""
    last = joined(nodes, count, -1, node, 0)
    for each in range(count, last + 1):
        variable = nodes[each, 1]
        if variable >= 0:
            nodes[each, 1] = names[at + variable]
        elif NO_INSTANT < variable < -1:
            nodes[each, 1] = -2 - names[at - 2 - variable]
    return last


@compiled
def failed(nodes, count, node, fatal):  # type: ignore[no-untyped-def]
    """A chain that tells of a match's failure: its events under other numbers, then the fatal one.

    There must be room. Returns the new last node.
    """
    copy = joined(nodes, count, -1, node, 0)
    for each in range(count, copy + 1):
        if nodes[each, 1] > NO_INSTANT:
            nodes[each, 1] = -2 - nodes[each, 1]
    nodes[copy + 1, 0] = copy
    nodes[copy + 1, 1] = -1
    nodes[copy + 1, 2] = nodes[fatal, 2]
    if nodes[fatal, 1] > NO_INSTANT:
        return copy + 1
    nodes[copy + 2, 0] = copy + 1
    nodes[copy + 2, 1] = nodes[fatal, 1]
    nodes[copy + 2, 2] = nodes[fatal, 2]
    return copy + 2


@compiled
def is_failure(nodes, node):  # type: ignore[no-untyped-def]
    """Whether a chain tells of a failure."""
    if nodes[node, 1] < NO_INSTANT and nodes[node, 0] >= 0:
        node = nodes[node, 0]
    return nodes[node, 1] == -1


@compiled
def last_stamps(nodes, node, facts, base):  # type: ignore[no-untyped-def]
    """End and start of what a match ends with: its last event, or the instant after it."""
    event = nodes[node, 2] - base
    if nodes[node, 1] > NO_INSTANT:
        return facts[END, event], facts[START, event]
    instant = facts[END, event] + (nodes[node, 1] - INSTANT)
    return instant, instant


@compiled
def first_start(nodes, node, facts, base):  # type: ignore[no-untyped-def]
    """The start of a match's first event."""
    while nodes[node, 0] >= 0:
        node = nodes[node, 0]
    if nodes.shape[1] > NODE_WIDTH and nodes[node, COUNT] > 0:
        return nodes[node, RUN_START]
    return facts[START, nodes[node, 2] - base]


@compiled
def _order_of_runs(nodes, one, other):  # type: ignore[no-untyped-def]
    """The same for runs kept as totals whose last stamps are equal: what comes before these."""
    if nodes[one, COUNT] <= 1 or nodes[other, COUNT] <= 1:
        return (nodes[one, COUNT] <= 1) * 1 - (nodes[other, COUNT] <= 1) * 1
    for column in (BEFORE_END, BEFORE_START, BEFORE_RANK):
        if nodes[one, column] != nodes[other, column]:
            return -1 if nodes[one, column] < nodes[other, column] else 1
    return 0


@compiled
def order_of(nodes, one, other, facts, base):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 as one match's stamps come before, equal or after the other's (SPEC A1.1).

    Compared from the end; where one is the rest of the other, the longer one is smaller.
    """
    while one >= 0 and other >= 0:
        if one == other:
            return 0
        end, start = last_stamps(nodes, one, facts, base)
        other_end, other_start = last_stamps(nodes, other, facts, base)
        if end != other_end:
            return -1 if end < other_end else 1
        if start != other_start:
            return -1 if start < other_start else 1
        if nodes.shape[1] > NODE_WIDTH:
            order = _order_of_runs(nodes, one, other)
            if order != 0:
                return order
        one, other = nodes[one, 0], nodes[other, 0]
    if one >= 0:
        return -1
    return 1 if other >= 0 else 0


@compiled
def copy_finding(found, of, to):  # type: ignore[no-untyped-def]
    """Write a finding to another place."""
    found[to, 0] = found[of, 0]
    found[to, 1] = found[of, 1]
    found[to, 2] = found[of, 2]


@compiled
def _is_before(nodes, one, other, facts, base):  # type: ignore[no-untyped-def]
    """Whether a match comes first in the stable order; of equal stamps the one found first does."""
    order = order_of(nodes, one, other, facts, base)
    return order < 0 or (order == 0 and one < other)


@compiled
def sort_found(found, begin, end, nodes, facts, base):  # type: ignore[no-untyped-def]
    """Put findings into the stable order, in place.

    Mostly there are few of one end, but runs of many simultaneous events are many: they are sorted
    as a heap, whose root is the last one.
    """
    size = end - begin
    if size > _FEW:
        for root in range(size // 2 - 1, -1, -1):
            _sift(found, begin, root, size, nodes, facts, base)
        for last in range(size - 1, 0, -1):
            node, start, length = found[begin, 0], found[begin, 1], found[begin, 2]
            copy_finding(found, begin + last, begin)
            found[begin + last, 0], found[begin + last, 1] = node, start
            found[begin + last, 2] = length
            _sift(found, begin, 0, last, nodes, facts, base)
        return
    for i in range(begin + 1, end):
        node, start, length = found[i, 0], found[i, 1], found[i, 2]
        j = i
        while j > begin and _is_before(nodes, node, found[j - 1, 0], facts, base):
            copy_finding(found, j - 1, j)
            j -= 1
        found[j, 0], found[j, 1], found[j, 2] = node, start, length


@compiled
def _sift(found, begin, root, size, nodes, facts, base):  # type: ignore[no-untyped-def]
    """Let a finding sink in the heap until no later one stands below it."""
    node, start, length = found[begin + root, 0], found[begin + root, 1], found[begin + root, 2]
    while 2 * root + 1 < size:
        below = 2 * root + 1
        if below + 1 < size and _is_before(
            nodes, found[begin + below, 0], found[begin + below + 1, 0], facts, base
        ):
            below += 1
        if not _is_before(nodes, node, found[begin + below, 0], facts, base):
            break
        copy_finding(found, begin + below, begin + root)
        root = below
    found[begin + root, 0], found[begin + root, 1], found[begin + root, 2] = node, start, length


@compiled
def same_stamps(found, begin, end, nodes, facts, base):  # type: ignore[no-untyped-def]
    """One past the last of the findings from `begin` on whose stamps are equal."""
    at = begin + 1
    while at < end and order_of(nodes, found[begin, 0], found[at, 0], facts, base) == 0:
        at += 1
    return at


@compiled
def _is_twin(nodes, one, other):  # type: ignore[no-untyped-def]
    """Whether two matches bind the same events to the same variables."""
    while one >= 0 and other >= 0:
        if one == other:
            return True
        if nodes[one, 1] != nodes[other, 1] or nodes[one, 2] != nodes[other, 2]:
            return False
        one, other = nodes[one, 0], nodes[other, 0]
    return one == other


@compiled
def without_twins(found, begin, end, nodes, facts, base):  # type: ignore[no-untyped-def]
    """Keep one of findings that are the same match, and sort them; one past the last of those left.

    Runs of runs are the same however their events are divided; the one of the fewest elements may
    grow longest.
    """
    sort_found(found, begin, end, nodes, facts, base)
    kept = begin
    group = begin
    for x in range(begin, end):
        if kept > group and order_of(nodes, found[group, 0], found[x, 0], facts, base) != 0:
            group = kept
        twin = group
        while twin < kept and not _is_twin(nodes, found[twin, 0], found[x, 0]):
            twin += 1
        if twin < kept:
            found[twin, 2] = min(found[twin, 2], found[x, 2])
        else:
            copy_finding(found, x, kept)
            kept += 1
    return kept


@compiled
def output_of(nodes, found, operators, spans, visited, seen):  # type: ignore[no-untyped-def]
    """How many matches the roots among the visited operators found, and of how many events."""
    matches = 0
    rows = 0
    for at in range(seen):
        root = visited[at]
        if operators[root, FLAGS] & ROOT:
            for x in range(spans[root, 0], spans[root, 1]):
                matches += 1
                rows += _events_of(nodes, found[x, 0])
    return matches, rows


@compiled
def _events_of(nodes, node):  # type: ignore[no-untyped-def]
    """How many events a match has, without instants."""
    events = 0
    while node >= 0:
        events += nodes[node, 1] > NO_INSTANT
        node = nodes[node, 0]
    return events


@compiled
def write_out(  # type: ignore[no-untyped-def]
    nodes, found, operators, spans, visited, seen, out, out_ends, matches, rows
):
    """Add them to the output, each from its first to its last event; there must be room.

    Instants are left out; what tells of one is how long after its last event a match ends.
    """
    for at in range(seen):
        root = visited[at]
        if operators[root, FLAGS] & ROOT:
            for x in range(spans[root, 0], spans[root, 1]):
                node = found[x, 0]
                rows += _events_of(nodes, node)
                out_ends[matches, 0] = rows
                out_ends[matches, 1] = root
                last = nodes[node, 1]
                out_ends[matches, 2] = last - INSTANT if last < NO_INSTANT else 0
                matches += 1
                place = rows - 1
                while node >= 0:
                    if nodes[node, 1] > NO_INSTANT:
                        out[place, 0] = nodes[node, 1]
                        out[place, 1] = nodes[node, 2]
                        for total in range(NODE_WIDTH, nodes.shape[1]):
                            out[place, total - 1] = nodes[node, total]
                        place -= 1
                    node = nodes[node, 0]


# -- hashes --------------------------------------------------------------------------------------


@compiled
def mixed(code, value):  # type: ignore[no-untyped-def]
    """A hash of one more value; an undefined value makes the whole undefined."""
    if code == NO_KEY or value < NULL_INT + 2:
        return NO_KEY
    x = (np.uint64(code) ^ np.uint64(value)) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(1))


@compiled
def whole(value):  # type: ignore[no-untyped-def]
    """A float for `mixed`: equal numbers give equal results, whether integers or floats."""
    if value != value or value == -1.7976931348623157e308:
        return NULL_INT
    if value >= 9.0e18 or value <= -9.0e18:
        return 0
    return np.int64(value)


# -- upkeep, between calls of a kernel ------------------------------------------------------------


@allocating
def keep_witnesses(nodes, marks, witnesses, heads, earliest):  # type: ignore[no-untyped-def]
    """Drop the exceptions that no waiting match can meet; how many rows are left.

    What is kept moves together; every operator's list stays the latest first.
    """
    kept = np.empty_like(witnesses)
    count = 0
    for operator in range(heads.shape[0]):
        row = heads[operator]
        heads[operator] = -1
        last = -1
        while row >= 0 and witnesses[row, 2] > earliest:
            for cell in range(witnesses.shape[1]):
                kept[count, cell] = witnesses[row, cell]
            kept[count, 4] = -1
            if last < 0:
                heads[operator] = count
            else:
                kept[last, 4] = count
            last = count
            count += 1
            node = witnesses[row, 0]
            while node >= 0 and not marks[node]:
                marks[node] = True
                node = nodes[node, 0]
            row = witnesses[row, 4]
    for row in range(count):
        for cell in range(witnesses.shape[1]):
            witnesses[row, cell] = kept[row, cell]
    return count


@allocating
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
            for total in range(NODE_WIDTH, nodes.shape[1]):
                nodes[kept, total] = nodes[node, total]
            numbers[node] = kept
            kept += 1
    return numbers, kept
