"""The window is tested before other conditions: it is cheap, and it bounds the state."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Filter, Pattern, Within
from cepheid.optimizer.movable import may_move


def push_window_below_filter(node: Pattern) -> Pattern | None:
    """
    Within(Filter(A, p), w)  ->  Filter(Within(A, w), p)

    Sound because both look at one match at a time. Windows meet below, filters above, and can be
    merged there. It would not be for a p that fails on missing attributes: asked after the window,
    it would no longer fail for the matches outside of it.
    """
    match node:
        case Within(Filter(pattern, predicate, absent) as tested) if may_move(predicate, absent):
            return replace(tested, pattern=replace(node, pattern=pattern))
        case _:
            return None
