"""Each language's page is true: its examples compile and its table of errors is complete."""

from __future__ import annotations

import pytest

from cepheid.languages.registry import translate
from cepheid.model.catalogue import Catalogue
from tests.languages.pages import (
    codes_in_source,
    documented_codes,
    examples,
    golden,
    message_on_page,
    shown_codes,
)

WARNINGS = {
    "next": {
        *("exception-without-effect", "sink-without-query", "unbounded-iteration"),
        "window-without-effect",
    },
    "sase": {"absent-attribute", "window-without-effect"},
}
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


@in_each_language
def test_every_error_is_shown_whole(language: str) -> None:
    told_otherwise = SHOWN_ELSEWHERE | WARNINGS[language]
    assert shown_codes(language) == codes_in_source(language) - told_otherwise


@in_each_language
def test_the_message_on_the_page_is_the_real_one(language: str) -> None:
    shown = (golden(language) / "unknown_attribute.txt").read_text("utf-8")
    message = message_on_page(language)
    assert message.replace(f"alerts.{language}", f"unknown_attribute.{language}") in shown
