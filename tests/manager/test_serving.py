"""The loop of a manager: who is answered when, and what people are told."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from cepheid.cli.workload_events import is_event_file, reader
from cepheid.manager import event_folder
from cepheid.manager.event_folder import EventFolder
from cepheid.manager.serving import Serving
from cepheid.model.errors import CepheidError, OptionError
from tests.manager.conftest import delivered

PAIR = "EVENT SEQ(A x, B y) WITHIN 30"


@contextmanager
def at_work(manager: Any, events: Any) -> Iterator[tuple[Serving, list[str]]]:
    """A loop in a thread of its own, and what it tells."""
    told: list[str] = []
    events.mkdir(exist_ok=True)
    serving = Serving(manager, EventFolder(events, is_event_file), reader("type"), told.append)
    thread = threading.Thread(target=serving.run)
    thread.start()
    try:
        yield serving, told
    finally:
        serving.end()
        thread.join(30)
        assert not thread.is_alive()


def put(table: pa.Table, path: Any) -> None:
    draft = path.with_name(f".{path.name}")
    pa.csv.write_csv(table, draft)
    os.utime(draft, (time.time() - 60,) * 2)
    draft.rename(path)


def counted(serving: Serving, what: str) -> int:
    return int(serving.ask({"do": "nodes"}, 20)["stream"][what])


def wait_for(claim: Any) -> None:
    until = time.monotonic() + 20
    while not claim():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_request_that_was_given_up_does_not_keep_the_state_from_being_kept(managed, tmp_path):
    manager = managed(nodes=1)
    manager.submit(PAIR, name="pair")
    manager.take_file("1.csv", {}, pa.table({"type": ["A"], "ts": [1]}).to_batches())
    manager.do_batch()
    serving = Serving(manager, EventFolder(tmp_path, bool), reader("type"), print)
    with pytest.raises(TimeoutError):
        serving.ask({"do": "list"}, 0.01)
    serving.end()
    serving.run()
    assert not manager.has_news
    with pytest.raises(CepheidError, match="the manager ends"):
        serving.ask({"do": "list"}, 1.0)


def test_changed_files_and_a_folder_that_goes_are_told_once(managed, tmp_path, monkeypatch):
    monkeypatch.setattr(event_folder, "LOOK_BACK", 0.0)
    events = tmp_path / "events"
    with at_work(managed(nodes=1), events) as (serving, told):
        serving.ask({"do": "submit", "text": PAIR, "name": "pair"}, 20)
        put(pa.table({"type": ["A"], "ts": [1]}), events / "1.csv")
        wait_for(lambda: serving.ask({"do": "nodes"}, 20)["stream"]["events"] == 1)
        with (events / "1.csv").open("a") as stream:
            stream.write("B,2\n")
        wait_for(lambda: serving.ask({"do": "list"}, 20)["changed_files"] == ["1.csv"])
        events.rename(tmp_path / "away")
        wait_for(lambda: any("is away: No such file" in each for each in told))
        (tmp_path / "away").rename(events)
        put(pa.table({"type": ["B"], "ts": [3]}), events / "2.csv")
        wait_for(lambda: serving.ask({"do": "nodes"}, 20)["stream"]["events"] == 2)
        time.sleep(0.3)
        assert serving.ask({"do": "nodes"}, 20)["stream"]["changed"] == 1
    assert [each.partition(",")[0] for each in told] == [
        "note: `1.csv` has changed since it was taken",
        "note: the folder of events",
        "note: the folder of events",
    ]


@pytest.mark.kill
def test_an_order_that_waits_too_long_is_refused_and_a_pause_breaks_the_batch_off(
    managed, tmp_path, monkeypatch
):
    monkeypatch.setattr("cepheid.manager.serving._GRACE", 0.3)
    monkeypatch.setattr("cepheid.manager.serving._PATIENCE", 0.6)
    events = tmp_path / "events"
    with at_work(managed(nodes=2), events) as (serving, told):
        for name, text in (("runs", "SELECT * FROM SMALL s+"), ("pair", PAIR)):
            serving.ask({"do": "submit", "text": text, "name": name}, 20)
        put(pa.table({"type": ["SMALL", "A"], "ts": [1, 2]}), events / "1.csv")
        wait_for(lambda: counted(serving, "files") == 1 and counted(serving, "waiting") == 0)
        # Either of two events with equal times may come next: each pair doubles the runs.
        times = [3 + n // 2 for n in range(40)]
        put(pa.table({"type": ["B", *["SMALL"] * 40], "ts": [3, *times]}), events / "2.csv")
        wait_for(lambda: counted(serving, "waiting") == 1)
        wait_for(lambda: [each["node"] for each in serving.ask({"do": "list"}, 20)["busy"]] == [0])
        with pytest.raises(CepheidError, match=r"(?s)node 0 has been busy .*: runs"):
            serving.ask({"do": "submit", "text": PAIR, "name": "late"}, 20)
        assert serving.ask({"do": "pause", "name": "runs"}, 20)["state"] == "paused"
        wait_for(lambda: counted(serving, "waiting") == 0)
        pair = serving.ask({"do": "list"}, 20)["queries"][1]
        assert (pair["name"], pair["matches"]) == ("pair", 1)
    assert any("begun anew" in each for each in told)
    assert len(delivered(tmp_path / "matches")["pair"]) == 1


@pytest.mark.kill
def test_a_query_whose_end_cannot_be_reached_is_dropped_when_it_is_stopped_again(
    managed, tmp_path, monkeypatch
):
    """Events that lateness holds back are before its end: stopping it does not spare them."""
    monkeypatch.setattr("cepheid.manager.serving._GRACE", 0.3)
    events = tmp_path / "events"
    with at_work(managed(nodes=1, options={"lateness": 100}), events) as (serving, _):
        for name, text in (("runs", "SELECT * FROM SMALL s+"), ("pair", PAIR)):
            serving.ask({"do": "submit", "text": text, "name": name}, 20)
        times = [1 + n // 2 for n in range(40)]
        put(pa.table({"type": ["A", *["SMALL"] * 40], "ts": [1, *times]}), events / "1.csv")
        wait_for(lambda: counted(serving, "files") == 1 and counted(serving, "waiting") == 0)
        put(pa.table({"type": ["B", "B"], "ts": [7, 1000]}), events / "2.csv")
        wait_for(lambda: counted(serving, "waiting") == 1)
        assert serving.ask({"do": "stop", "name": "runs"}, 20)["state"] == "stopped"
        wait_for(lambda: serving.ask({"do": "list"}, 20)["busy"])
        assert serving.ask({"do": "stop", "name": "runs"}, 20)["state"] == "stopped"
        wait_for(lambda: counted(serving, "waiting") == 0)
        with pytest.raises(CepheidError, match="runs"):
            serving.ask({"do": "stop", "name": "runs"}, 20)
    assert len(delivered(tmp_path / "matches")["pair"]) == 1
    again = managed(nodes=1)
    assert set(again.entries.by_name) == {"pair"}


@pytest.mark.parametrize("at", ["99999999999999999999999", str(2**63), "9" * 5000, "soon"])
def test_a_time_that_no_event_can_have_is_refused(managed, at):
    with pytest.raises(OptionError) as told:
        managed(nodes=1).submit(PAIR, at=at)
    assert told.value.diagnostics[0].code == "bad-time"
