"""One run of a language's parser: limits first, then the tree or the error in the user's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, TypeAlias

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from cepheid.languages.limits import check_text, too_deep
from cepheid.languages.term_builder import TooDeep
from cepheid.model.diagnostics import SourceText
from cepheid.model.errors import QueryError

SyntaxErrorMaker: TypeAlias = Callable[
    [SourceText, Sequence[Token], int | None, Set[str]], QueryError
]
"""Makes the error for the place where a text can't go on: the tokens that could be read, the place
of what does not fit (None at the end of the text), the terminals that could follow."""


def run_parser(parser: Lark, source: SourceText, syntax_error: SyntaxErrorMaker) -> Any:
    """What the parser's builder makes of a text."""
    check_text(source)
    session = parser.parse_interactive(source.text)
    tokens: list[Token] = []
    try:
        tokens.extend(session.iter_parse())
        return session.feed_token(Token("$END", ""))
    except UnexpectedInput as problem:
        at_end = isinstance(problem, UnexpectedToken) and problem.token.type == "$END"
        position = None if at_end else problem.pos_in_stream
        # The token that does not fit has been read when the parser, not the lexer, refused it.
        if tokens and tokens[-1].start_pos == position:
            tokens = tokens[:-1]
        accepts = frozenset(session.accepts())  # type: ignore[no-untyped-call]
        raise syntax_error(source, tokens, position, accepts) from None
    except TooDeep as problem:
        raise too_deep(source, problem.span) from None
