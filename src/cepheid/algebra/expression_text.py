"""The text form of scalar expressions: written with the fewest parentheses, parsed back exactly."""

from __future__ import annotations

import re
from typing import NoReturn, assert_never

from cepheid.algebra.expression import (
    COMPARISONS,
    Aggregate,
    And,
    Apart,
    Arithmetic,
    Attribute,
    Call,
    Compare,
    Duration,
    Every,
    Expression,
    Literal,
    Negative,
    Not,
    Or,
    Parameter,
    Previous,
    Window,
)
from cepheid.model.diagnostics import Diagnostic, SourceText, Span
from cepheid.model.errors import LimitExceeded, QueryError

MAX_DEPTH = 64
"""Trees deeper than this are refused when read, so that no later walk can exhaust the stack."""

_CONSTANTS: dict[str, Expression] = {
    "true": Literal(True),
    "false": Literal(False),
    "null": Literal(None),
    "always": And(()),
    "never": Or(()),
}
_KEYWORDS = frozenset((*_CONSTANTS, "and", "or", "not", "inf", "nan", "prev", "all", "none"))
_APART = "apart"
"""Begins a time atom where a function's name could stand; no keyword, so that names may be it."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<name>`(?:[^`\\]|\\.)*`)"
    r"|(?P<string>'(?:[^'\\]|\\.)*')"
    r"|(?P<sign>!=|<=|>=|[-+*/=<>()\[\]{},.:])"
    r"|(?P<end>\Z))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-f]{1,6})\}|(.))", re.DOTALL)

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _TIGHT = range(7)


def name_text(name: str) -> str:
    """A name as it stands in the text: bare when it is a plain word, else in backquotes."""
    if _WORD.fullmatch(name) and name not in _KEYWORDS:
        return name
    return quoted(name, "`")


def quoted(text: str, quote: str) -> str:
    """The text between quotes, with whatever is not printable escaped."""
    out = []
    for character in text:
        if character in ("\\", quote):
            out.append("\\" + character)
        elif character.isprintable():
            out.append(character)
        else:
            out.append(f"\\u{{{ord(character):x}}}")
    return quote + "".join(out) + quote


def number_text(value: int | float) -> str:
    """An int or float such that its type can be read back: 1, 1.0, 1e+22, inf."""
    return repr(value)


def window_text(window: Window) -> str:
    """A length of time: a whole number if it is closed, else with its unit, or `ticks`."""
    if not isinstance(window, Duration):
        return number_text(window)
    amount = window.amount
    shown = ":" + name_text(amount.name) if isinstance(amount, Parameter) else number_text(amount)
    match window.unit:
        case None:
            return f"{shown} ticks"
        case "ticks":
            return f"{shown} `ticks`"
        case unit:
            return f"{shown} {name_text(unit)}"


def expression_text(node: Expression) -> str:
    """The expression as text.

    >>> expression_text(And((Compare("<", Attribute("x", "v"), Literal(3)), Not(Or(())))))
    'x.v < 3 and not never'
    """
    return _write(node, _OR)


def _write(node: Expression, around: int) -> str:
    text, own = _written(node)
    return f"({text})" if own < around else text


def _written(node: Expression) -> tuple[str, int]:
    """The text of a node and how tightly it binds."""
    match node:
        case Literal(value):
            return _literal_text(value), _TIGHT
        case Parameter(name):
            return ":" + name_text(name), _TIGHT
        case Attribute(variable, name):
            return f"{name_text(variable)}.{name_text(name)}", _TIGHT
        case Previous(variable, name):
            return f"prev({name_text(variable)}.{name_text(name)})", _TIGHT
        case Every(variable, name):
            return f"all({name_text(variable)}.{name_text(name)})", _TIGHT
        case Aggregate(function, name, variable):
            which = "*" if variable is None else name_text(variable)
            what = "*" if name is None else name_text(name)
            return f"{name_text(function)}{{{which}.{what}}}", _TIGHT
        case Apart(first, second, window):
            inside = ", ".join((name_text(first), name_text(second), window_text(window)))
            return f"{_APART}({inside})", _TIGHT
        case Call(function, arguments):
            inside = ", ".join(_write(argument, _OR) for argument in arguments)
            name = quoted(function, "`") if function == _APART else name_text(function)
            return f"{name}({inside})", _TIGHT
        case Negative(operand):
            return f"-({_write(operand, _OR)})", _TIGHT
        case Arithmetic(op, left, right):
            level = _SUM if op in "+-" else _PRODUCT
            return f"{_write(left, level)} {op} {_write(right, level + 1)}", level
        case Compare(op, left, right):
            return f"{_write(left, _SUM)} {op} {_write(right, _SUM)}", _COMPARE
        case Not(operand):
            return f"not {_write(operand, _NOT)}", _NOT
        case And(operands):
            return _joined(operands, "and", "always", _AND)
        case Or(operands):
            return _joined(operands, "or", "never", _OR)
        case _:
            assert_never(node)


def _joined(operands: tuple[Expression, ...], word: str, empty: str, level: int) -> tuple[str, int]:
    match operands:
        case ():
            return empty, _TIGHT
        case (only,):
            return f"{word}({_write(only, _OR)})", _TIGHT
        case _:
            return f" {word} ".join(_write(operand, level + 1) for operand in operands), level


def _literal_text(value: int | float | str | bool | None) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value, "'")
        case int() | float():
            return number_text(value)


class Reader:
    """A cursor over the tokens of a text, with errors that show the place."""

    def __init__(self, text: str) -> None:
        self._source = SourceText(text, "algebra")
        self._position = 0
        self._next()

    def _next(self) -> None:
        found = _TOKEN.match(self._source.text, self._position)
        if found is None or found.lastgroup is None:
            rest = self._source.text[self._position :]
            start = len(self._source.text) - len(rest.lstrip())
            self._raise("this character has no meaning here", Span(start, start + 1))
        self.kind = found.lastgroup
        self.token = found.group(found.lastgroup)
        self._start = found.start(found.lastgroup)
        self._position = found.end()

    def fail(self, message: str) -> NoReturn:
        """Refuse the text at the current token."""
        self._raise(message, Span(self._start, max(self._position, self._start + 1)))

    def _raise(self, message: str, span: Span) -> NoReturn:
        raise QueryError(Diagnostic("algebra-syntax", message, span, source=self._source))

    def check_depth(self, depth: int) -> None:
        """Refuse a tree that is too deep."""
        if depth > MAX_DEPTH:
            message = f"the pattern is nested deeper than {MAX_DEPTH} levels"
            span = Span(self._start, self._position)
            raise LimitExceeded(Diagnostic("too-deep", message, span, source=self._source))

    def at(self, *tokens: str) -> bool:
        """Whether the current token is one of these signs or bare words."""
        return self.kind in ("sign", "word") and self.token in tokens

    def before(self, token: str) -> bool:
        """Whether the token after the current one is this one."""
        found = _TOKEN.match(self._source.text, self._position)
        return found is not None and found.group().strip() == token

    def take(self) -> str:
        """The current token; the cursor moves on."""
        token = self.token
        self._next()
        return token

    def skip(self, token: str) -> bool:
        """Move past the token if it is the current one."""
        if self.at(token):
            self._next()
            return True
        return False

    def expect(self, token: str) -> None:
        """Move past the token, which must be the current one."""
        if not self.skip(token):
            self.fail(f"expected `{token}`")

    def expect_end(self) -> None:
        """Nothing may follow."""
        if self.kind != "end":
            self.fail("expected the end of the text")

    def name(self) -> str:
        """A bare or backquoted name."""
        if self.kind == "name":
            return _unescaped(self.take())
        if self.kind != "word" or self.token in _KEYWORDS:
            self.fail("expected a name")
        return self.take()

    def number(self) -> int | float:
        """A number with an optional sign."""
        negative = self.skip("-")
        value: int | float
        if self.at("inf", "nan"):
            value = float(self.take())
        elif self.kind == "number":
            digits = self.take()
            value = int(digits) if digits.isdecimal() else float(digits)
        else:
            self.fail("expected a number")
        return -value if negative else value

    def string(self) -> str:
        """A quoted string."""
        if self.kind != "string":
            self.fail("expected a quoted string")
        return _unescaped(self.take())


def _unescaped(token: str) -> str:
    def replaced(escape: re.Match[str]) -> str:
        code, character = escape.groups()
        return chr(int(code, 16)) if code else str(character)

    return _ESCAPE.sub(replaced, token[1:-1])


def read_window(reader: Reader) -> Window:
    """A length of time from the reader's place."""
    amount: int | float | Parameter
    amount = Parameter(reader.name()) if reader.skip(":") else reader.number()
    if reader.skip("ticks"):
        return Duration(amount)
    if reader.kind in ("word", "name"):
        return Duration(amount, reader.name())
    if not isinstance(amount, int):
        reader.fail("a window that is no whole number needs a unit")
    return amount


