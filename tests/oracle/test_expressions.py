"""One meaning of expressions: absent, undefined, 64-bit integers, mixed arithmetic, strings."""

from __future__ import annotations

import pytest

from cepheid.algebra.expression import Absent
from cepheid.algebra.text import expression_from_text
from tests.oracle.events import Ev, Match
from tests.oracle.expressions import AbsentAttributeError, Scope, truth

ATTRIBUTES = {
    "one": 1,
    "two": 2,
    "half": 0.5,
    "nil": None,
    "undefined": float("nan"),
    "endless": float("inf"),
    "big": 2**63 - 1,
    "low": -(2**63) + 2,
    "odd": 2**53 + 1,
    "text": "Straße",
    "yes": True,
    "no": False,
}


def holds(text: str, absent: Absent = Absent.TRUE) -> bool:
    event = Ev("e", "E", 0, 0, ATTRIBUTES)
    match = Match((("x", event),), (0, 0), 0, 0, 0)
    return truth(expression_from_text(text), Scope(match), absent)


@pytest.mark.parametrize(
    "text",
    [
        "always",
        "true",
        "x.yes",
        "x.one < x.two",
        "x.one = 1.0",
        "x.one / x.two = x.half",
        "7 / 2 = 3.5",
        "x.big + 0 = 9223372036854775807",
        "x.low - 0 = x.low",
        "-(x.low) = 9223372036854775806",
        "x.odd = 9007199254740993",
        "not x.odd = 9007199254740992",
        "x.odd + 0.0 = 9007199254740992",  # mixed arithmetic goes through float64
        "x.odd = 9007199254740992.0",  # and so does a mixed comparison
        "x.endless > x.big",
        "x.yes = true",
        "x.yes != x.no",
        "'B' < 'a'",
        "'z' < 'ß'",
        "length(x.text) = 6",
        "lower('ÄB') = 'Äb'",
        "upper('äb') = 'äB'",
        "concat(x.text, '!') = 'Straße!'",
        "contains(x.text, 'aß')",
        "starts_with(x.text, '')",
        "ends_with(x.text, 'ße')",
        "abs(-2) = 2",
        "sqrt(4) = 2",
        "least(x.one, x.half) = 0.5",
        "greatest(x.one, x.half) = 1",
        "greatest(x.odd, x.one) = 9007199254740993",  # integers stay integers
        "x.gone = 1",
        "x.gone + x.nil = 1",
        "not x.nil = 1",
        "not x.one / 0 = 1",
        "never or x.one = 1",
    ],
)
def test_true(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "never",
        "x.nil = x.nil",
        "x.nil != 1",
        "x.undefined = x.undefined",
        "x.undefined != 1",
        "x.endless - x.endless = 0",
        "x.one / 0 = x.one / 0",
        "x.big + 1 > 0",
        "x.low - 1 < 0",
        "x.big * 2 > 0",
        "sqrt(-1) = sqrt(-1)",
        "x.yes < true",
        "x.one = 'one'",
        "contains(x.one, '1')",
        "not x.gone = 1",
        "x.no",
        "x.nil",
    ],
)
def test_false(text: str) -> None:
    assert not holds(text)


def test_absent_is_what_the_language_says() -> None:
    assert holds("x.gone > 3", Absent.TRUE)
    assert not holds("x.gone > 3", Absent.FALSE)
    assert holds("not x.gone > 3", Absent.FALSE)
    with pytest.raises(AbsentAttributeError):
        holds("x.gone > 3", Absent.ERROR)


def test_a_variable_of_another_branch() -> None:
    # SPEC Part F: false in NEXT, no restriction in PLAN
    assert not holds("y.v > 3", Absent.FALSE)
    assert holds("y.v > 3", Absent.ERROR)
