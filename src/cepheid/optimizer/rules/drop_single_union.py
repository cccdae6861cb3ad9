"""A union of one pattern is that pattern."""

from __future__ import annotations

from cepheid.algebra.pattern import Pattern, Union


def drop_single_union(node: Pattern) -> Pattern | None:
    """
    Union(A)  ->  A

    Sound because a bag union of one bag is that bag, failures included. It would not be for two
    operands, even if they are equal: bags count.
    """
    match node:
        case Union((only,)):
            return only
        case _:
            return None
