"""`check`, `explain`, `analyze` and `generate`."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import cepheid
from cepheid.statistics.event_statistics import load_statistics
from tests.cli.conftest import EXAMPLES

SHOPLIFTING = EXAMPLES / "shoplifting"


def test_check_finds_nothing_in_the_examples(cepheid_command):
    files = sorted(EXAMPLES.glob("*/query.*"))
    assert len(files) >= 4
    result = cepheid_command("check", *files)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "no problems found" in result.stdout


def test_check_tells_errors_and_warnings(cepheid_command):
    result = cepheid_command("check", "-q", "EVENT A x WITHIN 10")
    assert result.exit_code == 0, "a warning is no error"
    assert "warning[window-without-effect]" in result.stderr
    assert "1 warning" in result.stdout
    result = cepheid_command("check", "-q", "EVENT SEQ(A x, B x) WITHIN 10 parsecs")
    assert result.exit_code == 1
    assert "error[duplicate-variable]" in result.stderr
    assert "error[unknown-unit]" in result.stderr
    assert "2 errors" in result.stderr


def test_check_as_json(cepheid_command, tmp_path):
    good, bad = tmp_path / "good.sase", tmp_path / "bad.sase"
    good.write_text("EVENT SEQ(A x, B y)")
    bad.write_text("EVENT SEQ(A x,\n B y) WITHIN 10 parsecs")
    result = cepheid_command("check", good, bad, "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)
    assert finding["code"] == "unknown-unit"
    assert (finding["file"], finding["line"], finding["column"]) == (str(bad), 2, 17)
    assert finding["severity"] == "error"


def test_check_uses_declared_types(cepheid_command, tmp_path):
    types = tmp_path / "types.json"
    types.write_text('{"A": {"id": "int"}, "B": {"id": "int"}}')
    query = "EVENT SEQ(A x, B y) WHERE x.idd = y.id"
    assert cepheid_command("check", "-q", query).exit_code == 0
    result = cepheid_command("check", "-q", query, "--types", types)
    assert result.exit_code == 1
    assert "did you mean `id`?" in result.stderr


def test_explain_is_what_the_library_says(cepheid_command):
    query, events = SHOPLIFTING / "query.sase", SHOPLIFTING / "events.csv"
    result = cepheid_command("explain", query, "--events", events)
    assert result.exit_code == 0
    table = pa.csv.read_csv(events)
    assert result.stdout == cepheid.compile(query.read_text("utf-8")).explain(table)
    assert "key      x.id = z.id = y.id" in result.stdout


def test_explain_with_a_written_schema_and_options(cepheid_command):
    query = "EVENT SEQ(A x, B y) WHERE [id] AND x.v > :least WITHIN 10"
    result = cepheid_command(
        "explain", "-q", query, "--schema", "type:string,ts:int,id:string,v:float",
        "--param", "least=3", "--plan", "partition=none",
    )  # fmt: skip
    assert "id (string), v (float)" in result.stdout
    assert "switched off by the plan option partition" in result.stdout


def test_analyze_writes_what_explain_reads(cepheid_command, tmp_path):
    stats = tmp_path / "stats.json"
    events = SHOPLIFTING / "events.csv"
    result = cepheid_command("analyze", events, "-o", stats)
    assert result.exit_code == 0
    assert "28 events of 3 types" in result.stdout
    assert "SHELF-READING" in result.stdout
    found = load_statistics(stats)
    assert found.types["SHELF-READING"].count == 18
    assert found.time_unit == "us"
    told = cepheid_command("explain", SHOPLIFTING / "query.sase", "--stats", stats).stdout
    assert "Estimates, from the statistics" in told
    assert "id (string)" in told, "the statistics know the columns' types"


def test_analyze_of_generated_ticks(cepheid_command, tmp_path):
    cepheid_command(
        "generate", "stream", tmp_path / "events", "--events", "5000", "--types", "3",
        "--rows-per-file", "2000", "--disorder", "9", "--null-fraction", "0.2",
    )  # fmt: skip
    result = cepheid_command("analyze", tmp_path / "events", "-o", tmp_path / "stats.json")
    assert "5,000 events of 3 types" in result.stdout
    found = load_statistics(tmp_path / "stats.json")
    assert 0 < found.disorder <= 9
    assert f"out of order by up to {found.disorder} ticks" in result.stdout
    assert found.types["E1"].attributes["attr1"].null_fraction == pytest.approx(0.2, abs=0.03)


def test_generate_stream_is_the_generators(cepheid_command, tmp_path):
    for name in ("a.parquet", "b.csv", "c.jsonl"):
        result = cepheid_command(
            "generate", "stream", tmp_path / name, "--events", "300", "--types", "4",
            "--type-theta", "0.5", "--attributes", "2", "--domain-sizes", "5,500", "--seed", "8",
            "--gaps", "exponential", "--time-step", "3",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert "300 events written to" in result.stdout
    rows = pa.parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert rows == pa.csv.read_csv(tmp_path / "b.csv").to_pylist()
    lines = (tmp_path / "c.jsonl").read_text("utf-8").splitlines()
    assert rows == [json.loads(line) for line in lines]
    assert max(row["attr1"] for row in rows) <= 5 < max(row["attr2"] for row in rows)


def test_generate_queries_run_over_the_generated_stream(cepheid_command, tmp_path):
    cepheid_command("generate", "stream", tmp_path / "s.parquet", "--events", "3000")
    result = cepheid_command(
        "generate", "queries", tmp_path / "queries", "-n", "3", "--length", "2",
        "--negations", "1", "--simple-predicates", "1", "--window", "500",
    )  # fmt: skip
    assert "3 queries written to" in result.stdout
    files = sorted((tmp_path / "queries").iterdir())
    assert [file.name for file in files] == ["q1.sase", "q2.sase", "q3.sase"]
    for file in files:
        result = cepheid_command("run", file, "-e", tmp_path / "s.parquet", "--format", "jsonl")
        assert result.exit_code == 0, result.stderr
    program = cepheid_command("generate", "queries", "-n", "2").stdout
    assert cepheid.compile(program).names == ("Q1", "Q2")
    again = cepheid_command("generate", "queries", tmp_path / "queries", "-n", "3")
    assert again.exit_code == 1
    assert "error[output-exists]" in again.stderr


def test_generate_stories_with_their_truth(cepheid_command, tmp_path):
    cepheid_command(
        "generate", "store", tmp_path / "store.parquet", "--events", "2000", "--thieves", "3",
        "--truth", tmp_path / "store.json", "--opening", "2024-02-29T07:00:00",
    )  # fmt: skip
    truth = json.loads((tmp_path / "store.json").read_text("utf-8"))
    query = SHOPLIFTING / "query.sase"
    found = cepheid_command("run", query, "-e", tmp_path / "store.parquet", "--format", "jsonl")
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert {row["z"]["id"] for row in rows} == set(truth["stolen"])
    assert len(rows) == truth["theft_matches"]
    assert rows[0]["start"].startswith("2024-02-29T")
    result = cepheid_command(
        "generate", "medicine", tmp_path / "doses.csv", "--overdoses", "2",
        "--truth", tmp_path / "doses.json",
    )  # fmt: skip
    assert result.exit_code == 0
    assert len(json.loads((tmp_path / "doses.json").read_text("utf-8"))["overdosed"]) == 2
