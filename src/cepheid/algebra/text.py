"""The text form of patterns: stable, readable, and parsed back exactly.

A node is `Name(operands, field=value)`; fields at their default are left out, so a new field with a
default leaves older texts and fingerprints as they are. A closed window is a number, an open one
has a unit: `window=10`, `window=10 ticks`, `window=:w hours`. A time bound reads
`min start([x], [y, z]) + 1 windows - 1 ticks`, one bracket per operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any, Generic, TypeVar, cast, get_args

from cepheid.algebra.expression import Absent, Expression, Window
from cepheid.algebra.expression_text import (
    Reader,
    expression_text,
    name_text,
    number_text,
    read_expression,
    read_window,
    window_text,
)
from cepheid.algebra.pattern import (
    Absence,
    Agg,
    Atom,
    Component,
    Conj,
    Consumption,
    Dedup,
    Except,
    Extreme,
    Filter,
    Gap,
    GapModel,
    Guard,
    Lossy,
    Map,
    Measure,
    Next,
    Nth,
    Order,
    Pair,
    Pattern,
    Plus,
    Selection,
    Seq,
    Side,
    TimeBound,
    Timer,
    Union,
    Within,
)
from cepheid.algebra.query import Output

_Value = TypeVar("_Value")


def to_text(node: Pattern | Expression | Output, *, multiline: bool = False) -> str:
    """The node as text; `multiline` puts each operand on its own indented line.

    >>> to_text(Seq((Atom(("A",), "x"), Atom(("B",), "y")), window=10, inclusive=False))
    'Seq(Atom([A], x), Atom([B], y), window=10, inclusive=false)'
    """
    if isinstance(node, Output):
        return f"Output({name_text(node.type)}, attributes={_NAMED.write(node.attributes)})"
    if isinstance(node, get_args(Expression)):
        return expression_text(cast(Expression, node))
    return _write_node(cast(Pattern, node), 0 if multiline else None)


def from_text(text: str) -> Pattern:
    """The pattern whose text this is.

    >>> from_text("Atom([SHELF], x, x.id = 'a')").variable
    'x'
    """
    reader = Reader(text)
    node = _read_node(reader, 0)
    reader.expect_end()
    return node


def expression_from_text(text: str) -> Expression:
    """The expression whose text this is.

    >>> expression_from_text("x.v < 3 or y.v = :limit").operands[1].right
    Parameter(name='limit')
    """
    reader = Reader(text)
    node = read_expression(reader)
    reader.expect_end()
    return node


@dataclass(frozen=True, slots=True)
class _Form(Generic[_Value]):
    """How one kind of field is written and read; `read` gets the depth of the text so far."""

    write: Callable[[_Value], str]
    read: Callable[[Reader, int], _Value]


def _list_of(form: _Form[_Value]) -> _Form[tuple[_Value, ...]]:
    def read(reader: Reader, depth: int) -> tuple[_Value, ...]:
        reader.expect("[")
        items: list[_Value] = []
        while not reader.at("]"):
            items.append(form.read(reader, depth))
            if not reader.skip(","):
                break
        reader.expect("]")
        return tuple(items)

    return _Form(lambda items: f"[{', '.join(form.write(item) for item in items)}]", read)


def _optional(form: _Form[_Value]) -> _Form[_Value | None]:
    return _Form(
        lambda value: "none" if value is None else form.write(value),
        lambda reader, depth: None if reader.skip("none") else form.read(reader, depth),
    )


_Member = TypeVar("_Member", bound=Enum)


def _choice(members: type[_Member]) -> _Form[_Member]:
    def read(reader: Reader, _: int) -> _Member:
        words = {str(member.value): member for member in members}
        if not reader.at(*words):
            reader.fail(f"expected one of {', '.join(words)}")
        return words[reader.take()]

    return _Form(lambda member: str(member.value), read)


def _read_bool(reader: Reader, _: int) -> bool:
    if not reader.at("true", "false"):
        reader.fail("expected true or false")
    return reader.take() == "true"


def _read_int(reader: Reader, _: int) -> int:
    value = reader.number()
    if not isinstance(value, int):
        reader.fail("expected a whole number before this")
    return value


def _bound_text(bound: TimeBound) -> str:
    groups = ", ".join(_NAMES.write(group) for group in bound.groups)
    text = f"{bound.extreme.value} {bound.side.value}({groups})"
    for count, unit in ((bound.windows, "windows"), (bound.ticks, "ticks")):
        if count:
            text += f" {'-' if count < 0 else '+'} {abs(count)} {unit}"
    return text


def _read_bound(reader: Reader, depth: int) -> TimeBound:
    extreme = _choice(Extreme).read(reader, depth)
    side = _choice(Side).read(reader, depth)
    groups: list[tuple[str, ...]] = []
    reader.expect("(")
    while not reader.at(")"):
        groups.append(_NAMES.read(reader, depth))
        if not reader.skip(","):
            break
    reader.expect(")")
    counts = {"windows": 0, "ticks": 0}
    while reader.at("+", "-"):
        sign = -1 if reader.take() == "-" else 1
        count = _read_int(reader, depth)
        if not reader.at(*counts):
            reader.fail("expected windows or ticks")
        counts[reader.take()] += sign * count
    return TimeBound(extreme, side, tuple(groups), counts["windows"], counts["ticks"])


def _read_named(reader: Reader, depth: int) -> tuple[tuple[str, Expression], ...]:
    items: list[tuple[str, Expression]] = []
    reader.expect("{")
    while not reader.at("}"):
        name = reader.name()
        reader.expect(":")
        items.append((name, read_expression(reader, depth + 1)))
        if not reader.skip(","):
            break
    reader.expect("}")
    return tuple(items)


def _read_equality(reader: Reader, depth: int) -> tuple[Expression, Expression]:
    reader.expect("(")
    left = read_expression(reader, depth + 1)
    reader.expect(",")
    right = read_expression(reader, depth + 1)
    reader.expect(")")
    return left, right


def _read_default(reader: Reader, depth: int) -> tuple[str, str, Expression]:
    variable = reader.name()
    reader.expect(".")
    attribute = reader.name()
    reader.expect(":")
    return variable, attribute, read_expression(reader, depth + 1)


def _component_text(component: Component) -> str:
    sign = "not " if component.negated else ""
    gap = component.gap.kind.value + _list_of(_FLOAT).write(component.gap.parameters)
    return f"{sign}{name_text(component.variable)}(loss={number_text(component.loss)}, {gap})"


def _read_component(reader: Reader, depth: int) -> Component:
    negated = reader.skip("not")
    variable = reader.name()
    reader.expect("(")
    reader.expect("loss")
    reader.expect("=")
    loss = reader.number()
    reader.expect(",")
    kind = _choice(Gap).read(reader, depth)
    parameters = _list_of(_FLOAT).read(reader, depth)
    reader.expect(")")
    return Component(variable, negated, loss, GapModel(kind, parameters))


_NAME = _Form(name_text, lambda reader, _: reader.name())
_NAMES = _list_of(_NAME)
_BOOL: _Form[bool] = _Form(lambda value: "true" if value else "false", _read_bool)
_INT: _Form[int] = _Form(number_text, _read_int)
_FLOAT: _Form[float] = _Form(number_text, lambda reader, _: reader.number())
_EXPRESSION: _Form[Expression] = _Form(
    expression_text, lambda reader, depth: read_expression(reader, depth + 1)
)
_WINDOW: _Form[Window] = _Form(window_text, lambda reader, _: read_window(reader))
_BOUND: _Form[TimeBound] = _Form(_bound_text, _read_bound)
_NAMED: _Form[tuple[tuple[str, Expression], ...]] = _Form(
    lambda items: f"{{{', '.join(f'{name_text(n)}: {expression_text(e)}' for n, e in items)}}}",
    _read_named,
)
_EQUALITY: _Form[tuple[Expression, Expression]] = _Form(
    lambda pair: f"({expression_text(pair[0])}, {expression_text(pair[1])})", _read_equality
)
_DEFAULT: _Form[tuple[str, str, Expression]] = _Form(
    lambda item: f"{name_text(item[0])}.{name_text(item[1])}: {expression_text(item[2])}",
    _read_default,
)
_COMPONENT: _Form[Component] = _Form(_component_text, _read_component)
_ABSENT = _choice(Absent)
_ORDER = _choice(Order)
_SELECTION = _choice(Selection)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a node is written: its operands, then plain fields, then `field=value`."""

    node: type[Any]
    operands: tuple[str, ...]
    plain: dict[str, _Form[Any]]
    named: dict[str, _Form[Any]]
    defaults: dict[str, Any]


