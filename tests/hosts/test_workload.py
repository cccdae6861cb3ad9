"""A workload in process, at its edges: names, times of changes, state, what it tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.model.errors import DataError, OptionError, StateError
from cepheid.report.workload_graph import draw_workload_graph

PAIR = "EVENT SEQ(A x, B y) WHERE [k] WITHIN 10"
ABSENT = "EVENT SEQ(A x, !(C n), B y) WHERE [k] WITHIN 10"
CHAIN = "SELECT * FROM A x; B y WHERE FILTER(x.k = y.k), (x, y) OCCURS WITHIN 10"
RUNS = "SELECT * FROM A x+; B y WHERE FILTER(PREV(x.k) = x.k), FILTER(x.k = y.k)"


def event(kind: str, time: int, k: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"type": kind, "ts": time, "k": k, **more}


def test_names_are_free_or_refused() -> None:
    workload = cepheid.Workload([PAIR, PAIR, ABSENT])
    assert workload.names == ("query", "query_2", "query_3")
    with pytest.raises(OptionError, match="there is a query `query` already"):
        workload.add(PAIR, name="query")
    with pytest.raises(OptionError, match="there is no query `nobody`"):
        workload.pause("nobody")


def test_a_change_cannot_come_before_what_was_seen() -> None:
    workload = cepheid.Workload([PAIR])
    workload.feed([event("A", 5)])
    with pytest.raises(OptionError, match="events up to 5 have been seen"):
        workload.add(PAIR, name="late", at=5)
    workload.add(PAIR, name="later", at=8)
    found = workload.feed([event("A", 7), event("A", 8), event("B", 9)])
    assert len(found["query"]) == 3
    assert [m["x"]["ts"] for m in found["later"]] == [8]


def test_arrival_numbers_are_those_of_the_whole_stream() -> None:
    workload = cepheid.Workload([PAIR, ABSENT, CHAIN, RUNS, ABSENT.replace("10", "9")], lateness=0)
    workload.feed([event("Z", 1), event("A", 2), event("Z", 3)])
    found = workload.feed([event("Z", 1), event("Z", 4), event("B", 5)]) + workload.close()
    assert workload.late.count == 1
    assert {name: m.ids.tolist() for name, m in found.items() if name != "query_4"} == {
        name: [[1, 5]] for name in ("query", "query_2", "query_3", "query_5")
    }


def test_bad_rows_are_set_aside_once() -> None:
    workload = cepheid.Workload([PAIR, ABSENT, CHAIN])
    rows = [event("A", 1), event("A", 2), event("B", 3)]
    rows[1]["ts"] = None
    table = pa.Table.from_pylist(rows)
    found = workload.feed(table) + workload.close()
    assert workload.quarantined.count == 1
    assert found.total == 3


def test_an_event_without_its_key_changes_no_answer() -> None:
    rows = [event("A", 1), event("B", 2, 2), {"type": "A", "ts": 3}, event("B", 4, 2)]
    workload = cepheid.Workload({"one": PAIR, "two": PAIR.replace("10", "3")})
    together = [workload.feed(rows[:2]), workload.feed(rows[2:])]
    for name, text in (("one", PAIR), ("two", PAIR.replace("10", "3"))):
        alone = cepheid.detect(rows, text).column("match_id").to_pylist()
        ids = [m["match_id"] for found in together for m in found.get(name, ())]
        assert sorted(ids) == sorted(alone)
        assert ids
    restored = cepheid.Workload.restore(workload.snapshot())
    assert len(restored.feed([event("B", 5, 7)])["one"]) == 1


def test_a_snapshot_is_refused_under_other_options() -> None:
    workload = cepheid.Workload([PAIR])
    workload.feed([event("A", 1)])
    with pytest.raises(StateError, match="other options"):
        cepheid.Workload.restore(workload.snapshot(), lateness=3)
    single = cepheid.Detector(PAIR)
    with pytest.raises(StateError, match="single query"):
        cepheid.Workload.restore(single.snapshot())


def test_a_query_that_cannot_run_is_refused_and_the_others_go_on() -> None:
    workload = cepheid.Workload({"pair": PAIR})
    workload.feed(pa.Table.from_pylist([event("A", 1)]))
    with pytest.raises(DataError, match="no column `weight`"):
        workload.add("EVENT SEQ(A x, B y) WHERE x.weight > 3 WITHIN 5", name="heavy")
    assert workload.names == ("pair",)
    assert len(workload.feed(pa.Table.from_pylist([event("B", 2)]))["pair"]) == 1


def test_explain_tells_what_is_shared(tmp_path: Path) -> None:
    workload = cepheid.Workload({"pair": PAIR, "twice": PAIR, "chain": CHAIN, "no": ABSENT})
    text = workload.explain()
    assert "atom A  used by pair, twice" in text
    assert "because a negated component needs witnesses of its own" in text
    assert "estimated" in text
    workload.feed([event("A", 1), event("B", 2)])
    assert "counted so far: touched 2" in workload.explain()
    picture = draw_workload_graph(workload.graph(), tmp_path / "graph.png")
    assert picture.stat().st_size > 5_000


def test_explain_estimates_what_successors_read_by_their_types() -> None:
    """Each atom of a graph counts with the rate of its own types, not with that of all events."""
    rates = {"A": 10.0, "B": 3.0, "C": 100.0}
    queries = {"one": "SELECT * FROM A x; (B y; B z)", "two": "SELECT * FROM (A x; (B y; B z))+"}
    workload = cepheid.Workload(queries, statistics=rates)
    assert "events handed to atoms per unit of time: 13 together, 26 apart" in workload.explain()


def test_explain_measures_what_sharing_saves() -> None:
    """Together and each alone, over events that are given; the state stays as it is."""
    chains = {f"{n}": f"SELECT * FROM A x; (B y; A z) WHERE FILTER(x.k = {n % 2})" for n in (0, 1)}
    workload = cepheid.Workload({"pair": PAIR, "no": ABSENT, "off": PAIR, **chains})
    workload.pause("off")
    events = [event("AB"[n % 2], n) for n in range(400)]
    text = workload.explain(events[::-1], measure=True)
    alone = sum(cepheid.detect(events, each).num_rows for each in (PAIR, ABSENT, *chains.values()))
    assert "measured on 400 events: " in text
    assert f"; {alone:,} matches both ways" in text
    assert "counted so far" not in workload.explain()
    with pytest.raises(OptionError, match="no events are given"):
        workload.explain(measure=True)


def test_what_many_alike_queries_save_is_measured() -> None:
    """A hundred chains that share their operators take less than each by itself."""
    workload = cepheid.Workload([f"SELECT * FROM A x{n}; (B y{n}; A z{n})" for n in range(100)])
    text = workload.explain([event("AB"[n % 2], n) for n in range(400)], measure=True)
    saved = re.search(r"apart \((\d+)% saved\); 19,900 matches both ways", text)
    assert saved is not None, text
    assert int(saved.group(1)) > 50, text


def test_one_table_of_all_matches() -> None:
    returns = "EVENT SEQ(A x, B y) WHERE [k] WITHIN 10 RETURN Pair(x.k AS k, y.ts AS at)"
    workload = cepheid.Workload({"pair": PAIR, "made": returns, "runs": RUNS})
    table = workload.detect([event("A", 1), event("A", 2), event("B", 3)])
    rows = sorted(table.to_pylist(), key=lambda row: (row["query"], row["start"]))
    assert [row["query"] for row in rows] == ["made", "made", "pair", "pair"] + 3 * ["runs"]
    assert rows[0]["returned"] == '{"k": 1, "at": 3}'
    assert sorted(len(row["events"]) for row in rows[4:]) == [2, 2, 3]
    assert {e["variable"] for e in rows[4]["events"]} == {"x", "y"}
    assert cepheid.detect([event("A", 1)], workload).num_rows == 0
    workload.advance(100)  # a history of its own is not late for that
    assert workload.detect([event("A", 1), event("B", 3)]).num_rows == 3
    with pytest.raises(OptionError, match="has its own options"):
        cepheid.detect([], workload, lateness=3)
