"""What a small run loads, and leaves unloaded: start-up time is mostly imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cepheid.cli.main import app
from cepheid.model.lean_process import is_lean
from tests.cli.conftest import EXAMPLES

HEAVY = {"pandas", "scipy", "pyspark", "rich", "pydantic", "matplotlib", "plotly", "hypothesis"}
FOLDER = EXAMPLES / "overdose"


def loaded_by(*arguments: object) -> set[str]:
    """The packages of which a command loads some module (a name alone may be a failed import)."""
    return {name.partition(".")[0] for name in modules_of(*arguments) if "." in name}


def modules_of(*arguments: object) -> list[str]:
    """The modules that a command loads."""
    command = [sys.executable, "-X", "importtime", "-m", "cepheid", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    lines = [line for line in result.stderr.splitlines() if line.startswith("import time:")]
    return [line.rpartition("|")[2].strip() for line in lines]


def test_a_small_run_loads_no_heavy_library(tmp_path):
    arguments = ("run", FOLDER / "query.sase", "-e", FOLDER / "events.csv")
    run = (*arguments, "--host", "process", "-o", tmp_path / "out.csv")
    loaded_by(*run)  # compiles the kernel, if it is new
    loaded = loaded_by(*run)
    assert loaded & HEAVY == set()
    assert {"numba", "pyarrow", "lark", "typer"} <= loaded
    assert len((tmp_path / "out.csv").read_text("utf-8").splitlines()) == 2


def test_a_sequence_loads_no_kernels_of_successors(tmp_path):
    arguments = ("run", FOLDER / "query.sase", "-e", FOLDER / "events.csv", "--host", "process")
    loaded = modules_of(*arguments, "-o", tmp_path / "out.csv")
    assert "cepheid.kernels.stacks" in loaded
    assert not [name for name in loaded if "succession_" in name and "kernels" in name]
    assert "cepheid.kernels.match_nodes" not in loaded


def test_version_and_check_load_no_engine():
    assert loaded_by("--version") & {"numba", "pyarrow", "numpy", "lark", *HEAVY} == set()
    assert loaded_by("check", FOLDER / "query.sase") & {"numba", *HEAVY} == set()


def test_a_kernel_that_is_not_cached_is_compiled(tmp_path):
    """The lean way must also work when there is nothing in the cache."""
    environment = {**os.environ, "CEPHEID_CACHE": str(tmp_path / "cache")}
    query = "EVENT SEQ(MEDICINE-TAKEN x, MEDICINE-TAKEN y) WHERE [name, medicine] WITHIN 7 hours"
    command = [
        sys.executable, "-m", "cepheid", "run", "-q", query, "-e", str(FOLDER / "events.csv"),
        "--format", "jsonl",
    ]  # fmt: skip
    answers = [
        subprocess.run(
            command, capture_output=True, text=True, timeout=180, check=True, env=environment
        ).stdout
        for _ in range(2)
    ]
    assert list((tmp_path / "cache").glob("*.py"))
    assert answers[0] == answers[1] != ""


def test_nothing_is_left_out_of_a_process_that_others_use():
    result = CliRunner().invoke(
        app, ["run", str(FOLDER / "query.sase"), "-e", str(FOLDER / "events.csv")]
    )
    assert result.exit_code == 0
    assert not is_lean()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_whole_when_the_process_ends_at_once(stream, tmp_path):
    rows = "".join(f"A,{i}\n" for i in range(5000))
    events = tmp_path / "events.csv"
    events.write_text(f"type,ts\n{rows}")
    command = [sys.executable, "-m", "cepheid", "run", "-q", "EVENT A x", "-e", str(events)]
    if stream == "stdout":
        result = subprocess.run(
            [*command, "--format", "jsonl"], capture_output=True, text=True, timeout=180, check=True
        )
        assert len(result.stdout.splitlines()) == 5000
    else:
        result = subprocess.run(
            [*command, "--time", "nothing"],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert result.returncode == 1
        assert result.stderr.endswith("\n")
        assert "unknown-column" in result.stderr


def test_module_and_script_are_the_same_command():
    script = Path(sys.executable).with_name("cepheid")
    for command in ([str(script)], [sys.executable, "-m", "cepheid"]):
        result = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
        assert result.stdout == "cepheid 0.1.0\n"
