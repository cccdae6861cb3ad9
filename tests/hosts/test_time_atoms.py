"""OCCURS WITHIN below OR and NOT: the compiled conditions agree with the definitions."""

from __future__ import annotations

import random
from typing import Any

import pytest

import cepheid
from cepheid.testing import match_difference
from tests.cases.by_definition import oracle_rows
from tests.cases.loading import NAME, Case, load_cases

CASES = [
    case for case in load_cases("next") if "time limit" in case.name or "of itself" in case.name
]

TEXTS = [
    "SELECT * FROM A; B WHERE FILTER(NOT (A, B) OCCURS WITHIN :w OR B.v = 1)",
    "SELECT * FROM A; B; C WHERE NOT ((A, C) OCCURS WITHIN :w AND (B, C) OCCURS WITHIN 1)",
    "SELECT * FROM A+; B WHERE FILTER(PREV(A.v) = A.v OR (A, B) OCCURS WITHIN :w)",
    "SELECT * FROM A; (B | C) WHERE A.v = 1 OR (A, B) OCCURS WITHIN :w",
    r"SELECT * FROM A; (B \ C) WHERE A.v = 1 OR NOT (C, A) OCCURS WITHIN :w",
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_cases_in_process(case: Case) -> None:
    assert len(CASES) >= 8
    found = cepheid.detect(case.rows, case.text, **({"id": NAME} | case.options))
    difference = match_difference(case.matches, found.to_pylist(), NAME)
    assert not difference, f"the matches differ\n{difference}"


@pytest.mark.parametrize("text", TEXTS)
def test_random_histories_agree_with_the_oracle(text: str) -> None:
    for seed in range(40):
        source = random.Random(seed)
        rows = [_event(number, source) for number in range(12)]
        rows.sort(key=lambda row: (row["end"], row["start"]))
        options = {"start": "start", "end": "end", "cap": 3, "params": {"w": source.randint(1, 5)}}
        case = Case("random", str(seed), "oracle", "next", text, rows, [], [], options)
        expected = oracle_rows(case)
        found = cepheid.detect(rows, text, id=NAME, **options).to_pylist()
        assert _events(found) == _events(expected), (seed, rows)


def _event(number: int, source: random.Random) -> dict[str, Any]:
    start = source.randint(0, 15)
    return {
        NAME: f"e{number}",
        "type": source.choice("ABC"),
        "start": start,
        "end": start + source.choice([0, 0, 1, 3]),
        "v": source.randint(0, 1),
    }


def _events(rows: list[dict[str, Any]]) -> list[str]:
    """The names of the events of each match, in order; what is not bound is left out."""
    found = []
    for row in rows:
        columns = [(name, row[name]) for name in "ABC" if row.get(name) is not None]
        found.append(
            " ".join(
                f"{name}:{event[NAME]}"
                for name, value in columns
                for event in (value if isinstance(value, list) else [value])
                if event is not None
            )
        )
    return sorted(found)
