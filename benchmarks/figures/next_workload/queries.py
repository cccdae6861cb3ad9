"""Random queries of the paper's three workloads, as issued and as rewritten (NEXT, section 6)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Literal, TypeAlias

from cepheid.algebra.pattern import Atom, Next, Pattern, Union, operands, walk, with_operands
from cepheid.optimizer.next_search import Search
from cepheid.optimizer.optimizer import optimise
from cepheid.optimizer.union_shape import UnionShape, nested_union
from cepheid.statistics.next_costs import Mode, NextCosts, NotCosted, Traffic

Workload: TypeAlias = Literal["next", "mix", "union"]
WORKLOADS: tuple[Workload, ...] = ("next", "mix", "union")

Trees: TypeAlias = Literal["splits", "shapes"]
"""Two readings of "uniformly generating trees of a given size" (section 6): every operator divides
its operands at a place drawn uniformly, or every shape of tree is as likely as any other. Shapes
are the deeper ones: most of their splits leave one operand on a side."""

RATES = {f"S{n + 1}": float(2**n) for n in range(8)}
"""Eight sources, 1 to 128 events a second, 255 in all."""

COSTS = NextCosts(RATES)


def random_query(
    workload: Workload, operators: int, numbers: random.Random, trees: Trees = "shapes"
) -> Pattern:
    """A query of so many binary operators over sources drawn at random."""
    names = count()
    if workload == "mix":
        return _mixed(operators, numbers, names, trees)
    return _tree(workload, [_leaf(numbers, names) for _ in range(operators + 1)], numbers, trees)


def rewritten(query: Pattern, mode: Mode = "corrected", search: Search = "pareto") -> Pattern:
    """The query as the optimiser runs it: brackets of chains, then the merging of unions.

    Multiplying alternatives out, which the paper does not know, is off: it changes the number of
    operators, which is what the figures count.
    """
    costs = NextCosts(RATES, mode)
    found = optimise(query, costs=costs, search=search, off=("distribute_next_over_union",))
    return _merged_by_rate(found.pattern, costs)


def size_of(query: Pattern) -> int:
    """The number of its operators."""
    return sum(not isinstance(node, Atom) for node in walk(query))


def model_cost(query: Pattern, mode: Mode = "corrected") -> float:
    """What the cost model says of a query of binary operators, in this shape."""
    found = NextCosts(RATES, mode).of(query)
    assert isinstance(found, Traffic)
    return found.cost


def crossing_rate(query: Pattern) -> float:
    """Events a second between a node and others that hold all sources and the sink, by the model.

    The paper's cost of a deployment plan (section 4.2) adds them to CPU costs as they are: an event
    that an operator gets from another node costs one step more.
    """
    found = COSTS.of(query)
    assert isinstance(found, Traffic)
    return found.rate + sum(RATES[each.types[0]] for each in walk(query) if isinstance(each, Atom))


def as_text(query: Pattern) -> str:
    """The query in NEXT's language, with its brackets."""

    def text(node: Pattern) -> str:
        match node:
            case Atom(types, variable):
                return f"{types[0]} {variable}"
            case Next(first, second):
                return f"({text(first)} ; {text(second)})"
            case _:
                return "(" + " | ".join(text(each) for each in operands(node)) + ")"

    return f"SELECT * FROM {text(query)}"


def _tree(kind: Workload, leaves: list[Pattern], numbers: random.Random, trees: Trees) -> Pattern:
    if len(leaves) == 1:
        return leaves[0]
    below = len(leaves) - 2  # operators left for both sides
    weights = [
        _shapes(left) * _shapes(below - left) if trees == "shapes" else 1
        for left in range(below + 1)
    ]
    split = numbers.choices(range(below + 1), weights)[0] + 1
    sides = (_tree(kind, each, numbers, trees) for each in (leaves[:split], leaves[split:]))
    return Next(*sides) if kind == "next" else Union(tuple(sides))


def _mixed(operators: int, numbers: random.Random, names: Iterator[int], trees: Trees) -> Pattern:
    """Sub-trees of two operators of one kind, nested: a leaf of one is the next one's root."""
    kind: Workload = numbers.choice(("next", "union"))
    here = min(2, operators)
    leaves = [_leaf(numbers, names) for _ in range(here + 1)]
    if operators > here:
        leaves[numbers.randrange(here + 1)] = _mixed(operators - here, numbers, names, trees)
    return _tree(kind, leaves, numbers, trees)


def _leaf(numbers: random.Random, names: Iterator[int]) -> Pattern:
    return Atom((numbers.choice(tuple(RATES)),), f"x{next(names)}")


@cache
def _shapes(operators: int) -> int:
    """The number of binary trees: Catalan's."""
    if operators == 0:
        return 1
    return sum(_shapes(left) * _shapes(operators - 1 - left) for left in range(operators))


def _merged_by_rate(node: Pattern, costs: NextCosts) -> Pattern:
    below = tuple(_merged_by_rate(each, costs) for each in operands(node))
    rebuilt = with_operands(node, below)
    if not isinstance(rebuilt, Union) or len(rebuilt.patterns) <= 2:
        return rebuilt
    tree = costs.union_tree(rebuilt)
    assert not isinstance(tree, NotCosted)
    return nested_union(UnionShape(rebuilt, tree))
