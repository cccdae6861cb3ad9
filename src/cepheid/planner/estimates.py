"""What a sequence will keep and find, estimated from the statistics of its events."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, factorial, prod

from cepheid.algebra.expression import Attribute, Compare, Expression, conjuncts
from cepheid.planner.sequence_plan import Component, Negation, SequencePlan
from cepheid.statistics.event_statistics import EventStatistics
from cepheid.statistics.selectivity import selectivity


@dataclass(frozen=True, slots=True)
class ComponentEstimate:
    """The events of one component per unit of time: how many come, how many pass its own tests."""

    variable: str
    rate: float
    passing: float


@dataclass(frozen=True, slots=True)
class SequenceEstimate:
    """Expected figures of a steady stream; rates are per unit of time.

    `candidates` are sequences that satisfy all but the negations. `live_events` is None when
    nothing ever leaves the state.
    """

    components: tuple[ComponentEstimate, ...]
    candidates: float
    matches: float
    live_events: float | None


def estimate_sequence(plan: SequencePlan, statistics: EventStatistics) -> SequenceEstimate:
    """Estimates under independence: types arrive as Poisson streams, values are drawn at random.

    A match ends at each event of the last component; the other L-1 events lie anywhere in the
    window before it, in order in one of (L-1)! cases.
    """
    every: list[Component | Negation] = [*plan.components, *plan.negations]
    types_of = {each.variable: each.types for each in every}

    def share(test: Expression) -> float:
        return selectivity(test, types_of, statistics)

    components = tuple(
        ComponentEstimate(each.variable, rate, rate * share(each.test))
        for each in every
        for rate in (statistics.rate(each.types),)
    )
    positive = [each.passing for each in components[: plan.length]]
    window = plan.window if plan.window is not None else statistics.span
    earlier = plan.length - 1
    candidates = prod(positive) * window**earlier / factorial(earlier)
    candidates *= prod(share(test) for test in _independent(plan.joint))
    matches = candidates
    for negation, each in zip(plan.negations, components[plan.length :], strict=True):
        mine = conjuncts(negation.joint)
        new = _independent((*plan.joint, *mine))[len(_independent(plan.joint)) :]
        joint = prod(share(test) for test in new)
        matches *= exp(-each.passing * joint * _stretch(negation, plan, window))
    retention = plan.retention
    live = None if retention is None else sum(c.passing for c in components) * retention
    return SequenceEstimate(components, candidates, matches, live)


def _independent(tests: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The tests without the equalities that follow from those before: [id] over n events is n-1."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(x: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(x, x) != x:
            x = parent[x]
        return x

    kept = []
    for test in tests:
        match test:
            case Compare("=", Attribute(v1, a1), Attribute(v2, a2)):
                one, other = root((v1, a1)), root((v2, a2))
                if one == other:
                    continue
                parent[one] = other
        kept.append(test)
    return tuple(kept)


def _stretch(negation: Negation, plan: SequencePlan, window: int) -> float:
    """The expected length of a negated component's interval: one of the L parts of the window."""
    return negation.reach if plan.length == 1 else window / plan.length
