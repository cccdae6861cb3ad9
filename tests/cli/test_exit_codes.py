"""Exit codes and messages: 1 for what the user can mend, 2 for our bugs; carets, colours."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from cepheid.cli import failures
from cepheid.cli.main import COMMANDS
from cepheid.model.errors import InternalError, PerformanceWarning, QueryError
from tests.cli.conftest import EXAMPLES

EVENTS = EXAMPLES / "overdose" / "events.csv"
QUERY = EXAMPLES / "overdose" / "query.sase"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "none.sase", "-e", EVENTS], ["No such file", "none.sase"]),
        (["run", QUERY], ["error[no-events]", "--events"]),
        (["run", "-e", EVENTS], ["error[which-query]"]),
        (["run", QUERY, "-q", "EVENT A x", "-e", EVENTS], ["error[which-query]"]),
        (["run", QUERY, "-e", "none.csv"], ["error[no-events]", "none.csv"]),
        (["run", QUERY, "-e", EVENTS.with_name("event.csv")], ["did you mean `events.csv`?"]),
        (["run", QUERY, "-e", EVENTS.parent], ["error[mixed-formats]", "csv, json"]),
        (["run", QUERY, "-e", QUERY], ["error[unknown-format]", "--input-format"]),
        (["run", QUERY, "-e", EVENTS, "--host", "moon"], ["error[unknown-host]", "process"]),
        (["run", QUERY, "-e", EVENTS, "-o", "x.xlsx"], ["error[unknown-format]", ".parquet"]),
        (["run", QUERY, "-e", EVENTS, "--format", "xml"], ["error[unknown-format]"]),
        (["run", QUERY, "-e", EVENTS, "--format", "parquet"], ["standard output"]),
        (["run", QUERY, "-e", EVENTS, "--time", "when"], ["error[unknown-column]", "`when`"]),
        (["run", QUERY, "-e", EVENTS, "--time", "name"], ["error[bad-time-column]", "--time"]),
        (["run", QUERY, "-e", "/dev/null"], ["error[no-events]", "neither a file nor a folder"]),
        (["run", "-q", "EVENT MEDICINE-TAKEN x WHERE x.amount = :w", "-e", EVENTS],
         ["error[missing-parameter]", "help: give it with --param w=...\n"]),
        (["run", QUERY, "-e", EVENTS, "--param", "x"], ["error[bad-assignment]", "NAME=VALUE"]),
        (["run", QUERY, "-e", EVENTS, "--param", "x=1"], ["error["]),
        (["run", QUERY, "-e", EVENTS, "--plan", "partion=none"], ["did you mean `partition`?"]),
        (["run", QUERY, "-e", EVENTS, "--plan", "counting=yes"], ["error[bad-plan-option]"]),
        (["run", QUERY, "-e", EVENTS, "--lateness", "soon"], ["error[bad-duration]"]),
        (["run", QUERY, "-e", EVENTS, "--tie", "coin"], ["error[bad-tie]", "--tie strict or"]),
        (["run", QUERY, "-e", EVENTS, "--types", QUERY], ["error[bad-types-file]"]),
        (["check", "-q", "EVENT A x WHERE x.k = '\udcff'"], ["error[broken-character]", "U+DCFF"]),
        (["check", "-q", "register sink q as file 'a\0.csv' QUERY q SELECT * FROM A"],
         ["error[unknown-format]"]),
        (["check", "-q", "\u200bEVENT A x"], ["error[unknown-language]", "zero width space"]),
        (["run", QUERY, "-e", EVENTS, "--language", "sql"], ["error[unknown-language]"]),
        (["run", QUERY, "-e", EVENTS, "--query", "q7"], ["error[unknown-query]"]),
        (["run", QUERY, "-e", EVENTS, "--limit", "-1"], ["--limit"]),
        (["run", QUERY, "--evnts", EVENTS], ["No such option"]),
        (["explain", QUERY, "-e", EVENTS, "--schema", "a:int"], ["error[two-schemas]"]),
        (["explain", QUERY, "--schema", "a:inte"], ["error[bad-schema]", "did you mean"]),
        (["explain", QUERY, "--stats", QUERY], ["error[bad-statistics]"]),
        (["explain", QUERY, "--host", "scan"], ["error[unknown-host]", "--events"]),
        (["analyze", "none"], ["error[no-events]"]),
        (["generate", "stream", "x.csv", "--types", "0"], ["error[bad-generator-parameter]"]),
        (["generate", "stream", "x.csv", "--gaps", "odd"], ["odd"]),
        (["demo", "--host", "moon"], ["error[unknown-host]"]),
        (["demo", "--events", "3"], ["error[bad-generator-parameter]"]),
        (["rnu"], ["No such command", "run"]),
    ],
)  # fmt: skip
def test_mistakes_of_the_user_exit_with_1(arguments, told, cepheid_command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = cepheid_command(*arguments)
    assert result.exit_code == 1, result.output
    for text in told:
        assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_query_is_shown_with_its_place(cepheid_command, tmp_path):
    query = tmp_path / "query.sase"
    query.write_text("EVENT SEQ(MEDICINE-TAKEN x, MEDICINE-TAKEN y)\nWHERE x.amount + y.amout > 7")
    result = cepheid_command("run", query, "-e", EVENTS)
    assert result.exit_code == 1
    assert result.stderr == (
        "error[unknown-column]: the events have no column `amout`\n"
        f" --> {query}:2:18\n"
        "  |\n"
        "2 | WHERE x.amount + y.amout > 7\n"
        "  |                  ^^^^^^^ needed for `y`\n"
        "  = help: did you mean `amount`?\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{not json\n", "unreadable-events"),
        ('[{"type": "A", "ts": 1}]\n', "JSON lines"),
        ('{"type": "A", "ts": 1}\n{"type": 7, "ts": 1}\n', "unreadable-events"),
        ('{"type": "A", "ts": 1, "k": 1}\n{"type": "A", "ts": 2, "k": "x"}\n', "values of `k` one"),
    ],
)
def test_broken_json_lines_are_refused(text, told, cepheid_command, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    result = cepheid_command("run", "-q", "EVENT A x", "-e", path)
    assert result.exit_code == 1
    assert told in result.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"type,ts\nA,1\nA,1,2,3\n"),
        ("a.parquet", b"PAR1 but broken"),
        ("a.csv", b""),
        ("a.csv", b"ty\xfbpe,ts\nA,1\n"),
    ],
)
def test_broken_files_are_refused(name, content, cepheid_command, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    result = cepheid_command("run", "-q", "EVENT A x", "-e", path)
    assert result.exit_code == 1
    assert "error[unreadable-events]" in result.stderr
    assert str(path) in result.stderr


def test_two_columns_of_one_name_are_refused(cepheid_command, tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("type,ts,k,k\nA,1,2,3\n")
    result = cepheid_command("run", "-q", "EVENT A x WHERE x.k = 2", "-e", path)
    assert result.exit_code == 1
    assert f"error[repeated-column]: `{path}` has several columns `k`" in result.stderr


def test_a_text_is_shown_as_it_was_written(cepheid_command):
    text = "EVENT MEDICINE-TAKEN x WHERE tie=:tie"
    result = cepheid_command("run", "-q", text, "-e", EVENTS)
    assert f"1 | {text}" in result.stderr
    assert "--param tie=..." in result.stderr


def test_attributes_to_show_that_no_event_has(cepheid_command):
    result = cepheid_command("run", QUERY, "-e", EVENTS, "--show", "amount, amout")
    assert result.exit_code == 0
    assert result.stderr == "note: --show amout: no event of the matches has it\n"


def test_our_mistake_exits_with_2_and_says_how_to_report(cepheid_command, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("one over nothing")

    monkeypatch.setattr("cepheid.cli.check.translate", fail)
    result = cepheid_command("check", QUERY)
    assert result.exit_code == 2
    assert "error[internal]: ZeroDivisionError: one over nothing" in result.stderr
    assert "--debug" in result.stderr
    assert "Traceback" not in result.stderr
    with_trace = cepheid_command("check", QUERY, "--debug")
    assert with_trace.exit_code == 2
    assert "Traceback" in with_trace.stderr


def test_a_query_of_a_windows_editor_is_read(cepheid_command, tmp_path):
    query = tmp_path / "query.sase"
    query.write_bytes("\ufeffEVENT A x\r\nWHERE x.k = = 1".encode())
    result = cepheid_command("check", query)
    assert "2 | WHERE x.k = = 1\n  |             ^ expected a value" in result.stderr
    query.write_bytes("\ufeffEVENT A x".encode())
    assert cepheid_command("check", query).exit_code == 0
    assert cepheid_command("check", "-", stdin="\ufeffEVENT A x").exit_code == 0
    assert cepheid_command("check", "-q", "\ufeffEVENT A x").exit_code == 0


def test_internal_errors_are_ours():
    assert failures.exit_code_of(InternalError.of("bug", "a bug")) == 2
    assert failures.exit_code_of(QueryError.of("typo", "a typo")) == 1
    assert failures.exit_code_of(FileNotFoundError()) == 1
    assert failures.exit_code_of(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")) == 1
    assert failures.exit_code_of(KeyError()) == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = "error[code]: wrong\n --> q:1:1\n  |\n1 | EVENT\n  | ^^^^^ here\n  = help: mend it"
    painted = failures.painted(text, Terminal())
    assert "\x1b[1;31merror[code]\x1b[0m: wrong" in painted
    assert "\x1b[1;31m^^^^^ here\x1b[0m" in painted
    assert failures.painted(text, io.StringIO()) == text
    monkeypatch.setenv("NO_COLOR", "1")
    assert failures.painted(text, Terminal()) == text


def test_warnings_are_told_without_a_place_in_our_source(capsys):
    failures.show_warning("one task does all", PerformanceWarning, "x.py", 7)
    assert capsys.readouterr().err == "warning[performance]: one task does all\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_with_examples(command, cepheid_command):
    result = cepheid_command(command, "--help")
    assert result.exit_code == 0
    shown = result.stdout
    if command == "generate":
        assert "medicine" in shown
        shown = cepheid_command(command, "stream", "--help").stdout
    assert "Examples" in shown
    assert f"cepheid {command}" in shown


def test_help_lists_the_commands_without_loading_them(cepheid_command):
    result = cepheid_command("--help")
    assert result.exit_code == 0
    for command, sentence in COMMANDS.items():
        assert command in result.stdout
        assert sentence in " ".join(result.stdout.split())


def test_version(cepheid_command):
    result = cepheid_command("--version")
    assert (result.exit_code, result.stdout) == (0, "cepheid 0.1.0\n")


def run_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cepheid", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_real_process_exit_codes():
    assert run_process("check", QUERY).returncode == 0
    wrong = run_process("check", "-q", "EVENT SEQ(A x,")
    assert wrong.returncode == 1
    assert "\x1b[" not in wrong.stderr
    assert "^" in wrong.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    rows = "".join(f"A,{i}\n" for i in range(200_000))
    events = tmp_path / "events.csv"
    events.write_text(f"type,ts\n{rows}")
    command = f"{sys.executable} -m cepheid run -q 'EVENT A x' -e {events} --format csv | head -2"
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False
    )
    assert len(result.stdout.splitlines()) == 2
    assert "Traceback" not in result.stderr
    assert "internal" not in result.stderr


def test_on_a_terminal_the_host_is_told_in_colour():
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "cepheid", "run", str(QUERY), "-e", str(EVENTS)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=slave, timeout=120, check=False, env=environment
    )
    os.close(slave)
    told = os.read(master, 65536).decode()
    os.close(master)
    assert process.returncode == 0
    assert "host: process (one file of" in told
