"""What FILTER says of the successor alone is tested where the successor is taken."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expression import conjunction, variables
from cepheid.algebra.pattern import Filter, Next, Pattern, bound_variables
from cepheid.optimizer.movable import may_move, split


def push_next_skip_into_second(node: Pattern) -> Pattern | None:
    """
    Next(A, B, skip=p(b) and q(a, b))  ->  Next(A, Filter(B, p(b)), skip=q(a, b))

    Sound because a skip says which matches of B are candidates at all: those that fail are passed
    over, as if they were not there. It would not be for a test of B (t1:2000 t2:50 t3:3000, both
    over 1000, would find t1 t3), nor for a p that fails on missing attributes, which below is asked
    about every B.
    """
    if not isinstance(node, Next) or not may_move(node.skip, node.absent):
        return None
    names = set(bound_variables(node.second))
    moved, kept = split(node.skip, lambda part: bool(variables(part)) and variables(part) <= names)
    if not moved:
        return None
    second = Filter(node.second, conjunction(moved), node.absent, span=moved[0].span)
    return replace(node, second=second, skip=conjunction(kept))
