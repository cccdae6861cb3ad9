"""The examples of docs/workloads.md print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from textwrap import dedent

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"


def test_examples_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)*)", text, re.DOTALL)
    assert sum(bool(printed) for _, printed in blocks) == 3
    names: dict[str, object] = {}
    for code, printed in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, str(PAGE), "exec"), names)
        expected = ".*".join(re.escape(part) for part in dedent(printed).split("..."))
        assert re.fullmatch(expected, said.getvalue()), said.getvalue()
    assert (tmp_path / "cards.png").read_bytes().startswith(b"\x89PNG")
