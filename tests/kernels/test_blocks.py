"""Events dealt out to states in blocks find what events taken one by one find, however full."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.kernels import stacks

QUERIES = (
    "EVENT SEQ(A x, B y, C z) WHERE [k] WITHIN 40",
    "EVENT SEQ(A x, A y, B z) WHERE [k] WITHIN 12",
    "EVENT SEQ(A x, B y) WHERE [k] AND x.v < y.v WITHIN 60",
    "EVENT SEQ(A x, B y, C z) WHERE x.v = 1 AND z.v = 2 WITHIN 9",
    "EVENT SEQ(A x, ANY(B, C) y, B z, C w) WHERE [k] WITHIN 25",
)


def events(seed: int, rows: int = 3_000) -> list[pa.RecordBatch]:
    """Four types, keys of which one is in every third event, and ties."""
    r = np.random.default_rng(seed)
    keys = np.where(r.random(rows) < 0.3, 0, r.integers(0, 40, rows))
    table = pa.table(
        {
            "type": pa.array(r.choice(list("ABCD"), rows)).dictionary_encode(),
            "ts": np.cumsum(r.integers(0, 2, rows)),
            "k": keys,
            "v": r.integers(0, 4, rows),
        }
    )
    return table.to_batches(max_chunksize=700)


def found(query: str, batches: list[pa.RecordBatch], **options: object) -> set[tuple[int, ...]]:
    """The matches as arrival numbers, none of them twice."""
    detector = cepheid.Detector(query, **options)
    rows = [tuple(row) for batch in batches for row in detector.feed(batch).ids.tolist()]
    assert len(rows) == len(set(rows))
    return set(rows)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("output", "ring", "smallest"), [(1 << 15, 1024, 16), (8, 2, 1)])
def test_blocks_find_what_an_automaton_finds(
    query: str, output: int, ring: int, smallest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(stacks.Stacks.__init__.__kwdefaults__, "output_rows", output)
    monkeypatch.setattr(stacks, "_FIRST_RING", ring)
    monkeypatch.setattr(stacks, "_SMALLEST_BLOCK", smallest)
    batches = events(len(query))
    expected = found(query, batches, plan={"scan": "nfa"})
    assert len(expected) > 200
    assert found(query, batches) == expected
