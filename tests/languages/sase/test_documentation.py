"""The language's page is true: its examples compile and its table of errors is complete."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cepheid.languages.sase.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "languages" / "sase.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```sase\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
GOLDEN = ROOT / "tests" / "errors" / "sase"

SOURCES = [
    *(ROOT / "src" / "cepheid" / "languages").glob("*.py"),
    *(ROOT / "src" / "cepheid" / "languages" / "sase").glob("*.py"),
    ROOT / "src" / "cepheid" / "algebra" / "typing.py",
]
OF_OPTIONS = {"bad-option", "unknown-option"}
"""Errors about the options of a call, not about a text."""
SHOWN_ELSEWHERE = {
    *("absent-attribute", "window-without-effect"),  # warnings
    *("language-not-available", "unknown-language", "text-too-large"),
}


def codes_in_source() -> set[str]:
    """Every code that the front end gives to a diagnostic."""
    makers = {"Diagnostic", "error", "warning", "of", "refuse"}
    codes = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in makers and isinstance(first, ast.Constant) and isinstance(first.value, str):
                codes.add(first.value)
    return codes


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_compile(text: str) -> None:
    assert translate(SourceText(text), Catalogue()).queries


def test_the_table_of_errors_is_complete() -> None:
    documented = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert documented == sorted(documented)
    assert set(documented) == codes_in_source() - OF_OPTIONS


def test_every_error_is_shown_whole() -> None:
    shown = {
        code
        for path in GOLDEN.glob("*.txt")
        for code in re.findall(r"^error\[([a-z-]+)\]", path.read_text("utf-8"), re.MULTILINE)
    }
    assert shown == codes_in_source() - OF_OPTIONS - SHOWN_ELSEWHERE


def test_the_message_on_the_page_is_the_real_one() -> None:
    (message,) = re.findall(r"^```text\n(error.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    golden = (GOLDEN / "unknown_attribute.txt").read_text("utf-8")
    assert message.replace("alerts.sase", "unknown_attribute.sase") in golden
