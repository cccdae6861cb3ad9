"""The engine of successors and the definitions find the same in random streams, however it runs.

Each query is a text of NEXT; each stream has ties, intervals or instants, attributes that are
missing or null, and is run whole, in random cuts, out of order within the lateness, and through
snapshots. CEPHEID_SUCCESSION_SHAPES asks for more shapes.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from typing import Any

import pytest

import cepheid
from cepheid.algebra.pattern import Except, Next, Plus, Timer, Union, walk
from cepheid.model.errors import QueryError
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.succession_queries import TYPES, RandomQuery
from tests.laws.succession_runs import CAP, by_definition, end_of, in_cuts, portions, stream, whole

SHAPES = int(os.environ.get("CEPHEID_SUCCESSION_SHAPES", "96"))
STREAMS = 24
_PER_TEST = 8


def shapes() -> list[CompiledQuery]:
    """Random texts that the language takes, and that some kernel of successors runs."""
    found: list[CompiledQuery] = []
    seed = 0
    while len(found) < SHAPES:
        seed += 1
        try:
            compiled = cepheid.compile(RandomQuery(seed).text, "next")
        except QueryError:
            continue  # a condition out of reach, a window under a union, ...
        kinds = {type(node) for node in walk(compiled.query.pattern)}
        if kinds & {Next, Plus, Union, Except, Timer}:
            found.append(compiled)
    return found


QUERIES = shapes()


@pytest.mark.parametrize("first", portions(SHAPES, _PER_TEST))
def test_every_way_to_run_gives_the_oracles_answer(first: int) -> None:
    for number in range(first, min(first + _PER_TEST, SHAPES)):
        query = QUERIES[number]
        for seed in range(STREAMS):
            source = random.Random(1_000 * number + seed)
            intervals = seed % 3 == 0
            rows = stream(source, intervals=intervals)
            options: dict[str, Any] = {"cap": CAP, "id": "event"}
            options |= {"start": "start", "end": "end"} if intervals else {}
            expected = by_definition(query, rows)
            told = f"{query.source.text}\n{rows}"
            assert whole(query, rows, options) == expected, told
            way = seed % 4
            if way == 0:
                rates = {each: source.choice((1, 5, 50)) for each in TYPES}
                costly = options | {"statistics": rates}
                assert whole(query, rows, costly) == expected, told
            elif way == 1:
                assert in_cuts(query, rows, options, source, restoring=False) == expected, told
            elif way == 2:
                assert in_cuts(query, rows, options, source, restoring=True) == expected, told
            else:
                late = sorted(rows, key=lambda row: end_of(row) + source.randint(0, 3))
                lax = options | {"lateness": 3}
                restoring = source.random() < 0.5
                assert in_cuts(query, late, lax, source, restoring=restoring) == expected, told


def test_what_ends_at_once_follows_in_the_order_of_its_stamps_whatever_its_key() -> None:
    """Composite successors of several keys, found together and not in the stable order."""
    query = cepheid.compile(
        "SELECT * FROM A x; (B y; C z) WHERE FILTER(x.k = y.k), FILTER(y.k = z.k), y.v <= z.v"
    )
    found = 0
    for seed in range(150):
        source = random.Random(seed)
        rows = [
            {"event": f"e{n}", "type": source.choice("ABBC"), "ts": n // 3}
            | {"k": source.randrange(3), "v": source.randrange(3)}
            for n in range(30)
        ]
        expected = by_definition(query, rows)
        found += sum(expected.values())
        assert whole(query, rows, {"cap": CAP, "id": "event"}) == expected, rows
    assert found > 150


def test_the_shapes_hold_every_operator() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = Counter(type(n) for q in QUERIES for n in walk(q.query.pattern))
    assert all(kinds[kind] >= SHAPES // 16 for kind in (Next, Plus, Union, Except, Timer))
