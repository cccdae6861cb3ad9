"""The README's first query runs as it stands there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_first_query_finds_its_match(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert example is not None
    script = tmp_path / "example.py"
    script.write_text(example.group(1), "utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=300
    )
    (match,) = ast.literal_eval(done.stdout)
    assert (match["s"]["ts"], match["e"]["ts"]) == (1, 9)


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text("utf-8"))
    assert len(links) >= 6
    assert [link for link in links if not (README.parent / link).exists()] == []
