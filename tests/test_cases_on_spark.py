"""Every case on the Spark hosts, many in one job; the answers must be those of the definition."""

from __future__ import annotations

import json
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

import cepheid
from cepheid.testing import match_difference
from tests.cases.loading import NAME, Case, load_cases

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = load_cases()
CASES_PER_JOB = 30

_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_JSON = {"ignoreNullFields": "false", "timestampFormat": _TIME, "timestampNTZFormat": _TIME}

Found = dict[str, list[dict[str, Any]]]


def as_json(case: Case, matches: DataFrame) -> DataFrame:
    """Matches of all forms as rows of one form, so that many cases fit one job."""
    from pyspark.sql import functions as sf

    return matches.select(
        sf.lit(str(case)).alias("case"),
        sf.to_json(sf.struct("*"), _JSON).alias("match"),
    )


def from_json(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text)
    for side in ("start", "end"):
        if isinstance(row[side], str):
            row[side] = datetime.fromisoformat(row[side])
    return row


@pytest.fixture(scope="module")
def found_in_batch(spark: SparkSession) -> Found:
    found: Found = {str(case): [] for case in CASES}
    for first in range(0, len(CASES), CASES_PER_JOB):
        frames = [
            as_json(
                case,
                cepheid.detect(
                    spark.createDataFrame(case.table()),
                    cepheid.compile(case.text, case.language),
                    **({"id": NAME} | case.options),
                ),
            )
            for case in CASES[first : first + CASES_PER_JOB]
        ]
        for row in reduce(lambda one, other: one.unionAll(other), frames).collect():
            found[row["case"]].append(from_json(row["match"]))
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark_batch(case: Case, found_in_batch: Found) -> None:
    difference = match_difference(case.wide, found_in_batch[str(case)], NAME)
    assert not difference, f"the matches differ\n{difference}"
