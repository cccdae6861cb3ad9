"""What a worker does with its partition, without Spark: names, slices, portions, end of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts import sorted_runs, spark_task
from cepheid.hosts.division import TimeReach
from cepheid.hosts.plain_types import fit, plain_schema
from cepheid.hosts.prepared_program import prepare_program
from cepheid.hosts.spark_task import SLICE, SOURCE, DetectionTask
from cepheid.hosts.time_slices import TimeSlices
from cepheid.model.options import make_options

KEYED = "EVENT SEQ(A x, !(C n), B y) WHERE [id] WITHIN 12"
ENDED = "EVENT SEQ(A x, !(B n)) WHERE [id] WITHIN 12"


def random_events(rows: int = 300) -> pa.Table:
    r = np.random.default_rng(2)
    return pa.table(
        {
            "type": pa.array(r.choice(list("ABC"), rows)),
            "ts": pa.array(np.sort(r.integers(0, rows // 2, rows))),
            "id": pa.array(r.integers(0, 5, rows)),
        }
    )


def task_for(text: str, events: pa.Table, **options: Any) -> DetectionTask:
    query, chosen = cepheid.compile(text), make_options(options)
    program = prepare_program(query, chosen, events.schema)
    schema = plain_schema(program.form.schema)
    return DetectionTask(query, chosen, schema, tuple(events.column_names))


def batches_of(events: pa.Table, rows: int = 17) -> Iterator[pa.RecordBatch]:
    """As Spark hands them over: small, and with names of no meaning."""
    numbered = events.rename_columns([f"c{n}" for n in range(events.num_columns)])
    yield from numbered.combine_chunks().to_batches(max_chunksize=rows)


def rows_of(batches: Iterator[pa.RecordBatch], task: DetectionTask) -> list[dict[str, Any]]:
    table = pa.Table.from_batches(list(batches), schema=task.schema)
    return sorted(table.to_pylist(), key=lambda match: match["match_id"])


def expected(events: Any, text: str, **options: Any) -> list[dict[str, Any]]:
    found = cepheid.detect(events, text, **options).to_pylist()
    assert len(found) > 3
    return sorted(found, key=lambda match: match["match_id"])


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_runs, "ROWS_PER_FEED", 50)
    monkeypatch.setattr(spark_task, "MATCHES_PER_BATCH", 7)


def test_a_partition_in_small_batches() -> None:
    events = random_events()
    task = task_for(KEYED, events)
    batches = list(task.detect(batches_of(events)))
    assert all(batch.num_rows <= 8 for batch in batches)
    assert rows_of(iter(batches), task) == expected(events, KEYED)


def test_types_that_came_as_numbers() -> None:
    events = random_events()
    numbers = pa.array([("A", "B", "C").index(t) for t in events["type"].to_pylist()], pa.int8())
    task = replace(task_for(KEYED, events), types=("A", "B", "C"))
    found = rows_of(task.detect(batches_of(events.set_column(0, "type", numbers))), task)
    assert found == expected(events, KEYED)


def test_slices_that_share_a_partition() -> None:
    """A slice may end anywhere in a batch."""
    events = random_events()
    slices = TimeSlices((20, 21, 60, 110), TimeReach(0, 12))
    copies = []
    for number in range(len(slices)):
        mine = [number in slices.reading(t) for t in events["ts"].to_pylist()]
        part = events.filter(pa.array(mine))
        copies.append(part.append_column(SLICE, pa.array([number] * len(part), pa.int32())))
    task = replace(task_for(KEYED, events), slices=slices)
    together = pa.concat_tables(copies)
    task = replace(task, columns=tuple(together.column_names))
    assert rows_of(task.detect_in_slices(batches_of(together)), task) == expected(events, KEYED)


def test_time_may_end_before_or_after_the_partition_s_last_event() -> None:
    events = random_events()
    for end in (60, 149, 155, 400):
        last = pa.table({"type": ["Z"], "ts": [end], "id": [None]}, schema=events.schema)
        known = events.filter(pa.array(np.array(events["ts"]) <= end))
        task = replace(task_for(ENDED, events, close_at_end=False), end=end)
        found = rows_of(task.detect(batches_of(known)), task)
        whole = pa.concat_tables([known, last])
        assert found == expected(whole, ENDED, close_at_end=False)


def test_what_the_tables_of_events_lack_is_absent() -> None:
    tables = {
        "A": pa.table({"ts": [1, 5, 9], "id": [1, 2, None], "v": [None, 3, 4]}),
        "B": pa.table({"ts": [2, 6, 10], "id": [1, 2, 3]}),
    }
    text = "EVENT SEQ(A x, B y) WHERE [id] AND x.v <= y.v WITHIN 20"
    schema = pa.schema([(n, pa.int64()) for n in ("ts", "id", "v")]).append(
        pa.field("type", pa.string())
    )
    parts = []
    for number, (name, table) in enumerate(tables.items()):
        named = table.append_column("type", pa.array([name] * 3))
        parts.append(fit(named, schema).append_column(SOURCE, pa.array([number] * 3)))
    events = pa.concat_tables(parts).sort_by("ts")
    task = replace(
        task_for(text, events.drop_columns([SOURCE])),
        columns=tuple(events.column_names),
        lacking=(frozenset(), frozenset({"v"})),
    )
    found = {(m["x"]["ts"], m["y"]["ts"]) for m in rows_of(task.detect(batches_of(events)), task)}
    here = cepheid.detect(tables, text).to_pylist()
    assert found == {(m["x"]["ts"], m["y"]["ts"]) for m in here}
    assert found


def test_a_partition_without_events() -> None:
    events = random_events()
    task = task_for(KEYED, events)
    assert list(task.detect(iter(()))) == []
    assert list(task.detect(batches_of(events.slice(0, 0)))) == []
