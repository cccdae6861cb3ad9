"""A condition on what a Next has found is one more test of its successor."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expression import conjunction, conjuncts
from cepheid.algebra.pattern import Filter, Next, Pattern, Within
from cepheid.optimizer.movable import may_move


def merge_filter_into_next(node: Pattern) -> Pattern | None:
    """
    Filter(Next(A, B, test=p), q)             ->  Next(A, B, test=p and q)
    Filter(Within(Next(A, B, test=p), w), q)  ->  Within(Next(A, B, test=p and q), w)

    Sound because a test is asked about the chosen successor and its failure removes the match, as a
    filter does; p stays in front. A Next has one absent rule, so the filter must have the same, or
    the Next no condition yet. It would not be for `skip`: there a B that fails is passed over, and
    a later one is found (NEXT's FILTER against a plain condition). Nor below a window for a q that
    fails on missing attributes, which is then asked about matches outside of it.
    """
    if not isinstance(node, Filter) or not conjuncts(node.predicate):
        return None
    windows: list[Within] = []
    inner = node.pattern
    while isinstance(inner, Within):
        windows.append(inner)
        inner = inner.pattern
    if not isinstance(inner, Next) or (windows and not may_move(node.predicate, node.absent)):
        return None
    is_bare = not conjuncts(inner.skip) and not conjuncts(inner.test)
    if not is_bare and inner.absent is not node.absent:
        return None
    merged: Pattern = replace(
        inner, test=conjunction((inner.test, node.predicate)), absent=node.absent
    )
    for window in reversed(windows):
        merged = replace(window, pattern=merged)
    return merged
