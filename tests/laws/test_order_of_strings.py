"""Strings of two events compared by their order, on the way through codes and ranks (SPEC A1.2)."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import pytest

import cepheid
from cepheid.kernels.interning import StringTable
from tests.laws.succession_runs import CAP, by_definition, end_of, in_cuts, stream, whole

TEXTS = (
    "SELECT * FROM A a; B b WHERE FILTER(a.s < b.s)",
    "SELECT * FROM A a; B b WHERE a.s >= b.s, (a, b) OCCURS WITHIN 6",
    "SELECT * FROM A a; B b; C c WHERE FILTER(a.k = b.k), NOT a.s <= c.s",
    "SELECT * FROM A a; (B b; C c) WHERE FILTER(a.s > c.s OR b.s < c.s)",
    "SELECT * FROM A a+ WHERE PREV(a.s) <= a.s",
    "SELECT * FROM A a+; B b WHERE ALL(a.s) < b.s",
    r"SELECT * FROM A a; (B b \ N n) WHERE n.s > a.s",
)
WORDS = ("", "a", "aa", "ab", "B", "é", "z", "zebra", "ä", "\U0001f600", "a b", "0")


def rows_of(source: random.Random, intervals: bool) -> list[dict[str, Any]]:
    """New strings keep coming, so that ranks change while events wait."""
    rows = stream(source, intervals=intervals, most=20)
    return [row | {"s": source.choice(WORDS)} if row.get("s") is not None else row for row in rows]


@pytest.mark.parametrize("text", TEXTS)
def test_every_way_to_run_gives_the_oracles_answer(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query = cepheid.compile(text, "next")
    found = 0
    for seed in range(50):
        source = random.Random(f"{text} {seed}")
        rows = rows_of(source, intervals=seed % 4 == 0)
        options: dict[str, Any] = {"cap": CAP, "id": "event"}
        options |= {"start": "start", "end": "end"} if seed % 4 == 0 else {}
        expected = by_definition(query, rows)
        found += sum(expected.values())
        assert whole(query, rows, options) == expected, rows
        late = sorted(rows, key=lambda row: end_of(row) + source.randint(0, 3))
        lax = options | {"lateness": 3}
        assert in_cuts(query, late, lax, source, restoring=seed % 2 == 0) == expected, rows
    assert found > 10


def test_together_they_find_the_same() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        queries = {str(n): cepheid.compile(text, "next") for n, text in enumerate(TEXTS)}
    for seed in range(20):
        rows = rows_of(random.Random(seed), intervals=False)
        workload = cepheid.Workload(queries, cap=CAP, id="event")
        found: Counter[str] = Counter()
        for begin in range(0, len(rows), 3):
            for name, matches in workload.feed(rows[begin : begin + 3]).items():
                found[name] += len(matches)
        for name, matches in workload.close().items():
            found[name] += len(matches)
        for name, query in queries.items():
            assert found[name] == sum(by_definition(query, rows).values()), (name, rows)


def test_ranks_are_those_of_code_points() -> None:
    table = StringTable()
    codes = [table.code(word) for word in WORDS]
    ranks = table.ranks()
    assert [w for _, w in sorted((ranks[c], w) for c, w in zip(codes, WORDS, strict=True))] == (
        sorted(WORDS)
    )


def test_sase_compares_them_too() -> None:
    rows = [{"type": "A", "ts": 1, "s": "b"}, {"type": "B", "ts": 2, "s": "a"}]
    rows.append({"type": "B", "ts": 3, "s": "c"})
    assert cepheid.detect(rows, "EVENT SEQ(A x, B y) WHERE x.s < y.s WITHIN 9").num_rows == 1
