"""A window over a chain of successors lets each part of it be forgotten in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cepheid.algebra.expression import conjunction
from cepheid.algebra.pattern import (
    Except,
    Filter,
    Measure,
    Next,
    Pattern,
    Within,
    bound_variables,
)
from cepheid.optimizer.ends import first_event, is_in_order, last_event
from cepheid.optimizer.movable import may_move


def bound_next_by_window(node: Pattern) -> Pattern | None:
    """
    Within(Next(Next(A, B), C), |end(c) - end(a)|)
        ->  Within(Next(Within(Next(A, B), |end(b) - end(a)|), C), |end(c) - end(a)|)
    Within(Next(A, Next(B, C)), |end(c) - end(a)|)
        ->  Within(Next(A, Within(Next(B, C), |end(c) - end(b)|)), |end(c) - end(a)|)

    The outer window stays; the inner one only drops early what the outer one would drop, so that
    every Next has a window right above it that says how long its matches wait.

    Sound because b ends between a and c. On the left, A and B too far apart stay so with any C. On
    the right, a match of B and C that is too long is no successor that passes; without it a later
    one may be chosen, and that ends no earlier, so the outer window drops it as well. It would not
    be for a window that ends before the last event of the right side: the later match may end
    there earlier. Nor for one from the match's start to its end, which long events at its end
    change, nor past conditions that fail on missing attributes.
    """
    match node:
        case Within(Next() as inner, measure=Measure.END_TO_END) if is_in_order(inner):
            if not may_move(conjunction((inner.skip, inner.test)), inner.absent):
                return None
            left, right = set(bound_variables(inner.first)), set(bound_variables(inner.second))
            begin, end = node.first or "", node.second or ""
            if begin in right and end in left:
                begin, end = end, begin
            if begin not in left or end not in right:
                return None
            first = _bounded(inner.first, node, begin, last_event(inner.first))
            second = inner.second
            if end == last_event(second):
                second = _bounded(second, node, first_event(second), end)
            if first is inner.first and second is inner.second:
                return None
            return replace(node, pattern=replace(inner, first=first, second=second))
        case _:
            return None


def _bounded(part: Pattern, outer: Within, begin: str | None, end: str | None) -> Pattern:
    """The part under the same window between its own events, unless it has that already."""
    if begin is None or end is None or begin == end or not isinstance(_unwrapped(part), Next):
        return part
    window = replace(outer, pattern=part, first=begin, second=end)
    return part if any(_is_as_tight(each, window) for each in _windows(part)) else window


def _is_as_tight(inner: Within, outer: Within) -> bool:
    if inner.measure is not outer.measure:
        return False
    if {inner.first, inner.second} != {outer.first, outer.second}:
        return False
    length, other = inner.window, outer.window
    if not isinstance(length, int) or not isinstance(other, int):
        return length == other
    return (length + inner.ticks, inner.inclusive) <= (other + outer.ticks, outer.inclusive)


def _windows(node: Pattern) -> Iterator[Within]:
    while isinstance(node, Within | Filter | Except):
        if isinstance(node, Within):
            yield node
        node = node.pattern


def _unwrapped(node: Pattern) -> Pattern:
    while isinstance(node, Within | Filter | Except):
        node = node.pattern
    return node
