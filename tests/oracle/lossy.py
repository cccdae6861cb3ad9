"""AYAC: sequences whose components may have been missed, found by trying all, and their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from cepheid.algebra import expression as ex
from cepheid.algebra import pattern as pt
from tests.oracle.events import Ev, Match
from tests.oracle.expressions import Scope, truth

STEPS = 1000


def lossy_matches(node: pt.Lossy, history: Sequence[Ev]) -> Iterator[Match]:
    """Every way to observe or miss the positives, with no seen negative, scored >= threshold."""
    assert isinstance(node.window, int)
    positives = [component for component in node.components if not component.negated]
    negatives = {component.variable for component in node.components if component.negated}
    conditions = ex.conjuncts(node.predicate)
    own = [c for c in conditions if not ex.variables(c) & negatives]
    defaults = {(variable, name): value for variable, name, value in node.defaults}
    for chosen in _assignments(len(positives), history, node.window):
        bindings = tuple(
            (component.variable, event) for component, event in zip(positives, chosen, strict=True)
        )
        seen = [event for event in chosen if event is not None]
        last = seen[-1].te
        found = Match(bindings, _stamps(seen), seen[0].ts, last, last)
        if not all(truth(c, Scope(found, defaults=defaults), ex.Absent.TRUE) for c in own):
            continue
        score = 1.0
        for begin, end, missed in _edges(node, found, last - node.window):
            for component in missed:
                if component.negated and any(
                    _cancels(component, event, conditions, found, defaults)
                    for event in history
                    if begin < event.te < end
                ):
                    score = 0.0
            score *= edge_score(missed, end - begin, node.paper_scores)
        if score > 0 and score >= node.threshold:
            yield Match(bindings, found.tv, found.ts, last, last, score)


def _assignments(count: int, history: Sequence[Ev], window: int) -> Iterator[tuple[Ev | None, ...]]:
    """Observed components in strict time order within the window; the last is observed (E31)."""

    def extend(chosen: tuple[Ev | None, ...]) -> Iterator[tuple[Ev | None, ...]]:
        if len(chosen) == count:
            yield chosen
            return
        if len(chosen) < count - 1:
            yield from extend((*chosen, None))
        seen = [event for event in chosen if event is not None]
        for event in history:
            if not seen or (seen[-1].te < event.ts and event.te - seen[0].ts <= window):
                yield from extend((*chosen, event))

    return extend(())


def _stamps(events: list[Ev]) -> tuple[int, ...]:
    return tuple(stamp for event in events for stamp in (event.ts, event.te))


def _edges(
    node: pt.Lossy, match: Match, start: int
) -> Iterator[tuple[int, int, list[pt.Component]]]:
    """Between neighbouring observed positives (the start state first): what was not seen."""
    bound = dict(match.bindings)
    begin, missed = start, []
    for component in node.components:
        event = bound.get(component.variable)
        if component.negated or event is None:
            missed.append(component)
        else:
            yield begin, event.ts, missed
            begin, missed = event.te, []


def _cancels(
    component: pt.Component,
    event: Ev,
    conditions: tuple[ex.Expression, ...],
    match: Match,
    defaults: dict[tuple[str, str], ex.Expression],
) -> bool:
    """Whether the event satisfies every atom of the negative, with the match around it."""
    if any(event.id == other.id for other in match.events):
        return False
    bindings = (*match.bindings, (component.variable, event))
    seen = Match(bindings, match.tv, match.ts, match.te, match.fin)
    return all(
        truth(condition, Scope(seen, defaults=defaults), ex.Absent.TRUE)
        for condition in conditions
        if component.variable in ex.variables(condition)
    )


def edge_score(missed: list[pt.Component], gap: float, paper: bool) -> float:
    """SPEC A4.3's table: the score of not having seen these components within the gap."""
    positive = [index for index, component in enumerate(missed) if not component.negated]
    match positive:
        case []:
            return math.prod(unseen(component, gap) for component in missed)
        case [index]:
            before, one, after = missed[:index], missed[index], missed[index + 1 :]
            if paper or not (before or after):
                rest = math.prod(unseen(component, gap) for component in before + after)
                return one.loss * distribution(one.gap, gap) * rest
            return one.loss * integral(
                one.gap,
                lambda t: (
                    math.prod(unseen(c, t) for c in before)
                    * math.prod(unseen(c, gap - t) for c in after)
                ),
                gap,
            )
        case [0, 1] if len(missed) == 2:
            one, two = missed
            if paper:
                result = integral(two.gap, lambda t: distribution(one.gap, t), gap)
            else:
                result = integral(one.gap, lambda t: distribution(two.gap, gap - t), gap)
            return one.loss * two.loss * result
        case _:
            return 0.0  # not defined in the paper; below every useful threshold


def unseen(component: pt.Component, gap: float) -> float:
    """S^N: how likely it is that a negative that was not seen did not happen."""
    if component.loss == 0:
        return 1.0  # not seen = did not happen, also where F = 1
    happened = distribution(component.gap, gap)
    return (1 - happened) / (component.loss * happened + 1 - happened)


def distribution(model: pt.GapModel, gap: float) -> float:
    """F: the probability that the gap is at most this long.

    Parameters: exponential (rate), weibull (shape, scale), lognormal (mu, sigma), histogram
    (width of a bin, then the mass of each bin from 0 on; linear within a bin).
    """
    if gap <= 0:
        return 0.0
    match model.kind, model.parameters:
        case pt.Gap.EXPONENTIAL, (rate,):
            return -math.expm1(-rate * gap)
        case pt.Gap.WEIBULL, (shape, scale):
            return -math.expm1(-((gap / scale) ** shape))
        case pt.Gap.LOGNORMAL, (mu, sigma):
            return 0.5 * math.erfc((mu - math.log(gap)) / (sigma * math.sqrt(2)))
        case pt.Gap.HISTOGRAM, (width, *masses):
            full, part = divmod(gap / width, 1)
            whole = sum(masses[: int(full)])
            return whole + (part * masses[int(full)] if full < len(masses) else 0.0)
        case _:
            raise ValueError(f"{model} lacks parameters")


def integral(model: pt.GapModel, weight: Callable[[float], float], until: float) -> float:
    """The integral of weight(t) over dF(t), by the midpoint rule with one Richardson step."""

    def rough(steps: int) -> float:
        width = until / steps
        return sum(
            (distribution(model, (k + 1) * width) - distribution(model, k * width))
            * weight((k + 0.5) * width)
            for k in range(steps)
        )

    return (4 * rough(2 * STEPS) - rough(STEPS)) / 3
