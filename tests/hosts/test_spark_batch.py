"""The batch host finds on Spark what `detect` finds in process, row for row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import cepheid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def random_events(rows: int, seed: int = 1) -> pa.Table:
    r = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(r.choice(list("ABCD"), rows)),
            "ts": pa.array(r.integers(0, rows // 2, rows)),
            "id": pa.array(r.integers(0, 9, rows)),
            "v": pa.array(r.integers(0, 9, rows).astype(np.int32)),
        }
    )


def assert_same_matches(spark: SparkSession, events: pa.Table, query: str, **options: Any) -> int:
    here = cepheid.detect(events, query, **options).to_pylist()
    there = cepheid.detect(spark.createDataFrame(events), query, **options).toArrow().to_pylist()
    assert sorted(there, key=lambda m: m["match_id"]) == sorted(here, key=lambda m: m["match_id"])
    return len(here)


def test_a_keyed_query_with_a_negation(spark: SparkSession) -> None:
    query = "EVENT SEQ(A x, !(B n), C y) WHERE [id] AND x.v > 2 WITHIN 30"
    assert assert_same_matches(spark, random_events(400), query) > 10
