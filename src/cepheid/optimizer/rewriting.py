"""How a tree is walked and rebuilt: every rule at every node, bottom up, until none applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Pattern, bound_variables, operands, with_operands
from cepheid.algebra.text import to_text
from cepheid.model.diagnostics import Diagnostic
from cepheid.model.errors import InternalError
from cepheid.optimizer.choice import Choice

Rule: TypeAlias = Callable[[Pattern], Pattern | None]
"""One rewrite of one node, which may look at the nodes below it; None where it does not apply."""

CostedRule: TypeAlias = Callable[[Pattern, Choice], Pattern | None]
"""A rewrite that is done where it costs less."""

MOST_STEPS = 10_000
"""A pattern is rewritten a few times for each of its nodes; more is a rule that never ends."""


@dataclass(frozen=True, slots=True)
class Step:
    """One application of a rule: the node it was tried at, and what stands there now.

    A rule that goes by cost also tells the cost of both.
    """

    rule: str
    before: Pattern
    after: Pattern
    cost_before: float | None = None
    cost_after: float | None = None


@dataclass(slots=True)
class Rewriter:
    """One walk over one tree; `steps` tells what was done, in order.

    With `is_checking` every result is held to the algebra's invariants, and a rule that breaks one
    is named.
    """

    rules: Sequence[Rule]
    is_checking: bool = False
    steps: list[Step] = field(default_factory=list)
    # Subtrees to which no rule applies, by identity: what a rule leaves as it is need not be walked
    # again. The nodes are kept, so that no other can get their identity.
    _settled: dict[int, Pattern] = field(default_factory=dict)

    def rewrite(self, node: Pattern) -> Pattern:
        """The tree to which no rule applies any more, anywhere.

        What a rule makes of a node is walked again from its leaves, so a rule need not care for
        what it makes possible below or above. Only one place can keep this from ending: a node that
        comes back to a form it had before.
        """
        if id(node) in self._settled:
            return node
        first_step = len(self.steps)
        forms: list[Pattern] = []
        while True:
            node = self._rewrite_operands(node)
            if node in forms:
                raise _oscillation(forms[-1], node, self.steps[first_step:])
            forms.append(node)
            step = self._apply(node)
            if step is None:
                self._settled[id(node)] = node
                return node
            node = step.after

    def _rewrite_operands(self, node: Pattern) -> Pattern:
        old = operands(node)
        new = tuple(self.rewrite(operand) for operand in old)
        same = all(before is after for before, after in zip(old, new, strict=True))
        return node if same else with_operands(node, new)

    def _apply(self, node: Pattern) -> Step | None:
        for rule in self.rules:
            after = rule(node)
            if after is not None:
                step = Step(rule.__name__, node, after)
                self.steps.append(step)
                if self.is_checking:
                    check_step(step)
                if len(self.steps) > MOST_STEPS:
                    raise _endless(step)
                return step
        return None


def check_step(step: Step) -> None:
    """A rewrite keeps the tree well formed, and the variables that its matches bind."""
    try:
        check(step.after)
    except InternalError as broken:
        raise _broken(step, broken.message) from broken
    before, after = set(bound_variables(step.before)), set(bound_variables(step.after))
    if before != after:
        message = f"it binds {', '.join(sorted(after))} instead of {', '.join(sorted(before))}"
        raise _broken(step, message)


def _broken(step: Step, message: str) -> InternalError:
    return InternalError(
        Diagnostic(
            "rule-breaks-pattern",
            f"the rule {step.rule} made a wrong pattern: {message}",
            notes=_shown(step.before, step.after),
        )
    )


def _oscillation(earlier: Pattern, repeated: Pattern, steps: Sequence[Step]) -> InternalError:
    guilty = ", ".join(dict.fromkeys(step.rule for step in steps))
    return InternalError(
        Diagnostic(
            "rules-oscillate",
            f"the rules undo each other: {guilty}",
            notes=_shown(earlier, repeated),
            help="report this with the query; plan={'rules_off': [...]} switches a rule off",
        )
    )


def _endless(step: Step) -> InternalError:
    return InternalError(
        Diagnostic(
            "rules-never-end",
            f"rewriting took more than {MOST_STEPS:,} steps, the last of them {step.rule}",
            notes=_shown(step.before, step.after),
        )
    )


def _shown(before: Pattern, after: Pattern) -> tuple[str, str]:
    return (
        f"before\n{to_text(before, multiline=True)}",
        f"after\n{to_text(after, multiline=True)}",
    )
