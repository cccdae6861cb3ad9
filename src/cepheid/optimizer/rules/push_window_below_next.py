"""A window between two events of the first side is tested before anything waits."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expression import conjunction
from cepheid.algebra.pattern import Measure, Next, Pattern, Within, bound_variables
from cepheid.optimizer.movable import may_move


def push_window_below_next(node: Pattern) -> Pattern | None:
    """
    Within(Next(A, B), |end(x) - end(y)|), x and y of A  ->  Next(Within(A, ...), B)

    Sound because each match of A looks for its successors alone, and A's ends do not change by what
    follows. It would not be for a window from the match's start to its end, which is another one
    without B, nor for one between two events of B, where a B that is not there lets a later one be
    chosen; nor past conditions that fail on missing attributes, which are then asked less often.
    """
    match node:
        case Within(Next() as inner, measure=Measure.END_TO_END) if {node.first, node.second} <= {
            *bound_variables(inner.first)
        }:
            if not may_move(conjunction((inner.skip, inner.test)), inner.absent):
                return None
            return replace(inner, first=replace(node, pattern=inner.first))
        case _:
            return None
