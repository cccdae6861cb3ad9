"""Turns what the parser could not read into a message about what was expected, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from lark import Token

from cepheid.languages.syntax_errors import (
    DOTTED_NAME,
    FOREIGN,
    KEYWORD_AS_NAME,
    OPERAND,
    error_at,
    in_words,
    is_after_attribute,
    keyword_as_variable,
)
from cepheid.model.diagnostics import SourceText
from cepheid.model.errors import QueryError

_CLAUSES = ("SELECT", "FROM", "WHERE")
_STATEMENTS = {"SELECT", "QUERY", "REGISTER", "LABEL"}
_RESERVED = {
    *(*_CLAUSES, "QUERY", "REGISTER", "AS", "OCCURS", "WITHIN"),
    *("AND", "OR", "NOT", "TRUE", "FALSE"),
}
_BEFORE_CONDITION = {"WHERE", "AND", "OR", "NOT", "FILTER"}

WITHOUT_NULL = "leave the test out: a comparison with a missing value or a null is false"
_AFTER_VARIABLE = frozenset((*";|\\+@)", "WHERE"))
_LOOKED_AT = {"FILTER": "condition", "PREV": "x.field", "ALL": "x.field"}
_NO_SEPARATOR = "`;` means *followed by*: statements stand one after the other without it"

# What can follow, in the order in which it is told.
_WORDS = {
    "STAR": "`*`",
    "DOT": "`.`",
    "SEMICOLON": "`;`",
    "PLUS": "`+`",
    "AT": "`@`",
    "BACKSLASH": "`\\`",
    "BAR": "`|`",
    "LPAR": "`(`",
    "COMMA": "`,`",
    "RPAR": "`)`",
    "AND": "`AND`",
    "OR": "`OR`",
    "AS": "`AS`",
    "OCCURS": "`OCCURS WITHIN`",
    "WITHIN": "`WITHIN`",
    "SOURCE": "`source`",
    "SINK": "`sink`",
    "SCHEMA": "`schema`",
    "TIME": "`time`",
    "TO": "`to`",
    "CLOCK": "`clock error`",
    "ERROR": "`error`",
    "FROM": "`FROM`",
    "WHERE": "`WHERE`",
    "SELECT": "`SELECT`",
    "$END": "the end of the query",
}
_FOREIGN = FOREIGN | {
    "!": "write NOT",
    "¬": "write NOT",
    "||": "write OR",
    "like": "write field CONTAINS 'part'",
    "is": WITHOUT_NULL,
    "then": "one event after another is written A ; B",
    "seq": "one event after another is written A ; B",
    "group": "FILTER(A.field = B.field) keeps to the events of one group",
    "partition": "FILTER(A.field = B.field) keeps to the events of one group",
    "event": "a query is written SELECT ... FROM ... WHERE ...",
    "return": "the fields of a result stand after SELECT",
    "join": "one event after another is written A ; B",
}


def syntax_error(
    source: SourceText, tokens: Sequence[Token], position: int | None, accepts: Set[str]
) -> QueryError:
    """The error for the place where a text can't go on; see `parsing.SyntaxErrorMaker`."""
    return error_at(
        source,
        tokens,
        position,
        "`(`" if _lacks_parenthesis(tokens) else _expected(tokens, accepts),
        lambda found: _help(source, found, tokens, accepts),
    )


def _expected(tokens: Sequence[Token], accepts: Set[str]) -> str:
    words = []
    rest = set(accepts)
    last = tokens[-1].type if tokens else None
    if rest >= OPERAND:
        is_condition = last in _BEFORE_CONDITION or (last == "COMMA" and _clause(tokens) == "WHERE")
        words.append("a condition" if is_condition else "a value")
        rest -= {"LPAR", "STAR"} if last != "SELECT" else {"LPAR"}
    elif "NUMBER" in rest:
        words.append("a length of time such as `12 hours`" if "PARAMETER" in rest else "a number")
    elif "TYPE" in rest:
        words.append("a source" if last not in ("QUERY", "SINK") else "a name")
    elif "NAME" in rest:
        words.append("a field" if last != "AS" else "a name")
    elif "WORD" in rest:
        words.append(_word_in_words(tokens, rest))
    if "CMP" in rest and _needs_comparison(tokens):
        words.append("a comparison such as `=`")
        if last != "RPAR":  # what stands there is a value, so nothing else can follow
            rest &= {"DOT"}
    elif "CMP" in rest:  # arithmetic can always go on: not worth telling
        rest -= {"PLUS", "STAR"}
    if _clause(tokens) != "FROM":  # a statement may be closed there: not worth telling
        rest -= {"SEMICOLON"}
    rest -= {"SELECT"} if tokens and "$END" in rest else {"$END"} if not tokens else set()
    words += [word for terminal, word in _WORDS.items() if terminal in rest]
    return in_words(words)


