"""Two patterns compared by all that the oracle says of their matches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from cepheid.algebra.pattern import Pattern
from tests.oracle.denotation import matches
from tests.oracle.events import Ev, Match
from tests.oracle.expressions import AbsentAttributeError
from tests.oracle.histories import random_history

FAILED = "an attribute is missing where the pattern forbids it"
LONGEST_RUN = 3


def careless_history(seed: int) -> list[Ev]:
    """Instants or intervals, with ties, nulls and missing attributes."""
    source = random.Random(seed)
    events = random_history(seed, types="AABBCDN", size=10, span=10, intervals=bool(seed % 2))
    return [replace(event, attrs=_careless(event.attrs, source)) for event in events]


def _careless(attrs: Mapping[str, object], source: random.Random) -> dict[str, object]:
    kept: dict[str, object] = {}
    for name in attrs:
        chance = source.random()
        if chance > 0.15:
            kept[name] = attrs[name]
        elif chance > 0.07:
            kept[name] = None
    return kept


def meaning(pattern: Pattern, history: list[Ev]) -> Counter[Match] | str:
    """The bag of matches, with times, bindings in order, finality and score; or that it fails."""
    try:
        return Counter(matches(pattern, history, cap=LONGEST_RUN))
    except AbsentAttributeError:
        return FAILED


def found(answer: Counter[Match] | str) -> int:
    """How many matches there were."""
    return 0 if isinstance(answer, str) else sum(answer.values())
