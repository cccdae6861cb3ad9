"""`cepheid.deliver`: each query's matches go to the sink of its name, and nowhere else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.model.errors import CepheidError, DataError, StateError

OPEN_FILES = Path("/proc/self/fd")
EVENTS = [
    {"type": kind, "ts": ts, "k": ts // 10}
    for kind, ts in (("A", 1), ("B", 2), ("A", 11), ("B", 12))
]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pairs(sink: str, *more: str) -> str:
    return " ".join((f"register sink pairs {sink}", *more, "QUERY pairs SELECT A.k FROM A; B"))


@pytest.mark.parametrize("name", ["m.parquet", "below/m.csv", "m.jsonl", "m.NDJSON", "folder"])
def test_files_are_written_as_their_names_say(name: str) -> None:
    assert cepheid.deliver(EVENTS, pairs(f"as file '{name}'")) == {}
    path = Path(name)
    if path.suffix == ".csv":
        keys = pa.csv.read_csv(path)["k"].to_pylist()
    elif path.suffix in (".jsonl", ".NDJSON"):
        keys = [json.loads(line)["k"] for line in path.read_text("utf-8").splitlines()]
    else:
        keys = pq.read_table(path)["k"].to_pylist()
    assert keys == [0, 1]
    assert not list(Path().rglob("*.unfinished"))


def test_a_table_is_returned_and_detect_as_ever() -> None:
    tables = cepheid.deliver(EVENTS, pairs(""))
    assert tables["pairs"].equals(cepheid.detect(EVENTS, pairs("")))


def test_events_in_any_order() -> None:
    tables = cepheid.deliver(EVENTS[::-1], pairs(""))
    assert tables["pairs"]["k"].to_pylist() == [0, 1]


def test_the_console_shows_what_the_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    cepheid.deliver(EVENTS, pairs("as console"))
    shown = capsys.readouterr().out
    assert shown.startswith("pairs\n")
    assert "2 matches" in shown


def test_the_console_shows_brackets_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    events = [{"type": "[/x]", "ts": 1, "k": r"\[bold]z"}, {"type": "B", "ts": 2, "k": "[red]"}]
    text = "register sink pairs as console QUERY pairs SELECT * FROM `[/x]` a; B b"
    cepheid.deliver(events, f"{text} WHERE a.k != b.k")
    shown = capsys.readouterr().out
    for each in ("[/x]", r"\[bold]z", "[red]"):
        assert each in shown
    cepheid.deliver(events, text.replace("*", "a.k AS `[/k]`"))
    assert "[/k]" in capsys.readouterr().out


def test_the_console_shows_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runs = "register sink runs as console QUERY runs SELECT * FROM A R+; B"
    cepheid.deliver([{"type": "A", "ts": ts} for ts in range(6)] + [{"type": "B", "ts": 9}], runs)
    shown = capsys.readouterr().out
    assert "R" in shown
    assert "(6)" in shown


def test_closing_twice_is_closing_once() -> None:
    with cepheid.Delivery(pairs("")) as delivery:
        delivery.feed(EVENTS)
        tables = delivery.close()
    assert tables["pairs"].num_rows == 2
    assert delivery.close() is tables


def test_a_callback_is_called_with_each_batch() -> None:
    batches: list[list[int]] = []

    def called(matches: Any) -> None:
        batches.append([match["k"] for match in matches])

    with cepheid.Delivery(pairs("as callback"), sinks={"pairs": called}) as delivery:
        for event in EVENTS:
            delivery.feed([event])
        delivery.advance(100)
    assert batches == [[0], [1]]
    cepheid.deliver(EVENTS, pairs("as callback"), sinks={"pairs": called})
    assert batches[2:] in ([[0], [1]], [[0, 1]])


def test_every_query_with_a_sink_runs_and_no_other() -> None:
    text = """register sink one as file 'one.jsonl'
    register sink two
    QUERY one SELECT A.k FROM A
    QUERY other SELECT * FROM B
    QUERY two SELECT * FROM one O WHERE O.k = 1
    QUERY last SELECT * FROM A; A A2"""
    tables = cepheid.deliver(EVENTS, text)
    assert list(tables) == ["two"]
    assert tables["two"].num_rows == 1
    assert len(Path("one.jsonl").read_text("utf-8").splitlines()) == 2
    assert [path.name for path in Path().iterdir()] == ["one.jsonl"]


def test_registered_sources_and_sinks_together() -> None:
    text = "register source A schema (k int) from (kk AS k) time at " + pairs("as table")
    text = text.replace("FROM A; B", "FROM A")
    tables = cepheid.deliver({"A": pa.table({"kk": [7], "at": [1]})}, text)
    assert tables["pairs"]["k"].to_pylist() == [7]


def test_nothing_is_left_of_a_delivery_that_fails() -> None:
    def stop(_: Any) -> None:
        raise RuntimeError("enough")

    text = "register sink b as callback QUERY b SELECT * FROM B " + pairs("as file 'm.csv'")
    with pytest.raises(RuntimeError, match="enough"):
        cepheid.deliver(EVENTS, text, sinks={"b": stop})
    with (
        pytest.raises(RuntimeError, match="enough"),
        cepheid.Delivery(text, sinks={"b": stop}) as delivery,
    ):
        delivery.feed(EVENTS)
    with pytest.raises(DataError):
        cepheid.deliver([*EVENTS, {"type": "A", "ts": "late"}], pairs("as file 'm.csv'"))
    assert list(Path().iterdir()) == []


def test_a_delivery_that_failed_takes_nothing_more() -> None:
    text = pairs("as file 'm.csv'")
    delivery = cepheid.Delivery(text)
    delivery.feed(EVENTS)
    delivery.__exit__(RuntimeError, RuntimeError(), None)
    for more in (delivery.close, lambda: delivery.feed(EVENTS), lambda: delivery.advance(99)):
        with pytest.raises(StateError, match="delivery-ended"):
            more()
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("name", ["two.csv", "two.jsonl", "two.parquet"])
def test_no_file_gets_its_name_when_the_disk_is_full(name: str) -> None:
    text = "register sink one as file 'one.jsonl' QUERY one SELECT A.k FROM A "
    text += f"register sink two as file '{name}' QUERY two SELECT A.k FROM A"
    unfinished = Path(f".{name}.unfinished")
    unfinished.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        cepheid.deliver(EVENTS, text)
    unfinished.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"), cepheid.Delivery(text) as delivery:
        delivery.feed(EVENTS)
    assert list(Path().iterdir()) == []
    assert "/dev/full" not in {os.path.realpath(each) for each in OPEN_FILES.iterdir()}


def test_what_is_no_number_is_null_in_json() -> None:
    events = [{"type": "A", "ts": 1, "v": float("nan")}, {"type": "A", "ts": 2, "v": 1.5}]
    text = "register sink values as file 'm.jsonl' QUERY values SELECT A.v FROM A "
    text += "register sink runs as file 'm.csv' QUERY runs SELECT * FROM A+"
    cepheid.deliver(events, text, cap=2)
    lines = Path("m.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["v"] for line in lines] == [None, 1.5]
    assert "NaN" not in Path("m.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "functions", "code"),
    [
        ("SELECT * FROM A", {}, "no-sinks"),
        (pairs("as callback"), {}, "no-callback"),
        (pairs("as console"), {"pairs": print}, "unknown-sink"),
        (pairs("as callback"), {"pears": print}, "unknown-sink"),
        (pairs("as file 'm.txt'"), {}, "unknown-format"),
        (pairs("as file '-'"), {}, "unknown-format"),
        (pairs("as file '.'"), {}, "unknown-format"),
        (pairs("as file ''"), {}, "unknown-format"),
        (pairs("as file 'a\0b.csv'"), {}, "unknown-format"),
        (
            "register sink b as file './m.csv' QUERY b SELECT * FROM B " + pairs("as file 'm.csv'"),
            {},
            "output-twice",
        ),
    ],
)
def test_what_cannot_be_delivered(text: str, functions: dict[str, Any], code: str) -> None:
    with pytest.raises(CepheidError) as problem:
        cepheid.deliver(EVENTS, text, sinks=functions)
    assert problem.value.code == code
    assert list(Path().iterdir()) == []


def test_a_bad_path_is_shown_in_the_text() -> None:
    with pytest.raises(CepheidError) as problem:
        cepheid.deliver(EVENTS, pairs("as file 'm.exe'"))
    assert "--> query:1:29" in str(problem.value)
