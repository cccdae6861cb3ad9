"""Runs of which no event is kept: one node each, with totals over its events (SPEC A1.4, step 2).

The paper's automata may aggregate instead of adding an event to what they have built (section 3.3);
it stores the events of iterations for the sake of their stamps (section 3.4). Here a run is a node
that names its last event, which is what PREV and conditions on a run look at, and carries columns
of totals (match_nodes): enough for every aggregate, for the identity of its matches, and for its
place in the stable order. The next run is another node, made of this one and an event, so all
prefixes that others still hold stay as they are.

Each measured attribute has five columns: how many values are defined, their sum, the least and the
greatest. Sums of integers are exact, in two words of 128 bits; floats stand as their bits, and are
added in the order of the events.
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.identity import FIRST_FACTOR, OTHER_FACTOR, name_of_variable
from cepheid.kernels.machine_code import compiled
from cepheid.kernels.match_nodes import (
    BEFORE_END,
    BEFORE_RANK,
    BEFORE_START,
    COUNT,
    LANE,
    MEASURES,
    OTHER_LANE,
    RANK,
    RUN_START,
    START,
    last_stamps,
    order_of,
    sort_found,
)

DEFINED, HIGH, LOW, LEAST, MOST, MEASURE_WIDTH = range(6)
"""Columns of a measure; a sum of floats stands in LOW."""

_UNDEFINED_BELOW = -(2**63) + 2
_ABSENT_FLOAT = -1.7976931348623157e308
_GREATEST = 2**63 - 1


@compiled
def begin_run(nodes, node, facts, numbers, base, extra, begin, end):  # type: ignore[no-untyped-def]
    """The totals of a node's one event; extra[begin:end] is what its leaf is told (Totals)."""
    event = nodes[node, 2] - base
    lanes = extra[begin]
    name = name_of_variable(nodes[node, 1])
    nodes[node, COUNT] = 1
    nodes[node, RUN_START] = facts[START, event]
    nodes[node, LANE] = np.int64(np.uint64(facts[lanes, event]) ^ name)
    nodes[node, OTHER_LANE] = np.int64(np.uint64(facts[lanes + 1, event]) + name)
    nodes[node, BEFORE_END] = nodes[node, BEFORE_START] = nodes[node, BEFORE_RANK] = 0
    nodes[node, RANK] = 0
    reals = nodes.view(np.float64)
    place = MEASURES
    for at in range(begin + 1, end, 2):
        nodes[node, place + HIGH] = 0
        if extra[at + 1]:
            real = numbers[extra[at], event]
            is_defined = real == real and real != _ABSENT_FLOAT
            reals[node, place + LOW] = 0.0 + real if is_defined else 0.0
            reals[node, place + LEAST] = real if is_defined else np.inf
            reals[node, place + MOST] = real if is_defined else -np.inf
        else:
            whole = facts[extra[at], event]
            is_defined = whole >= _UNDEFINED_BELOW
            nodes[node, place + LOW] = whole if is_defined else 0
            if is_defined and whole < 0:
                nodes[node, place + HIGH] = -1
            nodes[node, place + LEAST] = whole if is_defined else _GREATEST
            nodes[node, place + MOST] = whole if is_defined else _UNDEFINED_BELOW
        nodes[node, place + DEFINED] = 1 if is_defined else 0
        place += MEASURE_WIDTH


@compiled
def extend_run(nodes, node, run, next_one, facts, base, extra, begin, end):  # type: ignore[no-untyped-def]
    """Write the node of a run and one more event, which is a run of its own."""
    nodes[node, 0] = -1
    nodes[node, 1] = nodes[run, 1]
    nodes[node, 2] = nodes[next_one, 2]
    nodes[node, COUNT] = nodes[run, COUNT] + 1
    nodes[node, RUN_START] = nodes[run, RUN_START]
    for lane, factor in ((LANE, FIRST_FACTOR), (OTHER_LANE, OTHER_FACTOR)):
        longer = np.uint64(nodes[run, lane]) * factor + np.uint64(nodes[next_one, lane])
        nodes[node, lane] = np.int64(longer)
    last_end, last_start = last_stamps(nodes, run, facts, base)
    nodes[node, BEFORE_END] = last_end
    nodes[node, BEFORE_START] = last_start
    nodes[node, BEFORE_RANK] = nodes[run, RANK]
    nodes[node, RANK] = 0
    reals = nodes.view(np.float64)
    place = MEASURES
    for at in range(begin + 1, end, 2):
        nodes[node, place] = nodes[run, place] + nodes[next_one, place]
        low, least, most = place + LOW, place + LEAST, place + MOST
        if extra[at + 1]:
            nodes[node, place + HIGH] = 0
            reals[node, low] = reals[run, low]
            if nodes[next_one, place]:
                reals[node, low] += reals[next_one, low]
            reals[node, least] = min(reals[run, least], reals[next_one, least])
            reals[node, most] = max(reals[run, most], reals[next_one, most])
        else:
            before = np.uint64(nodes[run, low])
            after = before + np.uint64(nodes[next_one, low])
            nodes[node, low] = np.int64(after)
            high = nodes[run, place + HIGH] + nodes[next_one, place + HIGH]
            nodes[node, place + HIGH] = high + (1 if after < before else 0)
            nodes[node, least] = min(nodes[run, least], nodes[next_one, least])
            nodes[node, most] = max(nodes[run, most], nodes[next_one, most])
        place += MEASURE_WIDTH


@compiled
def rank_runs(nodes, found, begin, end, facts, base):  # type: ignore[no-untyped-def]
    """Put runs of one end into the stable order, and note the place of each in its node.

    Two runs that go on with events of equal stamps keep their order, so places among runs of one
    end and start tell the order of all that is made of them.
    """
    sort_found(found, begin, end, nodes, facts, base)
    rank = 0
    for x in range(begin, end):
        if x > begin and order_of(nodes, found[x - 1, 0], found[x, 0], facts, base) != 0:
            rank = x - begin
        nodes[found[x, 0], RANK] = rank
