"""When a node is overloaded: the 80th percentile of delay above one second (NEXT, section 6).

A node is one server with a queue, first come first served. Work arrives in bins of time, counted in
steps; a step takes as long as was measured. The delay of an event is the work ahead of it and its
own bin's. The paper leaves the waiting for stability out of its delays; here there is none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.figures.next_workload.automata import BINS_PER_SECOND

PERCENTILE = 0.8
LONGEST_DELAY = 1.0
WINDOW_SECONDS = 10.0


def delays(work_seconds: np.ndarray, bin_seconds: float) -> np.ndarray:
    """The delay of an event that arrives in each bin, given the seconds of work of each bin.

    Lindley's recursion, backlog = max(backlog + work - bin, 0), as a running minimum.
    """
    drift = np.concatenate([[0.0], np.cumsum(work_seconds - bin_seconds)])
    backlog = drift - np.minimum.accumulate(drift)
    found: np.ndarray = backlog[:-1] + work_seconds
    return found


def is_overloaded(
    work_seconds: np.ndarray, events: np.ndarray, bin_seconds: float = 1 / BINS_PER_SECOND
) -> bool:
    """Whether in some window of ten seconds the 80th percentile of delay is above one second."""
    width = max(1, round(WINDOW_SECONDS / bin_seconds))
    delay = delays(work_seconds, bin_seconds)
    for begin in range(0, len(delay), width):
        part, weight = delay[begin : begin + width], events[begin : begin + width]
        if weight.sum() * (1 - PERCENTILE) < weight[part > LONGEST_DELAY].sum():
            return True
    return False


def largest_factor(
    is_too_much: Callable[[float], bool], *, start: float = 1.0, digits: float = 1e-3
) -> float:
    """The largest factor that is not too much, by doubling and halving."""
    low, high = 0.0, start
    while not is_too_much(high):
        low, high = high, 2 * high
    while high - low > digits * high:
        middle = (low + high) / 2
        if is_too_much(middle):
            high = middle
        else:
            low = middle
    return low


def largest_count(is_too_many: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that is not too many."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        if is_too_many(middle):
            high = middle
        else:
            low = middle
    return low
