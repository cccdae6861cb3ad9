"""Specifications of rules: what each rewrites to what, and what it must leave alone.

A file `<rule>.spec` holds cases apart by blank lines. `fires: title` is followed by a pattern, `->`
and what the rule makes of it. `stays: title` is followed by a pattern to which the rule does not
apply, and, after `-/>`, may show the rewrite that somebody could be tempted to do. Lines that begin
with `#` are remarks. A case of a rule that goes by cost gives its rates in the line below the
title: `rates: A=1 B=50`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cepheid.algebra.pattern import Pattern
from cepheid.algebra.text import from_text

FOLDER = Path(__file__).parent

_CASE = re.compile(
    r"(fires|stays): (.+?)\n(?:rates: ([^\n]*)\n)?(.*?)(?:\n(->|-/>)\n(.*))?", re.DOTALL
)


@dataclass(frozen=True)
class Spec:
    """One case; `after` is what the rule must make of it, or what would be wrong."""

    rule: str
    fires: bool
    title: str
    before: Pattern
    after: Pattern | None
    rates: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.rule}: {self.title}"


def load_specs() -> list[Spec]:
    """All cases of all files, in order."""
    return [spec for path in sorted(FOLDER.glob("*.spec")) for spec in _read(path)]


def _read(path: Path) -> list[Spec]:
    lines = path.read_text("utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    return [_spec(path.stem, block) for block in re.split(r"\n\s*\n", text.strip())]


def _spec(rule: str, block: str) -> Spec:
    case = _CASE.fullmatch(block.strip())
    if case is None:
        raise ValueError(f"{rule}: this is no case:\n{block}")
    kind, title, rates, before, arrow, after = case.groups()
    fires = kind == "fires"
    if arrow is not None and fires != (arrow == "->"):
        raise ValueError(f"{rule}: {title}: `{arrow}` does not go with `{kind}`")
    if fires and after is None:
        raise ValueError(f"{rule}: {title}: what it becomes is missing")
    changed = None if after is None else from_text(after)
    return Spec(rule, fires, title, from_text(before), changed, _rates(rates or ""))


def _rates(text: str) -> dict[str, float]:
    return {name: float(rate) for name, rate in (part.split("=") for part in text.split())}
