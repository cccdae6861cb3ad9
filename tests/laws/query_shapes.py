"""Random SASE queries with holes for constants: many queries of one shape share their kernels."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.laws.event_streams import ATTRIBUTES, CLOCKS, TABLES, TICKS, Clock
from tests.laws.random_queries import Case

TYPES = ("A", "B", "C", "D")
NAMES = ("x", "y", "z", "o")
WINDOWS = (1, 2, 3, 5, 8, 12, 20, 40)

PLANS: tuple[dict[str, Any], ...] = (
    {"partition": "none"},
    {"partition": "k"},
    {"partition": "s"},
    {"predicates": "selection"},
    {"window_in_scan": False},
    {"window_in_construction": False},
    {"window_in_scan": False, "window_in_construction": False},
    {"factorised": False},
    {"counting": True},
    {"simple_in_scan": False},
    {"negation_in_scan": False},
    {"scan": "nfa"},
    {"scan": "nfa", "predicates": "selection", "window_in_construction": False},
    {"partition": "none", "predicates": "selection", "window_in_scan": False},
)
"""Other ways to run a query than the optimiser's choice; the answer may not depend on them."""

MULTI: dict[str, Any] = {"scan": "multi"}
"""A way for sequences with an equality over all components."""


@dataclass(frozen=True)
class Shape:
    """A query whose constants are drawn anew for each case made of it."""

    seed: int
    text: str
    holes: tuple[tuple[str, tuple[Any, ...], bool], ...]
    options: dict[str, Any]
    clock: Clock
    types: tuple[str, ...]
    returns: bool
    stages: int
    length: int
    careless: bool
    forms: tuple[str, ...]

    def case(self, number: int) -> Case:
        """One of the shape's queries: literals are written in, parameters given as options."""
        r = random.Random(1_000_003 * self.seed + number)
        text, params = self.text, {}
        for name, values, is_parameter in self.holes:
            value = r.choice(values)
            if is_parameter:
                params[name] = value
            else:
                text = text.replace(
                    f":{name}", repr(value) if isinstance(value, str) else str(value)
                )
        options = dict(self.options)
        if params:
            options["params"] = params
        if self.clock.tick is not None:
            options["tick"] = self.clock.tick
        return Case(self.seed, text, options, self.clock, self.types, self.returns, self.stages)


def random_shape(seed: int) -> Shape:
    """A query of up to four positive and three negated components, or a program of two stages."""
    return _Writer(random.Random(seed), seed).shape()