def _shape(
    node: type[Any], operands: str, plain: dict[str, _Form[Any]], **named: _Form[Any]
) -> tuple[str, _Shape]:
    defaults = {field.name: field.default for field in fields(node)}
    return node.__name__, _Shape(node, tuple(operands.split()), plain, named, defaults)


_SHAPES: dict[str, _Shape] = dict(
    (
        _shape(
            Atom,
            "",
            {"types": _NAMES, "variable": _NAME, "predicate": _EXPRESSION},
            absent=_ABSENT,
        ),
        _shape(Filter, "pattern", {"predicate": _EXPRESSION}, absent=_ABSENT),
        _shape(Union, "patterns", {}),
        _shape(Dedup, "pattern", {}, key=_list_of(_EXPRESSION)),
        _shape(
            Map,
            "pattern",
            {},
            type=_NAME,
            attributes=_NAMED,
            variable=_NAME,
            absent=_ABSENT,
        ),
        _shape(
            Within,
            "pattern",
            {},
            window=_WINDOW,
            inclusive=_BOOL,
            measure=_choice(Measure),
            first=_optional(_NAME),
            second=_optional(_NAME),
            ticks=_INT,
        ),
        _shape(Conj, "patterns", {}, window=_WINDOW, inclusive=_BOOL),
        _shape(Seq, "patterns", {}, window=_optional(_WINDOW), inclusive=_BOOL, order=_ORDER),
        _shape(
            Guard,
            "pattern negated",
            {},
            low=_BOUND,
            low_closed=_BOOL,
            high=_BOUND,
            high_closed=_BOOL,
            window=_optional(_WINDOW),
            predicate=_EXPRESSION,
            absent=_ABSENT,
            ends_match=_BOOL,
            order=_ORDER,
        ),
        _shape(Next, "first second", {}, skip=_EXPRESSION, test=_EXPRESSION, absent=_ABSENT),
        _shape(
            Plus,
            "pattern",
            {},
            skip=_EXPRESSION,
            test=_EXPRESSION,
            absent=_ABSENT,
            most=_optional(_INT),
        ),
        _shape(Timer, "pattern", {}, delay=_WINDOW),
        _shape(
            Except,
            "pattern negated",
            {},
            since=_NAME,
            or_since=_NAMES,
            predicate=_EXPRESSION,
            absent=_ABSENT,
            report_failures=_BOOL,
        ),
        _shape(Absence, "pattern", {}, duration=_WINDOW, start=_optional(_INT)),
        _shape(Nth, "pattern", {}, position=_INT),
        _shape(
            Pair,
            "first second",
            {},
            ordered=_BOOL,
            window=_WINDOW,
            select_first=_SELECTION,
            select_second=_SELECTION,
            nth_first=_INT,
            nth_second=_INT,
            consume=_choice(Consumption),
            key=_list_of(_EQUALITY),
            predicate=_EXPRESSION,
            absent=_ABSENT,
        ),
        _shape(
            Lossy,
            "",
            {},
            components=_list_of(_COMPONENT),
            predicate=_EXPRESSION,
            window=_WINDOW,
            threshold=_FLOAT,
            paper_scores=_BOOL,
            defaults=_list_of(_DEFAULT),
        ),
        _shape(
            Agg,
            "pattern",
            {},
            over=_WINDOW,
            function=_NAME,
            argument=_optional(_EXPRESSION),
            group=_NAMED,
            having=_EXPRESSION,
            type=_NAME,
            variable=_NAME,
        ),
    )
)


