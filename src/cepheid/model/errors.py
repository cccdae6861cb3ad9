"""The few kinds of error a user can meet; each carries diagnostics with a named code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from cepheid.model.diagnostics import Diagnostic


class CepheidError(Exception):
    """Base of every error raised on purpose; `str()` is the rendered diagnostics."""

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic]) -> None:
        """Keep the diagnostics; several when the checker could go on after the first."""
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        super().__init__("\n\n".join(d.render() for d in self.diagnostics))

    @classmethod
    def of(
        cls, code: str, message: str, *, help: str | None = None, notes: Sequence[str] = ()
    ) -> Self:
        """An error without a place in a query's text."""
        return cls(Diagnostic(code, message, notes=tuple(notes), help=help))

    @property
    def code(self) -> str:
        """The code of the first diagnostic."""
        return self.diagnostics[0].code

    @property
    def message(self) -> str:
        """The sentence of the first diagnostic."""
        return self.diagnostics[0].message

    @property
    def help(self) -> str | None:
        """What to do, from the first diagnostic."""
        return self.diagnostics[0].help

    def __reduce__(self) -> tuple[type[CepheidError], tuple[tuple[Diagnostic, ...]]]:
        """Errors cross process borders (Spark workers) whole."""
        return (type(self), (self.diagnostics,))


class QueryError(CepheidError):
    """The query's text or meaning is wrong."""


class DataError(CepheidError):
    """The events do not fit the query: a column is missing, a value is of the wrong type."""


class OptionError(CepheidError):
    """An option of a call has no meaning or contradicts another."""


class LimitExceeded(CepheidError):
    """A guard rail fired: too deep, too large, too much state or output."""


class StateError(CepheidError):
    """A snapshot or checkpoint belongs to another query, version or format."""


class EnvironmentProblem(CepheidError):
    """Something the machine should provide is missing: Java, a package, a folder."""


class PerformanceWarning(UserWarning):
    """The answer will be right, but found on less of the machine than one expects."""


class MismatchWarning(UserWarning):
    """A condition never holds, as the types of its values do not fit."""


class InternalError(CepheidError):
    """A bug of ours: please report it with the plan it names."""
