"""What is said of the first side of a Next alone is tested before anything waits."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expression import Expression, conjunction, variables
from cepheid.algebra.pattern import Filter, Next, Pattern, bound_variables
from cepheid.optimizer.movable import may_move, split


def push_next_condition_into_first(node: Pattern) -> Pattern | None:
    """
    Next(A, B, test=p(a) and q(a, b))  ->  Next(Filter(A, p(a)), B, test=q(a, b))
    Next(A, B, skip=p(a) and q(a, b))  ->  Next(Filter(A, p(a)), B, skip=q(a, b))

    Sound because each match of A looks for its successors alone: one that fails p has no candidate
    (skip) or loses whatever it finds (test), and no other match of A misses it. It would not be for
    a p on the second side in a test, where a B that is not there lets a later one be chosen; nor
    for a p that fails on missing attributes, which is then asked about an A that has no successor.
    """
    if not isinstance(node, Next):
        return None
    names = set(bound_variables(node.first))

    def moves(part: Expression) -> bool:
        return bool(variables(part)) and variables(part) <= names

    skips, kept_skips = split(node.skip, moves)
    tests, kept_tests = split(node.test, moves)
    moved = [*skips, *tests]
    if not moved or not may_move(conjunction((node.skip, node.test)), node.absent):
        return None
    return replace(
        node,
        first=Filter(node.first, conjunction(moved), node.absent, span=moved[0].span),
        skip=conjunction(kept_skips),
        test=conjunction(kept_tests),
    )
