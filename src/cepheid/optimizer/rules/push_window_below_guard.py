"""The window is tested before anybody looks for a witness against a match."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Guard, Measure, Pattern, Within
from cepheid.optimizer.movable import may_move


def push_window_below_guard(node: Pattern) -> Pattern | None:
    """
    Within(Guard(A, N), w)  ->  Guard(Within(A, w), N)

    Sound because both decide about each match alone, and a guard leaves the times of its match as
    they are. It would not be for a guard that moves the match's end to its own upper bound
    (`ends_match`, SASE's negated end) under a window that measures up to that end; nor for one
    whose predicate fails on missing attributes, which is then asked about fewer matches.
    """
    match node:
        case Within(Guard(ends_match=True), measure=Measure.LAST_MINUS_FIRST):
            return None
        case Within(Guard() as guard) if may_move(guard.predicate, guard.absent):
            return replace(guard, pattern=replace(node, pattern=guard.pattern))
        case _:
            return None
