"""A filter that lets everything pass is none."""

from __future__ import annotations

from cepheid.algebra.expression import conjuncts
from cepheid.algebra.pattern import Except, Filter, Pattern


def drop_true_filter(node: Pattern) -> Pattern | None:
    """
    Filter(A, always)  ->  A

    Sound because the empty conjunction holds for every match, whatever the absent rule. It would
    not be for an exception that reports its failures: a failure shows only where nothing stands
    above it, so the Filter hides it.
    """
    match node:
        case Filter(Except(report_failures=True)):
            return None
        case Filter(pattern, predicate) if not conjuncts(predicate):
            return pattern
        case _:
            return None
