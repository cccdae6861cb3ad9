"""Limits on query texts, decided by one linear scan before any parser sees the text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cepheid.model.diagnostics import Diagnostic, SourceText, Span, unseen_character
from cepheid.model.errors import LimitExceeded, QueryError

LARGEST_TEXT = 64 * 1024
"""Bytes of UTF-8 in one text."""
DEEPEST_NESTING = 64
"""Brackets within brackets, and operators within operators."""
MOST_COMPONENTS = 48
"""Components of one pattern."""
MOST_CONDITIONS = 128
"""Conditions of one query: they are compiled into one function, in seconds up to here."""
MOST_COMPARISONS = 10_000
"""Comparisons that the short forms of one query may stand for."""

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
# Text in which brackets mean nothing, each kind first as it should be and then left open.
_LEXEME = re.compile(
    r"""
      (?P<comment> /\*.*?\*/ | (?: (?<![\w)\]'"`’”])-- | --(?![\w(\['"`:.‘“]) ) [^\n]* )
    | (?P<open_comment> /\* )
    | (?P<string> '(?:[^'\n]|'')*' | "(?:[^"\n]|"")*"
        | [‘’‚‛](?:[^‘’\n]|’’)*[‘’] | [“”„‟](?:[^“”\n]|””)*[“”] )
    | (?P<open_string> ['"‘’‚‛“”„‟] )
    | (?P<name> `[^`\n]+` )
    | (?P<open_name> ` )
    | (?P<sequence> \bseq\s*\( )
    | (?P<opening> [(\[] )
    | (?P<closing> [)\]] )
    | (?P<comma> , )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_CLOSING = {"'": "'", '"': '"', "‘": "’", "’": "’", "‚": "’", "‛": "’"}


def check_text(source: SourceText) -> None:
    """Refuse a text that is too long, nested too deeply, or has an open quote or comment."""
    _check_size(source)
    _check_characters(source)
    depth = 0
    components = {0: 0}  # by the depth of the sequence they belong to
    for lexeme in _LEXEME.finditer(source.text):
        match lexeme.lastgroup:
            case "opening" | "sequence" as kind:
                depth += 1
                components[depth] = 1 if kind == "sequence" else 0
                if depth > DEEPEST_NESTING:
                    raise too_deep(source, Span(lexeme.end() - 1, lexeme.end()))
            case "comma" if components[depth]:
                components[depth] += 1
                if components[depth] > MOST_COMPONENTS:
                    raise too_many_components(source, Span(*lexeme.span()))
            case "closing":
                depth = max(0, depth - 1)
            case "open_comment" | "open_string" | "open_name" as kind:
                raise _left_open(source, lexeme, kind)


def _check_size(source: SourceText) -> None:
    # A character is at least a byte, so that a text of gigabytes is not encoded to be measured.
    size = len(source.text)
    if size <= LARGEST_TEXT:
        size = len(source.text.encode(errors="surrogatepass"))
    if size > LARGEST_TEXT:
        raise LimitExceeded.of(
            "text-too-large",
            f"the text has {size:,} bytes; at most {LARGEST_TEXT:,} are allowed",
            help="put the queries in several texts",
        )


def _check_characters(source: SourceText) -> None:
    """Refuse surrogates: bytes that were no UTF-8 leave them behind, and nothing can write them."""
    half = _HALF_CHARACTER.search(source.text)
    if half is not None:
        raise QueryError(
            Diagnostic(
                "broken-character",
                f"the text holds {unseen_character(half.group())}",
                Span(*half.span()),
                "not a whole character",
                help="save the text in UTF-8, or write the character anew",
                source=source,
            )
        )


def too_deep(source: SourceText, span: Span) -> LimitExceeded:
    """The error for what is nested too deeply."""
    return LimitExceeded(
        Diagnostic(
            "nesting-too-deep",
            f"the query is nested more than {DEEPEST_NESTING} levels deep",
            span,
            f"this is level {DEEPEST_NESTING + 1}",
            help="write it with fewer brackets within brackets, and fewer operators in one value",
            source=source,
        )
    )


def too_many_components(source: SourceText, span: Span) -> LimitExceeded:
    """The error for a pattern with too many components."""
    return LimitExceeded(
        Diagnostic(
            "too-many-components",
            f"the pattern has more than {MOST_COMPONENTS} components",
            span,
            f"component {MOST_COMPONENTS + 1}",
            help="split the pattern into several queries, the later ones over the earlier ones",
            source=source,
        )
    )


def check_conditions(places: Sequence[Span], source: SourceText) -> None:
    """Refuse a query with too many conditions, given where each stands."""
    if len(places) <= MOST_CONDITIONS:
        return
    raise LimitExceeded(
        Diagnostic(
            "too-many-conditions",
            f"the query has more than {MOST_CONDITIONS} conditions",
            places[MOST_CONDITIONS],
            f"condition {MOST_CONDITIONS + 1}",
            help="split the query into several; a long list of constants is better a field of the "
            "events, which one comparison tests",
            source=source,
        )
    )


def _left_open(source: SourceText, lexeme: re.Match[str], kind: str) -> QueryError:
    mark = lexeme.group()
    span = Span(*lexeme.span())
    if kind == "open_comment":
        return QueryError(
            Diagnostic(
                "open-comment",
                "a comment is not closed",
                span,
                "the comment begins here",
                help="end the comment with */",
                source=source,
            )
        )
    line_end = source.text.find("\n", span.start)
    whole = Span(span.start, len(source.text) if line_end < 0 else line_end)
    if kind == "open_name":
        return QueryError(
            Diagnostic(
                "open-name",
                "a name in backticks is empty or not closed on its line",
                whole,
                "no name and closing ` follow",
                help="write e.g. `odd name` with a backtick on each side",
                source=source,
            )
        )
    closing = _CLOSING.get(mark, "”")
    return QueryError(
        Diagnostic(
            "open-string",
            "a string is not closed on its line",
            whole,
            f"opened with {mark}, never closed with {closing}",
            help=f"close it with {closing}, and write that quote twice to have it in the string",
            source=source,
        )
    )
