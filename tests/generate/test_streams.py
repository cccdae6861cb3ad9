"""The event generator: same seed same rows, the shape that the parameters ask for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from cepheid.generate import StreamParameters, generate_batches, generate_stream
from cepheid.generate.streams import BLOCK_ROWS
from cepheid.generate.zipf import draw_ranks, zipf_probabilities
from cepheid.model.errors import OptionError

TANGLED = StreamParameters(
    events=2 * BLOCK_ROWS + 1000,
    types=7,
    attributes=2,
    domain_sizes=(10, 1000),
    type_theta=0.7,
    gaps="exponential",
    time_step=4,
    tie_fraction=0.1,
    null_fraction=0.05,
    disorder=50,
    seed=3,
)


def times(stream: pa.Table) -> np.ndarray:
    return stream["ts"].to_numpy()


def test_seed_decides_the_rows():
    parameters = StreamParameters(events=1000, seed=1)
    assert generate_stream(parameters) == generate_stream(parameters)
    assert generate_stream(parameters) != generate_stream(StreamParameters(events=1000, seed=2))


@pytest.mark.parametrize("rows_per_batch", [1000, 99_999, BLOCK_ROWS, 10 * BLOCK_ROWS])
def test_rows_do_not_depend_on_the_batch_size(rows_per_batch):
    batches = list(generate_batches(TANGLED, rows_per_batch))
    assert {batch.num_rows for batch in batches[:-1]} <= {rows_per_batch}
    assert 0 < batches[-1].num_rows <= rows_per_batch
    assert pa.Table.from_batches(batches).equals(generate_stream(TANGLED))


def test_a_longer_stream_begins_with_the_shorter_one():
    short = generate_stream(StreamParameters(events=BLOCK_ROWS + 10, types=5, type_theta=1))
    long = generate_stream(StreamParameters(events=2 * BLOCK_ROWS, types=5, type_theta=1))
    assert long.slice(0, short.num_rows).equals(short)


def test_blocks_differ_from_each_other():
    values = generate_stream(StreamParameters(events=2 * BLOCK_ROWS))["attr1"].to_numpy()
    assert not np.array_equal(values[:BLOCK_ROWS], values[BLOCK_ROWS:])


def test_columns_and_names():
    parameters = StreamParameters(events=5000, types=3, attributes=2, domain_sizes=(4, 1))
    stream = generate_stream(parameters)
    assert stream.column_names == ["type", "ts", "attr1", "attr2"]
    assert stream.schema.field("type").type == pa.dictionary(pa.int8(), pa.string())
    assert set(stream["type"].to_pylist()) == {"E1", "E2", "E3"}
    assert set(stream["attr1"].to_pylist()) == {1, 2, 3, 4}
    assert set(stream["attr2"].to_pylist()) == {1}
    assert stream["ts"].to_pylist() == list(range(5000))


def test_many_types_have_wider_codes():
    stream = generate_stream(StreamParameters(events=20_000, types=300))
    assert stream.schema.field("type").type == pa.dictionary(pa.int16(), pa.string())
    assert set(stream["type"].to_pylist()) == {f"E{number}" for number in range(1, 301)}


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0, 2.0])
def test_ranks_follow_zipf(theta):
    size, count = 20, 200_000
    ranks = draw_ranks(np.random.default_rng(5), size, theta, count)
    seen = np.bincount(ranks, minlength=size + 1)[1:]
    expected = zipf_probabilities(size, theta) * count
    chi_square = float(((seen - expected) ** 2 / expected).sum())
    # 19 degrees of freedom: a true Zipf sample exceeds 43.8 once in a thousand seeds.
    assert chi_square < 43.8
    assert seen.sum() == count


def test_types_and_values_are_drawn_by_their_own_theta():
    parameters = StreamParameters(events=100_000, types=10, type_theta=1.0, value_theta=0.0)
    stream = generate_stream(parameters)
    codes = stream["type"].combine_chunks().indices.to_numpy()
    shares = np.bincount(codes, minlength=10) / len(codes)
    assert np.abs(shares - zipf_probabilities(10, 1.0)).max() < 0.01
    values = np.bincount(stream["attr1"].to_numpy())[1:] / len(codes)
    assert np.abs(values - 0.01).max() < 0.002


def test_exponential_gaps_have_the_mean_and_no_ties():
    parameters = StreamParameters(events=200_000, gaps="exponential", time_step=5)
    gaps = np.diff(times(generate_stream(parameters)))
    assert gaps.min() >= 1
    assert abs(gaps.mean() - 5) < 0.05
    # The deviation of a geometric distribution with mean m is sqrt(m * (m - 1)).
    assert abs(gaps.std() - np.sqrt(20)) < 0.1


def test_tie_fraction():
    parameters = StreamParameters(events=50_000, tie_fraction=0.2)
    gaps = np.diff(times(generate_stream(parameters)))
    assert abs((gaps == 0).mean() - 0.2) < 0.01
    assert set(gaps.tolist()) == {0, 1}


def test_null_fraction_spares_type_and_time():
    stream = generate_stream(StreamParameters(events=50_000, null_fraction=0.1))
    assert stream["type"].null_count == stream["ts"].null_count == 0
    for name in ("attr1", "attr5"):
        assert abs(stream[name].null_count / 50_000 - 0.1) < 0.01


def test_nulls_leave_the_other_values_alone():
    full = generate_stream(StreamParameters(events=100))["attr1"].to_pylist()
    holed = generate_stream(StreamParameters(events=100, null_fraction=0.5))["attr1"].to_pylist()
    assert all(b is None or a == b for a, b in zip(full, holed, strict=True))
    assert None in holed


def test_disorder_displaces_by_no_more_than_allowed():
    shape = {"events": BLOCK_ROWS + 5000, "attributes": 1, "time_step": 3}
    ordered = generate_stream(StreamParameters(**shape))
    arrived = generate_stream(StreamParameters(**shape, disorder=40))
    lateness = np.maximum.accumulate(times(arrived)) - times(arrived)
    assert 30 < lateness.max() <= 40
    assert arrived.sort_by("ts").equals(ordered)
    # Also across the border between two blocks, where nothing may be held back or repeated.
    border = lateness[BLOCK_ROWS - 100 : BLOCK_ROWS + 100]
    assert border.max() > 0


def test_no_events():
    assert generate_stream(StreamParameters(events=0, disorder=5)).num_rows == 0
    assert list(generate_batches(StreamParameters(events=0))) == []


def test_disorder_larger_than_a_block():
    parameters = StreamParameters(events=2 * BLOCK_ROWS, attributes=0, disorder=3 * BLOCK_ROWS)
    stream = generate_stream(parameters)
    assert sorted(times(stream).tolist()) == list(range(2 * BLOCK_ROWS))
    assert any(later < earlier for earlier, later in pairwise(times(stream)[:100].tolist()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"events": -1},
        {"types": 0},
        {"types": 40_000},
        {"attributes": 2, "domain_sizes": (5,)},
        {"domain_sizes": 0},
        {"type_theta": -0.5},
        {"tie_fraction": 1.5},
        {"gaps": "uniform"},
        {"time_step": 0},
        {"disorder": -1},
    ],
)
def test_impossible_parameters_are_refused_by_name(wrong):
    with pytest.raises(OptionError) as caught:
        StreamParameters(**wrong)
    assert caught.value.code == "bad-generator-parameter"
    assert f"`{list(wrong)[-1]}`" in caught.value.message
