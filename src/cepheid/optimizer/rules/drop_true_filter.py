"""A filter that lets everything pass is none."""

from __future__ import annotations

from cepheid.algebra.expression import conjuncts
from cepheid.algebra.pattern import Filter, Pattern


def drop_true_filter(node: Pattern) -> Pattern | None:
    """
    Filter(A, always)  ->  A

    Sound because the empty conjunction holds for every match, whatever the absent rule, and
    failures pass a Filter anyway. It would not be for the empty disjunction, which never holds.
    """
    match node:
        case Filter(pattern, predicate) if not conjuncts(predicate):
            return pattern
        case _:
            return None
