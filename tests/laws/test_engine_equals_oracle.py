"""The engine against the definitions, in volume: random query shapes times random streams.

Half of the streams come whole, the others in cuts with snapshots and heartbeats, or, for every
other shape, out of order within the lateness (which has kernels of its own); some come both ways.
The events are dicts or tables of various encodings. CEPHEID_VOLUME=10 runs ten times as many
shapes. A failure tells the smallest part of the stream that still fails.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

import pytest

import cepheid
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.engine_runs import (
    Answer,
    Found,
    difference,
    in_cuts,
    in_disorder,
    oracle_answer,
    whole,
)
from tests.laws.event_streams import Row, fitting, random_stream
from tests.laws.query_shapes import Shape, random_shape
from tests.laws.random_queries import Case

VOLUME = int(os.environ.get("CEPHEID_VOLUME", "1"))
SHAPES_PER_TEST = 4
TESTS = 38 * VOLUME
STREAMS = 120
CASES_PER_SHAPE = 8

QUICK_SHAPES = (3, 4, 5)
QUICK_STREAMS = 12


@pytest.mark.slow
@pytest.mark.parametrize("number", range(TESTS))
def test_random_queries_on_random_streams(number: int, record_property: pytest.Function) -> None:
    compared, matched = 0, 0
    for seed in range(number * SHAPES_PER_TEST, (number + 1) * SHAPES_PER_TEST):
        found = compare(random_shape(seed), range(STREAMS))
        compared += found
        matched += found > 0
    record_property("matches compared", compared)
    assert matched >= SHAPES_PER_TEST // 2, "most shapes found nothing: the comparison is empty"
    assert compared >= 50


def test_some_random_queries() -> None:
    assert sum(compare(random_shape(seed), range(QUICK_STREAMS)) for seed in QUICK_SHAPES) > 20


def compare(shape: Shape, streams: range) -> int:
    """Run the streams in every way; returns how many matches the definitions have."""
    compared = 0
    for number in streams:
        case = shape.case(number % CASES_PER_SHAPE)
        r = random.Random(1_000 * shape.seed + number)
        # Short patterns are also looked for in long streams; the definitions take time for more.
        size = 30 if shape.length <= 2 and number % 4 == 0 else 12
        rows = random_stream(r, case.types, size, careless=shape.careless)
        form = fitting(r.choice(shape.forms), rows)
        has_ids = case.stages > 1 or r.random() < 0.7
        compared += agree(case, rows, form, has_ids=has_ids, seed=number)
    return compared


def agree(case: Case, rows: Sequence[Row], form: str, *, has_ids: bool, seed: int) -> int:
    query = cepheid.compile(case.text)
    expected = oracle_answer(case, rows, wide=form != "dicts")
    match_ids = None
    ways = ("whole", "in cuts") if case.seed % 2 else ("whole, late", "in disorder")
    for name in ways if seed % 10 == 0 else (ways[seed % 2],):
        found = WAYS[name](query, case, rows, form, has_ids, seed)
        if found != expected:
            pytest.fail(told(query, case, rows, form, has_ids, seed, name))
        # An event is the same event however it comes, so its matches have the same ids.
        assert match_ids in (None, found.match_ids), f"{name}: match ids differ\n{case}\n{rows}"
        match_ids = found.match_ids
    return sum(expected.values())


Way = Callable[[CompiledQuery, Case, Sequence[Row], str, bool, int], Found]

WAYS: dict[str, Way] = {
    "whole": lambda q, c, rows, form, ids, _: whole(q, c, rows, form=form, ids=ids),
    "whole, late": lambda q, c, rows, form, ids, _: whole(
        q, c, rows, form=form, ids=ids, lateness=2
    ),
    "in cuts": lambda q, c, rows, form, ids, seed: in_cuts(q, c, rows, seed, form=form, ids=ids),
    "in disorder": lambda q, c, rows, form, ids, seed: in_disorder(
        q, c, rows, seed, form=form, ids=ids
    ),
}


def told(
    query: CompiledQuery,
    case: Case,
    rows: Sequence[Row],
    form: str,
    has_ids: bool,
    seed: int,
    way: str,
) -> str:
    """What failed, on the smallest part of the stream that still fails."""

    def verdict(rows: Sequence[Row]) -> tuple[Answer, Answer] | None:
        expected = oracle_answer(case, rows, wide=form != "dicts")
        for cut in (seed, *range(20)):
            found = WAYS[way](query, case, rows, form, has_ids, cut)
            if found != expected:
                return expected, found
        return None

    rows = list(rows)
    while smaller := next((s for s in shortened(rows) if verdict(s)), None):
        rows = smaller
    expected, found = verdict(rows) or ({}, {})
    stream = "\n".join(str(row) for row in rows)
    return (
        f"seed {case.seed}, {way}, as {form}, has_ids={has_ids}\n{case.text}\n"
        f"options {case.options}\n{case.clock}\n{stream}\n{difference(expected, found)}"
    )


def shortened(rows: Sequence[Row]) -> list[list[Row]]:
    """The stream without one of its events, numbered anew."""
    return [
        [{**row, "event": i} for i, row in enumerate([*rows[:gone], *rows[gone + 1 :]])]
        for gone in range(len(rows))
    ]
