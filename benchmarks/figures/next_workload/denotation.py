"""What a query must find, by the definition alone: plain, slow, for short streams (SPEC A1.3)."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.figures.next_workload.automata import Stream
from cepheid.algebra.pattern import Atom, Next, Pattern, operands

_LATER_THAN_ALL = (float("inf"),)


def count_matches(query: Pattern, sources: Mapping[str, Stream]) -> int:
    """The number of matches."""
    return len(_matches(query, sources))


def _matches(node: Pattern, sources: Mapping[str, Stream]) -> list[tuple[int, ...]]:
    """The stamps of all matches."""
    if isinstance(node, Atom):
        return [(time,) for time in sources[node.types[0]].starts.tolist()]
    parts = [_matches(each, sources) for each in operands(node)]
    if not isinstance(node, Next):
        return [each for part in parts for each in part]
    first, second = parts
    found = []
    for bound in first:
        after = [each for each in second if each[0] > bound[-1]]
        least = min(map(_order, after), default=None)
        found += [(*bound, *each) for each in after if _order(each) == least]
    return found


def _order(stamps: tuple[int, ...]) -> tuple[float, ...]:
    """Compared from the end; of two that agree as far as they go the longer one is smaller."""
    return (*reversed(stamps), *_LATER_THAN_ALL)
