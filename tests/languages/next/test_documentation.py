"""The language's page is true: its examples compile and its table of errors is complete."""

from __future__ import annotations

import pytest

from cepheid.languages.next.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from tests.languages.pages import (
    codes_in_source,
    documented_codes,
    examples,
    golden,
    message_on_page,
    shown_codes,
)

SHOWN_ELSEWHERE = {
    *("exception-without-effect", "sink-without-query", "unbounded-iteration"),  # warnings
    "window-without-effect",  # a warning, too
    *("language-not-available", "unknown-language", "text-too-large"),
}


def test_there_are_examples() -> None:
    assert len(examples("next")) >= 10


@pytest.mark.parametrize("text", examples("next"))
def test_examples_compile(text: str) -> None:
    assert translate(SourceText(text), Catalogue()).queries


def test_the_table_of_errors_is_complete() -> None:
    documented = documented_codes("next")
    assert documented == sorted(documented)
    assert set(documented) == codes_in_source("next")


def test_every_error_is_shown_whole() -> None:
    assert shown_codes("next") == codes_in_source("next") - SHOWN_ELSEWHERE


def test_the_message_on_the_page_is_the_real_one() -> None:
    shown = (golden("next") / "unknown_attribute.txt").read_text("utf-8")
    assert message_on_page("next").replace("alerts.next", "unknown_attribute.next") in shown
