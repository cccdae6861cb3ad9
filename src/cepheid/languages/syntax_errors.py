"""Syntax errors in words: what stands where the text can't go on, and what could follow."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lark import Token

from cepheid.model.diagnostics import Diagnostic, SourceText, Span
from cepheid.model.errors import QueryError

_FOUND = re.compile(r"\w+|\.\.\.|&&|\|\||[=!<>]=|<>|=[<>]|--|\S", re.DOTALL)

OPERAND = {"STRING", "NUMBER", "WORD"}
"""Terminals that can follow together only where a value can."""

KEYWORD_AS_NAME = "`{}` is a keyword: write it in backticks to use it as a name"

FOREIGN = {
    "=": "equality is written with a single `=`",
    "==": "equality is written with a single `=`",
    "=<": "write <=",
    "=>": "write >=",
    "&": "write AND",
    "&&": "write AND",
    "%": "the operators are + - * and /",
    "--": "a comment needs a space before `--`",
    "in": "compare with `=` and join the comparisons with OR",
    "between": "write two comparisons, joined with AND",
    "having": "conditions stand in WHERE",
}
"""What users of other languages write, and what it is here."""


def found_at(source: SourceText, position: int | None) -> re.Match[str] | None:
    """What stands at the place that could not be read; None at the end of the text."""
    return None if position is None else _FOUND.match(source.text, position)


def ends_too_early(
    source: SourceText, tokens: Sequence[Token], expected: str, help: str | None = None
) -> QueryError:
    """The error for a text that ends where something must follow."""
    end = tokens[-1].end_pos if tokens and tokens[-1].end_pos else len(source.text)
    return _error(source, "the text ends too early", Span(end, end), expected, help)


def unexpected(
    source: SourceText, found: re.Match[str], expected: str, help: str | None
) -> QueryError:
    """The error for a word or sign that can't stand where it stands."""
    return _error(source, f"unexpected `{found.group()}`", Span(*found.span()), expected, help)


def in_words(words: Sequence[str]) -> str:
    """Alternatives in a sentence: a, b or c."""
    if len(words) < 2:
        return words[0] if words else "nothing more"
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _error(
    source: SourceText, message: str, span: Span, expected: str, help: str | None
) -> QueryError:
    label = f"expected {expected}"
    return QueryError(Diagnostic("syntax", message, span, label, help=help, source=source))
