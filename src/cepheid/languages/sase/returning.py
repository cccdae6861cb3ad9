"""The RETURN clause: which part of it is a type, and which the list of results."""

from __future__ import annotations

from cepheid.algebra.expression import FUNCTIONS
from cepheid.algebra.invariants import AGGREGATES
from cepheid.languages.findings import Findings
from cepheid.languages.sase.syntax import Group, Returning
from cepheid.languages.terms import FunctionCall, Item, Name


def listed(returning: Returning) -> tuple[Name | None, tuple[Item, ...]]:
    """The type name and the items: `RETURN T(a, b)` is read as a call, `RETURN (a, b)` as a group.

    A call of a known function is an item, whatever it is called: `RETURN sum(x.a)`.
    """
    if returning.type is None and len(returning.items) == 1 and returning.items[0].alias is None:
        match returning.items[0].value:
            case FunctionCall(function, arguments, star) if not star and not _is_function(function):
                return function, arguments
            case Group(items):
                return None, items
    return returning.type, returning.items


def _is_function(name: Name) -> bool:
    return name.text.casefold() in (*FUNCTIONS, *AGGREGATES)


def check_hyphens(returning: Returning, findings: Findings) -> None:
    """Refuse `RETURN a-abs(b)`, which the lexer takes for the type `a-abs`."""
    name = returning.type
    if name is None:
        return
    first, _, function = name.text.rpartition("-")
    if function.casefold() in (*FUNCTIONS, *AGGREGATES):
        findings.error(
            "ambiguous-minus",
            f"`{name.text}` reads as the name of an event type",
            name.span,
            "a type, or a subtraction?",
            help=f"write {first} - {function}(...) to subtract, or the type in backticks",
        )
