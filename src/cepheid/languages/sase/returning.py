"""The RETURN clause: the attributes of the event that a match becomes."""

from __future__ import annotations

from cepheid.algebra.expression import FUNCTIONS, Expression
from cepheid.algebra.invariants import AGGREGATES
from cepheid.languages.findings import Findings
from cepheid.languages.sase.expressions import ExpressionTranslator
from cepheid.languages.sase.syntax import FunctionCall, Group, Item, Name, Reference, Returning


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


def attribute_names(items: tuple[Item, ...]) -> tuple[str | None, ...]:
    """The name of each item: its alias, its attribute, or `sum_price` for an aggregate."""
    return tuple(_attribute_name(item) for item in items)


def _attribute_name(item: Item) -> str | None:
    if item.alias is not None:
        return item.alias.text
    match item.value:
        case Reference(_, attribute):
            return attribute.text
        case FunctionCall(function, (Item(Reference(_, attribute)),)) if (
            function.text.casefold() in AGGREGATES
        ):
            return f"{function.text.casefold()}_{attribute.text}"
        case FunctionCall(function, (), True):
            return function.text.casefold()
        case _:
            return None


def translate_items(
    items: tuple[Item, ...], translator: ExpressionTranslator, findings: Findings
) -> tuple[tuple[str, Expression], ...] | None:
    """Each item's name and value; None if one has an error."""
    named: dict[str, Expression | None] = {}
    for item, name in zip(items, attribute_names(items), strict=True):
        value = translator.value(item.value)
        if name is None:
            findings.error(
                "unnamed-item",
                "the returned value has no name",
                item.span,
                "neither an attribute nor an aggregate",
                help="add AS and a name",
            )
        elif name in named:
            findings.error(
                "duplicate-item",
                f"two returned values have the name `{name}`",
                (item.alias or item).span,
                "used a second time",
                help=f"add AS and another name, e.g. AS {_other_name(item, name, named)}",
            )
        else:
            named[name] = value
    complete = tuple((name, value) for name, value in named.items() if value is not None)
    return complete if len(complete) == len(items) else None


def _other_name(item: Item, name: str, taken: dict[str, Expression | None]) -> str:
    match item.value:
        case Reference(Name(variable), _) if f"{variable}_{name}" not in taken:
            return f"{variable}_{name}"
        case _:
            return f"{name}_2"
