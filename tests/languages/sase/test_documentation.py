"""The language's page is true: its examples compile and its table of errors is complete."""

from __future__ import annotations

import pytest

from cepheid.languages.sase.to_algebra import translate
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
    *("absent-attribute", "window-without-effect"),  # warnings
    *("language-not-available", "unknown-language", "text-too-large"),
}


def test_there_are_examples() -> None:
    assert len(examples("sase")) >= 10


@pytest.mark.parametrize("text", examples("sase"))
def test_examples_compile(text: str) -> None:
    assert translate(SourceText(text), Catalogue()).queries


def test_the_table_of_errors_is_complete() -> None:
    documented = documented_codes("sase")
    assert documented == sorted(documented)
    assert set(documented) == codes_in_source("sase")


def test_every_error_is_shown_whole() -> None:
    assert shown_codes("sase") == codes_in_source("sase") - SHOWN_ELSEWHERE


def test_the_message_on_the_page_is_the_real_one() -> None:
    shown = (golden("sase") / "unknown_attribute.txt").read_text("utf-8")
    assert message_on_page("sase").replace("alerts.sase", "unknown_attribute.sase") in shown
