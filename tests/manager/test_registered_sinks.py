"""Matches go to the sink that a query's text registers, exactly once, whenever a manager dies."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.delivery.match_files import match_bytes
from cepheid.manager.growing_file import add_to_file, length_of
from cepheid.model.errors import CepheidError, OptionError
from tests.manager.conftest import delivered
from tests.manager.test_manager import expected, fed, found, parts, stream

AFTER = "SELECT * FROM D d ; B b WHERE d.id = b.id"


def registered(how: str) -> str:
    return f"register sink q {how} QUERY q {AFTER}"


def lines(path: Path) -> Counter[str]:
    return Counter(json.loads(line)["match_id"] for line in path.read_text("utf-8").splitlines())


def rows(path: Path) -> Counter[str]:
    with path.open(encoding="utf-8", newline="") as stream:
        return Counter(row["match_id"] for row in csv.DictReader(stream))


def in_folder(path: Path) -> Counter[str]:
    tables = [pq.read_table(each) for each in sorted(path.glob("[!.]*.parquet"))]
    return Counter(pa.concat_tables(tables)["match_id"].to_pylist())


def submit(manager, name, how, folder):
    manager.submit(registered(how), name=name, folder=str(folder))


@pytest.mark.kill
def test_each_sink_gets_all_matches_once_over_a_kill(managed, tmp_path, capfd):
    """The last batch was delivered, and the manager killed before it could write that down."""
    events = stream(7)
    batches = parts(events, 100)
    there = tmp_path / "there"
    manager = managed(sinks=2)
    submit(manager, "lines", "as file 'a/found.jsonl'", there)
    submit(manager, "rows", "as file 'found.csv'", there)
    submit(manager, "parts", "as file 'found'", there)
    submit(manager, "table", "as table", there)
    submit(manager, "shown", "as console", there)
    for number in (0, 1):
        fed(manager, batches[number], f"{number}.csv")
    short = (there / "a" / "found.jsonl").read_bytes()
    journal = tmp_path / "state" / "journal.jsonl"
    before = journal.read_bytes()
    fed(manager, batches[2], "2.csv")
    whole = (there / "a" / "found.jsonl").read_bytes()
    assert whole.startswith(short)
    assert len(whole) > len(short) > 0

    told = journal.read_bytes().splitlines(keepends=True)
    assert json.loads(told[-1])["op"] == "done"
    assert told[-1] not in before
    managed.end()
    journal.write_bytes(b"".join(told[:-1]))
    with (there / "a" / "found.jsonl").open("ab") as stream_:
        stream_.write(b'{"half a li')  # as if more had been under way
    (there / "found" / "..batch-00000002-proxy-0.7.parquet.unfinished").touch()
    again = managed()
    assert not list((there / "found").glob(".*"))
    assert again.has_waiting
    again.do_batch()
    assert (there / "a" / "found.jsonl").read_bytes() == whole
    fed(again, batches[3], "3.csv")
    wanted = Counter(expected(events, AFTER))
    assert len(wanted) > 8
    assert lines(there / "a" / "found.jsonl") == wanted
    assert rows(there / "found.csv") == wanted
    assert in_folder(there / "found") == wanted
    for name in ("table", "shown"):
        assert found(tmp_path / "matches", name) == sorted(wanted)
    assert set(delivered(tmp_path / "matches")) == {"table", "shown"}
    assert again.entries.by_name["rows"].matches == len(wanted)
    assert "matches" in capfd.readouterr().err


def test_a_file_that_was_moved_away_begins_anew_and_a_stopped_query_frees_it(managed, tmp_path):
    events = stream(8)
    batches = parts(events, 100)
    manager = managed(nodes=1)
    submit(manager, "rows", "as file 'found.csv'", tmp_path)
    fed(manager, batches[0], "0.csv")
    (tmp_path / "found.csv").rename(tmp_path / "old.csv")
    fed(manager, batches[1], "1.csv")
    both = rows(tmp_path / "old.csv") + rows(tmp_path / "found.csv")
    assert set(both.values()) == {1}
    assert both.keys() <= set(expected(events.slice(0, 200), AFTER))
    assert manager.entries.by_name["rows"].matches == len(both)
    with pytest.raises(CepheidError, match="two queries would write"):
        submit(manager, "again", "as file 'found.csv'", tmp_path)
    manager.remove("rows")
    latest = manager.progress.latest
    with pytest.raises(CepheidError, match="matches of a stopped query may still come") as told:
        submit(manager, "again", "as file 'found.csv'", tmp_path)
    assert f"`rows` frees the file when an event of {latest + 1} or later" in str(told.value)
    fed(manager, batches[2], "2.csv")
    with pytest.raises(CepheidError, match="is not empty"):
        submit(manager, "again", "as file 'found.csv'", tmp_path)
    (tmp_path / "found.csv").unlink()
    submit(manager, "again", "as file 'found.csv'", tmp_path)
    fed(manager, batches[3], "3.csv")
    assert rows(tmp_path / "found.csv") == Counter(expected(batches[3], AFTER))


REFUSED = {
    "as callback": "the sink `q` is a callback, which only a program can give",
    "as file 'found.parquet'": "a Parquet file, to which nothing can be added later",
    "as file 'found.txt'": "whose name tells no format",
    "as file 'events'": "is a folder that the manager reads",
    "as file 'events/found.csv'": "is a folder that the manager reads",
    "as file 'events/below/found.csv'": "is a folder that the manager reads",
    "as file 'state/found.csv'": "is a folder that the manager reads",
    "as file 'matches'": "among those of queries without a sink",
    "as file 'matches/batch-00000000-proxy-0.jsonl'": "among those of queries without a sink",
    "as file 'folder.csv/found.csv'": "nothing can be written to",
}


def test_a_sink_that_cannot_be_is_refused(managed, tmp_path):
    manager = managed(nodes=1)
    (tmp_path / "folder.csv").touch()
    for how, told in REFUSED.items():
        with pytest.raises(CepheidError, match=told):
            submit(manager, "q", how, tmp_path)
    assert manager.entries.by_name == {}


@pytest.mark.parametrize("how", ["as file 'new/found.csv'", "as file 'new/found'"])
def test_a_query_that_is_refused_leaves_nothing_behind(managed, tmp_path, how):
    manager = managed(nodes=1)

    def refuse(record):
        raise OptionError.of("refused", "the node cannot do it")

    manager._change = refuse
    with pytest.raises(OptionError, match="the node cannot do it"):
        submit(manager, "other", how, tmp_path)
    assert not (tmp_path / "new").exists()


def test_what_is_added_to_csv_has_one_header():
    table = cepheid.detect(
        [{"type": "D", "ts": 1, "id": 1}, {"type": "B", "ts": 2, "id": 1}], AFTER
    )
    begin = match_bytes([table], "csv", begins=True)
    more = match_bytes([table, table], "csv", begins=False)
    assert begin.count(b"match_id") == 1
    assert b"match_id" not in more
    assert begin.splitlines()[1:] * 2 == more.splitlines()


def test_what_lies_behind_the_known_length_is_written_over(tmp_path):
    path = str(tmp_path / "file")
    assert length_of(path) == 0
    assert add_to_file(path, 0, b"first\n") == 6
    assert add_to_file(path, 6, b"second, and longer\n") == 25
    assert add_to_file(path, 6, b"second\n") == 13
    assert Path(path).read_bytes() == b"first\nsecond\n"
