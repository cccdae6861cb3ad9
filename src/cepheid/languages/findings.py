"""What the checker of a language found in one text: errors are collected, then raised together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cepheid.model.diagnostics import Diagnostic, SourceText, Span
from cepheid.model.errors import QueryError

Report: TypeAlias = Callable[[Diagnostic], None]
"""Called with every warning about a text that is legal."""

MOST_ERRORS = 20
"""Further errors are dropped: nobody reads them, and each costs a search for a near name."""


@dataclass(slots=True)
class Findings:
    """The errors found so far in `source`; warnings go to `report` at once."""

    source: SourceText
    report: Report | None = None
    errors: list[Diagnostic] = field(default_factory=list)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        label: str,
        *,
        help: str | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Add an error; see `add`."""
        self.add(Diagnostic(code, message, span, label, tuple(notes), help, source=self.source))

    def add(self, found: Diagnostic) -> None:
        """Add an error; one of the same kind at the same place is only told once."""
        same = any((each.code, each.span) == (found.code, found.span) for each in self.errors)
        if not same and not self.is_full:
            self.errors.append(found)

    def warning(
        self, code: str, message: str, span: Span, label: str, help: str | None = None
    ) -> None:
        """Tell of something legal that is probably not meant."""
        if self.report is not None:
            self.report(
                Diagnostic(code, message, span, label, (), help, "warning", source=self.source)
            )

    @property
    def is_full(self) -> bool:
        """Whether further errors would be dropped."""
        return len(self.errors) >= MOST_ERRORS

    def raise_errors(self) -> None:
        """Raise what was found, in the order of the text."""
        if self.errors:
            self.errors.sort(key=lambda each: each.span.start if each.span else 0)
            raise QueryError(self.errors)

    def place(self, span: Span) -> str:
        """A place in words, for notes."""
        line, column = self.source.locate(span.start)
        return f"line {line}, column {column}"
