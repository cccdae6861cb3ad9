"""Each language's page is true: its examples compile and its table of errors is complete."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from cepheid.cli.main import app
from cepheid.languages.registry import translate
from cepheid.model.catalogue import Catalogue
from tests.languages.pages import (
    ROOT,
    codes_in_source,
    codes_when_run,
    documented_codes,
    examples,
    golden,
    message_on_page,
    page,
    shown_codes,
)

WARNINGS = {
    "next": {
        *("exception-without-effect", "never-together", "nothing-to-look-back-at"),
        *("sink-without-query", "unbounded-iteration", "window-without-effect"),
    },
    "sase": {"absent-attribute", "window-without-effect"},
}
EVENTS = ROOT / "examples" / "overdose" / "events.csv"
SHOWN_ELSEWHERE = {
    *("broken-character", "language-not-available", "text-too-large", "unknown-language"),
}

in_each_language = pytest.mark.parametrize("language", sorted(WARNINGS))


@in_each_language
def test_there_are_examples(language: str) -> None:
    assert len(examples(language)) >= 10


@pytest.mark.parametrize(
    ("language", "text"),
    [(language, text) for language in WARNINGS for text in examples(language)],
)
def test_examples_compile(language: str, text: str) -> None:
    assert translate(text, None, Catalogue()).queries[0].language == language


@in_each_language
def test_the_table_of_errors_is_complete(language: str) -> None:
    documented = documented_codes(language)
    assert documented == sorted(documented)
    assert set(documented) == codes_in_source(language)


def test_the_table_of_errors_when_run_is_complete() -> None:
    documented = documented_codes("running")
    assert documented == sorted(documented)
    assert set(documented) == codes_when_run()


def test_the_message_on_the_page_about_running_is_the_real_one() -> None:
    (shown,) = re.findall(r"^```console\n(.*?)```$", page("running"), re.MULTILINE | re.DOTALL)
    text = shown.splitlines()[3].partition(" | ")[2]
    result = CliRunner().invoke(app, ["run", "-q", text, "-e", str(EVENTS)])
    assert result.stderr == shown


@in_each_language
def test_every_error_is_shown_whole(language: str) -> None:
    told_otherwise = SHOWN_ELSEWHERE | WARNINGS[language]
    assert shown_codes(language) == codes_in_source(language) - told_otherwise


@in_each_language
def test_the_message_on_the_page_is_the_real_one(language: str) -> None:
    shown = (golden(language) / "unknown_attribute.txt").read_text("utf-8")
    message = message_on_page(language)
    assert message.replace(f"alerts.{language}", f"unknown_attribute.{language}") in shown
