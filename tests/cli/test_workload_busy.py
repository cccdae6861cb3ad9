"""A node that is busy for very long holds up its batch, and nobody who gives orders."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from cepheid.manager.client import ask_manager
from tests.cli.test_workload import desk, expected  # noqa: F401 (a fixture)

PAIR = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 30"
RUNS = "SELECT * FROM SMALL s+"
"""Of events with equal times either one may come next: each pair doubles the runs."""


def events(first: int) -> pa.Table:
    small = [("SMALL", first + n // 2, n) for n in range(40)]
    pairs = [("A" if n % 2 else "B", first + n, n % 3) for n in range(40)]
    kinds, times, ids = zip(*sorted(small + pairs, key=lambda each: each[1]), strict=True)
    return pa.table({"type": kinds, "ts": times, "id": ids})


def wait_until_busy(state: Path, node: int) -> None:
    until = time.monotonic() + 30
    while node not in [each["node"] for each in ask_manager(state, {"do": "list"})["busy"]]:
        assert time.monotonic() < until
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def terminate(state: Path) -> None:
    """Ask the manager to end, as the system does, and wait for it."""
    place = state / "manager.json"
    os.kill(json.loads(place.read_text("utf-8"))["process"], signal.SIGTERM)
    until = time.monotonic() + 10
    while place.exists():
        assert time.monotonic() < until, "it does not end"
        time.sleep(0.05)


@pytest.mark.kill
def test_orders_are_carried_out_while_a_node_works_for_very_long(desk):  # noqa: F811
    desk.start("--nodes", "2")
    desk.ask("submit", "-q", RUNS, "--name", "runs")
    desk.ask("submit", "-q", PAIR, "--name", "pairs")
    table = events(0)
    desk.put(table, "1.csv")
    wait_until_busy(desk.state, 0)
    assert "running" in desk.ask("list")
    facts = ask_manager(desk.state, {"do": "nodes"}, patience=5)
    workers = [each["process"] for each in facts["nodes"] + facts["proxies"]]
    assert "Node 0" in desk.ask("explain")

    desk.kill()
    if sys.platform == "linux":
        until = time.monotonic() + 5
        while any(map(is_alive, workers)):
            assert time.monotonic() < until, "a worker outlives its manager"
            time.sleep(0.05)

    begin = time.monotonic()
    desk.start()  # the batch is done again, which takes as long as before
    wait_until_busy(desk.state, 0)
    process = ask_manager(desk.state, {"do": "nodes"})["nodes"][0]["process"]
    terminate(desk.state)
    assert time.monotonic() - begin < 30
    assert not is_alive(process)

    desk.start()
    wait_until_busy(desk.state, 0)
    assert "unknown-query" in desk.ask("stop", "nobody", code=1)
    assert desk.ask("stop", "runs") == "runs is stopped\n"
    desk.wait_for(1)
    desk.put(events(100), "2.csv")
    desk.wait_for(2)
    assert desk.matches("pairs") == expected(pa.concat_tables([table, events(100)]), PAIR)
    assert desk.matches("runs") == []
    assert ask_manager(desk.state, {"do": "list"})["busy"] == []
    desk.ask("stop", "--all")
