"""Conditions on a possible witness alone are tested where it is taken, before it is kept."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expression import conjunction
from cepheid.algebra.pattern import Atom, Guard, Pattern
from cepheid.optimizer.movable import may_move, only_variable, split, takes, with_tests


def push_guard_test_into_negated_atom(node: Pattern) -> Pattern | None:
    """
    Guard(A, N n, p(n) and q(n, x))  ->  Guard(A, N n if p(n), q(n, x))

    Sound because a witness is an event of N for which all conjuncts hold: it makes no difference
    which are asked first. It would not be for a conjunct on a positive variable alone: p(x) in a
    guard says when x *can* be cancelled, and as a condition on A it would remove the x for which it
    fails instead of sparing them. Nor for a p that fails on missing attributes: not every N is ever
    compared with a match.
    """
    match node:
        case Guard(negated=Atom() as atom, predicate=predicate, absent=absent) if may_move(
            predicate, absent
        ) and takes(atom, absent):
            moved, kept = split(predicate, lambda part: only_variable(part) == atom.variable)
            if not moved:
                return None
            negated = with_tests(atom, moved, absent)
            return replace(node, negated=negated, predicate=conjunction(kept))
        case _:
            return None
