"""Runs that a window from before bounds, and runs of runs: what the definitions say, and no more.

A run that lasts too long for the window is let go while it waits; a run of runs is one match
however its events are divided into runs.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import cepheid
from cepheid.kernels.match_nodes import sort_found
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.succession_runs import CAP, by_definition, end_of, in_cuts, stream, whole

TEXTS = (
    "SELECT * FROM A a; B b+ WHERE (a, b) OCCURS WITHIN 4",
    "SELECT * FROM A a; B b+ WHERE FILTER(a.k = b.k), FILTER((a, b) OCCURS WITHIN 3)",
    "SELECT * FROM A a; (B b+; C c) WHERE (a, c) OCCURS WITHIN 7",
    "SELECT * FROM A a; B b+; C c WHERE (a, c) OCCURS WITHIN 7",
    "SELECT * FROM A a; ((B b | C c)+; A d) WHERE FILTER(a.k = d.k), (a, d) OCCURS WITHIN 9",
    "SELECT * FROM A a; (B b; C c)+ WHERE FILTER(b.k = c.k), (a, c) OCCURS WITHIN 9",
    "SELECT * FROM A a; (B b+ @ 2) WHERE (a, b) OCCURS WITHIN 4",
    "SELECT * FROM A a; (B b+ \\ C c) WHERE (a, b) OCCURS WITHIN 7",
    "SELECT * FROM A a; B b+ WHERE PREV(b.v) <= b.v, (b, a) OCCURS WITHIN 7",
    "SELECT * FROM (A a+)+",
    "SELECT * FROM (A a+ | B b)+ WHERE FILTER(a.v > 0)",
    "SELECT * FROM ((A a+ | B b)+)+",
    "SELECT * FROM (A a+; B b)+ ; C c",
    "SELECT * FROM (A a+)+ ; B b WHERE PREV(a.v) < a.v, FILTER(a.k = b.k)",
    "SELECT * FROM C c; (A a+)+ WHERE (c, a) OCCURS WITHIN 7",
)


def compiled(text: str) -> CompiledQuery:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cepheid.compile(text, "next")


@pytest.mark.parametrize("text", TEXTS)
def test_every_way_to_run_gives_the_oracles_answer(text: str) -> None:
    query = compiled(text)
    found = 0
    for seed in range(60):
        source = random.Random(f"{text} {seed}")
        intervals = seed % 4 == 0
        rows = stream(source, intervals=intervals, most=20)
        options: dict[str, Any] = {"cap": CAP, "id": "event"}
        options |= {"start": "start", "end": "end"} if intervals else {}
        expected = by_definition(query, rows)
        assert max(expected.values(), default=1) == 1
        found += len(expected)
        assert whole(query, rows, options) == expected, rows
        late = sorted(rows, key=lambda row: end_of(row) + source.randint(0, 3))
        lax = options | {"lateness": 3}
        assert in_cuts(query, late, lax, source, restoring=seed % 2 == 0) == expected, rows
    assert found >= 10


def test_together_they_find_the_same() -> None:
    """Windows of other queries bound a run that they share only as far as all of them do."""
    queries = {str(n): compiled(text) for n, text in enumerate(TEXTS)}
    for seed in range(20):
        rows = stream(random.Random(seed), intervals=False)
        options: dict[str, Any] = {"cap": CAP, "id": "event"}
        workload = cepheid.Workload(queries, **options)
        table = (workload.feed(rows) + workload.close()).table()
        together = Counter(table.column("query").to_pylist())
        for name, query in queries.items():
            assert together[name] == len(by_definition(query, rows)), (TEXTS[int(name)], rows)


def test_runs_before_the_window_cost_nothing() -> None:
    """Two readings at once double the runs they extend: only those that may still match."""
    detector = cepheid.Detector(
        "SELECT * FROM start S; reading R+ WHERE FILTER(R.k = S.k), (S, R) OCCURS WITHIN 30"
    )
    sizes = []
    for burst in range(1, 1_201):
        time = 1_000 * burst
        readings = 2 * [{"type": "reading", "ts": time + 1, "k": 1}]
        assert len(detector.feed([{"type": "start", "ts": time, "k": 1}, *readings])) == 2 * (
            burst > 1
        )
        if burst % 400 == 0:
            sizes.append(len(detector.snapshot()))
    assert max(sizes) < 50_000


def test_many_findings_are_sorted_as_few_are() -> None:
    """By end and start, and of equal stamps by their numbers."""
    numbers = np.random.default_rng(1)
    for size in (2, 31, 33, 1_000):
        facts = np.zeros((3, size), np.int64)
        facts[1] = 100
        facts[2] = numbers.integers(0, 10, size)
        nodes = np.column_stack([np.full(size, -1), np.zeros(size, np.int64), np.arange(size)])
        found = np.zeros((size, 4), np.int64)
        found[:, 0] = numbers.permutation(size)
        found[:, 1] = facts[2, found[:, 0]]
        found[:, 2] = found[:, 0] % 7
        sort_found(found, 0, size, nodes, facts, 0)
        assert found[:, 0].tolist() == np.lexsort((np.arange(size), facts[2])).tolist()
        assert (found[:, 1] == facts[2, found[:, 0]]).all()
        assert (found[:, 2] == found[:, 0] % 7).all()
