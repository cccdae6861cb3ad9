"""The examples of docs/workloads.md print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"


def test_examples_print_what_the_page_says() -> None:
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for code, printed in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, str(PAGE), "exec"), names)
        assert said.getvalue().strip() == printed.strip()
