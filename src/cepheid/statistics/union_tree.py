"""In which order the streams of a union are merged two by two: Huffman's tree over their rates."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias, TypeVar

UnionTree: TypeAlias = "int | tuple[UnionTree, UnionTree]"
"""The position of an operand, or two trees that are merged."""

_T = TypeVar("_T")


def huffman_tree(rates: Sequence[float]) -> UnionTree:
    """The tree in which the rarest streams are merged first (NEXT section 4.3, figure 3).

    Each event passes all unions between its leaf and the root, so the cost of a tree is the sum of
    rate times depth, which Huffman's algorithm makes least; O(n log n). Equal rates are taken in
    the order they are given, so that a plan does not change from run to run.

    >>> huffman_tree([1400, 200, 200, 500])
    (((1, 2), 3), 0)
    """
    heap: list[tuple[float, int, UnionTree]] = [
        (rate, position, position) for position, rate in enumerate(rates)
    ]
    heapq.heapify(heap)
    for number in range(len(rates), 2 * len(rates) - 1):
        left_rate, _, left = heapq.heappop(heap)
        right_rate, _, right = heapq.heappop(heap)
        heapq.heappush(heap, (left_rate + right_rate, number, (left, right)))
    return heap[0][2]


def written_tree(count: int) -> UnionTree:
    """The tree of `A | B | C` as it is written, from left to right.

    >>> written_tree(4)
    (((0, 1), 2), 3)
    """
    return reduce(lambda merged, position: (merged, position), range(1, count), _leaf(0))


def _leaf(position: int) -> UnionTree:
    return position


def fold_tree(tree: UnionTree, leaf: Callable[[int], _T], merge: Callable[[_T, _T], _T]) -> _T:
    """What `merge` makes of the leaves along the tree, without recursion.

    A tree can be as deep as the union is wide.
    """
    done: list[_T] = []
    waiting: list[UnionTree | None] = [tree]
    while waiting:
        node = waiting.pop()
        if node is None:
            right, left = done.pop(), done.pop()
            done.append(merge(left, right))
        elif isinstance(node, int):
            done.append(leaf(node))
        else:
            waiting.extend((None, node[1], node[0]))
    return done[0]