def read_expression(reader: Reader, depth: int = 0) -> Expression:
    """An expression from the reader's place; `depth` is how deep the text already is."""
    return _read_joined(reader, depth)


def _read_joined(reader: Reader, depth: int) -> Expression:
    operands = [_read_conjunction(reader, depth)]
    while reader.skip("or"):
        operands.append(_read_conjunction(reader, depth))
    return operands[0] if len(operands) == 1 else Or(tuple(operands))


def _read_conjunction(reader: Reader, depth: int) -> Expression:
    operands = [_read_negation(reader, depth)]
    while reader.skip("and"):
        operands.append(_read_negation(reader, depth))
    return operands[0] if len(operands) == 1 else And(tuple(operands))


def _read_negation(reader: Reader, depth: int) -> Expression:
    reader.check_depth(depth)
    if reader.skip("not"):
        return Not(_read_negation(reader, depth + 1))
    left = _read_sum(reader, depth)
    if reader.at(*COMPARISONS):
        return Compare(reader.take(), left, _read_sum(reader, depth + 1))
    return left


def _read_sum(reader: Reader, depth: int) -> Expression:
    left = _read_product(reader, depth)
    while reader.at("+", "-"):
        depth += 1
        left = Arithmetic(reader.take(), left, _read_product(reader, depth))
    return left


