"""The commands on the manager's page, run as written."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, as_pattern, console_steps

PAGE = ROOT / "docs" / "manager.md"


@pytest.mark.slow
def test_commands_print_what_the_page_says(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    shutil.copytree(ROOT / "examples" / "shoplifting", folder)
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "COLUMNS": "100", "PATH": f"{scripts}:{os.environ['PATH']}"}
    steps = console_steps(PAGE)
    assert len(steps) >= 10
    try:
        for command, printed in steps:
            result = subprocess.run(
                ["bash", "-c", command],
                cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
                check=False,
            )  # fmt: skip
            said = result.stdout + result.stderr
            assert result.returncode in (0, 1), said
            assert re.fullmatch(as_pattern(printed), said + "\n"), f"$ {command}\n{said}"
    finally:
        place = folder / ".cepheid" / "manager.json"
        if place.exists():
            os.kill(json.loads(place.read_text("utf-8"))["process"], signal.SIGKILL)


def test_the_limits_are_those_of_the_code() -> None:
    from cepheid.languages.limits import LARGEST_TEXT
    from cepheid.manager.entries import MOST_QUERIES
    from cepheid.manager.server import LARGEST_BODY

    text = PAGE.read_text("utf-8")
    assert f"{LARGEST_BODY >> 10} KiB" in text
    assert f"{LARGEST_TEXT >> 10} KiB" in text
    assert f"{MOST_QUERIES:,} queries" in text
