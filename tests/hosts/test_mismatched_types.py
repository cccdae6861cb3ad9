"""NEXT's conditions on values of types that do not fit: false, and told (SPEC A1.3)."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import cepheid

ROWS = [
    {"type": "A", "ts": 1, "v": 5, "s": "x"},
    {"type": "B", "ts": 2, "v": 6, "s": "y"},
    {"type": "A", "ts": 3, "v": 7, "s": "x"},
]


@pytest.mark.parametrize(
    ("pattern", "condition", "expected"),
    [
        ("A a", "a.v CONTAINS '5'", 0),
        ("A a", "NOT a.v CONTAINS '5'", 2),
        ("A a", "a.s > 3 OR a.v = 5", 1),
        ("A a", "NOT a.s + 1 > 0", 2),
        ("A a; B b", "FILTER(a.s = b.v)", 0),
        ("A a; B b", "NOT a.s = b.v", 1),
        ("A a+", "PREV(a.s) < a.v", 2),  # without a previous one it is no test
        ("A a+", "NOT ALL(a.s) > 1", 0),
    ],
)
def test_it_is_false_and_its_negation_true(pattern: str, condition: str, expected: int) -> None:
    text = f"SELECT * FROM {pattern} WHERE {condition}"
    with pytest.warns(cepheid.MismatchWarning, match="never true") as told:
        assert cepheid.detect(ROWS, text).num_rows == expected
    assert len(told) == 1


def test_types_that_come_later() -> None:
    detector = cepheid.Detector("SELECT * FROM A a; B b WHERE NOT b.v CONTAINS '5'")
    found = len(detector.feed([{"type": "A", "ts": 1}]))
    found += len(detector.feed([{"type": "B", "ts": 2, "v": 55}]))
    assert found + len(detector.close()) == 1


def test_sase_refuses_them() -> None:
    with pytest.raises(cepheid.QueryError, match="type-mismatch"):
        cepheid.detect(ROWS, "EVENT A a WHERE a.v = 'x'")


@pytest.mark.spark
def test_on_spark_it_is_the_same(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [tuple(row.values()) for row in ROWS], "type string, ts long, v long, s string"
    )
    text = """
        SELECT * FROM A a; B b
        WHERE FILTER(NOT a.s = b.v), NOT b.v CONTAINS '6', (a, b) OCCURS WITHIN 5
    """
    with pytest.warns(cepheid.MismatchWarning):
        assert cepheid.detect(frame, text).count() == 1
