"""Which files are taken, and when."""

from __future__ import annotations

import os
import time

import pyarrow as pa
import pytest

from cepheid.manager.event_folder import EventFolder, fitting
from cepheid.model.errors import DataError


def aged(path, seconds=10.0):
    when = time.time() - seconds
    os.utime(path, (when, when))


def folder_of(path):
    return EventFolder(path, lambda each: each.suffix == ".csv")


def test_files_come_in_the_order_of_names_each_once(tmp_path):
    for name in ("b.csv", "a.csv", "_c.csv", ".d.csv", "notes.txt"):
        (tmp_path / name).write_text("type,ts\n")
        aged(tmp_path / name)
    folder, taken = folder_of(tmp_path), []
    while (found := folder.next_file(taken)) is not None:
        taken.append(found.path.name)
    assert taken == ["a.csv", "b.csv"]


@pytest.mark.slow
def test_a_file_that_grows_is_left_alone_and_those_after_it_wait(tmp_path):
    (tmp_path / "a.csv").write_text("type")
    (tmp_path / "b.csv").write_text("type")
    aged(tmp_path / "b.csv")
    folder = folder_of(tmp_path)
    assert folder.next_file([]) is None
    time.sleep(0.6)
    with (tmp_path / "a.csv").open("a") as stream:
        stream.write(",ts\n")
    assert folder.next_file([]) is None
    time.sleep(0.6)
    assert folder.next_file([]) is None, "it has changed less than a second ago"
    time.sleep(0.6)
    assert folder.next_file([]).path.name == "a.csv"


@pytest.mark.slow
def test_a_clock_that_is_behind_does_not_keep_a_file_waiting_for_ever(tmp_path):
    (tmp_path / "a.csv").write_text("type")
    aged(tmp_path / "a.csv", -3600.0)
    folder = folder_of(tmp_path)
    assert folder.next_file([]) is None
    time.sleep(1.1)
    assert folder.next_file([]) is not None


def test_batches_get_the_columns_of_the_first_file():
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
    given = pa.record_batch({"ts": pa.array([1], pa.int32()), "type": ["A"], "new": [7]})
    (batch,) = fitting(iter([given]), schema)
    assert batch.schema == schema
    assert batch.to_pylist() == [{"type": "A", "ts": 1, "v": None}]


def test_a_column_of_another_type_is_refused_by_name():
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64())])
    given = pa.record_batch({"type": ["A"], "ts": ["soon"]})
    with pytest.raises(DataError, match="column `ts`"):
        list(fitting(iter([given]), schema))


def test_a_file_that_changes_after_it_was_taken_is_found_out(tmp_path):
    (tmp_path / "a.csv").write_text("type,ts\n")
    aged(tmp_path / "a.csv")
    found = folder_of(tmp_path).next_file([])
    taken = {"a.csv": {"size": found.size, "changed": found.changed_ns}}
    assert folder_of(tmp_path).changed_since(taken) == []
    with (tmp_path / "a.csv").open("a") as stream:
        stream.write("A,1\n")
    assert folder_of(tmp_path).changed_since(taken) == ["a.csv"]
    (tmp_path / "a.csv").unlink()
    assert folder_of(tmp_path).changed_since(taken) == []


def test_a_folder_may_be_moved_away_and_come_back(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("type,ts\n")
    aged(tmp_path / "in" / "a.csv")
    folder = folder_of(tmp_path / "in")
    (tmp_path / "in").rename(tmp_path / "away")
    assert folder.next_file([]) is None
    assert folder.problem == "No such file or directory"
    (tmp_path / "away").rename(tmp_path / "in")
    assert folder.next_file([]) is not None
    assert folder.problem is None
