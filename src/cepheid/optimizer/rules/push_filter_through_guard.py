"""Conditions on a match are tested before anybody looks for a witness against it."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Filter, Guard, Pattern
from cepheid.optimizer.movable import may_move


def push_filter_through_guard(node: Pattern) -> Pattern | None:
    """
    Filter(Guard(A, N), p)  ->  Guard(Filter(A, p), N)

    Sound because a guard decides about each match alone, and p can only be about the positive
    variables: those of N are not bound above the guard. It would not be for a p that fails on
    missing attributes, which below is asked about matches that the guard would have removed, nor
    for such a predicate of the guard, which is then asked about fewer matches. And it would not be
    for the guard's own predicate, which is about the witness and belongs to the negation.
    """
    match node:
        case Filter(Guard() as guard, predicate, absent) if may_move(
            predicate, absent
        ) and may_move(guard.predicate, guard.absent):
            return replace(guard, pattern=replace(node, pattern=guard.pattern))
        case _:
            return None
