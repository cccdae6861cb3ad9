"""`cepheid run` and `cepheid demo` on Spark: the same matches, in every form of output."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import cepheid
from cepheid.cli import failures
from cepheid.generate import StreamParameters, generate_stream, write_events
from cepheid.model.errors import DataError
from tests.cli.conftest import EXAMPLES, query_of

PAIRS = "EVENT SEQ(E1 x, E2 y) WHERE [attr1] WITHIN 200"
STORIES = {
    "shoplifting": ("events.csv", ("x", "z")),
    "misplaced_inventory": ("events.jsonl", ("x", "y")),
    "overdose": ("events.csv", ("x", "y")),
    "credit_cards": ("events.csv", ("S1", "S2", "L")),
}

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def folder(tmp_path):
    parameters = StreamParameters(events=3000, types=5, attributes=2, domain_sizes=20, seed=3)
    write_events(generate_stream(parameters), tmp_path / "events", rows_per_file=1000)
    return tmp_path / "events"


@pytest.fixture
def expected(folder):
    table = pa.parquet.read_table(folder)
    return set(cepheid.detect(table, PAIRS)["match_id"].to_pylist())


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("host", ["scan", "batch"])
@pytest.mark.parametrize("story", STORIES)
def test_examples_on_spark(story, host, cepheid_command):
    path = EXAMPLES / story
    events, variables = STORIES[story]
    result = cepheid_command(
        "run", query_of(story), "-e", path / events, "--host", host, "--format", "jsonl"
    )
    assert result.exit_code == 0, result.stderr
    found = [[row[v]["event"] for v in variables] for row in json_lines(result.stdout)]
    assert sorted(found) == sorted(json.loads((path / "expected.json").read_text("utf-8")))


def test_a_folder_is_scanned_by_spark(cepheid_command, folder, expected):
    result = cepheid_command("run", "-q", PAIRS, "-e", folder, "--format", "jsonl", "-v")
    assert "host: scan (a folder of" in result.stderr
    assert {row["match_id"] for row in json_lines(result.stdout)} == expected


@pytest.mark.parametrize("host", ["scan", "batch"])
def test_types_that_no_event_has_are_told_by_spark(host, cepheid_command, folder, tmp_path):
    arguments = ("run", "-q", "EVENT SEQ(E1 x, E99 y) WITHIN 9", "-e", folder, "--host", host)
    for out in ((), ("-o", tmp_path / "out")):
        result = cepheid_command(*arguments, *out)
        assert result.exit_code == 0, result.stderr
        assert result.stderr.startswith("note: no event has the type `E99`")
        assert result.stderr.count("note: ") == 1


def test_spark_writes_folders_and_files(cepheid_command, folder, expected, tmp_path):
    for name in ("out", "out.parquet", "out.csv"):
        result = cepheid_command("run", "-q", PAIRS, "-e", folder, "-o", tmp_path / name)
        assert result.exit_code == 0, result.stderr
    assert list((tmp_path / "out").glob("part-*.parquet"))
    for name in ("out", "out.parquet"):
        found = pa.parquet.read_table(tmp_path / name, columns=["match_id"])
        assert set(found["match_id"].to_pylist()) == expected
    csv = pa.csv.read_csv(tmp_path / "out.csv")
    assert set(csv["match_id"].to_pylist()) == expected
    assert "y.attr1" in csv.column_names
    again = cepheid_command("run", "-q", PAIRS, "-e", folder, "-o", tmp_path / "out")
    assert again.exit_code == 1
    assert "error[output-exists]" in again.stderr


def test_spark_writes_a_folder_of_csv(cepheid_command, folder, expected, tmp_path):
    out = tmp_path / "csv"
    result = cepheid_command("run", "-q", PAIRS, "-e", folder, "-o", out, "--format", "csv", "-v")
    assert result.exit_code == 0, result.stderr
    assert f"{len(expected):,} matches" in result.stderr
    tables = [pa.csv.read_csv(part) for part in out.glob("part-*.csv")]
    ids = {value for table in tables for value in table["match_id"].to_pylist()}
    assert ids == expected
    assert "x.attr1" in tables[0].column_names


def test_spark_table_is_cut_and_counted(cepheid_command, folder, expected):
    result = cepheid_command("run", "-q", PAIRS, "-e", folder, "--limit", "2")
    assert f"{len(expected):,} matches, the first 2 shown" in result.stdout


def test_spark_explains_how_it_scans(cepheid_command, folder):
    result = cepheid_command("explain", "-q", PAIRS, "-e", folder, "--host", "scan")
    assert result.exit_code == 0, result.stderr
    assert "\nOn Spark\n  " in result.stdout
    assert "scan" in result.stdout.split("On Spark")[1]


def test_mistakes_found_by_spark_are_the_users(cepheid_command, folder):
    result = cepheid_command("run", "-q", "EVENT E1 x WHERE x.atr1 = 3", "-e", folder)
    assert result.exit_code == 1
    assert "error[unknown-column]" in result.stderr
    assert "did you mean `attr1`?" in result.stderr


def test_an_error_of_a_spark_worker_is_told_as_if_it_were_here(spark, capsys):
    def refuse(batches):
        raise DataError.of("odd-row", "row 7 is odd", help="make it even")

    def fail(batches):
        raise ZeroDivisionError

    with pytest.raises(Exception) as caught:  # noqa: PT011 (Spark's own classes)
        spark.range(1).mapInArrow(refuse, "id long").collect()
    assert failures.exit_code_of(caught.value) == 1
    failures.report(caught.value)
    assert capsys.readouterr().err == "error[odd-row]: row 7 is odd\n  = help: make it even\n"
    with pytest.raises(Exception) as caught:  # noqa: PT011
        spark.range(1).mapInArrow(fail, "id long").collect()
    assert failures.exit_code_of(caught.value) == 2


def test_demo_on_spark(cepheid_command, tmp_path):
    result = cepheid_command(
        "demo", "--events", "4000", "--thieves", "6", "--out", tmp_path, "--master", "local[2]"
    )
    assert result.exit_code == 0, result.stderr
    assert "looked for thieves on Spark" in result.stdout
    assert "exactly the 6 stolen items" in result.stdout
    assert (tmp_path / "timeline.png").exists()


def test_sources_and_sinks_of_next_on_spark(cepheid_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cards.csv").write_text("account no,value,booked_at\na,1,5\nb,500,20\na,700,10\n")
    (tmp_path / "logins.jsonl").write_text('{"acc": "a", "at": 3}\n{"acc": "b", "at": 30}\n')
    text = """register source t schema (acc string, amount float)
        from (`account no` AS acc, value AS amount) time booked_at
    register source login schema (acc string) time at
    register sink large as file 'large.jsonl'
    QUERY large SELECT t.acc, t.amount FROM t WHERE t.amount > 100
    QUERY frauds SELECT L.acc, B.amount FROM login L; t B
    WHERE FILTER(L.acc = B.acc), FILTER(B.amount > 100)"""
    answers = []
    for host in ("process", "batch"):
        events = ("-e", "t=cards.csv", "-e", "login=logins.jsonl", "--host", host)
        result = cepheid_command("run", "-q", text, *events, "--format", "jsonl")
        assert result.exit_code == 0, result.stderr
        large = json_lines((tmp_path / "large.jsonl").read_text())
        assert sorted(row["amount"] for row in large) == [500.0, 700.0]
        answers.append(json_lines(result.stdout))
    assert answers[0] == answers[1]
    assert [row["amount"] for row in answers[0]] == [700.0]
