"""Registered sources: their records become events on every road into the process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.model.errors import DataError, QueryError, StateError
from cepheid.testing import match_difference
from tests.cases.loading import NAME, load_cases

FRAUDS = """register source t schema (acc string, amount float)
    from (`account no` AS acc, value AS amount)
    time booked_at
QUERY frauds
SELECT T1.acc, T2.amount FROM t T1; t T2
WHERE FILTER(T1.acc = T2.acc), T2.amount > 100 * T1.amount"""

RECORDS = pa.table(
    {
        "account no": ["a", "b", "a", "b"],
        "value": [1, 2, 500, 3],
        "booked_at": [1, 2, 3, 4],
        "remark": ["x", "x", "x", "x"],
    }
)
FOUND = [{"start": 1, "end": 3, "acc": "a", "amount": 500.0}]

CLOCKS = """register source A schema (k int) clock error 2
register source B schema (k int) from (kk AS k) time when clock error 1
SELECT * FROM A; B WHERE FILTER(A.k = B.k)"""
OF_A = [{"type": "A", "ts": 10, "k": 1}]
OF_B = [{"type": "B", "when": 13, "kk": 1}, {"type": "B", "when": 14, "kk": 1}]
PAIR = [(8, 12, 13, 15)]


def found(matches: Any) -> list[dict[str, Any]]:
    rows = matches.to_pylist() if isinstance(matches, pa.Table) else list(matches)
    return [{name: row[name] for name in FOUND[0]} for row in rows]


def times(matches: Any) -> list[tuple[int, ...]]:
    rows = matches.to_pylist() if isinstance(matches, pa.Table) else list(matches)
    return [tuple(row[v][side] for v in "AB" for side in ("start", "end")) for row in rows]


def wide(*records: dict[str, Any]) -> pa.Table:
    names = dict.fromkeys(name for each in records for name in each)
    return pa.table({name: [each.get(name) for each in records] for name in names})


# -- in which form records come ------------------------------------------------------------------


@pytest.mark.parametrize(
    "records",
    [
        {"t": RECORDS},
        {"t": RECORDS.to_pandas()},
        {"t": RECORDS.to_pylist()},
        RECORDS,
        RECORDS.to_batches()[0],
        RECORDS.to_pylist(),
        RECORDS.append_column("type", pa.array(["t"] * 4)),
        RECORDS.append_column("type", pa.array(["t"] * 4).dictionary_encode()),
        pa.concat_tables([RECORDS.slice(0, 1), RECORDS.slice(1)]),
    ],
    ids=["dict", "dict-pandas", "dict-rows", "table", "batch", "rows", "typed", "coded", "chunks"],
)
def test_own_names_and_time_in_every_form(records: Any) -> None:
    assert found(cepheid.detect(records, FRAUDS)) == FOUND


def test_pandas_in_pandas_out() -> None:
    frame = cepheid.detect(RECORDS.to_pandas(), FRAUDS)
    assert frame["amount"].tolist() == [500.0]


def test_batches_that_are_fed() -> None:
    detector = cepheid.Detector(FRAUDS)
    matches = []
    for number, each in enumerate(RECORDS.to_pylist()):
        form = [RECORDS.slice(number, 1), {"t": [each]}, [each], {"type": "t", **each}][number]
        matches += detector.feed(form)
        detector = cepheid.Detector.restore(FRAUDS, detector.snapshot())
    assert found([*matches, *detector.close()]) == FOUND
    assert detector.quarantined.count == 0


def test_a_snapshot_knows_how_long_runs_are_and_what_is_reported() -> None:
    text = "SELECT * FROM A+"
    snapshot = cepheid.Detector(text, cap=3).snapshot()
    cepheid.Detector.restore(text, snapshot, cap=3)
    for other in ({}, {"cap": 4}, {"cap": 3, "failures": True}):
        with pytest.raises(StateError, match="other-query"):
            cepheid.Detector.restore(text, snapshot, **other)


def test_an_event_has_the_fields_of_its_schema() -> None:
    text = "register source t schema (v) from (value AS v) time booked_at SELECT * FROM t"
    (row,) = cepheid.detect(RECORDS.slice(0, 1), text).to_pylist()
    assert row["t"] == {"type": "t", "ts": 1, "v": 1}


def test_an_id_need_not_be_in_the_schema() -> None:
    text = "register source t schema (v) from (value AS v) time booked_at SELECT * FROM t"
    (row,) = cepheid.detect(RECORDS.slice(0, 1), text, id="account no").to_pylist()
    assert row["t"] == {"type": "t", "ts": 1, "v": 1, "account no": "a"}


def test_fields_that_are_called_like_the_columns_of_type_and_time() -> None:
    text = "register source t schema (type, ts) time at SELECT t.type, t.ts FROM t WHERE t.ts = 7"
    records = {"t": [{"type": "big", "ts": 7, "at": 1}, {"type": "small", "ts": 8, "at": 2}]}
    (row,) = cepheid.detect(records, text).to_pylist()
    assert (row["end"], row["type"], row["ts"]) == (1, "big", 7)


def test_nothing_in_nothing_out() -> None:
    assert len(cepheid.detect(RECORDS.slice(0, 0), FRAUDS)) == 0
    assert len(cepheid.detect([], FRAUDS)) == 0
    assert len(cepheid.Detector(FRAUDS).feed({"t": []})) == 0


# -- clocks and times ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "records",
    [
        [*OF_A, *OF_B],
        {"A": OF_A, "B": OF_B},
        {"A": wide(*OF_A), "B": wide(*OF_B)},
        wide(*OF_A, *OF_B),
        wide(*OF_A, *OF_B, {"type": "other", "ts": None}),
    ],
    ids=["rows", "dict-rows", "dict", "table", "with-others"],
)
def test_clock_errors_make_intervals(records: Any) -> None:
    """The paper, section 3.1: of two times that may be the same none follows the other."""
    assert times(cepheid.detect(records, CLOCKS)) == PAIR


def test_clock_errors_in_batches() -> None:
    detector = cepheid.Detector(CLOCKS)
    matches = [*detector.feed({"A": OF_A}), *detector.feed(OF_B[0]), *detector.feed(OF_B[1:])]
    assert times([*matches, *detector.close()]) == PAIR
    assert detector.quarantined.count == detector.late.count == 0


def test_the_case_of_inexact_clocks() -> None:
    (case,) = (each for each in load_cases("next") if "clock" in each.name)
    for events in (case.rows, case.table()):
        matches = cepheid.detect(events, case.text, id=NAME).to_pylist()
        assert not match_difference(case.matches, matches, NAME)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_clock_error_of_time_stamps(unit: str) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    text = "register source t schema (v int) time at clock error 1.5 s SELECT * FROM t WHERE v = 1"
    table = pa.table({"v": [1, 1], "at": pa.array([at, None], pa.timestamp(unit, "UTC"))})
    (row,) = cepheid.detect(table, text).to_pylist()
    error = timedelta(seconds=1.5)
    assert (row["start"], row["end"]) == (at - error, at + error)


def test_times_that_are_none_are_set_aside() -> None:
    text = "register source t schema (v) time at SELECT * FROM t"
    table = pa.table({"v": [1, 2, 3], "at": pa.array([5, None, 2**64 - 1], pa.uint64())})
    for given in (text, text.replace("time at", "time at clock error 1")):
        detector = cepheid.Detector(given)
        assert len([*detector.feed(table), *detector.close()]) == 1
        assert detector.quarantined.count == 2


def test_coded_texts_of_several_sources() -> None:
    text = """register source A schema (k string) from (one AS k)
    register source B schema (k string) from (other AS k)
    SELECT * FROM A; B WHERE FILTER(A.k = B.k)"""
    records = wide(
        {"type": "A", "ts": 1, "one": "x", "other": None},
        {"type": "B", "ts": 2, "one": None, "other": "y"},
        {"type": "B", "ts": 3, "one": "y", "other": "x"},
    )
    for name in ("one", "other"):
        at = records.column_names.index(name)
        records = records.set_column(at, name, records[name].dictionary_encode())
    (row,) = cepheid.detect(records, text).to_pylist()
    assert (row["A"]["k"], row["B"]["k"], row["end"]) == ("x", "x", 3)


def test_records_that_last() -> None:
    text = """register source call schema (who) time began to ended
    register source tap schema (who) time at
    SELECT * FROM call C; tap T"""
    calls = pa.table({"who": ["a", "b"], "began": [1, 2], "ended": [9, 4]})
    taps = pa.table({"who": ["c", "d"], "at": [5, 12]})
    matches = cepheid.detect({"call": calls, "tap": taps}, text).to_pylist()
    assert [(m["C"]["who"], m["T"]["who"], m["start"], m["end"]) for m in matches] == [
        ("b", "c", 2, 5),
        ("a", "d", 1, 12),
    ]


def test_clock_errors_below_queries_over_queries() -> None:
    text = """register source A schema (k int) clock error 2
    pair: SELECT A2.k FROM A A1; A A2
    SELECT * FROM pair P"""
    matches = cepheid.detect([{"type": "A", "ts": t, "k": t} for t in (10, 15)], text).to_pylist()
    assert [(m["start"], m["end"], m["P"]["k"]) for m in matches] == [(8, 17, 15)]


# -- what does not fit ---------------------------------------------------------------------------


def refused(records: Any, text: str = FRAUDS, **options: Any) -> str:
    with pytest.raises((DataError, QueryError)) as problem:
        cepheid.detect(records, text, **options)
    return str(problem.value)


def test_a_column_is_missing() -> None:
    said = refused({"t": RECORDS.drop_columns("value")})
    assert "[unknown-column]: the records of the source `t` have no column `value`" in said
    assert "--> query:2:32" in said


def test_a_column_of_another_type() -> None:
    said = refused(RECORDS.set_column(0, "account no", pa.array([1, 2, 3, 4])))
    assert "the column `account no` of the source `t` holds int64, not string" in said
    assert "--> query:2:11" in said


@pytest.mark.parametrize("form", [lambda table: table, lambda table: {"t": table.to_pylist()}])
def test_no_time(form: Any) -> None:
    said = refused(form(RECORDS.drop_columns("booked_at")))
    assert "have no column `booked_at`" in said
    assert "--> query:3:10" in said


def test_a_time_that_is_none() -> None:
    said = refused(RECORDS.set_column(2, "booked_at", pa.array(["now"] * 4)))
    assert "holds string, not a time: timestamps or integers" in said


def test_the_error_shows_a_near_name() -> None:
    assert "did you mean `account_no`?" in refused(
        RECORDS.rename_columns(["account_no", "value", "booked_at", "remark"])
    )


def test_events_of_a_source_that_is_not_registered() -> None:
    assert "the query registers no such source" in refused({"tt": RECORDS})


def test_records_of_several_sources_must_tell_which() -> None:
    assert "no column `type` that tells their source" in refused(wide({"ts": 1, "k": 1}), CLOCKS)


def test_sources_that_do_not_agree_on_a_time() -> None:
    stamp = datetime(2026, 3, 1)
    assert "do not agree" in refused(
        wide({"type": "A", "ts": 1, "k": 1, "when": stamp, "kk": 1}), CLOCKS
    )


def test_a_clock_error_in_a_unit_needs_to_know_the_tick() -> None:
    text = CLOCKS.replace("clock error 2", "clock error 2 s")
    assert "the clock error of `A` is given in s" in refused([*OF_A, *OF_B], text)
    found = cepheid.detect([*OF_A, *OF_B], text, tick="1 s")
    assert times(found) == PAIR


def test_what_the_query_does_not_read_may_be_missing() -> None:
    text = CLOCKS.rpartition("SELECT")[0] + "SELECT * FROM A"
    assert len(cepheid.detect(wide(*OF_A), text)) == 1


def test_explain_knows_the_sources() -> None:
    query = cepheid.compile(FRAUDS)
    assert "key      T1.acc = T2.acc" in query.explain({"t": RECORDS})
    assert query.explain(RECORDS) == query.explain({"t": RECORDS}) == query.explain(RECORDS.schema)
    assert "compiled kernel" in cepheid.compile(CLOCKS).explain()
    with pytest.raises(DataError, match="no such source"):
        query.explain({"x": RECORDS})
