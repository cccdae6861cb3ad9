"""Every case on the oracle and in process: whole, one by one, in random cuts, through snapshots."""

from __future__ import annotations

import random
from typing import Any

import pytest

import cepheid
from cepheid.testing import Event, Expected, match_difference
from tests.cases.by_definition import oracle_rows
from tests.cases.loading import NAME, Case, load_cases

CASES = load_cases()


def agree(expected: list[Expected], found: list[dict[str, Any]]) -> None:
    difference = match_difference(expected, found, NAME)
    assert not difference, f"the matches differ\n{difference}"


def in_cuts(case: Case, sizes: list[int], *, restoring: bool = False) -> list[dict[str, Any]]:
    """The matches of a detector that is fed batches of these sizes, then what is left."""
    query = cepheid.compile(case.text, case.language)
    options = {"id": NAME} | case.options
    detector = cepheid.Detector(query, **options)
    found: list[dict[str, Any]] = []
    for batch in cut(case.rows, sizes):
        found += detector.feed(batch)
        if restoring:
            detector = cepheid.Detector.restore(query, detector.snapshot(), **options)
    assert detector.late.count == 0
    return [*found, *detector.close()]


def cut(rows: list[Event], sizes: list[int]) -> list[list[Event]]:
    batches, position = [], 0
    for size in sizes:
        batches.append(rows[position : position + size])
        position += size
    return [batch for batch in [*batches, rows[position:]] if batch]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_by_definition(case: Case) -> None:
    agree(case.matches, oracle_rows(case))
    agree(case.wide, oracle_rows(case, wide=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_whole(case: Case) -> None:
    table = cepheid.detect(
        case.rows, cepheid.compile(case.text, case.language), **({"id": NAME} | case.options)
    )
    agree(case.matches, table.to_pylist())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_in_one_wide_table(case: Case) -> None:
    table = cepheid.detect(
        case.table(), cepheid.compile(case.text, case.language), **({"id": NAME} | case.options)
    )
    agree(case.wide, table.to_pylist())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_by_one(case: Case) -> None:
    agree(case.matches, in_cuts(case, [1] * len(case.rows)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_random_cuts(case: Case) -> None:
    for seed in range(3):
        source = random.Random(seed)
        agree(case.matches, in_cuts(case, [source.randint(1, 4) for _ in case.rows]))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_restored_after_every_event(case: Case) -> None:
    agree(case.matches, in_cuts(case, [1] * len(case.rows), restoring=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_restored_once_at_every_place(case: Case) -> None:
    for place in range(1, len(case.rows)):
        agree(case.matches, in_cuts(case, [place], restoring=True))


def silence(*, lateness: int = 0) -> cepheid.Detector:
    return cepheid.Detector("EVENT SEQ(A x, !(B n)) WITHIN 5", id=NAME, lateness=lateness)


def test_a_late_negative_takes_nothing_back() -> None:
    # SPEC D40: the heartbeat at 20 has settled the match; the late negative is set aside
    detector = silence()
    detector.feed([{NAME: "A1", "type": "A", "ts": 10}])
    assert [(row["x"][NAME], row["end"]) for row in detector.advance(20)] == [("A1", 14)]
    assert len(detector.feed([{NAME: "B1", "type": "B", "ts": 12}])) == 0
    assert len(detector.close()) == 0
    assert detector.late.count == 1


def test_a_negative_within_the_lateness_cancels() -> None:
    # SPEC D40: while the watermark has not passed 14, a B at 12 must cancel
    detector = silence(lateness=5)
    detector.feed([{NAME: "A1", "type": "A", "ts": 10}])
    assert len(detector.feed([{NAME: "X1", "type": "X", "ts": 17}])) == 0
    assert len(detector.feed([{NAME: "B1", "type": "B", "ts": 12}])) == 0
    assert len(detector.close()) == 0
    assert detector.late.count == 0


@pytest.mark.parametrize(("watermark", "settled"), [(14, False), (15, True)])
def test_a_closed_deadline_must_be_passed(watermark: int, settled: bool) -> None:
    # SPEC C3: a match waits until the watermark > fin, because a B at 14 would cancel it
    detector = silence()
    detector.feed([{NAME: "A1", "type": "A", "ts": 10}])
    assert bool(len(detector.advance(watermark))) is settled


def test_every_case_says_where_it_comes_from() -> None:
    assert len(CASES) >= 70
    assert all(case.origin.strip() for case in CASES)
