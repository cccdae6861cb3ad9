"""Lengths of time in a text: their units and amounts, checked."""

from __future__ import annotations

from cepheid.algebra.expression import Duration, Parameter
from cepheid.languages.findings import Findings
from cepheid.languages.terms import Length, Name, ParameterName
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.event_time import UNITS


def window_of(length: Length, no_window: str, findings: Findings) -> Duration | None:
    """The window that a text gives; None after noting that it is longer than any time.

    `no_window` tells how to have none.
    """
    found = duration_of(length, "window", no_window, findings)
    if is_nothing(found):
        findings.error(
            "window-not-positive",
            "the window has no length",
            length.amount.span,
            "not more than 0",
            help="write a length above 0, e.g. WITHIN 10 s",
        )
    return found


def duration_of(length: Length, what: str, without: str, findings: Findings) -> Duration | None:
    """The same for anything that has a length, which need not be positive."""
    check_unit(length.unit, findings)
    unit = None if length.unit is None else length.unit.text
    if isinstance(length.amount, ParameterName):
        return Duration(Parameter(length.amount.name, span=length.amount.span), unit)
    if length.amount.value is None:
        findings.error(
            "number-too-large",
            f"the {what} is longer than any time",
            length.amount.span,
            "too large",
            help=without,
        )
        return None
    return Duration(length.amount.value, unit)


def is_nothing(duration: Duration | None) -> bool:
    """Whether a length is known, and not more than 0."""
    return (
        duration is not None and not isinstance(duration.amount, Parameter) and duration.amount <= 0
    )


def check_unit(unit: Name | None, findings: Findings) -> None:
    """Refuse a word that is no unit of time."""
    if unit is not None and unit.text.casefold() not in UNITS:
        findings.error(
            "unknown-unit",
            f"`{unit.text}` is not a unit of time",
            unit.span,
            "not a unit",
            help=did_you_mean(unit.text, UNITS) or "units are ms, s, min, h, days, weeks",
        )
