"""Chunks of live events: joined when they are small and many, with nothing lost of any row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cepheid.hosts.event_identity import event_lanes
from cepheid.hosts.store import MANY_CHUNKS, Chunk, View, tidy
from cepheid.model.options import make_options

ROWS = 3


def chunks_of(kinds: list[str]) -> list[Chunk]:
    """Small chunks with equal rows among them; `told` ones were numbered elsewhere."""
    found = []
    for number, kind in enumerate(kinds):
        base = ROWS * number
        times = np.full(ROWS, number // 4)
        columns = {"type": ["A"] * ROWS, "ts": times, "v": pa.array([1.5, None, 1.5])}
        batch = pa.record_batch(columns | ({"w": [1] * ROWS} if kind == "wide" else {}))
        lacks = {"v": np.array([False, True, False])} if kind == "lacking" else {}
        chunk = Chunk(base, batch, None, np.arange(base, base + ROWS) + 7, times, lacks)
        if kind == "told":
            chunk.twins = np.arange(ROWS) + 10 * number
        found.append(chunk)
    return found


@pytest.mark.parametrize(
    "kinds",
    [["own"], ["told"], ["own", "told"], ["own", "own", "told", "told", "told"], ["own", "wide"]],
    ids=" ".join,
)
def test_joined_chunks_are_the_same_events(kinds: list[str]) -> None:
    many = [kinds[n % len(kinds)] for n in range(2 * MANY_CHUNKS)]
    before, after = chunks_of(many), chunks_of(many)
    tidy(after)
    options = make_options({})
    one, other = View(before), View(after)
    assert [chunk.base for chunk in after] == np.cumsum(
        [0, *(len(chunk) for chunk in after[:-1])]
    ).tolist()
    assert other.table.equals(one.table.select(other.table.column_names))
    assert other.positions.tolist() == one.positions.tolist()
    assert event_lanes(other, options).tolist() == event_lanes(one, options).tolist()


def test_small_chunks_become_few_and_keep_what_rows_lack() -> None:
    chunks = chunks_of(["own", "lacking"] * MANY_CHUNKS)
    expected = np.concatenate([chunk.lacking("v") for chunk in chunks])
    tidy(chunks)
    assert len(chunks) <= 4
    assert np.concatenate([chunk.lacking("v") for chunk in chunks]).tolist() == expected.tolist()
