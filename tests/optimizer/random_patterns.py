"""Random closed patterns over most nodes: well formed, small, and full of things to rewrite."""

from __future__ import annotations

import random
from dataclasses import dataclass

from cepheid.algebra.expression import (
    TRUE,
    Absent,
    And,
    Attribute,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
)
from cepheid.algebra.pattern import (
    Atom,
    Conj,
    Consumption,
    Dedup,
    Except,
    Extreme,
    Filter,
    Guard,
    Measure,
    Next,
    Nth,
    Order,
    Pair,
    Pattern,
    Plus,
    Selection,
    Seq,
    Side,
    TimeBound,
    Union,
    Within,
    bound_variables,
    operands,
)

SIGNS = ("=", "!=", "<", "<=", ">", ">=")


def random_pattern(seed: int) -> Pattern:
    """A pattern of a few nodes; sequences, filters, windows and guards are the most frequent."""
    source = random.Random(seed)
    return _Maker(source, strictness=source.choice((0, 0, 1, 12))).pattern(
        source.choice((2, 3, 3, 4))
    )


@dataclass
class _Maker:
    random: random.Random
    strictness: int = 1
    variables: int = 0

    def pattern(self, depth: int) -> Pattern:
        if depth == 0 or self.random.random() < 0.1:
            return self.atom()
        makers = [
            *[self.filter] * 5,
            *[self.within] * 4,
            *[self.seq] * 5,
            *[self.guard] * 5,
            *[self.union] * 2,
            self.conj,
            self.dedup,
            self.next,
            self.plus,
            self.pair,
            self.exception,
            self.nth,
        ]
        return self.random.choice(makers)(depth - 1)

    def atom(self) -> Atom:
        self.variables += 1
        name = f"v{self.variables}"
        types = tuple(self.random.sample("ABCDN", self.random.choice((1, 2, 2, 3))))
        predicate = self.condition((name,)) if self.random.random() < 0.3 else TRUE
        return Atom(types, name, predicate, self.absent())

    def filter(self, depth: int) -> Pattern:
        pattern = self.pattern(depth)
        parts = [
            self.condition(bound_variables(pattern))
            for _ in range(self.random.choice((0, 1, 2, 3)))
        ]
        predicate = parts[0] if len(parts) == 1 else And(tuple(parts))
        return Filter(pattern, predicate, self.absent())

    def within(self, depth: int) -> Pattern:
        pattern = self.pattern(depth)
        window, inclusive = self.random.randint(1, 8), self.random.random() < 0.5
        if self.random.random() < 0.2:
            first, second = (self.random.choice(bound_variables(pattern)) for _ in range(2))
            return Within(pattern, window, inclusive, Measure.END_TO_END, first, second)
        return Within(pattern, window, inclusive, ticks=self.random.choice((0, 0, -1)))

    def seq(self, depth: int) -> Pattern:
        window = self.random.choice((None, None, 4, 7))
        order = self.random.choice((Order.STRICT, Order.STRICT, Order.SEQUENCE))
        return Seq(self.some(depth), window, self.random.random() < 0.5, order)

    def conj(self, depth: int) -> Pattern:
        return Conj(self.some(depth), self.random.randint(2, 6), self.random.random() < 0.5)

    def union(self, depth: int) -> Pattern:
        return Union(self.some(depth, least=1))

    def dedup(self, depth: int) -> Pattern:
        pattern = self.pattern(depth)
        key = (Attribute(self.random.choice(bound_variables(pattern)), "k"),)
        inner = Dedup(pattern, key) if self.random.random() < 0.5 else pattern
        return Dedup(inner, key)

    def guard(self, depth: int) -> Pattern:
        pattern, negated = self.pattern(depth), self.pattern(self.random.choice((0, 0, 0, 1)))
        names = bound_variables(pattern)
        anchors = _always_bound(pattern) or [names]
        place = self.random.choice(("middle", "middle", "start", "end"))
        low = TimeBound(
            Extreme.MAX, Side.END, (self.random.choice(anchors),), -1 if place == "start" else 0
        )
        high = TimeBound(
            Extreme.MIN, Side.START, (self.random.choice(anchors),), 1 if place == "end" else 0
        )
        both = (*names, *bound_variables(negated))
        parts = tuple(self.condition(both) for _ in range(self.random.choice((0, 1, 2))))
        return Guard(
            pattern,
            negated,
            low,
            high,
            low_closed=self.random.random() < 0.3,
            high_closed=self.random.random() < 0.3,
            window=self.random.randint(2, 6),
            predicate=And(parts),
            absent=self.absent(),
            ends_match=place == "end" and self.random.random() < 0.7,
            order=self.random.choice((Order.STRICT, Order.STRICT, Order.SEQUENCE)),
        )

    def next(self, depth: int) -> Pattern:
        first, second = self.pattern(depth), self.pattern(depth)
        both = (*bound_variables(first), *bound_variables(second))
        skip, test = (
            self.condition(both) if self.random.random() < 0.4 else TRUE for _ in range(2)
        )
        return Next(first, second, skip, test, self.absent())

    def plus(self, depth: int) -> Pattern:
        del depth
        atom = self.atom()
        test = self.condition((atom.variable,)) if self.random.random() < 0.5 else TRUE
        return Plus(atom, TRUE, test, self.absent())

    def pair(self, depth: int) -> Pattern:
        return Pair(
            self.pattern(depth),
            self.pattern(depth),
            ordered=self.random.random() < 0.5,
            window=self.random.randint(2, 6),
            select_first=self.random.choice((Selection.ALL, Selection.FIRST, Selection.LAST)),
            consume=self.random.choice((Consumption.ALL, Consumption.UNIQUE)),
            absent=Absent.TRUE,
        )

    def exception(self, depth: int) -> Pattern:
        pattern, negated = self.pattern(depth), self.atom()
        anchors = _always_bound(pattern)
        if not anchors:
            return pattern
        (since,) = self.random.choice(anchors)
        return Except(pattern, negated, since, report_failures=self.random.random() < 0.5)

    def nth(self, depth: int) -> Pattern:
        return Nth(self.pattern(depth), self.random.randint(1, 2))

    def some(self, depth: int, least: int = 2) -> tuple[Pattern, ...]:
        return tuple(self.pattern(depth) for _ in range(self.random.choice((least, 2, 2, 3))))

    def absent(self) -> Absent:
        rules = (Absent.TRUE, Absent.FALSE, Absent.ERROR)
        return self.random.choices(rules, weights=(12, 3, self.strictness))[0]

    def condition(self, names: tuple[str, ...]) -> Expression:
        kind = self.random.random()
        if kind < 0.1:
            return Not(self.comparison(names))
        if kind < 0.2:
            return Or((self.comparison(names), self.comparison(names)))
        return self.comparison(names)

    def comparison(self, names: tuple[str, ...]) -> Expression:
        left = self.attribute(names)
        right = (
            Literal(self.random.randint(0, 3))
            if self.random.random() < 0.6
            else self.attribute(names)
        )
        return Compare(self.random.choice(SIGNS), left, right)

    def attribute(self, names: tuple[str, ...]) -> Attribute:
        return Attribute(self.random.choice(names), self.random.choice("kv"))


def _always_bound(node: Pattern) -> list[tuple[str]]:
    """Variables that every match has: an alternative's own ones are not among them."""
    match node:
        case Atom(_, variable):
            return [(variable,)]
        case Union(patterns):
            return _always_bound(patterns[0]) if len(patterns) == 1 else []
        case Guard() | Except():
            return _always_bound(node.pattern)
        case _:
            return [each for operand in operands(node) for each in _always_bound(operand)]
