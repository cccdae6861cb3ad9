"""The in-process host at its edges: late and bad events, watermarks, snapshots, limits."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.model.errors import CepheidError, DataError, OptionError, QueryError, StateError

PAIR = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10"
ALONE = "EVENT SEQ(A x, !(B n)) WITHIN 5"


def ev(kind: Any, ts: Any, id: Any = 1, **more: Any) -> dict[str, Any]:
    return {"type": kind, "ts": ts, "id": id, **more}


def pairs(matches: cepheid.Matches) -> list[tuple[Any, Any]]:
    return [(m["x"]["ts"], m["y"]["ts"]) for m in matches]


# -- watermark and lateness ---------------------------------------------------------------------


def test_a_late_negative_cannot_take_a_match_back() -> None:
    d = cepheid.Detector(ALONE)
    assert len(d.feed([ev("A", 10)])) == 0
    assert [m["end"] for m in d.advance(20)] == [14]
    assert len(d.feed([ev("B", 12)])) == 0
    assert d.late.count == 1
    assert d.late.table().to_pylist() == [ev("B", 12)]
    assert len(d.close()) == 0


def test_a_negative_in_time_cancels() -> None:
    d = cepheid.Detector(ALONE)
    d.feed([ev("A", 10)])
    assert len(d.advance(12)) == 0
    d.feed([ev("B", 12)])
    assert len(d.advance(20)) == len(d.close()) == 0
    assert d.late.count == 0


def test_a_negative_at_the_deadline_is_too_late_to_cancel() -> None:
    """WITHIN 5 over ticks: the match covers 10 to 14, so a B at 15 is outside."""
    for ts, found in ((14, 0), (15, 1)):
        d = cepheid.Detector(ALONE)
        matches = [*d.feed([ev("A", 10), ev("B", ts)]), *d.close()]
        assert len(matches) == found, ts


def test_the_watermark_never_goes_back() -> None:
    d = cepheid.Detector(PAIR)
    d.feed([ev("A", 10)])
    d.advance(30)
    d.advance(20)
    assert d.watermark == 30
    d.feed([ev("B", 29)])
    assert d.late.count == 1


def test_a_watermark_told_before_the_first_event_counts() -> None:
    d = cepheid.Detector(PAIR)
    d.advance(100)
    assert d.watermark == 100
    d.feed([ev("A", 99), ev("A", 100)])
    assert d.late.count == 1


def test_a_watermark_is_a_time() -> None:
    with pytest.raises(OptionError, match="not a time"):
        cepheid.Detector(PAIR).advance("tomorrow")


def test_heartbeats_as_datetimes() -> None:
    d = cepheid.Detector("EVENT SEQ(A x, !(B n)) WITHIN 5 seconds")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    d.feed([{"type": "A", "ts": at}])
    assert len(d.advance(at.replace(second=4))) == 0
    assert len(d.advance(at.replace(second=5))) == 1


def test_closing_is_for_ends_that_are_ends() -> None:
    d = cepheid.Detector(ALONE, close_at_end=False)
    d.feed([ev("A", 10)])
    assert len(d.close()) == 0


# -- bad rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (ev(None, 5), "`type` is null"),
        (ev("B", None), "`ts` is null or out of range"),
        (ev("B", 2**62), "`ts` is null or out of range"),
        (ev("B", -(2**63)), "`ts` is null or out of range"),
    ],
)
def test_a_bad_row_is_quarantined_and_the_others_are_used(row: Any, reason: str) -> None:
    rows = [ev("A", 1), row, ev("B", 4)]
    for events in (rows, pa.Table.from_pylist(rows)):
        d = cepheid.Detector(PAIR)
        assert pairs(d.feed(events)) == [(1, 4)]
        assert d.quarantined.count == 1
        assert d.quarantined.table().to_pylist() == [row | {"quarantine_reason": reason}]
        assert d.watermark <= 4, "a bad time must not move the watermark"


def test_unsigned_times_do_not_wrap_around() -> None:
    times = pa.array([1, 2**64 - 5, 4, 2**63 + 1], pa.uint64())
    table = pa.table({"type": ["A", "B", "B", "B"], "ts": times, "id": [1, 1, 1, 1]})
    d = cepheid.Detector(PAIR)
    assert pairs(d.feed(table)) == [(1, 4)]
    assert d.quarantined.count == 2


@pytest.mark.parametrize("unit", ["s", "ms", "us"])  # all of int64 in ns is on the clock
def test_times_beyond_all_clocks_are_quarantined(unit: str) -> None:
    times = pa.array([0, 2**62, 3, -(2**62)], pa.int64()).cast(pa.timestamp(unit))
    table = pa.table({"type": ["A", "B", "B", "A"], "ts": times, "id": [1, 1, 1, 1]})
    d = cepheid.Detector("EVENT SEQ(A x, B y) WHERE [id] WITHIN 10 seconds")
    matches = d.feed(table)
    assert len(matches) == 1
    assert d.quarantined.count == 2


def test_a_column_of_nulls_only() -> None:
    table = pa.table({"type": ["A", "B"], "ts": pa.nulls(2), "id": [1, 1]})
    d = cepheid.Detector(PAIR)
    assert len(d.feed(table)) == 0
    assert d.quarantined.count == 2


def test_nan_and_infinity_in_tests_and_keys() -> None:
    values = [1.0, math.nan, math.inf, -math.inf, None]
    rows = [ev("A", i, float("nan"), v=v) for i, v in enumerate(values)]
    d = cepheid.Detector("EVENT A x WHERE x.v > 0.5")
    table = pa.Table.from_pylist(rows)
    # A null in a wide table counts as absent, and a test of what is absent holds.
    assert [m["x"]["ts"] for m in d.feed(table)] == [0, 2, 4]
    d = cepheid.Detector("EVENT SEQ(A x, A y) WHERE [id]")
    assert len(d.feed(table)) == 0, "NaN equals nothing"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([1, 2], "event 0 is a int, not a dict"),
        ([ev("A", 1, 1), ev("A", 2, "one")], "`id` holds values of several types"),
        ([ev("A", 1, 2**70)], "`id`"),
        ([{"type": "A"}], "no time column `ts`"),
        ([{"ts": 1}], "no column `type`"),
        ([ev("A", "soon")], "the time column `ts` holds string"),
        ([ev("A", 1.5)], "the time column `ts` holds double"),
        ([ev(True, 1)], "the type column `type` holds bool"),
    ],
)
def test_events_that_cannot_be_read_are_refused_by_name(rows: Any, said: str) -> None:
    d = cepheid.Detector(PAIR)
    with pytest.raises(DataError, match=said) as problem:
        d.feed(rows)
    assert problem.value.code
    assert pairs(d.feed([ev("A", 1), ev("B", 2)])) == [(1, 2)], "the detector goes on"


def test_a_refused_batch_leaves_no_trace() -> None:
    d = cepheid.Detector(PAIR)
    d.feed([ev("A", 1)])
    with pytest.raises(DataError):
        d.feed([ev("B", 2), ev("B", 3, "other type")])
    assert pairs(d.feed([ev("B", 4)])) == [(1, 4)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ev("B", datetime(2026, 1, 1)), "held integers before and holds timestamps now"),
        (ev("B", 5, note="text"), "column `note` was int64 before and is string now"),
    ],
)
def test_later_batches_of_another_kind_are_refused(row: Any, said: str) -> None:
    d = cepheid.Detector(PAIR)
    d.feed([ev("A", 1, note=7)])
    with pytest.raises(DataError, match=said):
        d.feed([row])
    assert pairs(d.feed([ev("B", 4)])) == [(1, 4)]


@pytest.mark.parametrize("events", ["text", 7, object(), {"A": 3}])
def test_what_is_no_stream_is_refused(events: Any) -> None:
    with pytest.raises(DataError):
        cepheid.Detector(PAIR).feed(events)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.50"), Decimal("1.5")], pa.decimal128(20, 2)),
        pa.array([True, True]),
        pa.array(["é", "é"], pa.large_string()),
        pa.array(["a", "a"]).dictionary_encode(),
        pa.array([2**63 - 1, 2**63 - 1]),
        pa.array([-(2**53) - 1, -(2**53) - 1]),
        pa.array([0.0, -0.0]),
        pa.array([datetime(2026, 1, 1), datetime(2026, 1, 1)]),
    ],
    ids=lambda v: str(v.type),
)
def test_keys_of_any_type(values: pa.Array) -> None:
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "id": values})
    assert pairs(cepheid.Detector(PAIR).feed(table)) == [(1, 2)]


@pytest.mark.parametrize("values", [[2**53, 2**53 + 1], [2**62, 2**62 + 1]])
def test_large_keys_are_not_rounded(values: list[int]) -> None:
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "id": values})
    assert len(cepheid.Detector(PAIR).feed(table)) == 0


def test_a_column_may_change_its_width_between_batches() -> None:
    d = cepheid.Detector(PAIR)
    d.feed(pa.table({"type": ["A"], "ts": [1], "id": pa.array([1], pa.int8())}))
    later = pa.table({"type": ["B"], "ts": [2], "id": pa.array([1.0], pa.float64())})
    assert pairs(d.feed(later)) == [(1, 2)]


# -- snapshots ----------------------------------------------------------------------------------


def test_a_damaged_snapshot_is_refused() -> None:
    d = cepheid.Detector(PAIR)
    d.feed([ev("A", 1)])
    good = d.snapshot()
    r = random.Random(7)
    for at in [0, 7, 8, 24, len(good) - 1, *(r.randrange(len(good)) for _ in range(40))]:
        bad = bytearray(good)
        bad[at] ^= 1 << r.randrange(8)
        with pytest.raises(StateError):
            cepheid.Detector.restore(PAIR, bytes(bad))
    for size in (0, 7, 8, 23, 24, 40, len(good) - 1):
        with pytest.raises(StateError):
            cepheid.Detector.restore(PAIR, good[:size])


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("EVENT SEQ(A x, B y) WHERE [id] WITHIN 11", {}),
        (PAIR, {"lateness": 3}),
        (PAIR, {"tie": "seqno"}),
        (PAIR, {"time": "at"}),
        (PAIR, {"params": {"p": 1}}),
    ],
)
def test_a_snapshot_belongs_to_its_query_and_options(query: str, options: Any) -> None:
    snapshot = cepheid.Detector(PAIR).snapshot()
    with pytest.raises((StateError, OptionError, QueryError)):
        cepheid.Detector.restore(query, snapshot, **options)


def test_a_restored_detector_knows_what_was_late_and_bad() -> None:
    d = cepheid.Detector(PAIR)
    d.feed([ev("A", 10), ev("B", 2), ev(None, 3)])
    d.advance(15)
    again = cepheid.Detector.restore(PAIR, d.snapshot())
    assert (again.watermark, again.late.count, again.quarantined.count) == (15, 1, 1)
    assert pairs(again.feed([ev("B", 16)])) == [(10, 16)]


# -- growth and limits --------------------------------------------------------------------------


def test_keys_that_come_and_go_do_not_pile_up() -> None:
    """Every key is new and leaves with its window: the state stays as large as a window."""
    d = cepheid.Detector(PAIR)
    live = []
    for start in range(0, 200_000, 10_000):
        n = np.arange(start, start + 10_000)
        kinds = np.where(n % 2, "B", "A")
        found = d.feed(pa.table({"type": kinds, "ts": n, "id": n // 2}))
        assert len(found) == 5_000
        live.append(d.live_events)
    assert max(live) <= 2 * 10_000 + 100
    assert len(d.snapshot()) < 1_000_000


def test_too_many_live_events_are_a_named_error() -> None:
    d = cepheid.Detector("EVENT SEQ(A x, B y) WHERE [id]", limits={"live_events": 100})
    d.feed([ev("A", i, i) for i in range(100)])
    with pytest.raises(CepheidError, match=r"limits\.live_events"):
        d.feed([ev("A", i, i) for i in range(100, 200)])


def test_too_many_matches_for_one_table_are_a_named_error() -> None:
    d = cepheid.Detector("EVENT SEQ(A x, B y)", limits={"matches_per_table": 50})
    found = d.feed([ev("A", i) for i in range(10)] + [ev("B", 10 + i) for i in range(10)])
    assert len(found) == 100
    with pytest.raises(CepheidError, match="50"):
        found.table()


@pytest.mark.parametrize("length", [8, 9])
def test_long_patterns_are_found(length: int) -> None:
    components = ", ".join(f"T{i} x{i}" for i in range(length))
    d = cepheid.Detector(f"EVENT SEQ({components}) WITHIN 1000")
    found = d.feed([ev(f"T{i}", i) for i in range(length)])
    assert len(found) == 1


def test_multi_pais_of_long_patterns_is_refused() -> None:
    components = ", ".join(f"T{i} x{i}" for i in range(17))
    d = cepheid.Detector(f"EVENT SEQ({components}) WHERE [id]", plan={"scan": "multi"})
    with pytest.raises(OptionError, match="up to 16 events"):
        d.feed([ev("T0", 1)])


def test_a_pattern_too_long_is_refused_quickly() -> None:
    components = ", ".join(f"T{i} x{i}" for i in range(5_000))
    with pytest.raises(CepheidError, match="more than 48 components"):
        cepheid.Detector(f"EVENT SEQ({components}) WITHIN 1000")


# -- order within one instant -------------------------------------------------------------------


def test_events_of_one_instant_are_in_no_order() -> None:
    d = cepheid.Detector("EVENT SEQ(A x, B y)")
    assert len(d.feed([ev("A", 1), ev("B", 1)])) == 0
    d = cepheid.Detector("EVENT SEQ(A x, B y)", tie="seqno")
    assert len(d.feed([ev("A", 1), ev("B", 1)])) == 1


def test_an_empty_feed_is_no_event() -> None:
    d = cepheid.Detector(PAIR)
    assert len(d.feed([])) == 0
    assert (
        len(
            d.feed(
                pa.table(
                    {
                        "type": pa.array([], pa.string()),
                        "ts": pa.array([], pa.int64()),
                        "id": pa.array([], pa.int64()),
                    }
                )
            )
        )
        == 0
    )
    assert pairs(d.feed([ev("A", 1), ev("B", 2)])) == [(1, 2)]
