"""Workloads over registered sources, and over inputs that are each in order."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts.matches import Matches
from cepheid.model.errors import DataError, OptionError, QueryError
from tests.hosts.test_guaranteed_detection import QUERIES, history_of, interleaved, least
from tests.laws.succession_queries import TYPES
from tests.laws.succession_runs import CAP, by_definition, found_in

A = "register source A schema (k int, v int) from (key AS k, value AS v) time at"
B = "register source B schema (k int) from (kk AS k) time at"
C = "register source C schema (k int, v int) time at"
SOURCES = f"{A}\n{B}\n"
TEXTS = {
    "pair": f"{SOURCES}SELECT * FROM A x; B y WHERE FILTER(x.k = y.k)",
    "runs": f"{SOURCES}SELECT * FROM A x+; B y WHERE x.v > 0, (x, y) OCCURS WITHIN 9",
    "one": f"{A} SELECT * FROM A x WHERE x.v > 1",
    "other": f"{B} {C} SELECT * FROM B x; C y WHERE FILTER(x.k = y.k), y.v > 1",
    "plain": "EVENT SEQ(A x, !(B n), C y) WHERE [k] WITHIN 12",
}
OWN_NAMES = {"A": ("key", "value"), "B": ("kk", ""), "C": ("k", "v")}
"""What the records of each source call the fields k and v."""
ID = "event"


def random_records(seed: int, size: int = 60) -> list[dict[str, Any]]:
    """Records of three sources in order of time, some of one time, each with its own names."""
    r = random.Random(seed)
    rows, time = [], 0
    for number in range(size):
        time += r.choice((0, 1, 1, 3))
        kind = r.choice("ABC")
        key, value = OWN_NAMES[kind]
        row: dict[str, Any] = {"type": kind, "at": time, ID: number, key: r.randrange(3)}
        rows.append({**row, value: r.randint(0, 3)} if value else row)
    return rows


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    names = ("type", "at", ID, "key", "value", "kk", "k", "v")
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def events_of(match: Any) -> tuple[Any, ...]:
    """The numbers of a match's events by variable."""
    bound = {n: v for n, v in match.items() if n not in ("match_id", "query", "start", "end")}
    lists = {n: v if isinstance(v, list) else [v] for n, v in bound.items() if v is not None}
    return tuple(sorted((name, tuple(e[ID] for e in each)) for name, each in lists.items()))


@pytest.mark.parametrize("seed", range(6))
def test_a_workload_of_sources_finds_what_each_query_finds(seed: int) -> None:
    r = random.Random(seed)
    rows = random_records(seed)
    workload = cepheid.Workload(TEXTS, id=ID)
    parts: list[Any] = []
    edges = sorted({0, len(rows), *(r.randrange(len(rows)) for _ in range(3))})
    for begin, end in pairwise(edges):
        some = rows[begin:end]
        parts.append(workload.feed(as_table(some) if seed % 2 else some))
        if r.random() < 0.5:
            workload = cepheid.Workload.restore(workload.snapshot(), id=ID)
    parts.append(workload.close())
    events = [
        {"type": row["type"], "ts": row["at"], ID: row[ID], "k": row[key], "v": row.get(value)}
        for row in rows
        for key, value in (OWN_NAMES[row["type"]],)
    ]
    types = {"A": ["k", "v"], "B": ["k"], "C": ["k", "v"]}
    for name, text in TEXTS.items():
        found = Counter(events_of(match) for part in parts for match in part.get(name, ()))
        if name == "plain":
            table = cepheid.detect(events, text, id=ID, types=types)
        else:
            table = cepheid.detect(as_table(rows), text, id=ID)
        assert found == Counter(map(events_of, table.to_pylist())), name
    whole = cepheid.Workload(TEXTS, id=ID).detect(as_table(rows[::-1]))
    assert len(whole) == sum(part.total for part in parts)


@pytest.mark.parametrize("seed", range(4))
def test_inexact_clocks_of_several_queries(seed: int) -> None:
    """Every instant is an interval; all texts say the same of it."""
    rows = random_records(seed)
    texts = {
        name: TEXTS[name].replace("time at", "time at clock error 1")
        for name in ("pair", "runs", "one", "other")
    }
    workload = cepheid.Workload(texts, id=ID, lateness=2)
    found = workload.feed(rows[:20]) + workload.feed(rows[20:]) + workload.close()
    for name, text in texts.items():
        alone = cepheid.detect(rows, text, id=ID).to_pylist()
        assert Counter(map(events_of, found.get(name, ()))) == Counter(map(events_of, alone)), name


def test_records_by_source_and_explaining_them() -> None:
    rows = random_records(9)
    by_source = {kind: [row for row in rows if row["type"] == kind] for kind in "ABC"}
    workload = cepheid.Workload({"pair": TEXTS["pair"], "other": TEXTS["other"]}, id=ID)
    assert "A" in workload.explain(as_table(rows))
    whole = workload.detect(as_table(rows))
    assert len(workload.detect(by_source)) == len(whole) > 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("register source A schema (k int) from (key AS k) time at SELECT * FROM A", "schema"),
        (f"{A.replace('key', 'kk')} SELECT * FROM A", "names of fields"),
        (f"{A.replace('time at', 'time ts')} SELECT * FROM A", "another time before"),
        (f"{A} clock error 2 SELECT * FROM A", "another clock error"),
        (f"{C} clock error 2 SELECT * FROM C", "times in other columns"),
        ("EVENT Z x", "it reads `Z`"),
    ],
)
def test_registrations_that_contradict_each_other_are_refused(text: str, told: str) -> None:
    workload = cepheid.Workload({"pair": TEXTS["pair"]}, id=ID)
    with pytest.raises(QueryError, match=told):
        workload.add(text, name="other")
    assert workload.names == ("pair",)


