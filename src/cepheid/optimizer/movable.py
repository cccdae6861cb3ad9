"""Which parts of a predicate may be tested somewhere else, and how an Atom takes them over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cepheid.algebra.expression import (
    TRUE,
    Absent,
    Every,
    Expression,
    Previous,
    conjunction,
    conjuncts,
    variables,
    walk,
)
from cepheid.algebra.pattern import Atom


def may_move(predicate: Expression, absent: Absent) -> bool:
    """Whether a predicate may be tested on other matches, more or fewer, than it is now.

    One that fails on a missing attribute (PLAN, CompAS) may not: tested earlier it would fail for
    events that are in no match, and tested later not fail where it should. So neither may it move,
    nor may a test that removes matches move past it.
    """
    return absent is not Absent.ERROR or not conjuncts(predicate)


def only_variable(part: Expression) -> str | None:
    """The one variable a conjunct is about; None for several, for none, and inside an iteration."""
    used = variables(part)
    if len(used) != 1 or any(isinstance(each, Previous | Every) for each in walk(part)):
        return None
    return next(iter(used))


def takes(atom: Atom, absent: Absent) -> bool:
    """Whether an Atom can test a predicate of this absent rule beside its own one."""
    return atom.predicate == TRUE or atom.absent is absent


def with_tests(atom: Atom, parts: list[Expression], absent: Absent) -> Atom:
    """The Atom with further tests, after those it has; see `takes`."""
    if not parts:
        return atom
    return replace(atom, predicate=conjunction((atom.predicate, *parts)), absent=absent)


def split(
    predicate: Expression, moves: Callable[[Expression], bool]
) -> tuple[list[Expression], list[Expression]]:
    """The conjuncts that move, and those that stay."""
    moved: list[Expression] = []
    kept: list[Expression] = []
    for part in conjuncts(predicate):
        (moved if moves(part) else kept).append(part)
    return moved, kept
