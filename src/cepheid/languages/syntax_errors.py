"""Syntax errors in words: what stands where the text can't go on, and what could follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set

from lark import Token

from cepheid.model.diagnostics import Diagnostic, SourceText, Span, unseen_character
from cepheid.model.errors import QueryError

_FOUND = re.compile(r"\w+|\.\.\.|&&|\|\||[=!<>]=|<>|=[<>]|--|\S", re.DOTALL)

OPERAND = {"STRING", "NUMBER", "WORD"}
"""Terminals that can follow together only where a value can."""

KEYWORD_AS_NAME = "`{}` is a keyword: write it in backticks to use it as a name"
DOTTED_NAME = "an attribute with a dot in its name stands in backticks: x.`source.ip`"

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


def error_at(
    source: SourceText,
    tokens: Sequence[Token],
    position: int | None,
    expected: str,
    help_for: Callable[[re.Match[str] | None], str | None],
) -> QueryError:
    """The error for the place where the text can't go on, after the tokens that could be read.

    `position` is None at the end of the text; `help_for` gets what stands there, if anything does.
    """
    found = None if position is None else _FOUND.match(source.text, position)
    help = help_for(found)
    if found is None:
        end = tokens[-1].end_pos if tokens and tokens[-1].end_pos else len(source.text)
        message, span = "the text ends too early", Span(end, end)
    else:
        unseen = unseen_character(found.group())
        message, span = f"unexpected {unseen or f'`{found.group()}`'}", Span(*found.span())
        if unseen is not None:
            help = "delete this character, which can't be seen"
    label = f"expected {expected}"
    return QueryError(Diagnostic("syntax", message, span, label, help=help, source=source))


def is_after_attribute(tokens: Sequence[Token]) -> bool:
    """Whether the text that could be read ends with `x.attribute`."""
    return len(tokens) > 1 and tokens[-2].type == "DOT"


def keyword_as_variable(
    found: re.Match[str] | None, tokens: Sequence[Token], statements: Set[str], after: Set[str]
) -> bool:
    """Whether the text stopped after `A query`, of which a variable was meant, not a new statement.

    `statements` are the keywords that begin one, `after` is what can follow a variable.
    """
    is_after_type = len(tokens) > 1 and tokens[-2].type in ("TYPE", "QUOTED")
    is_followed = found is None or found.group().upper() in after
    return is_after_type and tokens[-1].type in statements and is_followed


def in_words(words: Sequence[str]) -> str:
    """Alternatives in a sentence: a, b or c."""
    if len(words) < 2:
        return words[0] if words else "nothing more"
    return f"{', '.join(words[:-1])} or {words[-1]}"
