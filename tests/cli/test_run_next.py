"""`cepheid run` with texts of NEXT: sources, sinks, and the options of the language."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FRAUDS = """register source t schema (acc string, amount float)
    from (`account no` AS acc, value AS amount) time booked_at
register source login schema (acc string) time at
register sink large as file 'out/large.jsonl'
register sink frauds as console
QUERY large SELECT t.acc, t.amount FROM t WHERE t.amount > 100
QUERY frauds SELECT L.acc FROM login L; large B WHERE FILTER(L.acc = B.acc)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("frauds.next").write_text(FRAUDS)
    Path("cards.csv").write_text("account no,value,booked_at\na,1,5\nb,500,20\na,700,10\n")
    pq.write_table(pa.table({"acc": ["a", "b"], "at": [3, 30]}), "logins.parquet")
    Path("pairs.csv").write_text("type,ts,v\nA,1,0\nA,2,0\nN,3,0\nB,5,0\n")


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def events_by_source():
    return ("-e", "t=cards.csv", "-e", "login=logins.parquet")


def test_sources_in_files_of_their_own_and_sinks(cepheid_command):
    result = cepheid_command("run", "frauds.next", *events_by_source())
    assert result.exit_code == 0
    assert "1 match" in result.stdout
    rows = json_lines(Path("out/large.jsonl").read_text())
    assert [(row["acc"], row["amount"], row["end"]) for row in rows] == [
        ("a", 700.0, 10),
        ("b", 500.0, 20),
    ]


def test_the_query_that_is_asked_for(cepheid_command):
    cepheid_command("run", "frauds.next", *events_by_source(), "--query", "frauds")
    assert not Path("out").exists()
    result = cepheid_command(
        "run", "frauds.next", *events_by_source(), "--query", "large", "--format", "jsonl"
    )
    assert [row["acc"] for row in json_lines(result.stdout)] == ["a", "b"]
    assert not Path("out").exists()


def test_out_takes_the_place_of_the_last_querys_sink(cepheid_command):
    result = cepheid_command("run", "frauds.next", *events_by_source(), "-o", "found.jsonl")
    assert result.stdout == ""
    assert [row["acc"] for row in json_lines(Path("found.jsonl").read_text())] == ["a"]
    assert Path("out/large.jsonl").exists()


def test_one_file_of_one_source_needs_no_type(cepheid_command):
    """The rows are out of order by the source's own time, so that they are read twice."""
    text = FRAUDS.partition("register source login")[0] + "SELECT * FROM t A; t B"
    result = cepheid_command("run", "-q", text, "-e", "cards.csv", "--format", "jsonl")
    assert [(row["start"], row["end"]) for row in json_lines(result.stdout)] == [(5, 10), (10, 20)]


def test_several_tables_have_titles(cepheid_command):
    text = FRAUDS.replace("as file 'out/large.jsonl'", "as table")
    result = cepheid_command("run", "-q", text, *events_by_source())
    assert [line for line in result.stdout.splitlines() if line in ("large", "frauds")] == [
        "large",
        "frauds",
    ]


def test_a_callback_has_nobody_to_call(cepheid_command):
    text = FRAUDS.replace("as file 'out/large.jsonl'", "as callback")
    result = cepheid_command("run", "-q", text, *events_by_source())
    assert "`large` has a callback" in result.stderr
    assert "1 match" in result.stdout
    result = cepheid_command("run", "-q", text, *events_by_source(), "--query", "large")
    assert "`large` has a callback, which only a program can give: its matches" in result.stderr
    assert "2 matches" in result.stdout


def test_no_file_gets_its_name_when_the_disk_is_full(cepheid_command):
    Path(".frauds.csv.unfinished").symlink_to("/dev/full")
    text = FRAUDS.replace("as console", "as file 'frauds.csv'")
    result = cepheid_command("run", "-q", text, *events_by_source())
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert not Path("frauds.csv").exists()
    assert list(Path("out").iterdir()) == []


@pytest.mark.parametrize("path", ["cards.csv", "./out/../cards.csv", "query.csv"])
def test_what_is_read_is_not_written_over(cepheid_command, path):
    text, query = FRAUDS.replace("out/large.jsonl", path), Path("query.csv")
    query.write_text(text)
    before = Path("cards.csv").read_text()
    result = cepheid_command("run", query, *events_by_source())
    assert result.exit_code == 1
    assert "error[overwrites-input]" in result.stderr
    assert Path("cards.csv").read_text() == before
    assert query.read_text() == text


def test_out_does_not_write_over_the_events(cepheid_command):
    result = cepheid_command("run", "-q", "SELECT * FROM A", "-e", "pairs.csv", "-o", "pairs.csv")
    assert "error[overwrites-input]" in result.stderr


@pytest.mark.parametrize(
    "events", [("-e", "t=cards.csv", "-e", "logins.parquet"), ("-e", "t=cards.csv", "-e", "t=x")]
)
def test_several_events_are_of_several_sources(cepheid_command, events):
    assert "error[which-events]" in cepheid_command("run", "frauds.next", *events).stderr


def test_a_scan_reads_one_folder(cepheid_command):
    result = cepheid_command("run", "frauds.next", *events_by_source(), "--host", "scan")
    assert "a scan reads one folder" in result.stderr


def run(command, text, *options):
    result = command("run", "-q", text, "-e", "pairs.csv", "--format", "jsonl", *options)
    return json_lines(result.stdout)


def test_cap(cepheid_command):
    assert len(run(cepheid_command, "SELECT * FROM A+")) == 3
    assert len(run(cepheid_command, "SELECT * FROM A+", "--cap", "1")) == 2


def test_failures_are_an_option(cepheid_command):
    text = r"SELECT * FROM A; (B \ N)"
    result = cepheid_command("explain", "-q", text, "--failures")
    assert "report_failures=true" in result.stdout
    assert "report_failures" not in cepheid_command("explain", "-q", text).stdout


def test_start_and_end(cepheid_command):
    Path("pairs.csv").write_text("type,from,to\nA,1,4\nB,3,5\nB,6,9\n")
    rows = run(cepheid_command, "SELECT * FROM A; B", "--start", "from", "--end", "to")
    assert [(row["start"], row["end"]) for row in rows] == [(1, 9)]
    result = cepheid_command("run", "-q", "SELECT * FROM A", "-e", "pairs.csv", "--start", "from")
    assert "error[half-interval]" in result.stderr


def test_statistics_mean_the_same_everywhere(cepheid_command):
    cepheid_command("analyze", "pairs.csv", "-o", "stats.json")
    text = "SELECT * FROM A; B"
    told = cepheid_command("explain", "-q", text, "--statistics", "stats.json").stdout
    assert told == cepheid_command("explain", "-q", text, "--stats", "stats.json").stdout
    assert run(cepheid_command, text, "--statistics", "stats.json") == run(cepheid_command, text)


def test_check_knows_the_cap(cepheid_command):
    assert "unbounded-iteration" in cepheid_command("check", "-q", "SELECT * FROM A+").stderr
    result = cepheid_command("check", "-q", "SELECT * FROM A+", "--cap", "9", "--failures")
    assert "no problems found" in result.stdout


def test_explain_takes_events_by_source(cepheid_command):
    result = cepheid_command("explain", "frauds.next", *events_by_source())
    assert "Query frauds (next)" in result.stdout
