"""The list of results of a query: the attributes of the event that a match becomes."""

from __future__ import annotations

from cepheid.algebra.expression import Expression
from cepheid.algebra.invariants import AGGREGATES
from cepheid.algebra.query import Output
from cepheid.algebra.typing import infer
from cepheid.languages.expressions import ExpressionTranslator
from cepheid.languages.findings import Findings
from cepheid.languages.result_names import check_item
from cepheid.languages.scope import Scope
from cepheid.languages.terms import FunctionCall, Item, Name, Reference
from cepheid.model.catalogue import AttributeType
from cepheid.model.errors import QueryError


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
    items: tuple[Item, ...],
    names: tuple[str | None, ...],
    translator: ExpressionTranslator,
    findings: Findings,
) -> tuple[tuple[str, Expression], ...]:
    """Each item's name and value, types checked; none at all if one has an error."""
    named: dict[str, Expression | None] = {}
    for item, name in zip(items, names, strict=True):
        value = translator.value(item.value)
        if name is None:
            if value is not None:  # else its own error has been told
                _note_unnamed(item, findings)
            continue
        other = _other_name(item, name, named)
        check_item(item, name, other, findings)
        if name in named:
            findings.error(
                "duplicate-item",
                f"two returned values have the name `{name}`",
                (item.alias or item).span,
                "used a second time",
                help=f"add AS and another name, e.g. AS {other}",
            )
        else:
            named[name] = value
    complete = tuple((name, value) for name, value in named.items() if value is not None)
    if len(complete) < len(items):
        return ()
    for _, value in complete:
        translator.check_types(value)
    return complete


def _note_unnamed(item: Item, findings: Findings) -> None:
    findings.error(
        "unnamed-item",
        "the returned value has no name",
        item.span,
        "neither an attribute nor an aggregate",
        help="add AS and a name",
    )


def _other_name(item: Item, name: str, taken: dict[str, Expression | None]) -> str:
    match item.value:
        case Reference(Name(variable), Name(attribute)) if f"{variable}_{attribute}" not in taken:
            return f"{variable}_{attribute}"
        case _:
            return f"{name}_2"


def output_types(
    names: tuple[str | None, ...], output: Output, scope: Scope
) -> dict[str, AttributeType]:
    """The attributes of the derived events, also of a list with errors."""
    types = {name: AttributeType.UNKNOWN for name in names if name is not None}
    for name, value in output.attributes:
        try:
            types[name] = AttributeType(infer(value, scope.types_in(value)).value)
        except QueryError:
            continue  # told where the list was translated
    return types
