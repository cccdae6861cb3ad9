"""Queries whose parts run elsewhere find what each of them finds alone, and what the definitions
say.

The stages that Spark runs, without Spark: every lane gets its events and composites in order of
time, in batches of any size, and those of one time in any order.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cepheid
from cepheid.hosts import sorted_runs, succession_engine
from cepheid.hosts.composites import END, EVENTS, PART, travelling_schema
from cepheid.hosts.match_union import union_schema
from cepheid.hosts.plain_types import plain_schema
from cepheid.hosts.workload_cuts import CutLanes, cut_lanes
from cepheid.hosts.workload_lanes import Lane, lanes_of
from cepheid.hosts.workload_task import LANE, FindingLane, LaneTask, PartsTask, WorkloadTask
from cepheid.kernels import succession
from cepheid.model.errors import CepheidError
from cepheid.model.options import Options, make_options
from cepheid.planner.workload_plan import Member
from tests.laws.shared_queries import RelatedQueries
from tests.laws.succession_queries import RandomQuery
from tests.laws.succession_runs import CAP, by_definition, end_of, stream

WORKLOADS = 3 * int(os.environ.get("CEPHEID_VOLUME", "1"))
STREAMS = 6

SHARED = (
    "SELECT * FROM ({0}; {1}); {2}",
    "SELECT * FROM {2}; ({0}; {1})",
    "SELECT * FROM ({0}; {1})+; {2}",
    "SELECT * FROM ({0}; {1})+; {2} WHERE FILTER(PREV(x.k) <> x.k)",
    "SELECT * FROM {2}; ({0}; {1})+ WHERE y.v < ALL(y.v) + 2",
    "SELECT * FROM {2}; ({0} \\ ({1}; A n))",
    "SELECT * FROM ({0}; {1} \\ C n); {2}",
    "SELECT * FROM ({0}; {1}) | {2}",
    "SELECT * FROM ({0}; {1}) @ 2; {2}",
    "SELECT * FROM ({0}; {1})",
)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces, little room, and tidying at every chance."""
    monkeypatch.setattr(sorted_runs, "ROWS_PER_FEED", 4)
    monkeypatch.setattr(succession_engine, "_SPARE_ROWS", 2)
    monkeypatch.setattr(succession, "_FIRST_UPKEEP", 16)
    monkeypatch.setattr(succession, "_FIRST_ROWS", 4)


def workload_of(seed: int) -> list[Member]:
    """Queries around one part, others that are related, and some of any kind."""
    r = random.Random(seed)
    kinds = r.sample("ABC", 3)
    atoms = [f"{kind} {name}" for kind, name in zip(kinds, "xyz", strict=True)]
    texts = [text.format(*atoms) for text in r.sample(SHARED, 4)]
    related = RelatedQueries(seed)
    texts += [related.text(), related.text(), RandomQuery(seed).text]
    members = []
    for text in texts:
        try:
            query = cepheid.compile(text, "next", name=f"q{len(members)}")
        except CepheidError:
            continue
        members.append(Member(f"q{len(members)}", query))
    return members


def in_stages(cuts: CutLanes, options: Options, table: pa.Table, r: random.Random) -> pa.Table:
    """All matches, found as the two stages of a Spark job find them."""
    schema = table.schema
    columns = (*schema.names, LANE)
    travelling = travelling_schema(schema, options)
    finding = PartsTask(
        tuple(FindingLane(lane.members, lane.finds) for lane in cuts.finding),
        options,
        columns,
        schema,
        travelling,
        cuts.texts,
    )
    found = [travelling.empty_table()]
    for node in {lane.node for lane in cuts.finding}:
        rows = [
            events_of(lane, number, table)
            for number, lane in enumerate(cuts.finding)
            if lane.node == node
        ]
        batches = list(finding.find(in_order(pa.concat_tables(rows), options, r)))
        found.append(pa.Table.from_batches(batches, travelling))
    composites = pa.concat_tables(found)
    assert composites.schema.equals(travelling)
    form = plain_schema(union_schema(schema, options.end_column))
    task = WorkloadTask(
        tuple(LaneTask(lane.members, lane.given) for lane in cuts.lanes),
        options,
        (*columns, PART, EVENTS),
        schema,
        form,
        parts=cuts.texts,
    )
    matches = [form.empty_table()]
    for node in {lane.node for lane in cuts.lanes}:
        rows = [nothing(table, travelling)]
        for number, lane in enumerate(cuts.lanes):
            if lane.node == node:
                rows += [
                    events_of(lane, number, table),
                    given_to(lane, number, composites, options),
                ]
        whole = pa.concat_tables(rows, promote_options="default")
        matches += [pa.table(batch) for batch in task.detect(in_order(whole, options, r))]
    return pa.concat_tables(matches)


def nothing(table: pa.Table, travelling: pa.Schema) -> pa.Table:
    more = [travelling.field(name) for name in (PART, EVENTS)]
    return pa.schema([*table.schema, pa.field(LANE, pa.int64()), *more]).empty_table()


def events_of(lane: Lane, number: int, table: pa.Table) -> pa.Table:
    if lane.types is not None:
        table = table.filter(pc.is_in(table["type"], pa.array(lane.types, pa.string())))
    return table.append_column(LANE, pa.array(np.full(len(table), number)))