def test_a_query_of_other_events_is_refused_whichever_comes_first() -> None:
    workload = cepheid.Workload({"z": "EVENT SEQ(Z x, A y) WITHIN 5"})
    with pytest.raises(QueryError, match="it reads `Z`"):
        workload.add(TEXTS["pair"])


def test_sources_are_known_before_events_come_and_stay_when_their_query_goes() -> None:
    rows = random_records(3, 120)
    workload = cepheid.Workload({"pair": TEXTS["pair"]}, id=ID)
    workload.feed(as_table(rows[:30]))
    with pytest.raises(OptionError, match="registers `C`, and events have been seen without it"):
        workload.add(TEXTS["other"])
    workload.add(TEXTS["one"], name="one")
    workload.remove("pair")
    workload = cepheid.Workload.restore(workload.snapshot(), id=ID)
    found = workload.feed(as_table(rows[30:])) + workload.close()
    since = max(row["at"] for row in rows[:30])
    expected = [r for r in rows[30:] if r["type"] == "A" and r["value"] > 1 and r["at"] > since]
    assert len(found["one"]) == len(expected) > 0


def test_records_that_lack_a_column_are_told_in_the_text_of_their_source() -> None:
    workload = cepheid.Workload({"pair": TEXTS["pair"], "other": TEXTS["other"]}, id=ID)
    table = as_table(random_records(1)).drop_columns(["v"])
    with pytest.raises(DataError, match="source `C` have no column `v`") as told:
        workload.feed(table)
    assert C in str(told.value)


# -- guaranteed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [True, False])
def test_inputs_in_order_give_every_query_its_answer(given: bool) -> None:
    queries = {name: cepheid.compile(text) for name, text in QUERIES.items()}
    options: dict[str, Any] = {"policy": "guaranteed", "id": "event", "cap": CAP}
    if given:
        options["inputs"] = list(TYPES)
    read = tuple(TYPES) if given else ("A", "B", "C", "N")
    compared = 0
    for seed in range(12):
        source = random.Random(seed)
        rows = history_of(source)
        arriving = interleaved(rows, source)
        workload = cepheid.Workload(queries, **options)
        parts = []
        edges = sorted({0, len(arriving), *(source.randint(0, len(arriving)) for _ in range(4))})
        for begin, end in pairwise(edges):
            parts.append(workload.feed(arriving[begin:end]))
            assert workload.watermark == least(arriving[:end], read)
            if source.random() < 0.4:
                workload = cepheid.Workload.restore(workload.snapshot(), **options)
        assert workload.late.count == 0
        parts.append(workload.close())
        for name, query in queries.items():
            own: list[Matches] = [part[name] for part in parts if name in part]
            expected = by_definition(query, rows)
            assert (found_in(query, own) if own else Counter()) == expected, (seed, name)
            compared += sum(expected.values())
    assert compared > 15


def test_a_silent_input_of_any_query_holds_all_up_until_its_heartbeat() -> None:
    workload = cepheid.Workload({"ab": "SELECT * FROM A; B"}, policy="guaranteed")
    assert workload.heartbeat("B", 6).total == 0, "no event has come yet"
    workload = cepheid.Workload.restore(workload.snapshot(), policy="guaranteed")
    workload.add("SELECT * FROM A; C", name="ac")
    rows = [{"type": "A", "ts": 1}, {"type": "B", "ts": 5}, {"type": "A", "ts": 90}]
    assert workload.feed(rows).total == 0, "C may still bring something"
    found = workload.heartbeat("C", 6)
    assert (found.total, len(found["ab"]), workload.watermark) == (1, 1, 6)
    workload.remove("ac")  # it may still see what C brings up to 90
    assert workload.feed([{"type": "B", "ts": 91}]).total == 0
    workload.heartbeat("B", 95)
    workload.heartbeat("A", 94)
    assert workload.watermark == 6
    workload.heartbeat("C", 91)
    assert workload.watermark == 91
    assert len(workload.heartbeat("A", 95)["ab"]) == 1, "nobody waits for C any more"
    with pytest.raises(OptionError, match="no input `C`"):
        workload.heartbeat("C", 99)


def test_what_a_workload_cannot_wait_for_is_refused() -> None:
    with pytest.raises(OptionError, match="nobody to send a heartbeat"):
        cepheid.Workload({"ab": "SELECT * FROM A; B"}).heartbeat("A", 1)
    options: dict[str, Any] = {"policy": "guaranteed", "inputs": ["A", "B"]}
    workload = cepheid.Workload({"ab": "SELECT * FROM A; B"}, **options)
    with pytest.raises(OptionError, match="reads `C`, which is not among the inputs"):
        workload.add("SELECT * FROM A; C")
    assert cepheid.Workload(policy="guaranteed").feed([{"type": "A", "ts": 1}]).total == 0


def test_a_workload_waits_no_longer_than_the_time_out() -> None:
    options: dict[str, Any] = {"policy": "guaranteed", "input_timeout": 10}
    workload = cepheid.Workload({"ab": "SELECT * FROM A; B", "a": "EVENT A x"}, **options)
    rows = [("A", 1), ("B", 3), ("A", 12), ("A", 30), ("B", 19), ("B", 20), ("A", 31), ("B", 40)]
    found = [workload.feed([{"type": kind, "ts": time}]) for kind, time in rows]
    assert workload.late.count == 1
    pairs = Counter((m["A"]["ts"], m["B"]["ts"]) for part in found for m in part.get("ab", ()))
    assert pairs == Counter([(1, 3), (12, 20)])
