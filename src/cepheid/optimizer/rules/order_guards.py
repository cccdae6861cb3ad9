"""Negations that are decided early come before those that have to wait."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Guard, Pattern
from cepheid.optimizer.movable import may_move


def order_guards(node: Pattern) -> Pattern | None:
    """
    Guard(Guard(A, !N at the end), !M in the middle)
        ->  Guard(Guard(A, !M in the middle), !N at the end)

    Middle ones first: their interval lies within the match. Then those that look back a window,
    then those that wait one, so that fewer matches are parked. Guards of one kind keep their order.

    Sound because each guard removes a match by its events alone, whatever the others do. It would
    not be for two guards that both move the match's end (`ends_match`): the outer one has the last
    word; they are of one kind, so they stay in order. Nor for predicates that fail on missing
    attributes: they would be asked about other matches.
    """
    guards: list[Guard] = []
    inner = node
    while isinstance(inner, Guard):
        guards.append(inner)
        inner = inner.pattern
    ordered = sorted(guards, key=_rank, reverse=True)  # stable; the outermost comes last in time
    if ordered == guards or not all(may_move(g.predicate, g.absent) for g in guards):
        return None
    for guard in reversed(ordered):
        inner = replace(guard, pattern=inner)
    return inner


def _rank(guard: Guard) -> int:
    if guard.ends_match or guard.high.windows > 0:
        return 2
    return 1 if guard.low.windows < 0 else 0
