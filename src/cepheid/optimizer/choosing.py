"""How rules that go by cost are applied: once per chain of successors, from the leaves up.

To a fixpoint they would not do. The cheapest brackets of a chain need not be the cheapest for a
part of it, so a part that is looked at alone would be bracketed back and forth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cepheid.algebra.pattern import Pattern, operands, with_operands
from cepheid.optimizer.choice import Choice
from cepheid.optimizer.next_chain import chain_of
from cepheid.optimizer.rewriting import CostedRule, Step, check_step
from cepheid.statistics.next_costs import NotCosted


@dataclass(slots=True)
class Chooser:
    """One walk over one tree; `steps` tells what was chosen, in order, with the costs."""

    rules: Sequence[CostedRule]
    choice: Choice
    is_checking: bool = False
    steps: list[Step] = field(default_factory=list)

    def choose(self, node: Pattern) -> Pattern:
        """The tree with every chain in its cheapest shape.

        The operands of a chain come first: how the chain is bracketed depends on what they send.
        """
        node = self._below(node, _chain_operands(node))
        for rule in self.rules:
            after = rule(node, self.choice)
            if after is not None:
                self._keep(rule.__name__, node, after)
                # Alternatives are patterns of their own, and what is bracketed best stays so.
                return self._below(after, _chain_operands(after))
        return node

    def _below(self, node: Pattern, chain: frozenset[int]) -> Pattern:
        """The node over chosen operands; the brackets of its own chain are passed through."""
        old = operands(node)
        new = tuple(
            self._below(each, chain) if chain and id(each) not in chain else self.choose(each)
            for each in old
        )
        same = all(before is after for before, after in zip(old, new, strict=True))
        return node if same else with_operands(node, new)

    def _keep(self, rule: str, before: Pattern, after: Pattern) -> None:
        costs = [self.choice.costs.of(each) for each in (before, after)]
        known = [None if isinstance(each, NotCosted) else each.cost for each in costs]
        step = Step(rule, before, after, *known)
        self.steps.append(step)
        if self.is_checking:
            check_step(step)


def _chain_operands(node: Pattern) -> frozenset[int]:
    """The identities of what stands between the brackets of a chain; empty for other nodes."""
    chain = chain_of(node)
    return frozenset() if chain is None else frozenset(map(id, chain.operands))
