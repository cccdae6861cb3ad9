"""Dividing by key: when it is right, by which attributes, and that it changes no answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts.division import KeyByType, Undivided, key_of
from cepheid.hosts.in_process import Detector
from cepheid.hosts.prepared_program import prepare_program
from cepheid.model.errors import DataError
from cepheid.model.options import make_options
from tests.laws.random_queries import random_case, random_rows

SCHEMA = pa.schema(
    [
        ("event", pa.int64()),
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("k", pa.int64()),
        ("v", pa.int64()),
        ("w", pa.float64()),
        ("s", pa.string()),
        ("u", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("parts", pa.list_(pa.int64())),
    ]
)


def division(text: str, **options: Any) -> KeyByType | Undivided:
    return key_of(prepare_program(cepheid.compile(text), make_options(options), SCHEMA))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("EVENT SEQ(A x, B y) WHERE [k]", "[k]"),
        ("EVENT SEQ(A x, B y, C z) WHERE [k, s]", "[k, s]"),
        ("EVENT SEQ(A x, B y) WHERE x.k = y.k AND x.v < y.v", "[k]"),
        ("EVENT SEQ(A x, B y, C z) WHERE x.k = y.k AND y.k = z.k", "[k]"),
        ("EVENT SEQ(A x, !(B n), C y) WHERE [k] WITHIN 9", "[k]"),
        ("EVENT SEQ(A x, B y) WHERE x.k = y.u", "[k] of A; [u] of B"),
        ("EVENT SEQ(A x, !B n) WHERE [k] WITHIN 9", "[k]"),
    ],
)
def test_a_key_that_covers_all_components(text: str, key: str) -> None:
    assert str(division(text)) == key


def test_only_the_columns_that_negated_components_share_divide() -> None:
    text = "EVENT SEQ(A x, !(B n), C y) WHERE [k] AND x.s = y.s WITHIN 9"
    assert str(division(text)) == "[k]"


@pytest.mark.parametrize(
    "text",
    [
        "EVENT SEQ(A x, B y)",
        "EVENT SEQ(A x, B y) WHERE x.k < y.k",
        "EVENT SEQ(A x, B y, C z) WHERE x.k = y.k",
        "EVENT SEQ(A x, B y) WHERE (x.k = y.k OR x.v = 1)",
        # Valid for positive components only is not valid (SPEC B5).
        "EVENT SEQ(A x, !(B n), C y) WHERE x.k = y.k WITHIN 9",
        # One event would have two keys.
        "EVENT SEQ(A x, A y) WHERE x.k = y.u",
        # Equal numbers, different bits.
        "EVENT SEQ(A x, B y) WHERE x.k = y.w",
        "EVENT SEQ(A x, B y) WHERE x.day = y.at",
    ],
)
def test_no_key(text: str) -> None:
    assert isinstance(division(text), Undivided)


def test_the_plan_option_decides() -> None:
    text = "EVENT SEQ(A x, B y) WHERE [k, s]"
    assert isinstance(division(text, plan={"partition": "none"}), Undivided)
    assert str(division(text, plan={"partition": "s"})) == "[s]"


CHAIN = """
pairs: EVENT SEQ(A x, B y) WHERE [k] WITHIN 5 RETURN {returned};
EVENT SEQ(pairs p, C z) WHERE [k] WITHIN 9
"""


def test_a_program_is_divided_by_a_key_that_return_hands_on() -> None:
    query = cepheid.compile(CHAIN.format(returned="x.k AS k, y.v AS v"))
    program = prepare_program(query, make_options({}), SCHEMA)
    assert program.is_chained
    assert str(key_of(program)) == "[k]"


@pytest.mark.parametrize("returned", ["x.v AS k", "x.k + 0 AS k", "x.k AS other, 1 AS k"])
def test_a_program_is_not_divided_by_another_key_of_the_same_name(returned: str) -> None:
    query = cepheid.compile(CHAIN.format(returned=returned))
    program = prepare_program(query, make_options({}), SCHEMA)
    assert isinstance(key_of(program), Undivided)


def test_a_column_no_query_can_compare_is_refused_before_any_row_is_read() -> None:
    with pytest.raises(DataError, match="unsupported-type"):
        division("EVENT SEQ(A x, B y) WHERE x.parts = y.parts")


@pytest.mark.parametrize("seed", range(40))
def test_the_keys_together_find_what_the_whole_finds(seed: int) -> None:
    case = random_case(seed)
    options = make_options({"id": "event"} | case.options)
    query = cepheid.compile(case.text)
    key = key_of(prepare_program(query, options, SCHEMA))
    if isinstance(key, Undivided):
        return
    for stream in range(6):
        rows = random_rows(100 * seed + stream, 30)
        groups: dict[Any, list[dict[str, Any]]] = {}
        for row in rows:
            names = key.of.get(row["type"])
            if names is not None:
                declared = options.attributes_of(row["type"])
                has = [n in row and (declared is None or n in declared) for n in names]
                if not all(has):
                    break  # an event without key is equal to every key
                groups.setdefault(tuple(row[n] for n in names), []).append(row)
        else:
            found: Counter[str] = Counter()
            for group in groups.values():
                found.update(_ids(Detector.for_host(query, options), group))
            assert found == Counter(_ids(Detector.for_host(query, options), rows)), case.text


def _ids(detector: Detector, rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    found = detector.feed(rows) + detector.close()
    ids: list[str] = found.table().column("match_id").to_pylist()
    return ids
