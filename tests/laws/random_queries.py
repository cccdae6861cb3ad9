"""Random SASE queries and streams, from a seed: small, dense, and full of corner cases."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.laws.event_streams import TICKS, Clock

TYPES = ("A", "B", "C", "D")
NUMBERS = ("k", "v", "w")
OPTIONAL = "u"
NAMES = ("x", "y", "z", "o")


@dataclass(frozen=True)
class Case:
    """A query, the options it runs with, and the seed it came from.

    `types` are those its streams are made of; `returns` says that matches become events of their
    own, `stages` how many queries a match goes through.
    """

    seed: int
    text: str
    options: dict[str, Any] = field(default_factory=dict)
    clock: Clock = TICKS
    types: tuple[str, ...] = TYPES
    returns: bool = False
    stages: int = 1

    @property
    def has_negation(self) -> bool:
        """Whether matches can be revoked."""
        return "!" in self.text

    @property
    def by_arrival(self) -> bool:
        """Whether the order of arrival decides between events of one time."""
        return self.options.get("tie") == "seqno"


def random_case(seed: int) -> Case:
    """A query of up to four positive and two negated components."""
    r = random.Random(seed)
    length = r.choice((1, 2, 2, 2, 3, 3, 3, 4))
    positives = [(NAMES[i], _types(r)) for i in range(length)]
    components = [f"{types} {name}" for name, types in positives]
    negatives: list[str] = []
    windowed = r.random() < 0.85
    for j in range(r.choice((0, 0, 1, 1, 2))):
        name = f"n{j}"
        inside = max(1, len(components) - 1)
        place = r.randint(0, len(components)) if windowed else r.randint(1, inside)
        if not windowed and (place >= len(components) or length < 2):
            continue
        form = f"!({_types(r)} {name})" if r.random() < 0.7 else f"!{_types(r)} {name}"
        components.insert(place, form)
        negatives.append(name)
    if not windowed:  # a negated start or end needs a window
        windowed = components[0].startswith("!") or components[-1].startswith("!")
    tests = _tests(r, [name for name, _ in positives], negatives)
    text = f"EVENT SEQ({', '.join(components)})"
    if len(components) == 1 and r.random() < 0.5:
        text = f"EVENT {components[0]}"
    if tests:
        text += f" WHERE {' AND '.join(tests)}"
    if windowed:
        text += f" WITHIN {r.choice((1, 2, 3, 4, 6, 9, 15))}"
    options: dict[str, Any] = {}
    if r.random() < 0.15:
        options["discrete"] = False
    if r.random() < 0.15:
        options["tie"] = "seqno"
    if r.random() < 0.2:
        options["types"] = {t: _attributes(r) for t in TYPES}
    return Case(seed, text, options)


def random_rows(seed: int, size: int = 14) -> list[dict[str, Any]]:
    """Events in order of time, with ties, nulls and missing attributes."""
    r = random.Random(seed)
    span = r.choice((6, 12, 20))
    times = sorted(r.randint(0, span) for _ in range(r.randint(0, size)))
    careless = r.random() < 0.4
    rows = []
    for position, time in enumerate(times):
        row: dict[str, Any] = {
            "event": position,
            "type": r.choice((*TYPES, "Z")),
            "ts": time,
            "k": r.randint(0, 1 if r.random() < 0.8 else 3),
            "v": r.randint(0, 3),
            "w": r.choice((0.0, 0.5, 1.0, 2.5)),
            "s": r.choice(("p", "q", "Q", "")),
            "u": r.randint(0, 2),
        }
        if careless:
            for name in ("k", "v", "w", "s", "u"):
                chance = r.random()
                if chance < 0.08:
                    row[name] = None
                elif chance < 0.16:
                    del row[name]
            if r.random() < 0.05:
                row["w"] = float("nan")
        rows.append(row)
    return rows


def _types(r: random.Random) -> str:
    if r.random() < 0.15:
        return f"ANY({', '.join(r.sample(TYPES, 2))})"
    return r.choice(TYPES)


def _attributes(r: random.Random) -> list[str]:
    return [name for name in ("k", "v", "w", "s", "u") if r.random() < 0.85]


def _tests(r: random.Random, positives: list[str], negatives: list[str]) -> list[str]:
    tests = []
    if r.random() < 0.6:
        tests.append(r.choice(("[k]", "[k]", "[s]", "[k, s]", "[w]", "[k=1]", "[u]")))
    for _ in range(r.choice((0, 0, 1, 1, 2))):
        tests.append(_own(r, r.choice(positives)))
    if len(positives) > 1:
        for _ in range(r.choice((0, 0, 1, 2))):
            tests.append(_joint(r, *r.sample(positives, 2)))
    for name in negatives:
        if r.random() < 0.4:
            tests.append(_own(r, name))
        if r.random() < 0.4:
            tests.append(_joint(r, name, r.choice(positives)))
    r.shuffle(tests)
    return tests


def _own(r: random.Random, x: str) -> str:
    return r.choice(
        (
            f"{x}.v > 1",
            f"{x}.v != 2",
            f"({x}.v = 0 OR {x}.u >= 1)",
            f"{x}.w * 2 <= 2",
            f"{x}.s = 'p'",
            f"lower({x}.s) = 'q'",
            f"{x}.v + {x}.u < 4",
            f"6 / {x}.v > 2",
        )
    )


def _joint(r: random.Random, x: str, y: str) -> str:
    return r.choice(
        (
            f"{x}.v < {y}.v",
            f"{x}.v <= {y}.w",
            f"{x}.s != {y}.s",
            f"{x}.s = {y}.s",
            f"{x}.k = {y}.u",
            f"({x}.v + {y}.v) > 2",
            f"({x}.v > {y}.u OR {x}.w < {y}.w)",
            f"{x}.s < {y}.s",
            f"lower({x}.s) = lower({y}.s)",
            f"{x}.u / {y}.v >= 1",
        )
    )
