"""The door to the languages: which one a text is written in, and its translation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cepheid.algebra.query import Program
from cepheid.languages.findings import Report
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import Diagnostic, SourceText, Span, did_you_mean, unseen_character
from cepheid.model.errors import OptionError, QueryError
from cepheid.model.options import Options


@dataclass(frozen=True, slots=True)
class Language:
    """A language: the words its texts begin with, and how they are translated, once that is built.

    `options` are the options that change what a text means.
    """

    name: str
    first_words: frozenset[str]
    translate: Callable[..., Program] | None = None
    options: frozenset[str] = frozenset()


# A language is loaded when a text is written in it: most programs use one.


def _translate_sase(*arguments: Any, **options: Any) -> Program:
    from cepheid.languages.sase.to_algebra import translate  # noqa: PLC0415

    return translate(*arguments, **options)


def _translate_next(*arguments: Any, **options: Any) -> Program:
    from cepheid.languages.next.to_algebra import translate  # noqa: PLC0415

    return translate(*arguments, **options)


LANGUAGES = {
    language.name: language
    for language in (
        Language(
            "sase", frozenset({"event", "query"}), _translate_sase, frozenset({"discrete", "tie"})
        ),
        Language(
            "next",
            frozenset({"select", "register"}),
            _translate_next,
            frozenset({"cap", "failures"}),
        ),
        Language("plan", frozenset({"source", "primitive", "complex", "aggregate"})),
        Language("compas", frozenset({"profile"})),
        Language("ayac", frozenset({"sequence"})),
    )
}

_SKIPPED = re.compile(r"(?:[\s\ufeff]+|/\*.*?\*/|--[^\n]*)*", re.DOTALL)
_LABEL = re.compile(r"[^\W\d][\w-]*\s*:")
_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r"[^\W\d][\w-]*|`[^`\n]+`")
_COMPOSITE = re.compile(r"[^\W\d]\w*\s*=(?!=)|\(|not\s*\(|profile\s*\(")


def detect_language(text: str | SourceText) -> str:
    """The language of a text, told by its first words.

    >>> detect_language("-- thefts\\nEVENT SEQ(A, B)")
    'sase'
    >>> detect_language("QUERY frauds SELECT * FROM t T1 ; t T2")
    'next'
    >>> detect_language("Hot = profile(temperature > 30)")
    'compas'
    """
    source = SourceText(text) if isinstance(text, str) else text
    start = _skip(source.text, 0)
    if label := _LABEL.match(source.text, start):
        start = _skip(source.text, label.end())
    word = _WORD.match(source.text, start)
    first = word.group().casefold() if word else ""
    for beginning in (_word_after_name(source.text, start) if first == "query" else "", first):
        for language in LANGUAGES.values():
            if beginning in language.first_words:
                return language.name
    if _COMPOSITE.match(source.text, start):
        return "compas"
    words = {each for language in LANGUAGES.values() for each in language.first_words}
    if start >= len(source.text):
        raise QueryError.of("empty-query", "the text holds no query", help=_BEGINNINGS)
    unseen = unseen_character(source.text[start])
    raise QueryError(
        Diagnostic(
            "unknown-language",
            "the text begins like no language that is known",
            Span(start, word.end() if word else start + 1),
            "not a first word of any language" if unseen is None else f"this is {unseen}",
            help=did_you_mean(first, words) or _BEGINNINGS,
            source=source,
        )
    )


def meaning_options(language: str, options: Options) -> tuple[tuple[str, object], ...]:
    """Those of a detection's options that change what a text in that language means."""
    known = LANGUAGES.get(language)
    names = sorted(known.options) if known else ()
    return tuple((name, getattr(options, name)) for name in names)


def translate(
    text: str | SourceText,
    language: str | None,
    catalogue: Catalogue,
    *,
    report: Report | None = None,
    **options: object,
) -> Program:
    """The program that a text means; `language` None is told by the text's first words."""
    source = SourceText(text) if isinstance(text, str) else text
    name = detect_language(source) if language is None else language.casefold()
    chosen = LANGUAGES.get(name)
    if chosen is None:
        raise OptionError.of(
            "unknown-language",
            f"there is no language `{language}`",
            help=did_you_mean(name, LANGUAGES) or f"the languages are {', '.join(LANGUAGES)}",
        )
    if chosen.translate is None:
        built = [each.name for each in LANGUAGES.values() if each.translate]
        raise QueryError.of(
            "language-not-available",
            f"the language `{name}` is not available in this version",
            help=f"write the query in {' or '.join(built)}",
        )
    for option in options:
        if option not in chosen.options:
            raise OptionError.of(
                "unknown-option",
                f"the language `{name}` has no option `{option}`",
                help=did_you_mean(option, chosen.options),
            )
    return chosen.translate(source, catalogue, report=report, **options)


_BEGINNINGS = (
    "a text begins with EVENT or QUERY (sase), SELECT or register (next), source, primitive or "
    "complex (plan), NAME = profile(...) (compas), or SEQUENCE (ayac)"
)


def _word_after_name(text: str, start: int) -> str:
    """The word after `QUERY name`, with which several languages give a query its name."""
    name = _NAME.match(text, _skip(text, start + len("query")))
    word = _WORD.match(text, _skip(text, name.end())) if name else None
    return word.group().casefold() if word else ""


def _skip(text: str, start: int) -> int:
    skipped = _SKIPPED.match(text, start)
    return skipped.end() if skipped else start
