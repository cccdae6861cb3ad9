"""Scanning files without Spark: facts, slices, reading in order, and the tasks' matches."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.hosts.arrow_filter import row_condition
from cepheid.hosts.division import TimeReach, reach_of
from cepheid.hosts.event_files import EventFiles, OtherTable, list_event_files
from cepheid.hosts.file_facts import Unit, describe_files, read_facts
from cepheid.hosts.plain_types import plain_schema
from cepheid.hosts.prepared_program import prepare_program
from cepheid.hosts.scan_plan import UnitTimes, disorder, slice_units
from cepheid.hosts.scan_task import DescribeTask, ScanTask
from cepheid.hosts.slice_reader import SliceReader
from cepheid.hosts.spark_task import DetectionTask
from cepheid.hosts.time_slices import TimeSlices
from cepheid.model.errors import DataError
from cepheid.model.options import make_options

QUERIES = [
    "EVENT SEQ(A x, B y) WHERE [id] WITHIN 12",
    "EVENT SEQ(!(D n), A x, B y) WHERE x.v != n.v WITHIN 6",
    "EVENT SEQ(A x, !(B n)) WHERE [id] AND x.v > 3 WITHIN 9",
]


def random_events(rows: int, seed: int = 1) -> pa.Table:
    r = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(r.choice(list("ABCD"), rows)),
            "ts": pa.array(np.sort(r.integers(0, rows // 2, rows))),
            "id": pa.array(r.integers(0, 9, rows)),
            "v": pa.array(r.integers(0, 9, rows).astype(np.int32)),
            "s": pa.array([None if n % 3 == 0 else f"s{n}" for n in r.integers(0, 9, rows)]),
        }
    )


def write(folder: Path, tables: list[pa.Table], suffix: str = ".parquet", group: int = 50) -> Path:
    folder.mkdir()
    for number, table in enumerate(tables):
        path = folder / f"part-{number:03}{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, path, row_group_size=group)
        elif suffix == ".csv":
            pa.csv.write_csv(table, path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return folder


def listed(path: Path) -> EventFiles:
    files = list_event_files(path)
    assert isinstance(files, EventFiles)
    return files


def described(files: EventFiles, **options: Any) -> tuple[pa.Schema, list[Unit]]:
    tasks = DescribeTask(files, make_options(options), 3)
    found = [b for first in range(3) for b in tasks.run(numbers(first))]
    facts = read_facts(pa.Table.from_batches(found))
    assert [fact.file for fact in facts] == list(range(len(files.files)))
    schema = pa.unify_schemas([fact.schema for fact in facts], promote_options="permissive")
    return schema, [unit for fact in facts for unit in fact.units]


def numbers(*values: int) -> Any:
    return iter([pa.record_batch({"id": pa.array(values, pa.int64())})])


def scanned(path: Path, text: str, edges: tuple[int, ...] | int, **options: Any) -> pa.Table:
    """What the tasks of a scan find together, run here one after the other."""
    files, query, chosen = listed(path), cepheid.compile(text), make_options(options)
    schema, units = described(files, **options)
    program = prepare_program(query, chosen, schema)
    reach = reach_of(program)
    assert isinstance(reach, TimeReach)
    if isinstance(edges, int):
        slices = slice_units(UnitTimes(units), reach, 2, exactly=edges).slices
    else:
        slices = TimeSlices(edges, reach)
    wanted = [schema.field(name) for name in program.columns(schema)]
    reader_schema = pa.schema(
        [
            f.with_type(pa.dictionary(pa.int32(), pa.string())) if f.name == "type" else f
            for f in wanted
        ]
    )
    reader = SliceReader(
        files, reader_schema, chosen, program.types, row_condition(program, schema)
    )
    matches = plain_schema(program.form.schema)
    task = ScanTask(
        DetectionTask(query, chosen, matches),
        reader,
        slices,
        tuple(UnitTimes(units).of_slice(slices, n) for n in range(len(slices))),
    )
    found = [b for n in range(len(slices)) for b in task.run(numbers(n))]
    return pa.Table.from_batches(found, schema=matches)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda match: match["match_id"])


def in_files(events: pa.Table, files: int) -> list[pa.Table]:
    size = -(-len(events) // files)
    return [events.slice(n * size, size) for n in range(files)]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_ordered_files(tmp_path: Path, suffix: str, query: str) -> None:
    events = random_events(900)
    path = write(tmp_path / "events", in_files(events, 6), suffix)
    expected = rows_of(cepheid.detect(events, query))
    assert len(expected) > 20
    assert [m["match_id"] for m in rows_of(scanned(path, query, 5))] == [
        m["match_id"] for m in expected
    ]
    found = rows_of(scanned(path, query, (100, 101, 250, 251, 333)))
    assert found == expected


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "layout", ["within row groups", "within files", "over files", "between neighbours"]
)
def test_disorder(tmp_path: Path, layout: str, query: str) -> None:
    """Whatever lies where, a slice sees its events in order of time."""
    events = random_events(900)
    order = np.arange(900)
    r = np.random.default_rng(3)
    if layout == "between neighbours":
        order = np.argsort(order + r.integers(0, 30, 900), kind="stable")
    else:
        size = {"within row groups": 50, "within files": 150, "over files": 900}[layout]
        for first in range(0, 900, size):
            r.shuffle(order[first : first + size])
    path = write(tmp_path / "events", in_files(events.take(pa.array(order)), 6))
    expected = rows_of(cepheid.detect(events, query))
    for edges in ((), (200,), (50, 60, 300)):
        assert rows_of(scanned(path, query, edges)) == expected


def test_many_small_files_and_a_few_without_rows(tmp_path: Path) -> None:
    events = random_events(600)
    parts = in_files(events, 150)
    parts[3:3] = [events.slice(0, 0)] * 3
    path = write(tmp_path / "events", parts)
    assert rows_of(scanned(path, QUERIES[0], 7)) == rows_of(cepheid.detect(events, QUERIES[0]))


def test_rows_without_time_or_type_match_nothing_and_hurt_nobody(tmp_path: Path) -> None:
    events = random_events(300).to_pylist()
    for n in range(0, 300, 7):
        events[n]["ts"] = None
    for n in range(0, 300, 11):
        events[n]["type"] = None
    table = pa.Table.from_pylist(events, schema=random_events(3).schema)
    path = write(tmp_path / "events", in_files(table, 4))
    expected = rows_of(cepheid.detect(table, QUERIES[0]))
    assert rows_of(scanned(path, QUERIES[0], (40, 80))) == expected
    nothing = table.set_column(1, "ts", pa.nulls(300, pa.int64()))
    assert scanned(write(tmp_path / "none", [nothing]), QUERIES[0], ()).num_rows == 0


def test_ties_by_arrival_are_decided_by_the_id(tmp_path: Path) -> None:
    rows = [{"type": "AB"[n % 2], "ts": n // 8, "n": n, "id": 1} for n in range(80)]
    events = pa.Table.from_pylist(rows)
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 2"
    options = {"tie": "seqno", "id": "n"}
    expected = rows_of(cepheid.detect(events, query, **options))
    shuffled = events.take(pa.array(np.random.default_rng(1).permutation(80)))
    path = write(tmp_path / "events", in_files(shuffled, 5), group=7)
    assert rows_of(scanned(path, query, (3, 6), **options)) == expected
    path = write(tmp_path / "ordered", in_files(events, 5), group=7)
    assert rows_of(scanned(path, query, (3, 6), **options)) == expected


@pytest.mark.parametrize("version", ["INT96", "us", "ms", "ns"])
def test_time_stamps_of_all_ages(tmp_path: Path, version: str) -> None:
    start = datetime(2024, 3, 1, tzinfo=UTC)
    times = [start + timedelta(milliseconds=10 * n) for n in range(200)]
    events = random_events(200).set_column(1, "ts", pa.array(times, pa.timestamp("us", "UTC")))
    folder = tmp_path / "events"
    folder.mkdir()
    stored = events
    if version in ("ms", "ns"):
        kind = pa.timestamp(version, "UTC")
        stored = events.set_column(1, "ts", events["ts"].cast(kind))
    for number, part in enumerate(in_files(stored, 4)):
        pq.write_table(
            part,
            folder / f"{number}.parquet",
            row_group_size=20,
            use_deprecated_int96_timestamps=version == "INT96",
        )
    schema, units = described(listed(folder))
    first = int(start.timestamp() * 1_000_000)
    assert schema.field("ts").type.tz == "UTC"
    assert (min(u.low for u in units), max(u.high for u in units)) == (first, first + 1_990_000)
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 200 ms"
    expected = rows_of(cepheid.detect(events, query))
    assert rows_of(scanned(folder, query, 4)) == expected
    assert len(expected) > 10


def test_times_in_text_files(tmp_path: Path) -> None:
    """Whole seconds here and fractions there; a zone is kept as UTC, a date alone is a text."""
    lines = [
        {"type": "1", "ts": "2024-03-01T12:00:00Z", "day": "2024-03-01", "id": 1},
        {"type": "2", "ts": "2024-03-01T14:00:00.5+02:00", "day": "x", "id": 1},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "b.csv").write_text(
        'type,ts,name\n1,2024-03-01 12:00:00,""\n2,2024-03-01 12:00:00.5,\n2,,NA\n'
    )
    query = "EVENT SEQ(`1` x, `2` y) WITHIN 1 s"
    (match,) = scanned(tmp_path / "a.jsonl", query, ()).to_pylist()
    assert match["end"] - match["start"] == timedelta(milliseconds=500)
    assert match["start"] == datetime(2024, 3, 1, 12, tzinfo=UTC)
    assert match["x"]["day"] == "2024-03-01"
    (match,) = scanned(tmp_path / "b.csv", query, ()).to_pylist()
    assert match["start"] == datetime(2024, 3, 1, 12)
    assert (match["x"]["name"], match["y"]["name"]) == ("", None)


def test_columns_that_differ_between_files(tmp_path: Path) -> None:
    first = pa.table({"type": ["A"], "ts": [1], "v": pa.array([1], pa.int32())})
    second = pa.table({"type": ["B"], "ts": [2], "v": [1.5], "late": ["x"]})
    path = write(tmp_path / "events", [first, second])
    (match,) = scanned(path, "EVENT SEQ(A x, B y) WHERE x.v < y.v WITHIN 9", ()).to_pylist()
    assert match["x"] == {"type": "A", "ts": 1, "v": 1.0, "late": None}
    assert match["y"] == {"type": "B", "ts": 2, "v": 1.5, "late": "x"}


def test_row_groups_are_passed_over_by_what_they_hold(tmp_path: Path) -> None:
    events = random_events(400)
    sizes = pa.array(np.repeat(np.arange(8), 50))
    path = write(tmp_path / "events", [events.append_column("size", sizes)])
    text = "EVENT SEQ(A x, B y) WHERE [id] AND x.size > 5 AND y.size >= 6 WITHIN 40"
    files = listed(path)
    schema, units = described(files)
    program = prepare_program(cepheid.compile(text), make_options({}), schema)
    condition = row_condition(program, schema)
    reader = SliceReader(files, schema, program.options, program.types, condition)
    assert [unit.group for unit in reader._kept(units)] == [6, 7]
    table = pq.read_table(path)
    assert rows_of(scanned(path, text, ())) == rows_of(cepheid.detect(table, text))


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "events", in_files(random_events(100), 2))
    files, options = listed(path), make_options({})
    schema, units = described(files)
    query = cepheid.compile(QUERIES[0])
    program = prepare_program(query, options, schema)
    reader = SliceReader(files, schema, options)
    task = ScanTask(
        DetectionTask(query, options, plain_schema(program.form.schema)),
        reader,
        TimeSlices((), TimeReach(0, 12)),
        (tuple(units),),
    )
    assert list(task.run(numbers(0)))
    target = path / "part-001.parquet"
    os.utime(target, ns=(1, 1))
    with pytest.raises(DataError, match="has changed since the scan was planned"):
        list(task.run(numbers(0)))
    target.unlink()
    with pytest.raises(DataError, match="is gone"):
        list(task.run(numbers(0)))


def test_other_tables_are_left_to_their_readers(tmp_path: Path) -> None:
    for name, kind in (("_delta_log/0.json", "delta"), ("metadata/v1.metadata.json", "iceberg")):
        folder = tmp_path / kind
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("{}")
        (folder / "a.parquet").write_text("")
        found = list_event_files(folder)
        assert isinstance(found, OtherTable)
        assert found.format == kind
    (tmp_path / "hive" / "day=1").mkdir(parents=True)
    (tmp_path / "hive" / "day=1" / "a.parquet").write_text("")
    assert isinstance(list_event_files(tmp_path / "hive"), OtherTable)
    assert isinstance(list_event_files("strange://bucket/events.parquet"), OtherTable)


def test_paths_that_hold_no_events(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no-events"):
        list_event_files(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no-events"):
        list_event_files(tmp_path)
    (tmp_path / "a.csv").write_text("a\n")
    (tmp_path / "_hidden.json").write_text("{}")
    assert len(listed(tmp_path).files) == 1
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(DataError, match="mixed-formats"):
        list_event_files(tmp_path)
    (tmp_path / "c.txt").write_text("{}")
    with pytest.raises(DataError, match="unknown-format"):
        list_event_files(tmp_path / "c.txt")


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    for name, text in (("a.parquet", "no"), ("b.json", "[1, 2"), ("c.csv", "a,b\n1,2,3\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match="unreadable-events"):
            describe_files(listed(tmp_path / name), [0], make_options({}))


def units(*times: tuple[int, int], rows: int = 200_000) -> UnitTimes:
    each = enumerate(times)
    return UnitTimes([Unit(n, 0, low, high, rows, rows, True, False) for n, (low, high) in each])


def test_slices_are_even_and_their_edges_lie_between_units() -> None:
    ordered = units(*((100 * n, 100 * n + 99) for n in range(40)))
    slicing = slice_units(ordered, TimeReach(0, 5), cores=2)
    assert slicing.slices.edges == tuple(range(500, 4000, 500))
    assert slicing.read < 1.02
    assert len(ordered.of_slice(slicing.slices, 3)) == 6


def test_a_long_window_makes_fewer_slices() -> None:
    ordered = units(*((100 * n, 100 * n + 99) for n in range(40)))
    assert len(slice_units(ordered, TimeReach(0, 400), cores=2).slices) == 2
    assert len(slice_units(ordered, TimeReach(0, 400), cores=8).slices) == 5
    assert len(slice_units(ordered, TimeReach(0, 4000), cores=8).slices) == 1


def test_files_without_order_would_be_read_again_and_again() -> None:
    ordered = units(*((100 * n, 100 * n + 99) for n in range(40)))
    assert disorder(ordered, slice_units(ordered, TimeReach(0, 4000), cores=2)) == 1
    neighbours = units(*((100 * n, 100 * n + 120) for n in range(40)))
    assert 1 < disorder(neighbours, slice_units(neighbours, TimeReach(0, 5), cores=2)) < 1.5
    shuffled = units(*((n, 4000 - n) for n in range(40)))
    assert disorder(shuffled, slice_units(shuffled, TimeReach(0, 5), cores=2)) > 4


def test_little_data_is_one_slice() -> None:
    assert len(slice_units(units((0, 9), (10, 19), rows=10), TimeReach(0, 1), 8).slices) == 1
    assert len(slice_units(UnitTimes([]), TimeReach(0, 1), 8).slices) == 1


def test_what_a_slice_reads_is_what_overlaps_it() -> None:
    r = np.random.default_rng(5)
    some = units(*((int(low), int(low + r.integers(0, 80))) for low in r.integers(0, 300, 60)))
    slices = TimeSlices((50, 120, 121, 300), TimeReach(7, 20))
    for number in range(len(slices)):
        low, high = slices.read(number)
        wanted = [u for u in some.units if u.high >= low and u.low < high]
        assert list(some.of_slice(slices, number)) == wanted
    shares = some.weighed(slices, 5).shares
    assert shares == pytest.approx([len(some.of_slice(slices, n)) / 60 for n in range(5)], abs=0.02)


def test_a_large_cluster_and_very_many_files_are_planned_quickly() -> None:
    many = units(*((100 * n, 100 * n + 99) for n in range(20_000)), rows=10_000)
    slicing = slice_units(many, TimeReach(0, 1000), cores=100)
    assert 100 <= len(slicing.slices) <= 400
    assert slicing.read < 1.5
