"""A pattern of successors in the signs of its language, for people: `A x ; (B y ; C z)`.

What a label tells of conditions is its own operator's only; those of its operands stand in theirs.
"""

from __future__ import annotations

from cepheid.algebra.expression import TRUE, Expression
from cepheid.algebra.expression_text import expression_text, window_text
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
)


def label_of(pattern: Pattern) -> str:
    r"""The pattern, and what its topmost operator asks.

    >>> from cepheid.algebra.text import from_text
    >>> label_of(from_text("Next(Atom([A], x), Plus(Atom([B], y)), skip=x.k = y.k)"))
    'A x ; B y+, FILTER(x.k = y.k)'
    """
    return _shape(pattern) + "".join(f", {each}" for each in _asked(pattern))


def _shape(node: Pattern) -> str:
    match node:
        case Atom():
            return f"{' | '.join(node.types) or 'any type'} {node.variable}"
        case Filter() | Within():
            return _shape(node.pattern)
        case Next():
            return f"{_inside(node.first)} ; {_inside(node.second)}"
        case Plus():
            return f"{_inside(node.pattern)}+"
        case Timer():
            return f"{_inside(node.pattern)} @ {window_text(node.delay)}"
        case Except():
            return f"{_inside(node.pattern)} \\ {_inside(node.negated)}"
        case Union():
            return " | ".join(map(_inside, node.patterns))
        case _:
            raise AssertionError(node)  # plan_succession has refused it


def _inside(node: Pattern) -> str:
    text = _shape(node)
    return text if isinstance(node, Atom | Plus) else f"({text})"


def _asked(node: Pattern) -> list[str]:
    match node:
        case Atom() | Filter() | Except():
            return _condition(node.predicate)
        case Within():
            return [f"{node.first} and {node.second} within {window_text(node.window)}"]
        case Next() | Plus():
            return [f"FILTER({each})" for each in _condition(node.skip)] + _condition(node.test)
        case _:
            return []


def _condition(expression: Expression) -> list[str]:
    return [] if expression == TRUE else [expression_text(expression)]
