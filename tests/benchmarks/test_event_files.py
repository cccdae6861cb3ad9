"""The generated layouts hold the same events, whatever their order and their number of files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.spark.event_files import EventFiles
from cepheid.generate import StreamParameters


@pytest.fixture
def events(tmp_path: Path) -> EventFiles:
    return EventFiles(
        StreamParameters(events=1_000, attributes=2, domain_sizes=(5, 50), seed=1), tmp_path
    )


def in_time_order(folder: Path) -> pa.Table:
    return pq.read_table(folder).sort_by("ts").combine_chunks()


def test_shuffled_files_hold_the_ordered_rows(events: EventFiles) -> None:
    ordered, shuffled = events.ordered(4), events.shuffled(3)
    assert len(list(ordered.iterdir())) == 4
    assert pq.read_table(ordered)["ts"].to_pylist() == list(range(1_000))
    assert pq.read_table(shuffled)["ts"].to_pylist() != list(range(1_000))
    assert in_time_order(shuffled).equals(in_time_order(ordered))


def test_micro_batches_come_by_modification_time(events: EventFiles) -> None:
    folder = events.micro_batches([600, 300, 100])
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [pq.read_metadata(path).num_rows for path in files] == [600, 300, 100]
    stamps = [pq.read_table(path)["ts"] for path in files]
    starts = [stamp[0].as_py() for stamp in stamps]
    assert starts == sorted(starts)
    assert starts[0].year == 2020
    assert (starts[1] - starts[0]).total_seconds() == pytest.approx(0.6)


def test_matches_are_counted_once_and_remembered(events: EventFiles) -> None:
    found = events.matches(200)
    assert found > 0
    assert events.matches(1_000, "attr2") > 0
    (events.folder / "matches-attr1-200.json").write_text('{"matches": 41}')
    assert events.matches(200) == 41


def test_an_unfinished_layout_is_made_anew(events: EventFiles) -> None:
    (events.folder / ".ordered-2").mkdir(parents=True)
    (events.folder / ".ordered-2" / "part-00000.parquet").write_text("cut off")
    assert pq.read_table(events.ordered(2)).num_rows == 1_000
