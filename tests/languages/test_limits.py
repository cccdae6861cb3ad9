"""Huge and deep texts are refused at once, whatever the parser would make of them."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from cepheid.languages.limits import DEEPEST_NESTING, LARGEST_TEXT, MOST_COMPONENTS
from cepheid.languages.sase.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from cepheid.model.errors import CepheidError, LimitExceeded

MILLION = 10**6

HUGE = {
    "parentheses": ("text-too-large", "EVENT A x WHERE " + "(" * MILLION),
    "balanced parentheses": ("text-too-large", "EVENT A WHERE " + "(" * MILLION + ")" * MILLION),
    "brackets": ("text-too-large", "EVENT A x WHERE " + "[" * MILLION),
    "open quotes": ("text-too-large", "'" * MILLION),
    "multi-byte text": ("text-too-large", "EVENT A x -- " + "∧" * (LARGEST_TEXT // 3)),
    "parentheses within the size": ("nesting-too-deep", "EVENT A x WHERE " + "(" * 60_000),
    "sequences": ("nesting-too-deep", "EVENT " + "SEQ(" * 15_000),
    "components": ("too-many-components", f"EVENT SEQ({'A,' * 30_000}A)"),
    "components after a comment": ("too-many-components", f"EVENT SEQ/**/({'A,' * 100}A)"),
    "minus signs": ("nesting-too-deep", "EVENT A x WHERE " + "- " * 200 + "x.a = 1"),
    "operators": ("nesting-too-deep", "EVENT A x WHERE x.a" + " + 1" * 200 + " = 1"),
    "calls": ("nesting-too-deep", "EVENT A x WHERE " + "abs(" * 70 + "1" + ")" * 70 + " = 1"),
    "conditions": (
        "too-many-conditions",
        "EVENT A x WHERE " + " OR ".join(f"x.a = {i}" for i in range(500)),
    ),
    "constants in brackets": (
        "too-many-conditions",
        f"EVENT SEQ(A, B) WHERE [{', '.join(f'a{i} = 1' for i in range(500))}]",
    ),
    "comparisons": (
        "too-many-comparisons",
        f"EVENT SEQ({', '.join(['A'] * 48)}) WHERE [{', '.join(f'a{i}' for i in range(500))}]",
    ),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_texts_are_refused_at_once(name: str) -> None:
    code, text = HUGE[name]
    translate(SourceText("EVENT A"), Catalogue())  # builds the parser
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(LimitExceeded) as refused:
        translate(SourceText(text), Catalogue())
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused.value.code == code
    assert len(str(refused.value)) < 1000
    assert seconds < 0.5  # 0.1 on a quiet machine without the tracing of memory
    assert peak < 50_000_000


def nested(depth: int) -> str:
    return f"EVENT A x WHERE {'(' * depth}x.a{')' * depth} = 1"


def test_the_deepest_text_is_read() -> None:
    translate(SourceText(nested(DEEPEST_NESTING)), Catalogue())
    with pytest.raises(LimitExceeded, match="nesting-too-deep"):
        translate(SourceText(nested(DEEPEST_NESTING + 1)), Catalogue())


def test_the_longest_pattern_is_read() -> None:
    components = ", ".join(f"E{number}" for number in range(MOST_COMPONENTS))
    program = translate(SourceText(f"EVENT SEQ({components})"), Catalogue())
    assert len(program.queries[0].columns) == MOST_COMPONENTS


def test_the_largest_text_is_read() -> None:
    text = "EVENT A x --"
    text += "#" * (LARGEST_TEXT - len(text))
    translate(SourceText(text), Catalogue())
    with pytest.raises(LimitExceeded, match="text-too-large"):
        translate(SourceText(text + "#"), Catalogue())


def test_brackets_in_strings_names_and_comments_do_not_nest() -> None:
    many = "(" * 100
    text = f"EVENT A x WHERE x.a = '{many}' AND x.b = “{many}” AND x.`{many}` = 1"
    translate(SourceText(f"{text} /* {many} */ -- {many}"), Catalogue())


def test_many_queries_take_time_in_proportion() -> None:
    text = "EVENT A;" * (LARGEST_TEXT // 8)
    start = time.process_time()
    program = translate(SourceText(text), Catalogue())
    assert len(program.queries) == LARGEST_TEXT // 8
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    "text",
    [
        "EVENT A x WHERE x.a = 9" + "9" * 5000,
        "EVENT A x WHERE x.a = 1e99999",
        "EVENT SEQ(A, B) WITHIN " + "9" * 5000,
        "EVENT SEQ(A, B) WITHIN 9" + "9" * 100 + " days",
        "EVENT A x WHERE " + " AND ".join(f"y{i}.a = 1" for i in range(3000)),
    ],
)
def test_what_could_cost_much_is_refused_in_time(text: str) -> None:
    start = time.process_time()
    with pytest.raises(CepheidError) as refused:
        translate(SourceText(text), Catalogue())
    assert time.process_time() - start < 10
    assert len(refused.value.diagnostics) <= 20
