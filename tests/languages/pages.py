"""What the tests of all languages' pages ask: which errors there are, documented and shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "cepheid"
LANGUAGES = SOURCE / "languages"
WHERE_EVENTS_ARE_MET = (
    *("algebra/bind.py", "model/event_time.py", "planner/columns.py", "planner/match_schema.py"),
    *("planner/prepare.py", "planner/registered_sources.py", "planner/sequence_plan.py"),
    *("planner/succession_conditions.py", "planner/succession_plan.py"),
)
OF_OPTIONS = {"bad-option", "unknown-option"}
"""Errors about the options of a call, not about a text."""

_MAKERS = {"Diagnostic", "error", "warning", "of", "refuse"}


def page(language: str) -> str:
    """The text of a language's page."""
    return (ROOT / "docs" / "languages" / f"{language}.md").read_text("utf-8")


def examples(language: str) -> list[str]:
    """The queries on a language's page."""
    block = rf"^```{language}\n(.*?)^```$"
    return re.findall(block, page(language), re.MULTILINE | re.DOTALL)


def codes_in_source(language: str) -> set[str]:
    """Every code that a language's front end gives to a diagnostic about a text."""
    sources = [
        *LANGUAGES.glob("*.py"),
        *(LANGUAGES / language).glob("*.py"),
        SOURCE / "algebra" / "typing.py",
    ]
    return codes_in(sources) - OF_OPTIONS


def codes_when_run() -> set[str]:
    """Every code of what is wrong with a query and its events together."""
    return codes_in(SOURCE / name for name in WHERE_EVENTS_ARE_MET)


def codes_in(sources: Iterable[Path]) -> set[str]:
    """Every code that these files give to a diagnostic."""
    codes = set()
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in _MAKERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
                codes.add(first.value)
    return codes


def documented_codes(language: str) -> list[str]:
    """The codes in the table of a language's page."""
    return re.findall(r"^\| `([a-z-]+)` \|", page(language), re.MULTILINE)


def golden(language: str) -> Path:
    """The folder of a language's messages, shown whole."""
    return ROOT / "tests" / "errors" / language


def shown_codes(language: str) -> set[str]:
    """The codes of the errors that are shown whole."""
    return {
        code
        for path in golden(language).glob("*.txt")
        for code in re.findall(r"^error\[([a-z-]+)\]", path.read_text("utf-8"), re.MULTILINE)
    }


def message_on_page(language: str) -> str:
    """The message that a page shows as its example."""
    (message,) = re.findall(r"^```text\n(error.*?)\n```$", page(language), re.MULTILINE | re.DOTALL)
    return str(message)