class _Writer:
    """Writes one text; every constant becomes a hole `:cN`."""

    def __init__(self, r: random.Random, seed: int) -> None:
        self.r = r
        self.seed = seed
        self.holes: list[tuple[str, tuple[Any, ...], bool]] = []
        self.palette = tuple(r.sample(TYPES, r.choice((2, 2, 2, 3))))
        self.clock = r.choice(CLOCKS) if r.random() < 0.3 else TICKS

    def shape(self) -> Shape:
        r = self.r
        stages = 2 if r.random() < 0.15 else 1
        if stages == 2:
            text, length = self._program()
            returns = True
        else:
            returns = r.random() < 0.25
            text, names = self._query(self.palette, r.choice((1, 2, 2, 2, 3, 3, 3, 4)))
            length = len(names)
            if returns:
                text += f" RETURN {self._returned(names)}"
        return Shape(
            self.seed,
            text,
            tuple(hole for hole in self.holes if f":{hole[0]}" in text),
            self._options(text, length, stages),
            self.clock,
            self.palette,
            returns,
            stages,
            length,
            *self._streams(),
        )

    def _streams(self) -> tuple[bool, tuple[str, ...]]:
        """Whether streams have gaps, and the forms they come in: both cost kernels of their own."""
        r = self.r
        careless = r.random() < 0.35
        if r.random() < 0.25:
            return careless, ("dicts", r.choice(TABLES))
        return careless, tuple(r.sample(TABLES, 2))

    def _options(self, text: str, length: int, stages: int) -> dict[str, Any]:
        r = self.r
        options: dict[str, Any] = {}
        if r.random() < 0.15:
            options["discrete"] = False
        if r.random() < 0.15 and stages == 1:
            options["tie"] = "seqno"
        if r.random() < 0.25:
            declared = [t for t in TYPES if r.random() < 0.8]
            options["types"] = {
                t: ["event", *(n for n in ATTRIBUTES if r.random() < 0.85)] for t in declared
            }
            # Some type has each attribute, so that none is refused as unknown.
            options["types"]["Complete"] = ["event", *ATTRIBUTES]
        if r.random() < 0.35:
            has_key = stages == 1 and length > 1 and "WHERE [" in text
            options["plan"] = r.choice((*PLANS, *(MULTI, MULTI) * has_key))
        return options

    def _program(self) -> tuple[str, int]:
        """One query makes events of type P, the other reads them among others."""
        r = self.r
        first, names = self._query(self.palette, r.choice((1, 2, 2)), prefix="a")
        last = names[-1]
        items = [f"{names[0]}.k", f"{last}.event AS last", f"{names[0]}.event AS first"]
        items.append(r.choice((f"{last}.v", "sum(v) AS v", "avg(v) AS v", "max(v) AS v")))
        items.append(f"{last}.s")
        items += [f"{names[0]}.w + {last}.v AS w", f"{names[0]}.u", f"{last}.b"]
        made = f"QUERY made {first} RETURN P({', '.join(items)})"
        second = ""
        while "P " not in second and "P)" not in second:
            kept = len(self.holes)
            second, names = self._query((*self.palette[:2], "P", "P"), r.choice((1, 2, 2, 3)))
            self.holes[kept:] = [] if "P" not in second else self.holes[kept:]
        returned = [f"{n}.first AS {n}_first, {n}.last AS {n}_last, {n}.v AS {n}_v" for n in names]
        returned.append("count(*) AS n")
        return f"{made}\n{second} RETURN {', '.join(returned)}", len(names) + 1

    def _query(
        self, palette: tuple[str, ...], length: int, prefix: str = ""
    ) -> tuple[str, list[str]]:
        r = self.r
        names = [prefix + NAMES[i] for i in range(length)]
        components = [f"{self._types(palette)} {name}" for name in names]
        windowed = r.random() < 0.85
        negatives: list[str] = []
        count = r.choice((0, 0, 1, 1, 2, 3))
        together = r.randint(0, length) if r.random() < 0.4 else None  # adjacent negatives
        for j in range(count if windowed or length > 1 else 0):
            name = f"{prefix}n{j}"
            lowest, highest = (0, len(components)) if windowed else (1, len(components) - 1)
            place = r.randint(lowest, highest) if together is None else together
            place = min(max(place, lowest), highest)
            types = self._types(palette)
            components.insert(place, r.choice((f"!({types} {name})", f"!{types} {name}")))
            negatives.append(name)
        text = f"EVENT SEQ({', '.join(components)})"
        if len(components) == 1 and r.random() < 0.5:
            text = f"EVENT {components[0]}"
        tests = self._tests(names, negatives)
        if tests:
            text += f" WHERE {' AND '.join(tests)}"
        if windowed:
            unit = f" {self.clock.window_unit}" if self.clock.window_unit else ""
            text += f" WITHIN {self._hole(WINDOWS)}{unit}"
        return text, names

    def _hole(self, values: tuple[Any, ...]) -> str:
        name = f"c{len(self.holes)}_"
        self.holes.append((name, values, self.r.random() < 0.2))
        return f":{name}"

    def _types(self, palette: tuple[str, ...]) -> str:
        r = self.r
        plain = [t for t in palette if t != "P"]
        if r.random() < 0.2 and plain:
            return f"ANY({', '.join(r.choice(plain) for _ in range(r.choice((2, 2, 3))))})"
        return r.choice(palette)

    def _returned(self, names: list[str]) -> str:
        r = self.r
        x, y = r.choice(names), r.choice(names)
        items = [
            f"{x}.k",
            f"{y}.v - {x}.v AS rise",
            f"{x}.w / {y}.v AS ratio",
            "count(*) AS events",
            "sum(v) AS total",
            "avg(w) AS mean",
            "min(s) AS low",
            "max(u) AS high",
            f"count({x}.u) AS known",
            f"concat({x}.s, {y}.s) AS both",
            f"{y}.b",
            f"greatest({x}.v, {y}.w) AS most",
        ]
        chosen = r.sample(items, r.randint(1, 5))
        made = ", ".join(chosen)
        return f"Made({made})" if r.random() < 0.5 else made

    def _tests(self, positives: list[str], negatives: list[str]) -> list[str]:
        r = self.r
        tests = []
        if r.random() < 0.6:
            tests.append(self._equality())
        for _ in range(r.choice((0, 0, 1, 1, 2))):
            tests.append(self._own(r.choice(positives)))
        if len(positives) > 1:
            for _ in range(r.choice((0, 0, 1, 1)) if len(positives) > 2 else r.choice((0, 1, 2))):
                tests.append(self._joint(*r.sample(positives, 2)))
        for name in negatives:
            if r.random() < 0.4:
                tests.append(self._own(name))
            if r.random() < 0.4:
                tests.append(self._joint(name, r.choice(positives)))
        if len(positives) > 2 and r.random() < 0.1:
            tests.append("({}.v + {}.v) > {}.v".format(*r.sample(positives, 3)))
        r.shuffle(tests)
        return tests

    def _equality(self) -> str:
        r = self.r
        plain = ("[k]", "[k]", "[k]", "[s]", "[k, s]", "[w]", "[u]", "[b]", "[k, b]", "[s, w]")
        if r.random() < 0.15:
            return (
                f"[k={self._hole((0, 1))}]" if r.random() < 0.5 else f"[s={self._hole(('p', 'q'))}]"
            )
        return r.choice(plain)

    def _own(self, x: str) -> str:
        small = self._hole((0, 1, 2, 3))
        text = self._hole(("p", "q", "Q", ""))
        return self.r.choice(
            (
                f"{x}.v > {small}",
                f"{x}.v != {small}",
                f"{x}.v <= {small}",
                f"({x}.v = {small} OR {x}.u >= 1)",
                f"{x}.w * 2 <= {small}",
                f"{x}.s = {text}",
                f"lower({x}.s) = {text}",
                f"({x}.s = {text} OR {x}.v > {small})",
                f"{x}.v + {x}.u < {small}",
                f"6 / {x}.v > {small}",
                f"{x}.b = true",
                f"({x}.b = false OR {x}.w > {small})",
                f"length({x}.s) < {small}",
                f"starts_with({x}.s, {text})",
                f"abs({x}.v - {small}) < 2",
            )
        )

    def _joint(self, x: str, y: str) -> str:
        small = self._hole((0, 1, 2, 4))
        return self.r.choice(
            (
                f"{x}.v < {y}.v",
                f"{x}.v <= {y}.w",
                f"{x}.s != {y}.s",
                f"{x}.s = {y}.s",
                f"{x}.k = {y}.u",
                f"{x}.k = {y}.k",
                f"({x}.v + {y}.v) > {small}",
                f"({x}.v > {y}.u OR {x}.w < {y}.w)",
                f"({x}.s = {y}.s OR {x}.b != {y}.b)",
                f"{x}.s < {y}.s",
                f"lower({x}.s) = lower({y}.s)",
                f"{x}.u / {y}.v >= {small}",
                f"{x}.w = {y}.v",
                f"concat({x}.s, {y}.s) != 'pq'",
            )
        )
