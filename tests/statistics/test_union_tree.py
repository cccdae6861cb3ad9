"""Huffman's tree is the cheapest of all trees over the operands in any order."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from cepheid.statistics.union_tree import UnionTree, fold_tree, huffman_tree, written_tree


def cost(tree: UnionTree, rates: list[float]) -> float:
    total, _ = fold_tree(
        tree,
        lambda position: (0.0, rates[position]),
        lambda left, right: (left[0] + right[0] + left[1] + right[1], left[1] + right[1]),
    )
    return total


def least_cost(rates: list[float]) -> float:
    """Over all ways to merge two of what is left, again and again."""
    if len(rates) == 1:
        return 0.0
    return min(
        rates[i]
        + rates[j]
        + least_cost([*(r for k, r in enumerate(rates) if k not in (i, j)), rates[i] + rates[j]])
        for i, j in combinations(range(len(rates)), 2)
    )


def test_the_rarest_are_merged_first() -> None:
    rates = [1400.0, 200.0, 200.0, 500.0]
    assert huffman_tree(rates) == (((1, 2), 3), 0)
    assert cost(huffman_tree(rates), rates) == 3600


def test_it_is_the_cheapest_tree() -> None:
    numbers = random.Random(3)
    for _ in range(60):
        rates = [float(2 ** numbers.randrange(8)) for _ in range(numbers.randint(1, 6))]
        assert cost(huffman_tree(rates), rates) == pytest.approx(least_cost(rates))


def test_every_operand_is_in_the_tree_once() -> None:
    for count in (1, 2, 7, 3000):
        for tree in (
            huffman_tree([2.0**at for at in range(count % 900)] or [1.0] * count),
            written_tree(count),
        ):
            leaves = fold_tree(tree, lambda position: [position], lambda left, right: left + right)
            assert sorted(leaves) == list(range(len(leaves)))


def test_equal_rates_are_merged_in_their_order() -> None:
    assert huffman_tree([1.0] * 4) == ((0, 1), (2, 3))
