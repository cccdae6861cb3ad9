"""The brackets of a chain of successors are set where they cost least."""

from __future__ import annotations

from cepheid.algebra.pattern import Pattern
from cepheid.optimizer.choice import Choice
from cepheid.optimizer.next_chain import chain_of
from cepheid.optimizer.next_search import best_brackets, bracketed
from cepheid.statistics.next_costs import NotCosted


def reassociate_next(node: Pattern, choice: Choice) -> Pattern | None:
    """
    Next(A, Next(B, C))  ->  Next(Next(A, B), C)                                where A is rare
    Next(Next(A, B), C)  ->  Next(A, Next(B, C))                                where A is frequent
    Next(Next(A, B, skip=a.k = b.k), C, skip=b.k = c.k)
        ->  Next(A, Next(B, C, skip=b.k = c.k), skip=a.k = b.k)
    Next(Next(A, B, test=p(a, b)), C)
        ->  Next(A, Next(B, C), test=p(a, b))

    Sound because the first B after A, and the first C after that, end first among all pairs of B
    and C after A (NEXT section 4.3); which conditions may stand where is told in next_chain.py. It
    would not be for a test on C (a1 b1 c1:0 b2 c2:1, c.v = 1, finds a1 b2 c2 from the right), nor
    for a skip between B and C only (a1 b1:1 b2:2 c2:2 c1:1): from the right the pair that is
    complete first is taken, from the left the B that comes first.

    Fires for a chain whose every operand has a cost, and only for a lower one.
    """
    chain = chain_of(node)
    if chain is None:
        return None
    operands = []
    for operand in chain.operands:
        traffic = choice.costs.of(operand)
        if isinstance(traffic, NotCosted):
            return None
        operands.append(traffic)
    mode = choice.costs.mode
    best = best_brackets(operands, mode, choice.search, chain.allows)
    if not choice.is_cheaper(best.traffic.cost, bracketed(chain.written, operands, mode).cost):
        return None
    return chain.bracketed(best.tree)
