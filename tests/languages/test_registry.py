"""The door to the languages: detection by first words, options, what is not there yet."""

from __future__ import annotations

import pytest

from cepheid.languages.registry import LANGUAGES, detect_language, meaning_options, translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import OptionError, QueryError
from cepheid.model.options import Options


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("EVENT A", "sase"),
        ("  -- a comment\n/* SELECT */ event seq(A, B)", "sase"),
        ("QUERY q EVENT A", "sase"),
        ("Q1:\nEVENT A", "sase"),
        ("SELECT * FROM t T1+; t T2", "next"),
        ("register source t schema (a int)", "next"),
        ("frauds: SELECT * FROM t", "next"),
        ("QUERY frauds SELECT * FROM t", "next"),
        ("query /* of */ `all frauds` -- here\n select * FROM t", "next"),
        ("QUERY select EVENT A", "sase"),
        ("QUERY frauds", "sase"),
        ("source person_detector schema int id", "plan"),
        ("primitive p on s schema id as s.id", "plan"),
        ("complex c on p as A event seq(A, A; 3)", "plan"),
        ("aggregate busy on load over 5 having sum(x) > 3", "plan"),
        ("SEQUENCE x, !y, z WHERE x.reader = 'A'", "ayac"),
        ("Hot = profile(temperature > 30)", "compas"),
        ("both = (A;B)_10", "compas"),
        ("(E1;E2)_10", "compas"),
        ("not(E1)_30", "compas"),
        ("profile(temperature < 10)", "compas"),
    ],
)
def test_detection(text: str, language: str) -> None:
    assert detect_language(text) == language
    assert detect_language(SourceText(text)) == language


@pytest.mark.parametrize("text", ["", "   \n", "-- nothing", "/* nothing */"])
def test_an_empty_text_is_told(text: str) -> None:
    with pytest.raises(QueryError) as refused:
        detect_language(text)
    assert refused.value.code == "empty-query"


def test_an_unknown_beginning_is_shown() -> None:
    with pytest.raises(QueryError) as refused:
        detect_language("-- theft\nEVNT SEQ(A, B)")
    assert str(refused.value) == "\n".join(
        [
            "error[unknown-language]: the text begins like no language that is known",
            " --> query:2:1",
            "  |",
            "2 | EVNT SEQ(A, B)",
            "  | ^^^^ not a first word of any language",
            "  = help: did you mean `event`?",
        ]
    )


@pytest.mark.parametrize("text", ["PATTERN SEQ(A, B)", "{", "== 3", "9"])
def test_other_beginnings_are_refused(text: str) -> None:
    with pytest.raises(QueryError) as refused:
        detect_language(text)
    assert refused.value.code == "unknown-language"
    assert refused.value.help


def test_translation_passes_options_and_warnings_on() -> None:
    told: list[Diagnostic] = []
    text = "EVENT A WITHIN 5"
    program = translate(text, None, Catalogue(), report=told.append, discrete=False, tie="seqno")
    assert [query.name for query in program.queries] == ["query"]
    assert [each.code for each in told] == ["window-without-effect"]
    assert translate(text, "SASE", Catalogue()) == program


def test_each_language_has_its_own_options() -> None:
    options = Options(tie="seqno", cap=3)
    assert meaning_options("sase", options) == (("discrete", True), ("tie", "seqno"))
    assert meaning_options("next", options) == (("cap", 3), ("failures", False))
    assert meaning_options("no such language", options) == ()


def test_the_name_of_the_text_stands_in_messages() -> None:
    with pytest.raises(QueryError, match=r"--> alerts\.sase:1:8"):
        translate(SourceText("EVENT A, B", "alerts.sase"), None, Catalogue())


def test_an_option_of_no_language_is_refused() -> None:
    with pytest.raises(OptionError) as refused:
        translate("EVENT A", None, Catalogue(), discret=False)
    assert refused.value.code == "unknown-option"
    assert refused.value.help == "did you mean `discrete`?"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(OptionError) as refused:
        translate("EVENT A", "sas", Catalogue())
    assert refused.value.code == "unknown-language"
    assert refused.value.help == "did you mean `sase`?"


@pytest.mark.parametrize(
    "language", [name for name, each in LANGUAGES.items() if each.translate is None]
)
def test_a_language_that_is_not_built_says_so(language: str) -> None:
    with pytest.raises(QueryError) as refused:
        translate("anything", language, Catalogue())
    assert refused.value.code == "language-not-available"
