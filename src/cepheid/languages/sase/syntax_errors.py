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

_CONSTANT = {"STRING", "NUMBER"}
_BEFORE_CONDITION = {"WHERE", "AND", "OR", "NOT"}
_LENGTH = {"NUMBER", "PARAMETER", "WORD"}
_CLAUSES = ("EVENT", "WHERE", "WITHIN", "RETURN")
_KEYWORDS = {*_CLAUSES, "QUERY", "SEQ", "ANY", "NOT", "AND", "OR", "AS", "TRUE", "FALSE"}

WITHOUT_NULL = "leave the test out: a comparison with a missing value is true, with a null false"

# What can follow, in the order in which it is told.
_WORDS = {
    "SEQ": "`SEQ(`",
    "ANY": "`ANY(`",
    "BANG": "`!`",
    "DOT": "`.`",
    "LPAR": "`(`",
    "COMMA": "`,`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "AND": "`AND`",
    "OR": "`OR`",
    "AS": "`AS`",
    "WHERE": "`WHERE`",
    "WITHIN": "`WITHIN`",
    "RETURN": "`RETURN`",
    "EVENT": "`EVENT`",
    "$END": "the end of the query",
}
_FOREIGN = FOREIGN | {
    "|": "write OR",
    "||": "write OR",
    "...": "write all components out",
    "like": "use contains(a, b), starts_with(a, b) or ends_with(a, b)",
    "is": WITHOUT_NULL,
    "then": "a sequence is written SEQ(A x, B y)",
    "group": "equality over all components is written [attribute]",
    "partition": "equality over all components is written [attribute]",
    "select": "the attributes of a match stand in RETURN, after WITHIN",
    "from": "the pattern stands after EVENT",
    "pattern": "the pattern stands after EVENT",
}


def syntax_error(
    source: SourceText, tokens: Sequence[Token], position: int | None, accepts: Set[str]
) -> QueryError:
    """The error for the place where a text can't go on; see `parsing.SyntaxErrorMaker`."""

    def help_for(found: re.Match[str] | None) -> str | None:
        if keyword_as_variable(found, tokens, {"EVENT", "QUERY"}, set(_CLAUSES)):
            return KEYWORD_AS_NAME.format(tokens[-1])
        if found is None:
            return None
        if _stands_for_variable(source, found, tokens):
            return KEYWORD_AS_NAME.format(found.group())
        return _help(found.group(), tokens, accepts)

    return error_at(source, tokens, position, _expected(tokens, accepts), help_for)


def _stands_for_variable(source: SourceText, found: re.Match[str], tokens: Sequence[Token]) -> bool:
    """Whether a keyword stands in `SEQ(A a, B return)` where only a variable makes sense."""
    follower = source.text[found.end() :].lstrip()[:1]
    after_type = bool(tokens) and tokens[-1].type == "TYPE"
    return after_type and found.group().upper() in _KEYWORDS and follower in (",", ")")


def _expected(tokens: Sequence[Token], accepts: Set[str]) -> str:
    words = []
    rest = set(accepts)
    last = tokens[-1].type if tokens else None
    if rest >= OPERAND:
        words.append("a condition" if last in _BEFORE_CONDITION else "a value")
        rest -= {"BANG", "LPAR", "MINUS"}
    elif rest >= _CONSTANT:
        words.append("a constant")
        rest -= {"MINUS"}
    elif rest >= _LENGTH:
        words.append("a length of time such as `12 hours`")
    elif "NUMBER" in rest:
        words.append("a number")
    elif "TYPE" in rest:
        words.append("an event type")
    elif "NAME" in rest:
        words.append("a name" if last == "AS" else "an attribute")
    elif "WORD" in rest:
        words.append("a variable" if "QUOTED" in rest else "a unit of time")
    if "CMP" in rest and not _has_comparison(tokens):
        words.append("a comparison such as `=`")
        if last != "RPAR":  # what stands there is a value, so nothing else can follow
            rest &= {"DOT"}
    rest -= {"EVENT"} if tokens and "$END" in rest else {"$END"} if not tokens else set()
    words += [word for terminal, word in _WORDS.items() if terminal in rest]
    return in_words(words)


def _has_comparison(tokens: Sequence[Token]) -> bool:
    """Whether the condition that is being written has its comparison already, or needs none."""
    for token in reversed(tokens):
        if token.type in ("CMP", "RSQB", "RETURN", "COMMA", "LSQB"):
            return True
        if token.type in ("WHERE", "AND", "OR", "NOT", "LPAR"):
            return False
    return False


def _help(found: str, tokens: Sequence[Token], accepts: Set[str]) -> str | None:
    last = tokens[-1].type if tokens else None
    keyword = found.upper()
    if last == "RPAR" and _returns_hyphenated(tokens):
        return "write spaces around `-` to subtract"
    if keyword in _CLAUSES:
        return _help_for_clause(keyword, tokens)
    is_operand = accepts >= OPERAND  # there a keyword is hardly meant as a name
    if keyword in _KEYWORDS and not is_operand and not accepts.isdisjoint({"TYPE", "WORD"}):
        return KEYWORD_AS_NAME.format(found)
    if found == "=" and last != "CMP":
        return None
    if found == "," and _opened_by_negation(tokens):
        return "a negation holds one component: write !(A x), !(B y)"
    if found == "." and last == "NAME" and "RSQB" in accepts:
        return "name the attribute alone: [id] means that x.id, y.id, ... are equal"
    if found == "." and is_after_attribute(tokens):
        return DOTTED_NAME
    if found == "(" and "SEQ" in accepts:
        return "a pattern of several components is written SEQ(A x, B y)"
    if found == "*" and last == "RETURN":
        return "name the attributes, e.g. RETURN x.id, y.price AS price"
    if found in "!¬" and "CMP" in accepts:
        return "write != for unequal"
    return _FOREIGN.get(found.casefold())


def _help_for_clause(keyword: str, tokens: Sequence[Token]) -> str | None:
    for token in reversed(tokens):
        if token.type in _CLAUSES:
            if _CLAUSES.index(token.type) >= _CLAUSES.index(keyword):
                return "the clauses stand in the order EVENT, WHERE, WITHIN, RETURN, each once"
            break
    return None if tokens else "a query begins with EVENT"


def _returns_hyphenated(tokens: Sequence[Token]) -> bool:
    clause = max((i for i, token in enumerate(tokens) if token.type in _CLAUSES), default=0)
    return any(token.type == "HYPHENATED" for token in tokens[clause : clause + 2])


def _opened_by_negation(tokens: Sequence[Token]) -> bool:
    depth = 0
    for position in range(len(tokens) - 1, 0, -1):
        match tokens[position].type:
            case "RPAR":
                depth += 1
            case "LPAR" if depth == 0:
                return tokens[position - 1].type == "BANG"
            case "LPAR":
                depth -= 1
    return False
