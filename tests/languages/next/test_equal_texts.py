"""Texts that must mean the same, by the definitions on random histories (SPEC B5, A1.3)."""

from __future__ import annotations

import pytest

from cepheid.algebra.bind import bind
from cepheid.languages.next.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from cepheid.model.event_time import TimeDomain
from tests.oracle.denotation import matches
from tests.oracle.events import Ev
from tests.oracle.histories import random_history

EQUAL = {
    "a chain is left-deep": ("A; B; C", "(A; B); C"),
    "without conditions chains are associative": ("A; B; C", "A; (B; C)"),
    "one key in FILTER for all operands, too": (
        "A; B; C WHERE FILTER(A.k = B.k), FILTER(B.k = C.k)",
        "A; (B; C) WHERE FILTER(A.k = B.k AND A.k = C.k AND B.k = C.k)",
    ),
    "a union on the left distributes": ("(A | B); C", "(A; C) | (B; C C2)"),
    "a time limit skips or ends alike": (
        "A; B WHERE FILTER((A, B) OCCURS WITHIN 2)",
        "A; B WHERE (A, B) OCCURS WITHIN 2",
    ),
    "an exception of the second, of the chain": (r"A; (B \ N)", r"(A; B) \ N"),
    "an exception that can not be raised": (r"A \ N", "A"),
    "NOT of an OR": (
        "A; B WHERE NOT (A.k = B.k OR B.v > 1)",
        "A; B WHERE NOT A.k = B.k AND NOT B.v > 1",
    ),
}


def found(text: str, history: list[Ev]) -> list[tuple[object, ...]]:
    (query,) = translate(SourceText(f"SELECT * FROM {text}"), Catalogue()).queries
    closed = bind(query.pattern, TimeDomain(is_timestamp=False), {})
    return sorted(match.ids for match in matches(closed, history))


@pytest.mark.parametrize("name", EQUAL)
def test_equal_texts_find_the_same(name: str) -> None:
    first, second = EQUAL[name]
    for seed in range(150):
        history = random_history(seed, intervals=seed % 2 == 1)
        assert found(first, history) == found(second, history), seed