def given_to(lane: Lane, number: int, composites: pa.Table, options: Options) -> pa.Table:
    chosen = composites.filter(pc.is_in(composites[PART], pa.array(lane.given, pa.int32())))
    return pa.table(
        {
            options.end_column: chosen[END],
            LANE: pa.array(np.full(len(chosen), number)),
            PART: chosen[PART],
            EVENTS: chosen[EVENTS],
        }
    )


def in_order(table: pa.Table, options: Options, r: random.Random) -> Iterator[pa.RecordBatch]:
    """Sorted by lane and time, ties in any order, in batches of any size."""
    table = table.take(pa.array(r.sample(range(len(table)), len(table)), pa.int64()))
    table = table.take(
        pc.sort_indices(table, [(LANE, "ascending"), (options.end_column, "ascending")])
    )
    table = table.rename_columns([f"c{n}" for n in range(table.num_columns)])
    at = 0
    while at < len(table):
        size = r.randint(1, 5)
        yield from table.slice(at, size).combine_chunks().to_batches()
        at += size


def told(row: dict[str, Any]) -> tuple[Any, ...]:
    """A match as the oracle tells it."""
    events = [(end_of(e["event"]), e["variable"], e["event"]["event"]) for e in row["events"]]
    order = tuple((name, event) for _, name, event in sorted(events, key=lambda e: e[0]))
    return order, row["start"], row["end"]


@pytest.mark.parametrize("seed", range(WORKLOADS))
def test_cut_queries_find_what_each_finds_alone(seed: int) -> None:
    members = workload_of(seed)
    crossed = found = 0
    for number in range(STREAMS):
        r = random.Random(100 * seed + number)
        intervals = number % 3 == 2
        rows = stream(r, intervals=intervals, most=24)
        if not rows:
            continue
        given: dict[str, Any] = {"cap": CAP, "id": "event", "plan": {"placement": "round-robin"}}
        given |= {"start": "start", "end": "end"} if intervals else {}
        names = ("event", "type", *(("start", "end") if intervals else ("ts",)), *"kvfs")
        by_content = number % 2 == 1
        if by_content:  # some events are there twice, and nothing but their number tells them apart
            del given["id"]
            names = names[1:]
            rows = sorted([*rows, *r.sample(rows, len(rows) // 3)], key=end_of)
        table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
        table = table.cast(pa.schema([f.with_type(_kind(f.name)) for f in table.schema]))
        options = make_options(given)
        nodes = r.choice((2, 3))
        lanes = lanes_of(members, options, table.schema, buckets=nodes, nodes=nodes)
        cuts = cut_lanes(lanes, options, table.schema, nodes)
        assert cuts is not None
        matches = in_stages(cuts, options, table, r).to_pylist()
        crossed += len(cuts.texts)
        found += len(matches)
        for member in members:
            own = [row for row in matches if row["query"] == member.name]
            alone = cepheid.detect(table, member.query, **given)
            what = f"{member.query.source.text}\n{cuts.texts}\n{rows}"
            expected = Counter(alone.column("match_id").to_pylist())
            assert Counter(row["match_id"] for row in own) == expected, what
            if not by_content:
                defined = [{n: v for n, v in row.items() if v is not None} for row in rows]
                assert Counter(map(told, own)) == by_definition(member.query, defined), what
    assert crossed
    assert found


def test_exceptions_are_remembered_while_what_they_cancel_is_on_its_way() -> None:
    """A part below an exception waits where the exceptions are; another part is cut."""
    texts = {
        "guarded": "SELECT * FROM A x; (B y \\ N n)",
        "after": "SELECT * FROM (A x; B y); C z",
        "other": "SELECT * FROM (N x; B y); C z",
    }
    members = [Member(name, cepheid.compile(text, "next")) for name, text in texts.items()]
    kinds = ["A", "N", *("CN" * 20), "B", "C"]
    rows = [{"event": n, "type": kind, "ts": n} for n, kind in enumerate(kinds)]
    table = pa.Table.from_pylist(rows)
    options = make_options({"id": "event", "plan": {"placement": "round-robin"}})
    lanes = lanes_of(members, options, table.schema, buckets=2, nodes=2)
    cuts = cut_lanes(lanes, options, table.schema, 2)
    assert cuts is not None
    assert cuts.texts == ("Next(Atom([N]), Atom([B]))",)
    matches = in_stages(cuts, options, table, random.Random(1)).to_pylist()
    assert Counter(row["query"] for row in matches) == {"after": 1, "other": 21}


@pytest.mark.parametrize("given", [{"plan": {"cuts": False}}, {"failures": True}])
def test_queries_stay_whole(given: dict[str, Any]) -> None:
    """On demand, and where it would matter which of simultaneous exceptions is found first."""
    members = workload_of(0)
    plan = {"placement": "round-robin", **given.get("plan", {})}
    options = make_options({"cap": CAP, **given, "plan": plan})
    schema = pa.schema([(name, _kind(name)) for name in ("type", "ts", *"kvfs")])
    lanes = lanes_of(members, options, schema, buckets=2, nodes=2)
    assert cut_lanes(lanes, options, schema, 2) is None


def _kind(name: str) -> pa.DataType:
    if name in ("event", "type", "s"):
        return pa.string()
    return pa.float64() if name == "f" else pa.int64()
