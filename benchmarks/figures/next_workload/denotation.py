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
    first, second = parts[0], sorted(parts[1], key=_order)
    found = []
    for bound in first:
        successor = next((each for each in second if each[0] > bound[-1]), None)
        found += [(*bound, *successor)] * second.count(successor) if successor else []
    return found


def _order(stamps: tuple[int, ...]) -> tuple[float, ...]:
    """Compared from the end; of two that agree as far as they go the longer one is smaller."""
    return (*reversed(stamps), *_LATER_THAN_ALL)