def _read_product(reader: Reader, depth: int) -> Expression:
    left = _read_tight(reader, depth)
    while reader.at("*", "/"):
        depth += 1
        left = Arithmetic(reader.take(), left, _read_tight(reader, depth))
    return left


def _read_tight(reader: Reader, depth: int) -> Expression:
    reader.check_depth(depth)
    if reader.skip("("):
        inner = _read_joined(reader, depth + 1)
        reader.expect(")")
        return inner
    if reader.skip(":"):
        return Parameter(reader.name())
    if reader.kind == "string":
        return Literal(reader.string())
    if reader.at("-") or reader.kind == "number" or reader.at("inf", "nan"):
        return _read_number(reader, depth)
    if reader.kind == "word" and reader.token in _KEYWORDS:
        return _read_keyword(reader, depth)
    return _read_named(reader, depth)


def _read_number(reader: Reader, depth: int) -> Expression:
    if reader.skip("-"):
        if reader.skip("("):
            operand = _read_joined(reader, depth + 1)
            reader.expect(")")
            return Negative(operand)
        return Literal(-reader.number())
    return Literal(reader.number())


def _read_keyword(reader: Reader, depth: int) -> Expression:
    word = reader.token
    if word not in _CONSTANTS and word not in ("prev", "all", "and", "or"):
        reader.fail("expected an expression")
    reader.take()
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    reader.expect("(")
    node: Expression
    if word in ("prev", "all"):
        variable = reader.name()
        reader.expect(".")
        node = (Previous if word == "prev" else Every)(variable, reader.name())
    else:
        node = (And if word == "and" else Or)((_read_joined(reader, depth + 1),))
    reader.expect(")")
    return node


def _read_named(reader: Reader, depth: int) -> Expression:
    """What begins with a name: `x.v`, `abs(...)`, `sum{x.v}` or `apart(x, y, 10)`."""
    if reader.at(_APART) and reader.before("("):
        return _read_apart(reader)
    name = reader.name()
    if reader.skip("("):
        arguments = []
        while not reader.at(")"):
            arguments.append(_read_joined(reader, depth + 1))
            if not reader.skip(","):
                break
        reader.expect(")")
        return Call(name, tuple(arguments))
    if reader.skip("{"):
        variable = None if reader.skip("*") else reader.name()
        reader.expect(".")
        attribute = None if reader.skip("*") else reader.name()
        reader.expect("}")
        return Aggregate(name, attribute, variable)
    if not reader.skip("."):
        reader.fail(f"`{name}` stands alone: expected `{name}.attribute` or a function's arguments")
    return Attribute(name, reader.name())


def _read_apart(reader: Reader) -> Expression:
    reader.take()
    reader.expect("(")
    first = reader.name()
    reader.expect(",")
    second = reader.name()
    reader.expect(",")
    window = read_window(reader)
    reader.expect(")")
    return Apart(first, second, window)
