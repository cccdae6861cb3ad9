"""`cepheid workload` as a user meets it: a real manager, real nodes, files that appear."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import cepheid
from cepheid.manager.client import ask_manager
from tests.manager.conftest import delivered
from tests.manager.test_manager import stream

PAIR = "EVENT SEQ(A x, B y)\nWHERE [id]\nWITHIN 30"
SHORT = "EVENT SEQ(A v, B w) WHERE [id] WITHIN 20"
AFTER = "SELECT * FROM D d ; B b WHERE d.id = b.id"


class Desk:
    """A folder in which somebody works with a manager."""

    def __init__(self, folder: Path, command: Callable[..., Any]) -> None:
        self.folder = folder
        self.state = folder / "state"
        self._command = command

    def start(self, *arguments: str) -> str:
        """Start a manager in the background."""
        done = subprocess.run(
            [
                sys.executable, "-m", "cepheid", "workload", "start", "--detach",
                "--state", "state", "--events", "in", "--out", "out", *arguments,
            ],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *arguments: object, stdin: str | None = None, code: int = 0) -> str:
        """A command to the manager: what it prints."""
        result = self._command("workload", *arguments, "--state", self.state, stdin=stdin)
        assert result.exit_code == code, result.output
        return str(result.output)

    def put(self, events: pa.Table, name: str) -> None:
        """Let a file of events appear, whole."""
        draft = self.folder / name
        pa.csv.write_csv(events, draft)
        old = time.time() - 60
        os.utime(draft, (old, old))
        draft.rename(self.folder / "in" / name)

    def wait_for(self, files: int) -> dict[str, Any]:
        """Wait until the manager is through with so many files."""
        until = time.monotonic() + 90
        while True:
            facts = ask_manager(self.state, {"do": "nodes"})
            now = facts["stream"]
            if now["files"] + now["refused"] >= files and not now["waiting"]:
                return dict(facts)
            assert time.monotonic() < until, now
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the manager, which has no time to say good-bye."""
        place = json.loads((self.state / "manager.json").read_text())
        os.kill(place["process"], signal.SIGKILL)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", place["port"]), timeout=1).close()
            except OSError:
                return
            time.sleep(0.01)

    def matches(self, name: str) -> list[str]:
        """The matches of a query in the files, of which none may be there twice."""
        found = delivered(self.folder / "out").get(name, {})
        assert set(found.values()) <= {1}
        return sorted(found)


@pytest.fixture
def desk(tmp_path: Path, cepheid_command: Callable[..., Any]) -> Iterator[Desk]:
    found = Desk(tmp_path, cepheid_command)
    yield found
    place = tmp_path / "state" / "manager.json"
    if place.exists():
        os.kill(json.loads(place.read_text())["process"], signal.SIGKILL)


def expected(events: pa.Table, query: str) -> list[str]:
    return sorted(cepheid.detect(events, query, close_at_end=False)["match_id"].to_pylist())


