"""`cepheid run`: examples, formats, hosts, options, and what is told on the side."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import cepheid
from cepheid.cli import event_readers
from cepheid.generate import StreamParameters, generate_stream, write_events
from cepheid.hosts import text_formats
from tests.cli.conftest import EXAMPLES, query_of

STORIES = {
    "shoplifting": ("events.csv", ("x", "z")),
    "misplaced_inventory": ("events.jsonl", ("x", "y")),
    "overdose": ("events.csv", ("x", "y")),
    "credit_cards": ("events.csv", ("S1", "S2", "L")),
}
PAIRS = "EVENT SEQ(E1 x, E2 y) WHERE [attr1] WITHIN 200"


def json_lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def stream() -> pa.Table:
    parameters = StreamParameters(events=4000, types=5, attributes=2, domain_sizes=20, seed=3)
    return generate_stream(parameters)


@pytest.fixture
def expected(stream) -> set[str]:
    found = set(cepheid.detect(stream, PAIRS)["match_id"].to_pylist())
    assert len(found) > 100
    return found


@pytest.mark.parametrize("story", STORIES)
def test_examples_give_their_expected_matches(story, cepheid_command):
    folder = EXAMPLES / story
    events, variables = STORIES[story]
    result = cepheid_command(
        "run", query_of(story), "--events", folder / events, "--format", "jsonl"
    )
    assert result.exit_code == 0, result.stderr
    found = [[row[v]["event"] for v in variables] for row in json_lines(result.stdout)]
    assert sorted(found) == sorted(json.loads((folder / "expected.json").read_text("utf-8")))
    assert result.stderr == "", "quiet without a terminal"


def test_matches_are_shown_as_a_table(cepheid_command):
    folder = EXAMPLES / "shoplifting"
    result = cepheid_command(
        "run",
        folder / "query.sase",
        "-e",
        folder / "events.csv",
        "--id",
        "event",
        "--show",
        "reader",
    )
    lines = [line.split() for line in result.stdout.splitlines()]
    row = ["tag-5", "r07@10:50:23", "shelf-006", "r16@12:13:59", "exit-1", "1", "h", "23", "min"]
    assert row in lines
    assert "5 matches" in result.stdout


def test_a_long_table_is_cut_and_counted(cepheid_command, stream, expected, tmp_path):
    write_events(stream, tmp_path / "events.parquet")
    result = cepheid_command("run", "-q", PAIRS, "-e", tmp_path / "events.parquet", "--limit", "3")
    assert f"{len(expected):,} matches, the first 3 shown" in result.stdout
    assert len(result.stdout.splitlines()) < 12


def test_no_row_is_shown_when_none_is_wanted(cepheid_command):
    folder = EXAMPLES / "shoplifting"
    arguments = ("run", folder / "query.sase", "-e", folder / "events.csv", "--limit", "0")
    assert cepheid_command(*arguments).stdout.startswith("5 matches, the first 0 shown")


def test_returned_values_are_shown(cepheid_command, stream, tmp_path):
    write_events(stream, tmp_path / "events.parquet")
    query = PAIRS + " RETURN x.attr1 AS key, y.ts - x.ts AS length"
    result = cepheid_command("run", "-q", query, "-e", tmp_path / "events.parquet")
    assert ["start", "end", "key", "length"] in [
        line.split() for line in result.stdout.splitlines()
    ]


def test_no_match_is_told(cepheid_command):
    events = EXAMPLES / "overdose" / "events.csv"
    result = cepheid_command("run", "-q", "EVENT NOBODY x", "-e", events)
    assert (result.exit_code, result.stdout.strip()) == (0, "no matches")


@pytest.mark.parametrize("order", ["1,A\n2,login", "2,login\n1,A"])
def test_types_that_no_event_has_are_told_where_nothing_matches(order, cepheid_command, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text(f"ts,type\n{order}\n")
    result = cepheid_command(
        "run", "-q", "EVENT SEQ(A x, logon y, !(Z z), A w) WITHIN 9", "-e", events
    )
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "note: no event has the type `logon`; did you mean `login`?",
        "note: no event has the type `Z`",
    ]
    found = cepheid_command("run", "-q", "EVENT SEQ(!(Z z), A x) WITHIN 9", "-e", events)
    assert found.stderr == ""
    made = "both: EVENT SEQ(A x, login y) RETURN x.ts AS a\nEVENT SEQ(both x, A y)"
    assert cepheid_command("run", "-q", made, "-e", events).stderr == ""


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".csv.gz", ".jsonl.gz"])
def test_every_input_format_gives_the_same_matches(
    suffix, cepheid_command, stream, expected, tmp_path
):
    plain = tmp_path / f"events{suffix.removesuffix('.gz')}"
    write_events(stream, plain)
    path = plain
    if suffix.endswith(".gz"):
        path = tmp_path / f"events{suffix}"
        path.write_bytes(gzip.compress(plain.read_bytes()))
    result = cepheid_command("run", "-q", PAIRS, "-e", path, "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    assert {row["match_id"] for row in json_lines(result.stdout)} == expected


def test_a_folder_is_read_in_the_order_of_its_names(cepheid_command, stream, expected, tmp_path):
    write_events(stream, tmp_path / "events", rows_per_file=700)
    (tmp_path / "events" / "_SUCCESS").touch()
    result = cepheid_command(
        "run", "-q", PAIRS, "-e", tmp_path / "events", "--host", "process", "--format", "jsonl"
    )
    assert {row["match_id"] for row in json_lines(result.stdout)} == expected


def test_output_formats_read_back_alike(cepheid_command, stream, expected, tmp_path):
    write_events(stream, tmp_path / "events.parquet")
    for name in ("out.parquet", "out.csv", "out.jsonl", "deep/er/out.csv"):
        result = cepheid_command(
            "run", "-q", PAIRS, "-e", tmp_path / "events.parquet", "-o", tmp_path / name
        )
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    whole = cepheid.detect(stream, PAIRS)
    rows = {row["match_id"]: row for row in whole.to_pylist()}
    parquet = pa.parquet.read_table(tmp_path / "out.parquet")
    assert {row["match_id"]: row for row in parquet.to_pylist()} == rows
    lines = json_lines((tmp_path / "out.jsonl").read_text("utf-8"))
    assert {row["match_id"]: row for row in lines} == rows
    csv = pa.csv.read_csv(tmp_path / "out.csv")
    assert csv.column_names[:6] == ["match_id", "query", "start", "end", "x.type", "x.ts"]
    assert dict(zip(csv["match_id"].to_pylist(), csv["y.ts"].to_pylist(), strict=True)) == {
        name: row["y"]["ts"] for name, row in rows.items()
    }
    assert not list(tmp_path.glob(".*")), "unfinished files are left"


def test_a_failing_run_leaves_no_output(cepheid_command, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text("type,ts,id\nA,1,1\nB,2,1\nB,x,1\n")
    out = tmp_path / "out.csv"
    result = cepheid_command("run", "-q", "EVENT SEQ(A x, B y)", "-e", events, "-o", out)
    assert result.exit_code == 1
    assert "bad-time-column" in result.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.csv"]


def test_disordered_events_are_sorted(cepheid_command, stream, expected, tmp_path):
    order = pa.array(list(reversed(range(len(stream)))))
    write_events(stream.take(order).combine_chunks(), tmp_path / "events.csv")
    result = cepheid_command(
        "run", "-q", PAIRS, "-e", tmp_path / "events.csv", "--format", "jsonl", "--verbose"
    )
    assert {row["match_id"] for row in json_lines(result.stdout)} == expected
    assert "not in time order" in result.stderr


def test_disorder_within_the_lateness_needs_no_sorting(cepheid_command, tmp_path):
    parameters = StreamParameters(
        events=4000, types=5, attributes=2, domain_sizes=20, disorder=30, seed=3
    )
    events = generate_stream(parameters)
    write_events(events, tmp_path / "events.csv")
    arguments = ("run", "-q", PAIRS, "-e", tmp_path / "events.csv", "--format", "jsonl", "-v")
    streamed = cepheid_command(*arguments, "--lateness", "30")
    sorted_first = cepheid_command(*arguments)
    assert "not in time order" not in streamed.stderr
    assert "not in time order" in sorted_first.stderr
    ids = [{row["match_id"] for row in json_lines(r.stdout)} for r in (streamed, sorted_first)]
    assert ids[0] == ids[1] == set(cepheid.detect(events, PAIRS)["match_id"].to_pylist())


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_types_that_change_late_in_a_file(kind, cepheid_command, monkeypatch, tmp_path):
    monkeypatch.setattr(event_readers, "BLOCK", 4096)
    monkeypatch.setattr(text_formats, "BLOCK", 4096)
    rows = [{"type": "AB"[i % 2], "ts": i, "id": i // 2, "note": None} for i in range(2000)]
    rows.append({"type": "A", "ts": 3000, "id": 7.5, "note": "late"})
    rows.append({"type": "B", "ts": 3001, "id": 7.5, "note": "later"})
    path = tmp_path / f"events.{kind}"
    if kind == "csv":
        lines = ["type,ts,id,note"]
        lines += [f"{r['type']},{r['ts']},{r['id']},{r['note'] or ''}" for r in rows]
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10"
    result = cepheid_command("run", "-q", query, "-e", path, "--format", "jsonl", "-v")
    assert result.exit_code == 0, result.stderr
    assert "types of columns change" in result.stderr
    found = json_lines(result.stdout)
    assert len(found) == 1001
    assert found[-1]["y"]["note"] == "later"


def test_events_that_cannot_be_used_are_told(cepheid_command, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text("type,ts,id\nA,1,1\n,2,1\nA,,5\nB,3,\nB,4,1\n")
    types = tmp_path / "types.json"
    types.write_text('{"A": ["id"], "B": ["id"]}')
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10"
    result = cepheid_command(
        "run", "-q", query, "-e", events, "--types", types, "--format", "jsonl"
    )
    assert [row["y"]["ts"] for row in json_lines(result.stdout)] == [4]
    assert "2 events left out: no type or no usable time" in result.stderr
    assert "1 event could not match: null in a key attribute" in result.stderr


def test_types_file_tells_null_from_absent(cepheid_command, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text("type,ts,id\nA,1,1\nB,2,\n")
    types = tmp_path / "types.json"
    types.write_text('{"A": ["id"], "B": {"id": "int"}}')
    arguments = ("run", "-q", "EVENT SEQ(A x, B y) WHERE [id]", "-e", events, "--format", "jsonl")
    assert len(json_lines(cepheid_command(*arguments).stdout)) == 1
    assert json_lines(cepheid_command(*arguments, "--types", types).stdout) == []


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["--param", "who=John", "--param", "least=1000"], ["d09"]),
        (["--param", "who='John'", "--param", ":least=1000.5"], ["d09"]),
        (["--param", "who=Mary", "--param", "least=1200"], ["d07", "d11"]),
        (["--param", "who=Nobody", "--param", "least=0"], []),
    ],
)
def test_parameters_have_the_type_they_read_as(given, names, cepheid_command):
    query = """EVENT SEQ(MEDICINE-TAKEN x, MEDICINE-TAKEN y)
        WHERE [medicine] AND x.name = :who AND y.name = :who AND x.amount + y.amount > :least
        WITHIN 4 hours"""
    events = EXAMPLES / "overdose" / "events.csv"
    result = cepheid_command("run", "-q", query, "-e", events, "--format", "jsonl", *given)
    assert result.exit_code == 0, result.stderr
    assert sorted(row["y"]["event"] for row in json_lines(result.stdout)) == names


def test_query_from_standard_input_and_of_a_program(cepheid_command, stream, expected, tmp_path):
    write_events(stream, tmp_path / "events.parquet")
    program = f"QUERY Pairs {PAIRS}; QUERY Others EVENT SEQ(E3 x, E4 y) WITHIN 1"
    arguments = ("run", "-", "-e", tmp_path / "events.parquet", "--format", "jsonl")
    result = cepheid_command(*arguments, "--query", "Pairs", stdin=program)
    assert len(json_lines(result.stdout)) == len(expected)
    assert json_lines(result.stdout)[0]["query"] == "Pairs"
    assert cepheid_command(*arguments, stdin=program).stdout == "", "the last query has no match"
    wrong = cepheid_command(*arguments, "--query", "Pair", stdin=program)
    assert wrong.exit_code == 1
    assert "did you mean `Pairs`?" in wrong.stderr


def test_time_and_type_columns_and_ticks(cepheid_command, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text("kind,when\n1,10\n2,13\n2,16\n")
    arguments = ("-e", events, "--type-column", "kind", "--time", "when", "--format", "jsonl")
    query = "EVENT SEQ(`1` x, `2` y) WITHIN 5 minutes"
    refused = cepheid_command("run", "-q", query, *arguments)
    assert refused.exit_code == 1
    assert "window-needs-tick" in refused.stderr
    result = cepheid_command("run", "-q", query, *arguments, "--tick", "1 min")
    assert [row["y"]["when"] for row in json_lines(result.stdout)] == [13]


def test_chosen_host_is_told_on_request(cepheid_command):
    folder = EXAMPLES / "overdose"
    arguments = ("run", folder / "query.sase", "-e", folder / "events.csv", "-v")
    assert "host: process (one file of" in cepheid_command(*arguments).stderr
    asked = cepheid_command(*arguments, "--host", "process")
    assert "host: process (asked for)" in asked.stderr


def test_plan_options_do_not_change_the_answer(cepheid_command, stream, expected, tmp_path):
    write_events(stream, tmp_path / "events.parquet")
    result = cepheid_command(
        "run", "-q", PAIRS, "-e", tmp_path / "events.parquet", "--format", "jsonl",
        "--plan", "partition=none", "--plan", "window_in_scan=false",
    )  # fmt: skip
    assert {row["match_id"] for row in json_lines(result.stdout)} == expected


def test_csv_conventions(cepheid_command, tmp_path):
    """An empty field is null, a quoted one an empty text; times may gain fractions later."""
    events = tmp_path / "events.csv"
    events.write_text(
        "type,ts,name\n"
        "A,2020-01-01T00:00:00Z,\n"
        'A,2020-01-01T00:00:01Z,""\n'
        "B,2020-01-01T00:00:01.25Z,x\n"
    )
    query = "EVENT SEQ(A x, B y) WITHIN 2 s"
    result = cepheid_command("run", "-q", query, "-e", events, "--format", "jsonl")
    rows = sorted(json_lines(result.stdout), key=lambda row: row["start"])
    assert [row["x"]["name"] for row in rows] == [None, ""]
    assert rows[0]["end"] == "2020-01-01T00:00:01.250000Z"


def test_only_an_empty_field_is_null_and_texts_may_span_lines(cepheid_command, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text('type,ts,name\nA,1,NA\nA,2,null\nA,3,"two\nlines"\nA,4,\n')
    result = cepheid_command("run", "-q", "EVENT A x", "-e", events, "--format", "jsonl")
    names = [row["x"]["name"] for row in json_lines(result.stdout)]
    assert names == ["NA", "null", "two\nlines", None]


def test_a_text_that_looks_like_a_time_at_first(cepheid_command, monkeypatch, tmp_path):
    monkeypatch.setattr(text_formats, "_SAMPLED_LINES", 2)
    events = tmp_path / "events.jsonl"
    events.write_text(
        "".join(
            json.dumps({"type": "A", "ts": i, "note": note}) + "\n"
            for i, note in enumerate(["2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z", "none"])
        )
    )
    result = cepheid_command("run", "-q", "EVENT A x", "-e", events, "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    names = [row["x"]["note"] for row in json_lines(result.stdout)]
    assert names == ["2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z", "none"]


@pytest.mark.parametrize("zone", ["Z", "+00:00", ""])
def test_times_in_json_lines(zone, cepheid_command, tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text(
        f'{{"type": "A", "ts": "2020-01-01T00:00:00{zone}", "day": "2020-01-01"}}\n'
        f'{{"type": "B", "ts": "2020-01-01T00:00:01.5{zone}", "day": "2020-01-01"}}\n'
    )
    query = "EVENT SEQ(A x, B y) WITHIN 2 s"
    result = cepheid_command("run", "-q", query, "-e", events, "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    (row,) = json_lines(result.stdout)
    assert row["end"].startswith("2020-01-01T00:00:01.5")
    assert row["x"]["day"] == "2020-01-01"


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_times_finer_than_microseconds(form, cepheid_command, tmp_path):
    events = tmp_path / "events.csv"
    events.write_text("type,ts\nA,2020-01-01T00:00:00.123456789\nB,2020-01-01T00:00:02.5\n")
    query = "EVENT SEQ(A x, B y) WITHIN 9 s"
    result = cepheid_command("run", "-q", query, "-e", events, "--format", form)
    assert result.exit_code == 0, result.stderr
    if form == "jsonl":
        (row,) = json_lines(result.stdout)
        assert row["start"] == "2020-01-01T00:00:00.123456"
