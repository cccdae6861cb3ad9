"""The tutorial's commands, run as written; what they print is compared, `...` is anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
FOLDERS = {"first_steps.md": ROOT / "examples" / "shoplifting"}


def console_steps(page: Path) -> list[tuple[str, str]]:
    """Commands and what they print, from the page's console blocks."""
    steps: list[tuple[str, str]] = []
    blocks = re.findall(r"^```console\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            steps.append((command, printed))
    return steps


def as_pattern(printed: str) -> str:
    """Printed text as a regular expression; a line `...` is any lines, `...` in one anything."""
    lines = []
    for line in printed.strip("\n").split("\n"):
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"[ ]*\n")
    return r"\s*?" + "".join(lines) + r"\s*"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_print_what_the_page_says(page, tmp_path):
    folder = tmp_path / "work"
    shutil.copytree(FOLDERS[page.name], folder)
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "COLUMNS": "100", "PATH": f"{scripts}:{os.environ['PATH']}"}
    steps = console_steps(page)
    assert len(steps) >= 10
    for command, printed in steps:
        result = subprocess.run(
            ["bash", "-c", command],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        said = result.stdout + result.stderr
        assert result.returncode in (0, 1), said
        assert re.fullmatch(as_pattern(printed), said + "\n"), f"$ {command}\n{said}"


def test_a_wrong_page_is_seen():
    assert re.fullmatch(as_pattern("a\n...\nb\n"), "a\n1\n2\nb\n")
    assert not re.fullmatch(as_pattern("a\n...\nb\n"), "a\n1\n2\nc\n")
    assert not re.fullmatch(as_pattern("5 matches"), "6 matches\n")


def test_every_page_has_a_folder_to_run_in():
    assert [page.name for page in PAGES] == sorted(FOLDERS)
