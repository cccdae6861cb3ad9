"""NumPy, DuckDB and Polars answer the benchmarks' query alike, also over ties and batch cuts."""

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest

from benchmarks.harness import Contender, WrongAnswerError, interleave
from benchmarks.micro.baselines import DuckdbBuckets, NumpySequence, PolarsBuckets, Rows
from benchmarks.micro.limits import memory_scan
from benchmarks.workload import Columns, arrow_events, columns

Matches = list[tuple[int, ...]]


def collected(blocks: Iterable[Rows]) -> Matches:
    """All matches of some blocks, in one order."""
    return sorted(
        tuple(int(row) for row in match) for block in blocks for match in zip(*block, strict=True)
    )


def numpy_matches(events: Columns, window: int, length: int, batch_rows: int) -> Matches:
    """The matches NumPy finds when fed in batches."""
    sequence = NumpySequence(window, length)

    def blocks() -> Iterator[Rows]:
        for batch in events.batches(batch_rows):
            yield from sequence.feed(batch)

    return collected(blocks())


def by_definition(events: Columns, window: int, length: int) -> Matches:
    """Every combination of rows tested against the definition (SASE, section 3)."""
    found = []
    for rows in combinations(np.flatnonzero(events.type < length).tolist(), length):
        times = [int(events.time[row]) for row in rows]
        if (
            [int(events.type[row]) for row in rows] == list(range(length))
            and len({int(events.key[row]) for row in rows}) == 1
            and all(earlier < later for earlier, later in pairwise(times))
            and times[-1] - times[0] < window
        ):
            found.append(rows)
    return sorted(found)


def random_events(seed: int, rows: int, types: int, domain: int, ticks: int) -> Columns:
    """Random events in time order; few ticks make many ties."""
    random = np.random.default_rng(seed)
    return Columns(
        type=random.integers(0, types, rows, dtype=np.int8),
        key=random.integers(-domain, domain, rows, dtype=np.int64),
        time=np.sort(random.integers(-ticks // 2, ticks, rows)).astype(np.int64),
    )


@pytest.mark.parametrize("window", [1, 2, 7, 30, 1000])
@pytest.mark.parametrize("ticks", [6, 60, 4000])
def test_all_baselines_follow_the_definition(window: int, ticks: int) -> None:
    events = random_events(window * 31 + ticks, rows=60, types=4, domain=2, ticks=ticks)
    right = by_definition(events, window, length=3)
    assert numpy_matches(events, window, 3, batch_rows=60) == right
    assert collected(DuckdbBuckets(events, window, 3).matches()) == right
    assert collected(PolarsBuckets(events, window, 3).matches()) == right


@pytest.mark.parametrize("domain", [1, 10, 1000])
@pytest.mark.parametrize("window", [40, 300, 5000])
def test_baselines_agree_on_the_workload(domain: int, window: int) -> None:
    events = columns(arrow_events(1_500, domain, seed=window + domain))
    duckdb, polars = DuckdbBuckets(events, window), PolarsBuckets(events, window)
    right = numpy_matches(events, window, 3, batch_rows=1_500)
    assert right or domain * 10 > window
    assert collected(duckdb.matches()) == right
    assert collected(polars.matches()) == right
    assert duckdb.count() == polars.count() == len(right)


@pytest.mark.parametrize("batch_rows", [1, 3, 17, 200])
@pytest.mark.parametrize("ticks", [15, 900])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_numpy_answer_does_not_depend_on_the_cut(batch_rows: int, ticks: int, length: int) -> None:
    events = random_events(batch_rows + ticks, rows=300, types=5, domain=3, ticks=ticks)
    whole = numpy_matches(events, 25, length, batch_rows=300)
    assert numpy_matches(events, 25, length, batch_rows) == whole
    assert collected(DuckdbBuckets(events, 25, length).matches()) == whole


def test_keys_too_wide_to_combine_with_time_are_ranked() -> None:
    events = random_events(5, rows=60, types=3, domain=1, ticks=50)
    apart = Columns(events.type, events.key * (1 << 61), events.time)
    right = by_definition(events, 20, length=3)
    assert right
    assert numpy_matches(apart, 20, 3, batch_rows=9) == right


def test_memory_scan_reads_every_row() -> None:
    events = columns(arrow_events(1_000, 10, batch_rows=300))
    parts = (events.type, events.key, events.time)
    assert memory_scan(events) == sum(int(column.sum(dtype=np.int64)) for column in parts)


def test_a_time_is_refused_when_the_answers_differ() -> None:
    contenders = [
        Contender("right", 10, lambda: lambda: 3),
        Contender("wrong", 10, lambda: lambda: 4),
    ]
    with pytest.raises(WrongAnswerError, match="wrong found 4 matches, right 3"):
        interleave(contenders, repeats=1, warmups=0)
    with pytest.raises(WrongAnswerError, match="3 matches, 5 expected"):
        interleave(contenders[:1], repeats=1, warmups=0, expected=5)


def test_contenders_take_turns() -> None:
    order: list[str] = []
    contenders = [
        Contender(name, 1, lambda name=name: lambda: order.append(name)) for name in ("a", "b")
    ]
    runs = interleave(contenders, repeats=2, warmups=1)
    assert order == ["a", "b"] * 3
    assert len(runs["a"].wall_seconds) == 2
