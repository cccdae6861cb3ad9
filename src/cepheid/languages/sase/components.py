"""The components of a SASE pattern: each gets its variable, and its types are looked up."""

from __future__ import annotations

from cepheid.languages.findings import Findings
from cepheid.languages.sase.syntax import Component
from cepheid.languages.scope import Binding, declare, implicit_variables
from cepheid.languages.terms import Name
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import Span


def bind(
    components: tuple[Component, ...], catalogue: Catalogue, findings: Findings
) -> tuple[Binding, ...]:
    """Give every component its variable; refuse types that are unknown, variables used twice."""
    explicit: dict[str, Span] = {}
    for component in components:
        if component.variable is not None:
            declare(component.variable, explicit, findings)
        for name in component.types:
            _check_type(name, catalogue, findings)
    unnamed = [each.types[0].text for each in components if each.variable is None]
    implicit = implicit_variables(unnamed, explicit)
    return tuple(
        Binding(
            component.variable.text if component.variable else next(implicit),
            tuple(dict.fromkeys(name.text for name in component.types)),
            component.negator is not None,
            component.span,
        )
        for component in components
    )


def _check_type(name: Name, catalogue: Catalogue, findings: Findings) -> None:
    if not catalogue.knows_type(name.text):
        findings.error(
            "unknown-type",
            f"there is no event type `{name.text}`",
            name.span,
            "not in the catalogue",
            help=catalogue.nearest_type(name.text),
            notes=() if catalogue.types else ("the catalogue declares no type at all",),
        )
