"""Which patterns of successors are plain chains, and what is told of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.kernels.compiled import counters
from cepheid.model.options import make_options
from cepheid.planner.chain_plan import Chain
from cepheid.planner.prepare import prepare

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("start", pa.int64()),
        ("k", pa.int64()),
        ("s", pa.string()),
        ("v", pa.int64()),
    ]
)
KEY = "FILTER(x.k = y.k), FILTER(x.k = z.k)"


def chain(text: str, **options: Any) -> Chain | str:
    compiled = cepheid.compile(text, "next")
    chosen = make_options(options)
    (stage,) = compiled.stages(chosen)
    return prepare(stage, chosen, SCHEMA).chain


def told(text: str, **options: Any) -> Chain:
    found = chain(text, **options)
    assert isinstance(found, Chain), found
    return found


def test_a_key_may_be_told_by_any_pair_of_events() -> None:
    assert told(f"SELECT * FROM A x; B y; C z WHERE {KEY}").key == ("k",)
    both = f"{KEY}, FILTER(y.s = x.s), FILTER(z.s = y.s)"
    assert told(f"SELECT * FROM A x; B y; C z WHERE {both}").key == ("k", "s")
    assert told("SELECT * FROM A x; B y").key == ()


def test_windows_are_between_steps() -> None:
    found = told("SELECT * FROM A x; B y; C z WHERE (z, x) OCCURS WITHIN 9, (y, z) OCCURS WITHIN 4")
    assert set(found.windows) == {(0, 2, 9), (0, 1, 9), (1, 2, 4)}


def test_a_condition_on_one_event_is_a_test_of_its_step() -> None:
    found = told("SELECT * FROM A x; B y; C z WHERE y.v > 1, FILTER(z.v > 2)")
    assert [step for step, _ in found.tests] == [1]


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("SELECT * FROM A x; B y+", {}, "it has more than ; and conditions"),
        ("SELECT * FROM A x | B y", {}, "it has more than ; and conditions"),
        ("SELECT * FROM A x; (B y \\ C z)", {}, "it has more than ; and conditions"),
        ("SELECT * FROM A x; (B y; C z) WHERE x.v < z.v, y.v < z.v", {}, "brackets to the right"),
        ("SELECT * FROM A x; B y WHERE FILTER(x.v < y.v)", {}, "a FILTER compares events other"),
        ("SELECT * FROM A x; B y WHERE x.v < y.v", {}, "a condition compares several events"),
        ("SELECT * FROM A x; B y; C z WHERE FILTER(x.k = y.k)", {}, "not every ; passes over"),
        ("SELECT * FROM A x; B y", {"start": "start", "end": "ts"}, "events may last"),
        ("SELECT * FROM A x; B y", {"plan": {"chains": False}}, "the plan option chains is off"),
        (
            "SELECT * FROM " + "; ".join(f"A x{n}" for n in range(25)),
            {},
            "it has more than 24 steps",
        ),
    ],
)
def test_other_patterns_say_why_they_are_none(
    text: str, options: dict[str, Any], reason: str
) -> None:
    found = chain(text, **options)
    assert isinstance(found, str)
    assert found.startswith(reason)
    assert reason in cepheid.compile(text, "next").explain(SCHEMA, **options)


def test_explain_names_the_kernel_of_chains() -> None:
    text = f"SELECT * FROM A x; B y; C z WHERE {KEY}"
    told = cepheid.compile(text).explain(SCHEMA)
    assert "compiled kernel of plain chains, 3 steps" in told
    assert "batches in order of time as they are" in told
    assert "no chain" not in told
    assert "as they are" not in cepheid.compile(text).explain(SCHEMA, lateness=3)
    assert "as they are" not in cepheid.compile(text.replace(".k", ".s")).explain(SCHEMA)


def test_a_thousand_chains_compile_nothing() -> None:
    rows = [{"type": kind, "ts": time, "k": 1} for time, kind in enumerate("ABC")]
    cepheid.detect(rows, "SELECT * FROM A x; B y")
    before = counters.loaded
    found = sum(
        len(cepheid.detect(rows, f"SELECT * FROM A x; B y WHERE (x, y) OCCURS WITHIN {window}"))
        for window in range(1, 1_001)
    )
    assert found == 1_000
    assert counters.loaded == before