@pytest.mark.kill
def test_a_day_with_a_manager(desk):
    events = stream(5, 600)
    first, second, third = (events.slice(n, 200) for n in (0, 200, 400))
    told = desk.start("--sink-proxies", "2")
    assert "the manager runs on 127.0.0.1:" in told
    assert "2 nodes, 2 sink proxies, placement greedy" in told

    query = desk.folder / "pairs.sase"
    query.write_text(PAIR)
    assert desk.ask("submit", query) == "pairs runs on node 0\n"
    assert desk.ask("submit", "-", "--name", "after", stdin=AFTER) == "after runs on node 1\n"
    assert desk.ask("submit", "-q", SHORT, "--name", "short") == "short runs on node 0\n"
    assert "query-exists" in desk.ask("submit", query, "--name", "after", code=1)
    wrong = desk.ask("submit", "-", stdin="EVENT SEQ(A x, B y WITHIN 3", code=1)
    assert " --> standard input:1:20" in wrong
    assert "^^^^^^ expected" in wrong

    missing = desk.ask("submit", "-q", "EVENT SEQ(A x, B y) WHERE x.id > :w WITHIN 9", code=1)
    assert "cepheid workload start --param NAME=VALUE" in missing

    desk.put(first, "1.csv")
    desk.wait_for(1)
    desk.kill()
    desk.put(second, "2.csv")
    assert "no manager runs" in desk.ask("list", code=1)

    desk.start()  # goes on as it was begun
    facts = desk.wait_for(2)
    assert [each["queries"] for each in facts["nodes"]] == [2, 1]
    listed = desk.ask("list")
    assert "pairs   sase       running" in listed
    assert f"{len(expected(pa.concat_tables([first, second]), AFTER)):,}" in listed
    shared = {each["name"]: each["shares_with"] for each in _listed(desk)}
    assert shared == {"pairs": ["short"], "after": [], "short": ["pairs"]}
    nodes = desk.ask("nodes")
    assert "live events" in nodes
    assert "400 events of 2 files; placement greedy" in nodes

    pa.csv.write_csv(events, desk.folder / "sample.csv")
    picture = desk.folder / "graph.png"
    shown = desk.ask("explain", "--measure", desk.folder / "sample.csv", "--picture", picture)
    assert "Node 0\nWorkload of 2 queries in 1 group\n" in shown
    both = len(cepheid.detect(events, PAIR)) + len(cepheid.detect(events, SHORT))
    assert f"; {both:,} matches both ways" in shown
    assert "events handed to atoms per unit of time: " in shown
    assert "Node 1\nWorkload of 1 query in 1 group\n" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")

    assert desk.ask("pause", "short") == "short is paused\n"
    assert desk.ask("resume", "short") == "short is running\n"
    assert desk.ask("stop", "short") == "short is stopped\n"
    assert "unknown-query" in desk.ask("stop", "short", code=1)
    assert "too-early" in desk.ask("pause", "after", "--at", "3", code=1)

    (desk.folder / "in" / "25.csv").write_text("kind,when\nA,1\n")
    desk.put(third, "3.csv")
    assert desk.wait_for(4)["stream"]["refused"] == 1
    assert "the manager has ended" in desk.ask("stop", "--all")
    assert "no manager runs" in desk.ask("stop", "--all", code=1)
    assert desk.matches("pairs") == expected(events, PAIR)
    assert desk.matches("after") == expected(events, AFTER)
    assert desk.matches("short") == expected(pa.concat_tables([first, second]), SHORT)
    assert (
        "has no column" in (desk.state / "log").read_text()
        or "no time column" in (desk.state / "log").read_text()
    )


def _listed(desk: Desk) -> list[dict[str, Any]]:
    return list(json.loads(desk.ask("list", "--json"))["queries"])


def test_a_placement_that_is_not_known_is_refused(desk):
    told = desk.ask("start", "--placement", "best", code=1)
    assert "one of greedy, greedy-without-reuse, round-robin" in told


def test_wrong_options_are_told_at_once(desk):
    assert "bad-tie" in desk.ask("start", "--tie", "sometimes", code=1)
    assert not desk.state.exists()


def test_a_folder_goes_on_only_with_the_setting_it_was_begun_with(desk):
    desk.state.mkdir()
    begin = {
        "op": "begin", "options": {}, "events": str(desk.folder), "out": str(desk.folder),
        "nodes": 2, "sinks": 1, "strategy": "greedy",
    }  # fmt: skip
    (desk.state / "journal.jsonl").write_text(json.dumps(begin) + "\n")
    told = desk.ask("start", "--nodes", "3", code=1)
    assert "was begun with 2 for --nodes, not with 3" in told
    told = desk.ask("start", "--lateness", "5 s", code=1)
    assert "was begun with 0 for --lateness, not with 5 s" in told
    told = desk.ask("start", "--continuous", code=1)
    assert "was begun with no for --continuous, not with yes" in told
    told = desk.ask("start", "--param", "w=3", "--tie", "strict", code=1)
    assert "was begun with none for --param, not with w=3" in told


def test_folders_of_events_matches_and_state_are_three(desk):
    for events, out in (("one", "one"), ("one", "state/out"), ("state", "two")):
        where = (desk.folder / events, desk.folder / out)
        told = desk.ask("start", "--events", where[0], "--out", where[1], code=1)
        assert "same-folder" in told


def test_submit_tells_of_its_own_options(desk):
    told = desk.ask("submit", code=1)
    assert "which-query" in told
    assert "cepheid workload submit QUERY_FILE" in told


def test_stop_wants_a_name_or_all(desk):
    assert "which-query" in desk.ask("stop", code=1)
    assert "which-query" in desk.ask("stop", "--all", "name", code=1)


@pytest.mark.parametrize("command", ["start", "submit", "list", "nodes", "pause", "resume", "stop"])
def test_help_has_examples(cepheid_command, command):
    result = cepheid_command("workload", command, "--help")
    assert result.exit_code == 0
    assert f"cepheid workload {command}" in result.output.partition("Examples")[2]


def test_a_client_loads_no_engine(tmp_path):
    command = [sys.executable, "-X", "importtime", "-m", "cepheid", "workload", "list"]
    done = subprocess.run(
        [*command, "--state", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "no manager runs" in done.stderr
    assert "cepheid.manager.client" in done.stderr
    for heavy in ("numba", "pyarrow", "numpy", "lark", "rich", "pydantic", "pandas"):
        assert f" {heavy}\n" not in done.stderr, heavy
