"""A diagnostic is a value: what is wrong, where, why, what to do; text and JSON derive from it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

_WIDEST_LINE = 160
_UNSEEN = {"Cc": "control character", "Cf": "format character", "Cs": "half of a character"}
"""Categories of characters that a terminal does not show, and what those without a name are."""


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in the source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class SourceText:
    """A query's text and the name it goes by in messages (a file, or `query`)."""

    text: str
    name: str = "query"

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1.

        >>> SourceText("EVENT A\\nWHERE").locate(8)
        (2, 1)
        """
        offset = min(offset, len(self.text))
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def line(self, number: int) -> str:
        """The text of a line, counted from 1."""
        lines = self.text.split("\n")
        return lines[number - 1] if number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong, told so that a person can act on it."""

    code: str
    message: str
    span: Span | None = None
    label: str = ""
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: str = "error"
    source: SourceText | None = field(default=None, compare=False)

    def render(self) -> str:
        """The message with line, carets, notes and help, as shown in a terminal."""
        out = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.span is not None and self.source is not None:
            out += _excerpt(self.source, self.span, self.label)
        out += [f"  = note: {note}" for note in self.notes]
        if self.help:
            out.append(f"  = help: {self.help}")
        return "\n".join(out)

    def as_dict(self) -> dict[str, object]:
        """The same facts for machines."""
        place: dict[str, object] = {}
        if self.span is not None and self.source is not None:
            line, column = self.source.locate(self.span.start)
            place = {"file": self.source.name, "line": line, "column": column}
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "label": self.label,
            "notes": list(self.notes),
            "help": self.help,
            **place,
        }


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A help sentence naming the nearest known word, if one is near.

    >>> did_you_mean("pirce", ["price", "id"])
    'did you mean `price`?'
    """
    folded = {name.casefold(): name for name in known}
    near = get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return f"did you mean `{folded[near[0]]}`?" if near else None


def unseen_character(text: str) -> str | None:
    r"""What to call a character that nobody can see; None for any other text.

    >>> unseen_character("\u200b"), unseen_character("\0"), unseen_character("x")
    ('U+200B (zero width space)', 'U+0000 (control character)', None)
    """
    kind = _UNSEEN.get(unicodedata.category(text)) if len(text) == 1 else None
    return kind and f"U+{ord(text):04X} ({unicodedata.name(text, kind).lower()})"


def _seen(line: str) -> str:
    """A line with a mark for each character that a terminal would not show."""
    shown = line.removesuffix("\r").replace("\t", " ")
    return "".join("\ufffd" if unseen_character(each) else each for each in shown)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _excerpt(source: SourceText, span: Span, label: str) -> Sequence[str]:
    line_number, column = source.locate(span.start)
    line = _seen(source.line(line_number))
    begin = column - 1
    end = max(begin + 1, min(len(line), begin + (span.end - span.start)))
    shift = max(0, begin - _WIDEST_LINE // 2) if len(line) > _WIDEST_LINE else 0
    shown = line[shift : shift + _WIDEST_LINE]
    marked = line[begin:end] or " "
    pad = " " * len(str(line_number))
    carets = " " * _width(line[shift:begin]) + "^" * max(1, _width(marked))
    return [
        f"{pad}--> {source.name}:{line_number}:{column}",
        f"{pad} |",
        f"{line_number} | {shown}",
        f"{pad} | {carets}{' ' + label if label else ''}",
    ]
