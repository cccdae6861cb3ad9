"""Collected statistics: exact on small streams, close on large ones, whatever the batches."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from cepheid.generate import StreamParameters, generate_stream
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.statistics.collect import StatisticsCollector
from cepheid.statistics.event_statistics import EventStatistics


def collected(table: pa.Table, rows: int = 1000, **options: str) -> EventStatistics:
    collector = StatisticsCollector(Options(**options))
    for batch in table.to_batches(max_chunksize=rows):
        collector.add(batch)
    return collector.finish()


SMALL = pa.table(
    {
        "type": ["A", "B", "A", "A", "B"],
        "ts": [0, 4, 10, 30, 40],
        "price": [1.5, None, 2.5, 1.5, None],
        "shelf": ["s1", "s2", "s1", "s1", None],
    }
)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_small_stream_is_exact_at_every_cut(rows):
    found = collected(SMALL, rows)
    assert (found.time_unit, found.first, found.last, found.events) == ("tick", 0, 40, 5)
    a = found.types["A"]
    assert (a.count, a.rate) == (3, 3 / 40)
    assert a.gaps is not None
    assert (a.gaps.mean, a.gaps.least, a.gaps.greatest) == (15.0, 10, 20)
    price = a.attributes["price"]
    assert (price.type, price.distinct, price.is_exact) == ("float", 2, True)
    assert (price.least, price.greatest, price.null_fraction) == (1.5, 2.5, 0.0)
    assert price.frequent == ((1.5, 2 / 3),)
    b = found.types["B"]
    assert "price" not in b.attributes, "all null: not an attribute of B"
    assert b.attributes["shelf"].null_fraction == 0.5


def test_timestamps_are_microseconds_whatever_their_unit():
    table = pa.table(
        {
            "type": ["A", "A"],
            "ts": pa.array([datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 2)]).cast(
                pa.timestamp("s")
            ),
        }
    )
    found = collected(table)
    assert found.time_unit == "us"
    assert found.span == 2_000_000
    assert found.types["A"].gaps is not None
    assert found.types["A"].gaps.mean == 2_000_000


def test_disorder_is_the_lateness_that_loses_nothing():
    times = [0, 10, 5, 20, 3, 30]
    table = pa.table({"type": ["A"] * 6, "ts": times})
    for rows in (1, 2, 3, 6):
        assert collected(table, rows).disorder == 17


def test_rows_without_type_or_time_are_counted_apart():
    table = pa.table({"type": ["A", None, "B", "A"], "ts": [1, 2, None, 4]})
    found = collected(table)
    assert (found.events, found.unusable) == (2, 2)
    assert set(found.types) == {"A"}


def test_large_stream_is_estimated_closely():
    parameters = StreamParameters(
        events=60_000, types=3, attributes=2, domain_sizes=(20, 50_000), value_theta=0.0, seed=4
    )
    stream = generate_stream(parameters)
    found = collected(stream, 7_000)
    wide = pa.table({"attr2": stream["attr2"], "type": stream["type"].cast(pa.string())})
    for name, each in found.types.items():
        mine = wide.filter(pa.compute.equal(wide["type"], name))["attr2"]
        exact = len(mine.unique())
        assert each.attributes["attr1"].distinct == 20
        assert each.attributes["attr2"].distinct == pytest.approx(exact, rel=0.08)
        assert each.rate == pytest.approx(1 / 3, rel=0.05)
        assert each.gaps is not None
        assert each.gaps.mean == pytest.approx(3, rel=0.05)
        times = stream.filter(pa.compute.equal(stream["type"].cast(pa.string()), name))["ts"]
        gaps = np.diff(times.to_numpy())
        assert each.gaps.p90 == pytest.approx(np.quantile(gaps, 0.9), rel=0.07)


def test_frequent_values_of_a_skewed_attribute():
    parameters = StreamParameters(
        events=30_000, types=1, attributes=1, domain_sizes=5_000, value_theta=1.0, seed=1
    )
    stream = generate_stream(parameters)
    found = collected(stream, 5_000).types["E1"].attributes["attr1"]
    counts = stream["attr1"].to_pandas().value_counts(normalize=True)
    assert [value for value, _ in found.frequent[:3]] == [1, 2, 3]
    assert found.frequent[0][1] == pytest.approx(counts[1], rel=0.01)


@pytest.mark.parametrize(
    ("options", "code", "helps"),
    [
        ({"type": "typ"}, "unknown-column", "type"),
        ({"time": "shelf"}, "bad-time-column", "integer ticks"),
    ],
)
def test_wrong_columns_are_named(options, code, helps):
    with pytest.raises(DataError) as caught:
        collected(SMALL, **options)
    assert caught.value.code == code
    assert helps in (caught.value.help or "")


def test_all_kinds_of_columns_are_taken():
    table = pa.table(
        {
            "type": pa.array(["A", "A", "A"]).dictionary_encode(),
            "ts": [1, 2, 3],
            "flag": [True, False, True],
            "name": pa.array(["x", "y", "x"]).dictionary_encode(),
            "seen": pa.array([1, 2, None], pa.timestamp("ms")),
            "nan": [float("nan"), float("nan"), 1.0],
            "nested": [[1], [2], [3]],
        }
    )
    attributes = collected(table).types["A"].attributes
    assert attributes["flag"].frequent[0] == (True, 2 / 3)
    assert attributes["name"].distinct == 2
    assert attributes["seen"].greatest == 2000
    assert attributes["nan"].null_fraction == pytest.approx(2 / 3)
    assert "nested" not in attributes
