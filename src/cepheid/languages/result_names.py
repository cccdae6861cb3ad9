"""The names of a query's result columns: none of those that every table of matches has already."""

from __future__ import annotations

from collections.abc import Iterable

from cepheid.languages.findings import Findings
from cepheid.languages.references import enumerate_names
from cepheid.languages.scope import Binding
from cepheid.languages.terms import Item, Name
from cepheid.model.diagnostics import Span
from cepheid.model.match_columns import MATCH_COLUMNS


def check_variables(
    bindings: Iterable[Binding], variables: Iterable[Name | None], findings: Findings
) -> None:
    """Refuse reserved names for the variables whose events are columns of the matches.

    `variables` are those that the text names, None for a component without one.
    """
    for binding, variable in zip(bindings, variables, strict=True):
        if not binding.negated and binding.variable in MATCH_COLUMNS:
            help = f"give it another variable, e.g. `{binding.variable}_1`"
            _refuse(binding.variable, (variable or binding).span, help, findings)


def check_item(item: Item, name: str, other: str, findings: Findings) -> None:
    """Refuse a reserved name for an item of the list of results; `other` is one that is free."""
    if name in MATCH_COLUMNS:
        help = f"add AS and another name, e.g. AS {other}"
        _refuse(name, (item.alias or item).span, help, findings)


def _refuse(name: str, span: Span, help: str, findings: Findings) -> None:
    findings.error(
        "reserved-name",
        f"every match has a column `{name}` already",
        span,
        "would be a second one",
        notes=(f"all matches have the columns {enumerate_names(MATCH_COLUMNS)}",),
        help=help,
    )
