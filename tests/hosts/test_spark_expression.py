"""Conditions as Spark columns: what reaches the file reader, what never raises, what does."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.algebra.expression import (
    FALSE,
    TRUE,
    Absent,
    And,
    Arithmetic,
    Attribute,
    Call,
    Compare,
    Expression,
    Literal,
    Negative,
    Not,
    Or,
    Previous,
    ScalarType,
)
from cepheid.model.errors import InternalError
from cepheid.model.undefined import ABSENT_FLOAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = {
    "n": ScalarType.INT,
    "small": ScalarType.INT,
    "f": ScalarType.FLOAT,
    "money": ScalarType.FLOAT,
    "s": ScalarType.STRING,
    "flag": ScalarType.BOOL,
    "time": ScalarType.TIMESTAMP,
}
N, SMALL, F, MONEY, S, FLAG, TIME = (Attribute("x", name) for name in TYPES)
SECOND = 1_000_000

ROWS = pa.table(
    {
        "row": pa.array(range(6)),
        "n": pa.array([1, 5, None, -(2**63), 2**63 - 1, -(2**63) + 2]),
        "small": pa.array([1, 5, None, -128, 127, 0], pa.int8()),
        "f": pa.array([-0.0, 0.0, None, math.nan, ABSENT_FLOAT, -math.inf], from_pandas=False),
        "money": pa.array([Decimal("0.50"), Decimal("1.25"), None, *map(Decimal, (2, 3, 4))]),
        "s": pa.array(["a", "É", None, "", "zz", "Z"]),
        "flag": pa.array([True, False, None, True, False, True]),
        "time": pa.array(
            [0, SECOND, None, -SECOND, 2 * SECOND, 3 * SECOND], pa.timestamp("us", tz="UTC")
        ),
    }
)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(ROWS, path)
    return spark.read.parquet(str(path))


def translated(
    frame: DataFrame,
    node: Expression,
    absent: Absent = Absent.FALSE,
    null_is_absent: bool = True,
    *,
    exact: bool = False,
) -> Any:
    from cepheid.hosts.spark_expression import to_column, to_filter

    translate = to_column if exact else to_filter
    return translate(
        node,
        lambda v, n: frame[n] if n in TYPES else None,
        lambda v, n: TYPES[n],
        absent,
        null_is_absent,
    )


def kept(frame: DataFrame, node: Expression, *options: Any) -> list[int]:
    """The rows that the filter keeps; `to_column` must say the same of each."""
    found = frame.filter(translated(frame, node, *options)).select("row").toArrow()
    answer = frame.select("row", translated(frame, node, *options, exact=True).alias("yes"))
    table = answer.toArrow().sort_by("row")
    assert table["yes"].null_count == 0
    rows: list[int] = sorted(found["row"].to_pylist())
    assert rows == [row for row, yes in enumerate(table["yes"].to_pylist()) if yes]
    return rows


def pushed(frame: DataFrame, condition: Any, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    frame.filter(condition).explain()
    plan = capsys.readouterr().out
    return plan.split("PushedFilters: [", 1)[1].split("], ReadSchema", 1)[0]


@pytest.mark.parametrize(
    ("node", "filters"),
    [
        (Compare("=", N, Literal(5)), "EqualTo(n,5)"),
        (Compare("<", Literal(5), N), "GreaterThan(n,5)"),
        (Compare("<=", N, Literal(5)), "LessThanOrEqual(n,5)"),
        (Compare(">", SMALL, Literal(5)), "GreaterThan(small,5)"),
        (Compare("!=", N, Literal(5)), "Not(EqualTo(n,5))"),
        (Compare(">=", F, Literal(5)), "GreaterThanOrEqual(f,5.0)"),
        (Compare("=", F, Literal(0)), "GreaterThanOrEqual(f,-0.0), LessThanOrEqual(f,0.0)"),
        (Compare("=", S, Literal("a")), "EqualTo(s,a)"),
        (Compare("<", S, Literal("a")), "LessThan(s,a)"),
        (Compare("=", FLAG, Literal(True)), "EqualTo(flag,true)"),
        (Compare(">", TIME, Literal(SECOND)), "GreaterThan(time,1970-01-01 00:00:01.0)"),
        (And((Compare("=", N, Literal(5)), Compare("<", F, N))), "EqualTo(n,5)"),
        (
            Or((Compare("=", N, Literal(5)), Compare("=", S, Literal("a")))),
            "Or(EqualTo(n,5),EqualTo(s,a))",
        ),
    ],
)
def test_comparisons_with_literals_reach_parquet(
    frame: DataFrame, node: Expression, filters: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filters in pushed(frame, translated(frame, node), capsys)


def test_null_as_absent_reaches_parquet_too(
    frame: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    condition = translated(frame, Compare("=", N, Literal(5)), Absent.TRUE)
    assert pushed(frame, condition, capsys) == "Or(IsNull(n),EqualTo(n,5))"


@pytest.mark.parametrize(
    ("node", "rows"),
    [
        (Compare("<", N, Literal(5)), [0, 5]),
        (Compare("<=", N, Literal(5)), [0, 1, 5]),
        (Compare("!=", N, Literal(5)), [0, 4, 5]),
        (Compare(">=", N, Literal(5)), [1, 4]),
        (Compare("<", SMALL, Literal(2**40)), [0, 1, 3, 4, 5]),
        (Compare("=", SMALL, Literal(2**40)), []),
        (Compare(">=", F, Literal(-0.0)), [0, 1]),
        (Compare("<", F, Literal(0)), [5]),
        (Compare("!=", F, Literal(1)), [0, 1, 5]),
        (Compare("<", F, Literal(math.inf)), [0, 1, 5]),
        (Compare("<=", F, Literal(ABSENT_FLOAT)), [5]),
        (Compare("=", F, Literal(ABSENT_FLOAT)), []),
        (Compare("=", F, Literal(math.nan)), []),
        (Compare(">", MONEY, Literal(1.25)), [3, 4, 5]),
        (Compare("=", MONEY, Literal(0.5)), [0]),
        (Compare(">", S, Literal("Z")), [0, 1, 4]),
        (Compare("=", Call("lower", (S,)), Literal("z")), [5]),
        (Compare("=", Call("length", (S,)), Literal(1)), [0, 1, 5]),
        (Call("starts_with", (S, Literal("z"))), [4]),
        (FLAG, [0, 3, 5]),
        (Not(FLAG), [1, 2, 4]),
        (Compare("<", TIME, Literal(SECOND)), [0, 3]),
        (Compare("=", Arithmetic("-", TIME, Literal(SECOND)), Literal(0)), [1]),
        (Compare("=", N, Literal(2**63)), []),
        (Not(Compare("=", N, S)), [0, 1, 2, 3, 4, 5]),
        (TRUE, [0, 1, 2, 3, 4, 5]),
        (FALSE, []),
    ],
)
def test_filter_and_column_keep_the_same_rows(
    frame: DataFrame, node: Expression, rows: list[int]
) -> None:
    assert kept(frame, node, Absent.FALSE, False) == rows


@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("op", ["=", "<=", ">=", "<", ">", "!="])
def test_file_statistics_never_part_the_two_zeros(
    spark: SparkSession, tmp_path: Path, zero: float, stored: float, op: str
) -> None:
    # Spark's own writer: its dictionary page holds the one zero that is there, sign and all.
    path = str(tmp_path / "zeros.parquet")
    spark.createDataFrame(pa.table({"f": pa.array([stored] * 5)})).coalesce(1).write.parquet(path)
    zeros = spark.read.parquet(path)
    condition = translated(zeros, Compare(op, F, Literal(zero)))
    assert zeros.filter(condition).count() == (5 if op in ("=", "<=", ">=") else 0)


@pytest.mark.parametrize(
    "value",
    [
        Arithmetic("+", N, N),
        Arithmetic("*", N, N),
        Arithmetic("-", N, Literal(2**62)),
        Arithmetic("/", N, Literal(0)),
        Arithmetic("/", F, F),
        Negative(N),
        Call("abs", (N,)),
        Call("sqrt", (N,)),
        Call("sqrt", (F,)),
    ],
)
def test_ansi_mode_raises_nothing(frame: DataFrame, value: Expression) -> None:
    assert frame.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    node = Or((Compare("=", value, value), Compare("!=", value, value)))
    assert set(kept(frame, node)) < set(range(6))


def test_nested_choices_stay_small(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    node: Expression = F
    for _ in range(6):
        node = Call("least", (Arithmetic("+", Call("greatest", (node, N)), N), F))
    assert kept(frame, Compare("<", node, Literal(1.0))) == [0, 1, 5]
    capsys.readouterr()
    frame.filter(translated(frame, Compare("<", node, Literal(1.0)))).explain()
    assert len(capsys.readouterr().out) < 200_000


def test_an_attribute_no_event_has_follows_the_rule(frame: DataFrame) -> None:
    node = Compare("=", Attribute("x", "colour"), Literal("red"))
    assert kept(frame, node, Absent.TRUE) == [0, 1, 2, 3, 4, 5]
    assert kept(frame, node, Absent.FALSE) == []
    assert kept(frame, Not(node), Absent.FALSE) == [0, 1, 2, 3, 4, 5]


def test_an_absent_attribute_can_fail_the_query_by_name(frame: DataFrame) -> None:
    from pyspark.errors import PySparkException

    condition = translated(frame, Compare(">", N, Literal(1)), Absent.ERROR)
    with pytest.raises(PySparkException, match=r"absent-attribute: .*`x` has no attribute `n`"):
        frame.filter(condition).count()
    whole = frame.filter("n is not null")
    assert whole.filter(condition).count() == 2
    assert kept(frame, Compare(">", N, Literal(1)), Absent.ERROR, False) == [1, 4]


def test_what_planning_should_have_replaced_is_our_error(frame: DataFrame) -> None:
    with pytest.raises(InternalError, match="unresolved-expression"):
        translated(frame, Compare("=", N, Previous("x", "n")))


_ON_CONNECT = """
from tests.laws.test_expression_agreement import test_spark_columns_agree_with_the_oracle
from tests.spark_connect import connect_session
spark = connect_session("local[1]")
assert "connect" in type(spark).__module__
test_spark_columns_agree_with_the_oracle(spark, True)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_the_same_columns_on_spark_connect() -> None:
    """A process of its own: one Python holds either a classic session or a remote one."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", _ON_CONNECT]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
