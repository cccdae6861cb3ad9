"""A journal that begins anew loses nothing, whenever the manager is killed at it."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.manager.test_manager import GUARDED, PAIR, expected, fed, found, parts, stream

AFTER = "register sink q as file 'found.jsonl' QUERY q SELECT * FROM D d ; B b WHERE d.id = b.id"
SHORT = {"nodes": 1, "longest_journal": 500}


def first_half(manager, events, folder):
    """Queries come and go, two files are taken, and one that is no use."""
    manager.submit(PAIR, name="all")
    manager.submit(GUARDED, name="rests")
    manager.submit(PAIR, name="stops")
    manager.submit("EVENT SEQ(A x, B y) WHERE x.nobody > 1", name="wrong")
    manager.submit(AFTER, name="sunk", folder=str(folder))
    early = parts(events, 100)
    fed(manager, early[0], "0.csv")
    manager.pause("rests", at=180)
    manager.remove("stops", at=300)  # matches of it are still to come
    fed(manager, early[1], "1.csv")


def second_half(manager, events, folder):
    """All goes on as if nothing had been."""
    states = {each.name: each.state for each in manager.entries.by_name.values()}
    assert states == {"all": "running", "rests": "paused", "wrong": "failed", "sunk": "running"}
    assert set(manager.files) == {"0.csv", "1.csv"}
    assert manager.placement.placed_ever == 5
    assert not manager.has_waiting
    late = parts(events, 100)
    for number in (2, 3):
        fed(manager, late[number], f"{number}.csv")
        manager.checkpoint()
    before = events.filter(events["ts"].to_numpy() < 180)
    seen = events.filter(events["ts"].to_numpy() < 300)
    assert found(folder / "matches", "all") == expected(events, PAIR)
    assert found(folder / "matches", "rests") == expected(before, GUARDED)
    assert found(folder / "matches", "stops") == expected(seen, PAIR)
    ids = [json.loads(line)["match_id"] for line in (folder / "found.jsonl").open()]
    assert sorted(ids) == expected(events, "SELECT * FROM D d ; B b WHERE d.id = b.id")
    assert manager.entries.by_name["all"].matches == len(expected(events, PAIR))


@pytest.mark.kill
@pytest.mark.parametrize("killed", ["before the renaming", "later"])
def test_a_kill_while_the_journal_begins_anew(managed, tmp_path, killed):
    events = stream(11)
    journal, draft = (tmp_path / "state" / name for name in ("journal.jsonl", ".journal.jsonl.7"))
    manager = managed(**SHORT)
    first_half(manager, events, tmp_path)
    long = journal.read_bytes()
    manager.checkpoint()
    short = journal.read_bytes()
    assert json.loads(short)["op"] == "sum"
    assert json.loads(short)["records"] == len(long.splitlines())
    managed.end()
    match killed:
        case "before the renaming":
            journal.write_bytes(long)
            draft.write_bytes(short[: len(short) // 2])
        case "later":
            with journal.open("ab") as stream_:
                stream_.write(b'{"op":"do')
    again = managed(**SHORT)
    assert not draft.exists()
    second_half(again, events, tmp_path)
    assert len(journal.read_bytes()) < len(long) * 2


@pytest.mark.kill
def test_what_came_after_the_sum_is_done_again(managed, tmp_path):
    events = stream(12)
    manager = managed(**SHORT)
    manager.submit(PAIR, name="all")
    early = parts(events, 100)
    fed(manager, early[0], "0.csv")
    manager.checkpoint()
    manager.submit(GUARDED, name="new")
    fed(manager, early[1], "1.csv")
    latest = manager.progress.latest
    managed.end()
    shutil.rmtree(tmp_path / "matches")  # what was delivered is not delivered again
    again = managed(**SHORT)
    assert (tmp_path / "state" / "journal.jsonl").read_bytes().startswith(b'{"op":"sum"')
    assert again.progress.latest == latest
    assert set(again.entries.by_name) == {"all", "new"}
    assert again.entries.by_name["all"].matches > 0
    assert not again.has_waiting
    assert not list((tmp_path / "matches").glob("*.jsonl"))
    wanted = set(expected(events.slice(0, 300), PAIR))
    fed(again, early[2], "2.csv")
    assert set(found(tmp_path / "matches", "all")) <= wanted
    assert again.entries.by_name["all"].matches == len(wanted)
