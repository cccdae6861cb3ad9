"""Of two windows on the same stretch of time the tighter one is enough."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Pattern, Within


def merge_withins(node: Pattern) -> Pattern | None:
    """
    Within(Within(A, <= 5), < 9)  ->  Within(A, <= 5)
    Within(Within(A, <= 5), < 5)  ->  Within(A, < 5)

    Sound because both compare the same length with a constant. It would not be for different
    measures: the ends of x and y may be close in a match that is long. Windows that have no length
    yet (`Duration`) can not be compared and stay.
    """
    match node:
        case Within(Within(pattern) as inner) if _measured(inner) == _measured(node):
            outer_length, inner_length = _length(node), _length(inner)
            if outer_length is None or inner_length is None:
                return None
            return replace(node, pattern=pattern) if outer_length < inner_length else inner
        case _:
            return None


def _measured(node: Within) -> tuple[object, frozenset[str | None]]:
    # The distance of two ends is the same from either side.
    return node.measure, frozenset((node.first, node.second))


def _length(node: Within) -> tuple[int, bool] | None:
    """Windows in order of what they let pass: < 5 comes before <= 5."""
    if not isinstance(node.window, int):
        return None
    return node.window + node.ticks, node.inclusive
