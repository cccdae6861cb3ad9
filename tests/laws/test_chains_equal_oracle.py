"""Plain chains on their own kernel find what the definitions and the kernel of operators find.

Against the definitions each chain runs over small streams with ties, nulls and missing attributes,
whole, in cuts, out of order within the lateness and through snapshots. Against the other kernel it
runs over longer ones, and every call must deliver the same. CEPHEID_CHAINS asks for more of them.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts import chain_engine, succession_engine
from cepheid.hosts.chain_engine import ChainEngine
from cepheid.hosts.in_process import Detector
from cepheid.hosts.matches import Matches
from cepheid.hosts.succession_engine import SuccessionEngine
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery
from tests.laws.chain_queries import RandomChain
from tests.laws.succession_runs import by_definition, end_of, in_cuts, portions, stream, whole

CHAINS = int(os.environ.get("CEPHEID_CHAINS", "64"))
STREAMS = 12
OPERATORS = {"plan": {"chains": False}}
_PER_TEST = 8


def chains(first: int, count: int) -> list[CompiledQuery]:
    return [cepheid.compile(RandomChain(seed).text, "next") for seed in range(first, first + count)]


@pytest.mark.parametrize("first", portions(CHAINS, _PER_TEST))
def test_every_way_to_run_a_chain_gives_the_oracles_answer(first: int) -> None:
    for number, query in enumerate(chains(first, _PER_TEST), first):
        for seed in range(STREAMS):
            source = random.Random(1_000 * number + seed)
            rows = stream(source, intervals=False, most=18)
            options: dict[str, Any] = {"id": "event"}
            expected = by_definition(query, rows)
            told = f"{query.source.text}\n{rows}"
            assert whole(query, rows, options) == expected, told
            assert in_cuts(query, rows, options, source, restoring=seed % 2 == 0) == expected, told
            late = sorted(rows, key=lambda row: end_of(row) + source.randint(0, 3))
            lax = options | {"lateness": 3}
            assert in_cuts(query, late, lax, source, restoring=seed % 2 == 1) == expected, told


def test_the_chains_run_on_their_kernel() -> None:
    rows = stream(random.Random(5), intervals=False, most=18)
    for query in chains(0, CHAINS):
        detector = Detector(query)
        detector.feed(rows)
        assert isinstance(detector.engines[0], ChainEngine), query.source.text


# -- against the kernel of operators ---------------------------------------------------------------


def batches(source: random.Random, *, lateness: int) -> list[pa.RecordBatch]:
    """A longer stream, with ties, as Arrow; some have keys that are null, some come too late."""
    size = source.choice((40, 150, 600))
    keys, spread = source.choice(((1, 1), (4, 1), (4, 10**6), (60, 1))), source.choice((1, 2, 6))
    times = [number // spread for number in range(size)]
    disorder = lateness + source.choice((0, 0, 2))
    times.sort(key=lambda time: time + source.randint(0, disorder))
    nulls = source.choice((0.0, 0.0, 0.05))
    table = pa.table(
        {
            "event": pa.array(range(size)),
            "type": pa.array(source.choices("ABCD", k=size)).dictionary_encode(),
            "ts": pa.array(times, pa.int64()),
            "k": pa.array(
                [
                    None if source.random() < nulls else source.randrange(keys[0]) * keys[1]
                    for _ in range(size)
                ],
                pa.int64(),
            ),
            "v": pa.array([source.randint(0, 3) for _ in range(size)]),
            "f": pa.array([source.choice((0.5, 1.0, 2.5)) for _ in range(size)]),
            "s": pa.array(source.choices(("a", "b", "ab"), k=size)),
        }
    )
    found = []
    at = 0
    while at < size:
        rows = source.choice((1, 5, 20, 60))
        found += table.slice(at, rows).combine_chunks().to_batches()
        at += rows
    return found


def called(detector: Detector, matches: Matches) -> tuple[Counter[str], int | None, int, int]:
    """What a call showed to its host."""
    ids = Counter(row["match_id"] for row in matches.table().select(["match_id"]).to_pylist())
    engine = detector.engines[0]
    return ids, engine.next_deadline(), engine.watermark, detector.late.count


def instances(detector: Detector) -> int:
    engine = detector.engines[0]
    assert isinstance(engine, ChainEngine | SuccessionEngine)
    if isinstance(engine, SuccessionEngine):  # there they are let go when they are looked at
        engine._succession.upkeep(engine._events(), engine._processed_to)
    return engine.instances


@pytest.mark.parametrize("first", portions(CHAINS // 2, _PER_TEST))
@pytest.mark.parametrize("eager", [False, True])
def test_every_call_delivers_what_the_operators_deliver(
    first: int, eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if eager:  # tidy and compact at every chance
        for module in (chain_engine, succession_engine):
            monkeypatch.setattr(module, "_WORTH_COMPACTING", 4)
            monkeypatch.setattr(module, "_SPARE_ROWS", 2)
    as_they_are = 0
    for number, query in enumerate(chains(first, _PER_TEST), first):
        for seed in range(2):
            source = random.Random(1_000 * number + seed)
            options: dict[str, Any] = {"id": "event", "lateness": source.choice((0, 0, 4))}
            ours = Detector(query, **options)
            theirs = Detector(query, **options, **OPERATORS)
            for batch in batches(source, lateness=options["lateness"]):
                told = f"{query.source.text} {seed}"
                assert called(ours, ours.feed(batch)) == called(theirs, theirs.feed(batch)), told
                assert instances(ours) <= instances(theirs), told
                # When both compact at every chance, they find it worth it at different times.
                assert eager or ours.live_events <= theirs.live_events, told
                engine = ours.engines[0]
                assert isinstance(engine, ChainEngine)
                as_they_are += engine.rows_as_they_are
                if source.random() < 0.1:
                    time = ours.watermark + source.randint(0, 3)
                    assert called(ours, ours.advance(time)) == called(theirs, theirs.advance(time))
                if source.random() < 0.1:  # the state of one is the state of the other
                    mine, other = ours.snapshot(), theirs.snapshot()
                    ours = Detector.restore(query, other, **options)
                    theirs = Detector.restore(query, mine, **options, **OPERATORS)
            assert called(ours, ours.close()) == called(theirs, theirs.close())
    assert as_they_are > 0


def test_only_some_events_may_start() -> None:
    """As hosts that divide the work by time ask for."""
    found = 0
    for number, query in enumerate(chains(0, CHAINS // 4)):
        source = random.Random(number)
        rows = batches(source, lateness=0)
        begin = source.randint(0, 60)
        parts = []
        for chosen in ({}, OPERATORS):
            options = make_options({"id": "event"} | chosen)
            detector = Detector.for_host(query, options, first_events=(begin, begin + 40))
            matches = [*(detector.feed(batch) for batch in rows), detector.close()]
            told = [row for part in matches for row in part.table().to_pylist()]
            assert all(begin <= row["start"] < begin + 40 for row in told)
            parts.append(Counter(row["match_id"] for row in told))
        assert parts[0] == parts[1], query.source.text
        found += len(parts[0])
    assert found > 50


def test_many_wait_and_many_leave_at_once() -> None:
    """More than the ring and the output hold at first: both grow while an event is served."""
    text = "SELECT * FROM A x; B y; C z WHERE FILTER(x.k = y.k), FILTER(y.k = z.k)"
    types = ["A"] * 5_000 + ["B"] * 3 + ["C"] * 2
    times = [*range(5_000), *[6_000] * 3, *[7_000] * 2]
    table = pa.table({"type": types, "ts": times, "k": [7] * len(types)})
    detector = Detector(text)
    found = sum(len(detector.feed(batch)) for batch in table.to_batches(max_chunksize=999))
    assert found + len(detector.close()) == 5_000 * 3 * 2
    assert len(cepheid.detect(table, text, **OPERATORS)) == 5_000 * 3 * 2
