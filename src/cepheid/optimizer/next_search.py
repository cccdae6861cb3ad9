"""Which brackets make a chain of successors cheapest (NEXT, section 4.3).

The paper's interval search keeps one best tree per stretch of the chain. That is not optimal: what
a stretch costs its neighbours depends on its bursts, and these on its brackets, so a stretch that
is dearer by itself may be the cheaper part (docs/decisions/0009-brackets-of-a-chain.md). Here each
stretch keeps every tree that some surrounding could prefer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from cepheid.statistics.next_costs import Mode, Traffic, followed

Search: TypeAlias = Literal["pareto", "paper"]
Tree: TypeAlias = "int | tuple[Tree, Tree]"
"""The position of an operand, or the two sides of a Next."""

MOST_EXACT = 20
"""Operands up to which the optimal search is used; beyond, its time grows unpleasantly (a chain of
20 takes a fraction of a second), and the paper's search answers instead."""


class Bracketed(NamedTuple):
    """A way to bracket a stretch of the chain, and its traffic."""

    tree: Tree
    traffic: Traffic


def any_stretch(first: int, last: int) -> bool:
    """Every stretch of the chain may be an operand of its own."""
    del first, last
    return True


def best_brackets(
    operands: Sequence[Traffic],
    mode: Mode = "corrected",
    search: Search = "pareto",
    allows: Callable[[int, int], bool] = any_stretch,
) -> Bracketed:
    """The cheapest tree over the operands in their order.

    `allows` tells whether the operands from first to last, more than one of them and not the whole
    chain, may be put in brackets of their own.

    >>> from cepheid.statistics.next_costs import source
    >>> best_brackets([source(1), source(50), source(80)]).tree
    ((0, 1), 2)
    """
    is_exact = search == "pareto" and len(operands) <= MOST_EXACT
    keep = _undominated if is_exact else _cheapest
    count = len(operands)
    found: dict[tuple[int, int], list[Bracketed]] = {
        (at, at): [Bracketed(at, traffic)] for at, traffic in enumerate(operands)
    }
    for length in range(2, count + 1):
        for first in range(count - length + 1):
            # The paper prints i + l, one too far, and compares the cost of the last Next alone.
            last = first + length - 1
            if length < count and not allows(first, last):
                continue
            found[first, last] = keep(
                [
                    Bracketed((left.tree, right.tree), followed(left.traffic, right.traffic, mode))
                    for middle in range(first, last)
                    for left in found.get((first, middle), ())
                    for right in found.get((middle + 1, last), ())
                ]
            )
    return _cheapest(found[0, count - 1])[0]


def bracketed(tree: Tree, operands: Sequence[Traffic], mode: Mode = "corrected") -> Traffic:
    """The traffic of one given tree."""
    if isinstance(tree, int):
        return operands[tree]
    left, right = (bracketed(side, operands, mode) for side in tree)
    return followed(left, right, mode)


def _cheapest(candidates: list[Bracketed]) -> list[Bracketed]:
    """The first of the cheapest."""
    return [min(candidates, key=lambda each: each.traffic.cost)]


def _undominated(candidates: list[Bracketed]) -> list[Bracketed]:
    """The trees of one stretch that no other beats in every surrounding.

    Rate and detection time of a stretch are those of its first operand and the sum over all: its
    brackets do not change them. What a Next above pays grows with the burst size of either side. A
    higher burst rate costs more on the right and saves on the left, so only trees of one burst rate
    are compared; there are at most as many rates as splits. Sums of detection times may differ in
    their last digits with the order of adding, which must not make rates of one split two.
    """
    by_rate: dict[str, list[Bracketed]] = {}
    for each in sorted(candidates, key=lambda each: (each.traffic.cost, each.traffic.burst_size)):
        kept = by_rate.setdefault(f"{each.traffic.burst_rate:.12e}", [])
        if not kept or each.traffic.burst_size < kept[-1].traffic.burst_size * (1 - 1e-12):
            kept.append(each)
    return [each for kept in by_rate.values() for each in kept]
