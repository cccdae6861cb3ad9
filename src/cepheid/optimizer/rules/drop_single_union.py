"""A union of one pattern is that pattern."""

from __future__ import annotations

from cepheid.algebra.pattern import Except, Pattern, Union


def drop_single_union(node: Pattern) -> Pattern | None:
    """
    Union(A)  ->  A

    Sound because a bag union of one bag is that bag. It would not be for an exception that reports
    its failures: a failure shows only where nothing stands above it, so the Union hides it.
    """
    match node:
        case Union((Except(report_failures=True),)):
            return None
        case Union((only,)):
            return only
        case _:
            return None
