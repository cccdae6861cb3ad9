"""Two filters on top of each other become one."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expression import conjunction
from cepheid.algebra.pattern import Filter, Pattern


def merge_filters(node: Pattern) -> Pattern | None:
    """
    Filter(Filter(A, p), q)  ->  Filter(A, p and q)

    Sound because a filter looks at one match at a time; p stays in front, so that a q that fails on
    a missing attribute is still asked only where p holds. It would not be for filters with
    different absent rules: one Filter has one rule for all its atoms.
    """
    match node:
        case Filter(Filter(pattern, inner, absent), outer, same) if absent is same:
            return replace(node, pattern=pattern, predicate=conjunction((inner, outer)))
        case _:
            return None
