"""Which events begin and end every match of a pattern, as far as its nodes tell."""

from __future__ import annotations

from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    walk,
)


def is_in_order(node: Pattern) -> bool:
    """Whether a pattern is built of NEXT's own nodes: events lie in the order of their operands."""
    own = Atom | Filter | Within | Union | Next | Plus | Timer | Except
    return all(isinstance(each, own) for each in walk(node))


def first_event(node: Pattern) -> str | None:
    """The variable of the event that begins every match; None where it is not always the same."""
    match node:
        case Atom(_, variable):
            return variable
        case Next(first):
            return first_event(first)
        case Filter() | Within() | Except() | Timer():
            return first_event(node.pattern)
        case _:
            return None


def last_event(node: Pattern) -> str | None:
    """The variable of the event whose end is the end of every match.

    Not behind a Timer, which ends a match later than its events.
    """
    match node:
        case Atom(_, variable):
            return variable
        case Next(_, second):
            return last_event(second)
        case Filter() | Within() | Except():
            return last_event(node.pattern)
        case _:
            return None
