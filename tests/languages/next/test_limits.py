"""Huge and deep NEXT texts are refused at once, whatever the parser would make of them."""

from __future__ import annotations

import time

import pytest

import cepheid
from cepheid.languages.limits import DEEPEST_NESTING, MOST_COMPONENTS, MOST_CONDITIONS
from cepheid.languages.next.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from cepheid.model.errors import CepheidError, LimitExceeded

HUGE = {
    "parentheses": ("text-too-large", "SELECT * FROM " + "(" * 10**6),
    "parentheses within the size": ("nesting-too-deep", "SELECT * FROM " + "(" * 60_000),
    "components": ("too-many-components", "SELECT * FROM A" + ";A" * 30_000),
    "alternatives": ("too-many-components", "SELECT * FROM A" + "|A" * 30_000),
    "exceptions": ("too-many-components", "SELECT * FROM A" + "\\A" * 30_000),
    "components in groups": ("too-many-components", "SELECT * FROM " + ";".join(["(A;A)"] * 60)),
    "iterations": ("nesting-too-deep", "SELECT * FROM A" + "+" * 60_000),
    "negations": ("nesting-too-deep", "SELECT * FROM A WHERE " + "NOT " * 10_000 + "A.v = 1"),
    "operators": ("nesting-too-deep", "SELECT * FROM A WHERE A.v" + " + 1" * 200 + " = 1"),
    "filters": ("nesting-too-deep", "SELECT * FROM A WHERE " + "FILTER(" * 9_000),
    "time limits": (
        "nesting-too-deep",
        "SELECT * FROM A;B WHERE " + ", ".join(["(A,B) OCCURS WITHIN 1"] * 100),
    ),
    "constants": (
        "too-many-conditions",
        "SELECT * FROM A WHERE " + " OR ".join(f"A.v = {i}" for i in range(4_000)),
    ),
    "conditions between commas": (
        "too-many-conditions",
        "SELECT * FROM A; B WHERE " + ", ".join(f"FILTER(A.v + {i} < B.v)" for i in range(2_000)),
    ),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_texts_are_refused_at_once(name: str) -> None:
    code, text = HUGE[name]
    translate(SourceText("SELECT * FROM A"), Catalogue())  # builds the parser
    start = time.process_time()
    with pytest.raises(LimitExceeded) as refused:
        translate(SourceText(text), Catalogue())
    assert time.process_time() - start < 3.0  # below 1 on a quiet machine
    assert refused.value.code == code
    assert len(str(refused.value)) < 1000


def test_the_deepest_text_is_read() -> None:
    def nested(depth: int) -> str:
        return f"SELECT * FROM {'(' * depth}A{')' * depth} WHERE A.v = 1"

    translate(SourceText(nested(DEEPEST_NESTING)), Catalogue())
    with pytest.raises(LimitExceeded, match="nesting-too-deep"):
        translate(SourceText(nested(DEEPEST_NESTING + 1)), Catalogue())


def test_the_longest_pattern_is_read() -> None:
    sources = "; ".join(f"E{number}" for number in range(MOST_COMPONENTS))
    text = f"SELECT * FROM {sources} WHERE E0.v = 1, E{MOST_COMPONENTS - 1}.v = E0.v"
    (query,) = translate(SourceText(text), Catalogue()).queries
    assert len(query.columns) == MOST_COMPONENTS


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM A WHERE A.v = 9" + "9" * 5000,
        "SELECT * FROM A; B WHERE (A, B) OCCURS WITHIN " + "9" * 5000,
        "SELECT * FROM A; B WHERE " + " AND ".join(f"y{i}.a = 1" for i in range(3000)),
        "register source t schema (" + ", ".join(["a"] * 9000) + ") SELECT * FROM t",
        "register sink s table " * 2000 + "SELECT * FROM t",
    ],
)
def test_what_could_cost_much_is_refused_in_time(text: str) -> None:
    start = time.process_time()
    with pytest.raises(CepheidError) as refused:
        translate(SourceText(text), Catalogue())
    assert time.process_time() - start < 10
    assert len(refused.value.diagnostics) <= 20


def test_many_conditions_on_a_long_pattern_take_time_in_proportion() -> None:
    sources = "; ".join(f"E{number}" for number in range(MOST_COMPONENTS))
    conditions = ", ".join(f"E{i % 48}.a = E{i % 47}.b" for i in range(MOST_CONDITIONS))
    text = f"SELECT * FROM {sources} WHERE {conditions}"
    start = time.process_time()
    translate(SourceText(text), Catalogue())
    assert time.process_time() - start < 10


@pytest.mark.parametrize("sign", [" AND ", " OR ", ", "])
def test_as_many_conditions_as_allowed_are_compiled(sign: str) -> None:
    def text(count: int) -> str:
        return "SELECT * FROM A WHERE " + sign.join(f"A.v >= {i}" for i in range(count))

    events = [{"type": "A", "ts": 1, "v": MOST_CONDITIONS}]
    assert cepheid.detect(events, text(MOST_CONDITIONS)).num_rows == 1
    with pytest.raises(LimitExceeded, match="too-many-conditions"):
        cepheid.compile(text(MOST_CONDITIONS + 1))