def _word_in_words(tokens: Sequence[Token], accepts: Set[str]) -> str:
    if "QUOTED" in accepts:
        return "a variable"
    if _clause(tokens) == "REGISTER":
        in_schema = tokens[-1].type in ("NAME", "QUOTED") and "COMMA" in accepts
        return "a type" if in_schema else "`table`, `file`, `console` or `callback`"
    return "a unit of time"


def _clause(tokens: Sequence[Token]) -> str | None:
    """The clause or statement that is being written."""
    kinds = (token.type for token in reversed(tokens))
    return next((kind for kind in kinds if kind in (*_CLAUSES, "REGISTER")), None)


def _needs_comparison(tokens: Sequence[Token]) -> bool:
    """Whether the condition that is being written still lacks its comparison."""
    if _clause(tokens) != "WHERE":
        return False
    for token in reversed(tokens):
        if token.type in ("CMP", "CONTAINS", "WITHIN"):
            return False
        if token.type in (*_BEFORE_CONDITION, "LPAR", "COMMA"):
            return True
    return False


def _help(
    source: SourceText, found: re.Match[str] | None, tokens: Sequence[Token], accepts: Set[str]
) -> str | None:
    last = tokens[-1].type if tokens else None
    if keyword_as_variable(found, tokens, _STATEMENTS, _AFTER_VARIABLE):
        return KEYWORD_AS_NAME.format(tokens[-1])
    if found is None:
        return _NO_SEPARATOR if last == "SEMICOLON" else None
    if _lacks_parenthesis(tokens):
        word = tokens[-1].upper()
        return f"{word} is written with parentheses: {word}({_LOOKED_AT[word]})"
    word = found.group()
    keyword = word.upper()
    before = {token.type for token in tokens}
    if last == "SEMICOLON" and keyword in _STATEMENTS | {"WHERE"}:
        return _NO_SEPARATOR
    if word == ":" and [token.type for token in tokens[-2:]] == ["SEMICOLON", "TYPE"]:
        return _NO_SEPARATOR
    if keyword in _CLAUSES and before.isdisjoint(_STATEMENTS):
        return "a query begins with SELECT"
    if keyword in _RESERVED and _stands_for_variable(source, found, tokens):
        return KEYWORD_AS_NAME.format(word)
    too_soon = keyword == "WHERE" and _clause(tokens) == "SELECT"
    if too_soon or (keyword in _CLAUSES and keyword in _since_select(tokens)):
        return "the clauses stand in the order SELECT, FROM, WHERE, each once"
    is_operand = accepts >= OPERAND  # there a keyword is hardly meant as a name
    if keyword in _RESERVED and not is_operand and "QUOTED" in accepts:
        return KEYWORD_AS_NAME.format(word)
    if last == "AS" and _clause(tokens) == "REGISTER":
        return "name the kind of sink, or leave `as` out to have a table"
    if word == "=" and last != "CMP":
        return None
    if word == "," and _clause(tokens) == "FROM":
        return "one event after another is written A ; B, either of two A | B"
    if keyword == "WITHIN" and _clause(tokens) in ("FROM", "WHERE"):
        return "a time limit is written (A, B) OCCURS WITHIN 10 s, in WHERE"
    if word == "." and is_after_attribute(tokens):
        return DOTTED_NAME
    if word == "@":
        return "a timer belongs to the pattern: FROM A @ 10 s; a limit is (A, B) OCCURS WITHIN 10 s"
    return _FOREIGN.get(word.casefold())


def _lacks_parenthesis(tokens: Sequence[Token]) -> bool:
    """Whether the text ends with `FILTER`, `PREV` or `ALL`, which are names without parentheses."""
    return (
        _clause(tokens) == "WHERE"
        and tokens[-1].type == "WORD"
        and tokens[-1].upper() in _LOOKED_AT
    )


def _stands_for_variable(source: SourceText, found: re.Match[str], tokens: Sequence[Token]) -> bool:
    """Whether a keyword stands in `A from; B` where only a variable makes sense."""
    follower = source.text[found.end() :].lstrip()[:1]
    after_source = bool(tokens) and tokens[-1].type == "TYPE"
    return after_source and follower in tuple(";|\\+)")


def _since_select(tokens: Sequence[Token]) -> set[str]:
    """The clauses that the query has already."""
    seen: set[str] = set()
    for token in tokens:
        if token.type == "SELECT":
            seen = set()
        seen.add(token.type)
    return seen
