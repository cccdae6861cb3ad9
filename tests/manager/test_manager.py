"""A manager over real nodes finds what `detect` finds, also when nodes die."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import contextmanager, suppress

import pyarrow as pa
import pytest

import cepheid
from cepheid.manager.attending import Interrupted, attend_nobody
from cepheid.manager.event_folder import EventFolder
from cepheid.manager.serving import Serving
from cepheid.model.errors import CepheidError, EnvironmentProblem, LimitExceeded, OptionError
from cepheid.model.strategy import Strategy
from tests.manager.conftest import delivered

PAIR = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 30"
GUARDED = "EVENT SEQ(A x, !(C n), B y) WHERE [id] WITHIN 30"
LONE = "EVENT SEQ(A x, !(C n)) WHERE [id] WITHIN 20"
AFTER = "SELECT * FROM D d ; B b WHERE d.id = b.id"


def stream(seed, count=400):
    chance = random.Random(seed)
    times = sorted(chance.randrange(count * 2) for _ in range(count))
    return pa.table(
        {
            "type": [chance.choice("AABBCDE") for _ in times],
            "ts": times,
            "id": [chance.randrange(4) for _ in times],
            "number": list(range(count)),
        }
    )


def parts(events, rows):
    return [events.slice(n, rows).combine_chunks() for n in range(0, len(events), rows)]


def fed(manager, events, name):
    manager.take_file(name, {}, events.to_batches())
    while manager.has_waiting:
        manager.do_batch()


def expected(events, query):
    return sorted(cepheid.detect(events, query, close_at_end=False)["match_id"].to_pylist())


def found(out, name):
    matches = delivered(out).get(name, {})
    assert set(matches.values()) <= {1}, "something came twice"
    return sorted(matches)


def disordered(events, lateness, seed):
    """The same events, none of them later than allowed."""
    chance = random.Random(seed)
    times = events["ts"].to_pylist()
    arrival = sorted(range(len(times)), key=lambda n: times[n] + chance.random() * lateness)
    return events.take(arrival)


@pytest.mark.kill
def test_matches_are_those_of_detect_also_when_nodes_are_killed(managed, tmp_path):
    """Events come out of order; one that nobody reads comes last, and lets all deadlines pass."""
    events = disordered(stream(1), 20, 1)
    last = pa.table({"type": ["Z"], "ts": [10_000], "id": [0], "number": [9_999]})
    manager = managed(
        options={"lateness": 20}, strategy=Strategy.ROUND_ROBIN, sinks=2, checkpoint_every=3
    )
    queries = {"pair": PAIR, "guarded": GUARDED, "lone": LONE, "after": AFTER}
    for name, text in queries.items():
        manager.submit(text, name=name)
    assert {each.place.node for each in manager.entries.by_name.values()} == {0, 1}
    for number, part in enumerate([*parts(events, 50), last]):
        if number == 2:
            os.kill(manager.nodes[0].process_id, signal.SIGKILL)  # while it waits
        if number == 5:
            victim = manager.nodes[1].process_id
            threading.Timer(0.002, os.kill, (victim, signal.SIGKILL)).start()  # at work, or about
        fed(manager, part, f"{number}.csv")
        if manager.wants_checkpoint:
            manager.checkpoint()
    assert manager.progress.late == 0
    for name, text in queries.items():
        wanted = sorted(cepheid.detect(events, text)["match_id"].to_pylist())
        assert len(wanted) > 5
        assert found(tmp_path / "matches", name) == wanted, name
        assert manager.entries.by_name[name].matches == len(wanted)
    assert [node.facts.restarts for node in manager.nodes] == [1, 1]
    assert len(list((tmp_path / "matches").glob("*proxy-1*"))) > 0


@pytest.mark.slow
def test_queries_come_and_go_at_their_times_and_a_new_start_goes_on(managed, tmp_path):
    events = stream(3)
    early, late = (
        events.filter(pa.compute.field("ts") < 400), events.filter(pa.compute.field("ts") >= 400)
    )  # fmt: skip
    manager = managed(checkpoint_every=1)
    manager.submit(PAIR, name="all")
    manager.submit(AFTER, name="first half")
    manager.submit(PAIR, name="second half", at=400)
    manager.submit(GUARDED, name="rested")
    manager.submit("EVENT SEQ(A x, B y) WHERE x.nobody > 1", name="wrong")
    fed(manager, early, "early.csv")
    assert manager.entries.by_name["wrong"].state == "failed"
    assert "nobody" in str(manager.entries.by_name["wrong"].problem)
    manager.checkpoint()
    manager.remove("first half", at=400)
    manager.pause("rested", at=400)
    with pytest.raises(OptionError, match="have been seen"):
        manager.submit(PAIR, at=10)
    with pytest.raises(CepheidError, match="no column `nobody`"):
        manager.submit("EVENT SEQ(A x, B y) WHERE x.nobody > 1")

    again = managed(checkpoint_every=1)
    assert again.entries.by_name["rested"].state == "paused"
    assert "first half" not in again.entries.by_name
    fed(again, late, "late.csv")
    again.resume("rested")
    fed(again, stream(4), "old.csv")
    assert again.progress.late > 0
    assert found(tmp_path / "matches", "all") == expected(events, PAIR)
    assert found(tmp_path / "matches", "first half") == expected(early, AFTER)
    assert found(tmp_path / "matches", "second half") == expected(late, PAIR)
    assert found(tmp_path / "matches", "rested") == expected(early, GUARDED)


@pytest.mark.kill
def test_a_batch_that_may_have_been_delivered_is_not_broken_off(managed, tmp_path):
    """The manager is killed after the delivery; then the batch comes out as it did before."""
    events = stream(9)
    manager = managed(nodes=1)
    manager.submit(PAIR, name="pair")
    first, second = parts(events, 200)
    fed(manager, first, "1.csv")
    journal = tmp_path / "state" / "journal.jsonl"
    managed.end()
    *before, done = journal.read_bytes().splitlines(keepends=True)
    assert b'"done"' in done
    journal.write_bytes(b"".join(before))

    again = managed()
    again.attend = impatient
    with stopped_for_a_while(again.nodes[0].process_id):
        assert again.do_batch() == len(expected(first, PAIR))
    again.take_file("2.csv", {}, second.to_batches())
    with (
        stopped_for_a_while(again.nodes[0].process_id),
        pytest.raises(Interrupted),
    ):
        again.do_batch()
    assert again.nodes[0].facts.restarts == 1
    assert again.trouble is None
    again.attend = attend_nobody
    again.do_batch()
    assert again.nodes[0].facts.received == len(events)
    assert found(tmp_path / "matches", "pair") == expected(events, PAIR)


def impatient(*, may_interrupt):
    if may_interrupt:
        raise Interrupted


@contextmanager
def stopped_for_a_while(process):
    """A process that does nothing for half a second."""

    def wake():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)

    os.kill(process, signal.SIGSTOP)
    timer = threading.Timer(0.5, wake)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def test_a_batch_goes_only_to_nodes_that_need_one_of_its_types(managed, tmp_path):
    manager = managed(strategy=Strategy.ROUND_ROBIN)
    manager.submit("EVENT SEQ(A x, B y) WITHIN 30", name="ab")
    manager.submit("EVENT SEQ(D x, !(C n)) WITHIN 20", name="d")
    fed(manager, pa.table({"type": ["D", "E"], "ts": [1, 2], "id": [1, 1]}), "1.csv")
    fed(manager, pa.table({"type": ["A", "B"], "ts": [50, 51], "id": [1, 1]}), "2.csv")
    assert [node.facts.received for node in manager.nodes] == [2, 2]
    # The node without A and B was told the time all the same: nothing can forbid D's match now.
    assert manager.entries.by_name["d"].matches == 1
    assert manager.entries.by_name["ab"].matches == 1


@pytest.mark.slow
def test_a_batch_that_a_query_cannot_do_waits_until_the_query_is_stopped(managed, tmp_path):
    manager = managed(options={"limits": {"live_events": 5}}, strategy=Strategy.ROUND_ROBIN)
    manager.submit("SELECT * FROM A a ; B b", name="greedy")
    manager.submit("EVENT SEQ(D x, E y) WITHIN 1000", name="modest")
    fed(manager, pa.table({"type": ["D", "A"], "ts": [1, 2]}), "1.csv")
    types = ["E", *"AAAAAAAAA"]
    with pytest.raises(LimitExceeded):
        fed(manager, pa.table({"type": types, "ts": list(range(3, 13))}), "2.csv")
    assert not manager.has_waiting
    assert manager.waiting == 1
    assert found(tmp_path / "matches", "modest") == []
    manager.remove("greedy")
    while manager.has_waiting:
        manager.do_batch()
    assert len(found(tmp_path / "matches", "modest")) == 1


@pytest.mark.slow
def test_matches_that_cannot_be_written_end_the_manager_and_a_new_one_writes_them(
    managed, tmp_path
):
    manager = managed(nodes=1)
    manager.submit("EVENT SEQ(A x, B y) WITHIN 30", name="ab")
    blocked = manager.sinks.path(0, 0)
    blocked.mkdir()  # a folder where the file should be
    serving = Serving(manager, EventFolder(tmp_path, bool), _nothing, print)
    manager.take_file("1.csv", {}, pa.table({"type": ["A", "B"], "ts": [1, 2]}).to_batches())
    with pytest.raises(EnvironmentProblem):
        serving.run()
    blocked.rmdir()
    again = managed()
    assert again.has_waiting
    again.do_batch()
    assert len(found(tmp_path / "matches", "ab")) == 1


def _nothing(path, like, *, whole):
    return iter(())
