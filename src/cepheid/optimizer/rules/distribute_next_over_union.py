"""Alternatives at the beginning of a chain become chains, each with brackets of its own."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expression import variables
from cepheid.algebra.pattern import Next, Pattern, Union, bound_variables
from cepheid.optimizer.choice import Choice
from cepheid.optimizer.rules.reassociate_next import reassociate_next
from cepheid.statistics.next_costs import NotCosted


def distribute_next_over_union(node: Pattern, choice: Choice | None = None) -> Pattern | None:
    """
    Next(Union(A, B), C)           ->  Union(Next(A, C), Next(B, C))
    Next(Next(Union(A, B), C), D)  ->  Union(Next(Next(A, C), D), Next(Next(B, C), D))

    Sound because each match of the first side looks for its successors alone. It would not be on
    the right: after A the *first* of B and C counts, not the first B and the first C (a1 b1 c1).
    Nor for a condition on a variable of one alternative, which in the other is not bound.

    C is then read twice, so this pays only where the alternatives are so different that both
    together wait with fewer instances. With a choice it is done where the cheapest brackets of the
    two cost less than those of the whole; without one wherever it can.
    """
    split = _split(node)
    if split is None or choice is None:
        return split
    branches = tuple(reassociate_next(each, choice) or each for each in split.patterns)
    apart = choice.costs.of(replace(split, patterns=branches))
    whole = choice.costs.of(reassociate_next(node, choice) or node)
    if isinstance(apart, NotCosted) or isinstance(whole, NotCosted):
        return None
    if not choice.is_cheaper(apart.cost, whole.cost):
        return None
    return replace(split, patterns=branches)


def _split(node: Pattern) -> Union | None:
    if not isinstance(node, Next):
        return None
    first = node.first if isinstance(node.first, Union) else _split(node.first)
    if first is None:
        return None
    used = variables(node.skip) | variables(node.test)
    loose = used.difference(bound_variables(node.second))
    if any(not loose <= {*bound_variables(branch)} for branch in first.patterns):
        return None
    return replace(first, patterns=tuple(replace(node, first=each) for each in first.patterns))