def _write_node(node: Pattern, indent: int | None) -> str:
    shape = _SHAPES[type(node).__name__]
    inner = None if indent is None else indent + 1
    operands = [
        _write_node(operand, inner)
        for name in shape.operands
        for operand in _as_tuple(getattr(node, name))
    ]
    values = [
        ("" if name in shape.plain else f"{name}=") + form.write(getattr(node, name))
        for name, form in (shape.plain | shape.named).items()
        if getattr(node, name) != shape.defaults[name]
    ]
    head = type(node).__name__
    if inner is None or not operands:
        return f"{head}({', '.join(operands + values)})"
    margin = "\n" + "  " * inner
    lines = operands + ([", ".join(values)] if values else [])
    return f"{head}({margin}{f',{margin}'.join(lines)})"


def _as_tuple(value: Pattern | tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    return value if isinstance(value, tuple) else (value,)


def _read_node(reader: Reader, depth: int) -> Pattern:
    reader.check_depth(depth)
    shape = _SHAPES.get(reader.token) if reader.kind == "word" else None
    if shape is None:
        reader.fail(f"expected a pattern: one of {', '.join(_SHAPES)}")
    reader.take()
    reader.expect("(")
    values: dict[str, Any] = {}
    _read_operands(reader, shape, values, depth)
    waiting = list(shape.plain)
    while not reader.at(")"):
        if waiting and not _starts_named_field(reader, shape):
            name = waiting.pop(0)
            values[name] = shape.plain[name].read(reader, depth)
        else:
            _read_named_field(reader, shape, values, depth)
        if not reader.skip(","):
            break
    missing = [n for n, v in shape.defaults.items() if v is MISSING and n not in values]
    if missing:
        reader.fail(f"{shape.node.__name__} needs {', '.join(missing)}")
    reader.expect(")")
    node: Pattern = shape.node(**values)
    return node


def _read_operands(reader: Reader, shape: _Shape, values: dict[str, Any], depth: int) -> None:
    if shape.operands == ("patterns",):
        patterns: list[Pattern] = []
        while reader.kind == "word" and reader.token in _SHAPES:
            patterns.append(_read_node(reader, depth + 1))
            if not reader.skip(","):
                break
        values["patterns"] = tuple(patterns)
        return
    for name in shape.operands:
        values[name] = _read_node(reader, depth + 1)
        if not reader.at(")"):
            reader.expect(",")


def _starts_named_field(reader: Reader, shape: _Shape) -> bool:
    """A plain field never begins with the name of a named one followed by `=`."""
    return reader.kind == "word" and reader.token in shape.named and reader.before("=")


def _read_named_field(reader: Reader, shape: _Shape, values: dict[str, Any], depth: int) -> None:
    name = reader.token if reader.kind == "word" else ""
    form = shape.named.get(name)
    if form is None or name in values:
        reader.fail(f"expected one more of {', '.join(n for n in shape.named if n not in values)}")
    reader.take()
    reader.expect("=")
    values[name] = form.read(reader, depth)
