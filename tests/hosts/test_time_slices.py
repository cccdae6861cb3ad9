"""Slices of time: who reads an event, who owns a match, and that none is lost or found twice."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.hosts.division import TimeReach, Undivided, reach_of
from cepheid.hosts.in_process import Detector
from cepheid.hosts.prepared_program import prepare_program
from cepheid.hosts.time_slices import AFTER_ALL, BEFORE_ALL, TimeSlices, choose_slices
from cepheid.model.options import Options, make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.random_queries import random_case, random_rows

TIMES = st.integers(-50, 50)
EDGES = st.lists(TIMES, unique=True, max_size=8).map(sorted).map(tuple)
REACHES = st.builds(TimeReach, st.integers(0, 20), st.integers(0, 20))
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
    ]
)


@given(EDGES, REACHES, TIMES)
def test_every_time_has_one_owner(edges: tuple[int, ...], reach: TimeReach, time: int) -> None:
    slices = TimeSlices(edges, reach)
    owners = [n for n in range(len(slices)) if slices.owned(n)[0] <= time < slices.owned(n)[1]]
    assert owners == [slices.holding(time)]


@given(EDGES, REACHES, TIMES)
def test_the_readers_of_an_event_are_those_whose_range_holds_it(
    edges: tuple[int, ...], reach: TimeReach, time: int
) -> None:
    slices = TimeSlices(edges, reach)
    readers = [n for n in range(len(slices)) if slices.read(n)[0] <= time < slices.read(n)[1]]
    assert readers == list(slices.reading(time))


def test_the_outer_slices_are_open() -> None:
    slices = TimeSlices((0, 10), TimeReach(2, 3))
    assert [slices.owned(n) for n in range(3)] == [(BEFORE_ALL, 0), (0, 10), (10, AFTER_ALL)]
    assert [slices.read(n) for n in range(3)] == [(BEFORE_ALL, 3), (-2, 13), (8, AFTER_ALL)]


@given(st.lists(TIMES, max_size=20), REACHES, st.integers(1, 9))
def test_chosen_slices_are_wide_enough_for_the_reach(
    candidates: list[int], reach: TimeReach, most: int
) -> None:
    slices = choose_slices(candidates, -50, 50, reach, most)
    assert len(slices) <= most
    assert set(slices.edges) <= set(candidates)
    bounds = (-50, *slices.edges, 51)
    widths = [high - low for low, high in pairwise(bounds)]
    if len(slices) > 1:
        assert all(width + reach.back + reach.forward <= 1.5 * width for width in widths)


def test_a_long_window_leaves_one_slice() -> None:
    assert choose_slices(range(100), 0, 100, TimeReach(0, 60), 8).edges == ()


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("EVENT A", TimeReach(0, 0)),
        ("EVENT SEQ(A, B) WITHIN 10", TimeReach(0, 10)),
        ("EVENT SEQ(A, !B, C) WITHIN 10", TimeReach(0, 10)),
        ("EVENT SEQ(!N, A, B) WITHIN 10", TimeReach(10, 10)),
        ("EVENT SEQ(!N, A) WITHIN 10", TimeReach(10, 0)),
        ("EVENT SEQ(A, !N) WITHIN 10", TimeReach(0, 10)),
        ("EVENT SEQ(!M, A, !N) WITHIN 10", TimeReach(10, 10)),
        ("SELECT * FROM A; B WHERE (A, B) OCCURS WITHIN 10", TimeReach(0, 11)),
        ("SELECT * FROM A @ 5 \\ N", TimeReach(0, 6)),
        ("SELECT * FROM A @ 5; B @ 9 WHERE (A, B) OCCURS WITHIN 10", TimeReach(0, 20)),
    ],
)
def test_the_reach_of_a_query(text: str, reach: TimeReach) -> None:
    program = prepare_program(cepheid.compile(text), make_options({}), SCHEMA)
    assert reach_of(program) == reach


def test_without_a_window_time_divides_nothing() -> None:
    program = prepare_program(cepheid.compile("EVENT SEQ(A, B)"), make_options({}), SCHEMA)
    assert isinstance(reach_of(program), Undivided)


@pytest.mark.parametrize("seed", range(40))
def test_the_slices_together_find_what_the_whole_finds(seed: int) -> None:
    """Every width from one tick on, and edges anywhere; ties, nulls and negations included."""
    case = random_case(seed)
    query, options = cepheid.compile(case.text), make_options({"id": "event"} | case.options)
    reach = reach_of(prepare_program(query, options, SCHEMA))
    if not isinstance(reach, Undivided):
        _compare_slices(query, options, reach, seed)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM A x @ 3 \\ B n",
        "SELECT * FROM A x; (B y @ 4 | C z) WHERE (x, y) OCCURS WITHIN 5",
        "SELECT * FROM A x @ 2; B y @ 3 WHERE (x, y) OCCURS WITHIN 6",
    ],
)
def test_slices_read_as_far_as_timers_reach(text: str) -> None:
    query, options = cepheid.compile(text), make_options({"id": "event"})
    reach = reach_of(prepare_program(query, options, SCHEMA))
    if " | " in text:  # what competes with B may end long after it
        assert isinstance(reach, Undivided)
        return
    assert isinstance(reach, TimeReach)
    for seed in range(4):
        _compare_slices(query, options, reach, seed)


def _compare_slices(query: CompiledQuery, options: Options, reach: TimeReach, seed: int) -> None:
    for stream in range(3):
        rows = random_rows(100 * seed + stream, 30)
        whole = Detector.for_host(query, options)
        expected = Counter(_ids(whole, rows))
        r = random.Random(seed)
        cuts = [tuple(range(low, 21, width)) for width in (1, 2, 3, 5, 8) for low in (0, 1)]
        cuts += [tuple(sorted(r.sample(range(22), 4))) for _ in range(3)]
        for edges in cuts:
            slices = TimeSlices(edges, reach)
            found: Counter[str] = Counter()
            for number in range(len(slices)):
                own = [row for row in rows if number in slices.reading(row["ts"])]
                part = Detector.for_host(query, options, first_events=slices.owned(number))
                found.update(_ids(part, own))
            assert found == expected, (query.source.text, edges)


def _ids(detector: Detector, rows: list[dict[str, object]]) -> list[str]:
    if not rows:
        return []
    found = detector.feed(rows) + detector.close()
    ids: list[str] = found.table().column("match_id").to_pylist()
    return ids
