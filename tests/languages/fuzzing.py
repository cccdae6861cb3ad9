"""What every front end does with any text: it answers with a program or a declared error."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from hypothesis import strategies as st

from cepheid.algebra.invariants import check
from cepheid.algebra.query import Program
from cepheid.algebra.text import from_text, to_text
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from cepheid.model.errors import LimitExceeded, QueryError

LONGEST_SECONDS = 2.0

CATALOGUES = st.sampled_from(
    [
        Catalogue(),
        Catalogue.from_option({"A": ["a", "id"], "B": {"a": "int", "id": "string"}}),
        Catalogue.from_option({"A": {"a": "timestamp", "b": "bool"}, "T": []}, closed=True),
    ]
)
PRINTABLE = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
SPACES = st.sampled_from(["", " ", " ", " ", "\n"])


@st.composite
def soups(draw: st.DrawFn, lexemes: st.SearchStrategy[str], beginnings: Collection[str]) -> str:
    """Lexemes of a language in any order."""
    parts = draw(st.lists(st.tuples(lexemes, SPACES), max_size=40))
    beginning = draw(st.sampled_from(["", *beginnings]))
    return beginning + "".join(lexeme + space for lexeme, space in parts)


@st.composite
def mutations(draw: st.DrawFn, lexemes: st.SearchStrategy[str], texts: Collection[str]) -> str:
    """A valid text with a few places changed."""
    text = draw(st.sampled_from(list(texts)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 8)))
        middle = draw(st.one_of(lexemes, PRINTABLE, st.just(""), st.just(text[start:end] * 2)))
        text = text[:start] + middle + text[end:]
    return text


def answer(translate: Callable[..., Program], text: str, catalogue: Catalogue) -> Program | None:
    """The program, None for a declared error; anything else escapes and fails the test."""
    start = time.process_time()
    try:
        return translate(SourceText(text), catalogue)
    except (QueryError, LimitExceeded) as refused:
        for diagnostic in refused.diagnostics:
            assert diagnostic.code
            assert diagnostic.render().startswith("error[")
            if diagnostic.span is not None:
                assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        return None
    finally:
        assert time.process_time() - start < LONGEST_SECONDS


def check_answer(translate: Callable[..., Program], text: str, catalogue: Catalogue) -> None:
    """A program must be well formed, and its text form must be read back."""
    program = answer(translate, text, catalogue)
    for query in program.queries if program else ():
        check(query.pattern)
        assert from_text(to_text(query.pattern)) == query.pattern
