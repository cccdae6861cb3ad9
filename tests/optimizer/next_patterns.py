"""Random chains of successors, with conditions, keys, windows and exceptions in every place."""

from __future__ import annotations

import random
from dataclasses import dataclass

from cepheid.algebra.expression import (
    TRUE,
    Absent,
    Attribute,
    Compare,
    Expression,
    Literal,
    conjunction,
)
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Measure,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    bound_variables,
    operands,
)
from cepheid.optimizer.next_search import Tree

SIGNS = ("=", "!=", "<=", ">=", "<=", ">=")


def random_chain(seed: int) -> Pattern:
    """A chain of three or four operands in random brackets; one in three has a key everywhere."""
    source = random.Random(seed)
    maker = _Maker(source, has_key=source.random() < 0.35)
    chain = maker.chain(source.choice((3, 3, 4)))
    names = _always_bound(chain)
    if source.random() < 0.2:
        chain = Filter(chain, maker.condition(bound_variables(chain)), maker.absent)
    if source.random() < 0.3:
        chain = maker.window(chain)
    if source.random() < 0.2:
        chain = Except(chain, maker.atom(), source.choice(names))
    return chain


@dataclass
class _Maker:
    random: random.Random
    has_key: bool
    variables: int = 0

    def __post_init__(self) -> None:
        self.absent = self.random.choice((Absent.FALSE, Absent.FALSE, Absent.FALSE, Absent.TRUE))

    def chain(self, count: int) -> Pattern:
        if count == 1:
            return self.operand()
        left = self.random.randint(1, count - 1)
        first, second = self.chain(left), self.chain(count - left)
        both = (*bound_variables(first), *bound_variables(second))
        skips = [self.condition(both)] if self.random.random() < 0.15 else []
        if self.has_key:
            ends = [self.random.choice(_always_bound(side)) for side in (first, second)]
            self.random.shuffle(ends)
            skips.append(Compare("=", *(Attribute(name, "k") for name in ends)))
        test = self.condition(both) if self.random.random() < 0.25 else TRUE
        found: Pattern = Next(first, second, conjunction(skips), test, self.absent)
        if self.random.random() < 0.12:
            found = self.window(found)
        return found

    def operand(self) -> Pattern:
        atom = self.atom()
        kind = 0.0 if self.has_key else self.random.random()
        if kind < 0.7:
            return atom
        if kind < 0.78:
            return Filter(atom, self.condition((atom.variable,)), self.absent)
        if kind < 0.84:
            return Union((atom, self.atom()))
        if kind < 0.89:
            return Plus(atom)
        if kind < 0.94:
            return Timer(atom, self.random.choice((1, 2)))
        longer = Next(atom, self.atom())
        return self.random.choice((longer, Union((longer, self.atom()))))

    def atom(self) -> Atom:
        self.variables += 1
        types = tuple(self.random.sample("ABCDN", self.random.choice((1, 2, 2, 3))))
        return Atom(types, f"v{self.variables}")

    def window(self, pattern: Pattern) -> Pattern:
        length, inclusive = self.random.randint(2, 6), self.random.random() < 0.5
        if self.random.random() < 0.2:
            return Within(pattern, length, inclusive)
        ends = [self.random.choice(bound_variables(pattern)) for _ in range(2)]
        return Within(pattern, length, inclusive, Measure.END_TO_END, *ends)

    def condition(self, names: tuple[str, ...]) -> Expression:
        left = Attribute(self.random.choice(names), self.random.choice("kv"))
        right = (
            Literal(self.random.randint(0, 3))
            if self.random.random() < 0.5
            else Attribute(self.random.choice(names), left.name)
        )
        return Compare(self.random.choice(SIGNS), left, right)


def _always_bound(node: Pattern) -> list[str]:
    """Variables that every match has."""
    match node:
        case Atom(_, variable):
            return [variable]
        case Union():
            return []
        case Except():
            return _always_bound(node.pattern)
        case _:
            return [name for each in operands(node) for name in _always_bound(each)]


def all_brackets(first: int, last: int) -> list[Tree]:
    """Every way to bracket the operands from first to last."""
    if first == last:
        return [first]
    return [
        (left, right)
        for middle in range(first, last)
        for left in all_brackets(first, middle)
        for right in all_brackets(middle + 1, last)
    ]


def inner_stretches(tree: Tree) -> list[tuple[int, int]]:
    """The stretches of operands that are put in brackets, but for the outermost."""
    return _stretches(tree)[1:]


def _stretches(tree: Tree) -> list[tuple[int, int]]:
    if isinstance(tree, int):
        return []
    left, right = tree
    return [(_end(left, 0), _end(right, 1)), *_stretches(left), *_stretches(right)]


def _end(tree: Tree, side: int) -> int:
    return tree if isinstance(tree, int) else _end(tree[side], side)
