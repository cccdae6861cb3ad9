"""Matches called by arrival numbers or by ordinals, as references or as a table: the same ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.matches import Matches
from cepheid.hosts.sequence_engine import SequenceEngine
from cepheid.kernels.expand import expand_groups
from cepheid.model.options import make_options
from cepheid.planner.prepare import prepare

QUERY = "EVENT SEQ(A x, B y, C z) WHERE [k] WITHIN 60"


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("groups", [1, 2, 40])
@pytest.mark.parametrize("most", [1, 7, 8, 9, 30])
def test_groups_become_rows(width: int, groups: int, most: int) -> None:
    """Whatever lies beside the rows is left alone: eight are written where there is room."""
    r = np.random.default_rng(100 * width + groups + most)
    listed = r.integers(0, 1000, most + int(r.integers(0, 12)))
    count = r.integers(1, most + 1, groups)
    start = r.integers(0, len(listed) - count + 1)
    later = r.integers(0, 1000, (width, groups))
    expected = [
        [first, *later[:, group]]
        for group in range(groups)
        for first in listed[start[group] : start[group] + count[group]]
    ]
    around = np.full((len(expected) + 40, width + 1), -1)
    out = around[20:-20]
    assert expand_groups(later, start, count, listed, out) == len(expected)
    assert out.tolist() == expected
    assert (around[:20] == -1).all()
    assert (around[-20:] == -1).all()


def events(relevant: float, rows: int = 4_000) -> pa.Table:
    """Ties, six keys, and as many events of the query's types as wanted."""
    r = np.random.default_rng(int(100 * relevant))
    types = np.where(r.random(rows) < relevant, r.choice(list("ABC"), rows), "D")
    return pa.table(
        {
            "type": pa.array(types).dictionary_encode(),
            "ts": np.cumsum(r.integers(0, 2, rows)),
            "k": r.integers(0, 6, rows),
            "number": np.arange(rows),
        }
    )


def numbers_in(table: pa.Table) -> list[tuple[int, ...]]:
    columns = (table[variable].combine_chunks().field("number").to_pylist() for variable in "xyz")
    return sorted(zip(*columns, strict=True))


def numbers_of(matches: Matches) -> list[tuple[int, ...]]:
    return sorted(map(tuple, matches.ids.tolist()))


def found(parts: list[Matches]) -> list[tuple[int, ...]]:
    """The matches in all forms there are; taking one changes no other."""
    for matches in parts:
        rows = numbers_in(matches.table())  # of some first, of others last
        assert numbers_of(matches) == rows
    return sorted(row for matches in parts for row in numbers_of(matches))


@pytest.mark.parametrize("relevant", [0.9, 0.05])
@pytest.mark.parametrize("cut", [4_000, 700, 97])
def test_references_and_tables_tell_the_same(relevant: float, cut: int) -> None:
    table = events(relevant)
    expected = numbers_of(cepheid.Detector(QUERY, plan={"scan": "nfa"}).feed(table))
    assert len(expected) > 50 or relevant < 0.5
    detector = cepheid.Detector(QUERY)
    parts = [detector.feed(batch) for batch in table.to_batches(max_chunksize=cut)]
    assert sorted(row for part in parts for row in numbers_of(part)) == expected
    assert found(parts) == expected
    detector = cepheid.Detector(QUERY, id="number")
    parts = [detector.feed(batch) for batch in table.to_batches(max_chunksize=cut)]
    assert found(parts) == expected
    detector = cepheid.Detector(QUERY)
    parts = [detector.feed(batch) for batch in table.to_batches(max_chunksize=cut)]
    portions = [numbers_in(some) for part in parts for some in part.tables(50)]
    assert sorted(row for portion in portions for row in portion) == expected


def test_numbers_go_on_after_a_restart() -> None:
    table = events(0.9)
    expected = numbers_of(cepheid.Detector(QUERY).feed(table))
    first = cepheid.Detector(QUERY)
    parts = [first.feed(table.slice(0, 1_900))]
    second = cepheid.Detector.restore(QUERY, first.snapshot())
    parts += [second.feed(table.slice(1_900, 100)), second.feed(table.slice(2_000))]
    assert found(parts) == expected


def engine() -> SequenceEngine:
    options = make_options({})
    (stage,) = cepheid.compile(QUERY).stages(options)
    return SequenceEngine(prepare(stage, options, events(1).schema))


@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize("as_array", [True, False])
def test_events_whose_numbers_come_again_are_still_told_apart(turn: int, as_array: bool) -> None:
    """Rows that another source has numbered need not rise: ordinals tell events apart."""
    batches = events(0.9).to_batches(max_chunksize=1_000)
    expected = engine()
    tables = [expected.feed(EventBatch(batch)).table() for batch in batches]
    right = sorted(row for table in tables for row in numbers_in(table))
    other = engine()
    rows = []
    for number, batch in enumerate(batches):
        first = 0 if number > turn else 1_000 * number  # numbers that were there before
        arrived = np.arange(first, first + 1_000)
        if as_array and number == turn:
            arrived = arrived[::-1].copy()
        fed = other.feed(EventBatch(batch, arrived=arrived if as_array else first))
        rows += numbers_in(fed.table())
    assert sorted(rows) == right
