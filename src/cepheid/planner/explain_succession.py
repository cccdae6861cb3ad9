"""How a query of successors runs, as text for people: operators, keys, conditions, state."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from cepheid.algebra.expression import TRUE
from cepheid.algebra.expression_text import expression_text
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Next,
    Pattern,
    Plus,
    Timer,
    Within,
    bound_variables,
    walk,
)
from cepheid.kernels.succession_shape import table
from cepheid.kernels.succession_source import condition_source
from cepheid.model.event_time import duration_text
from cepheid.optimizer.cost_comparison import compare_costs, shape_text
from cepheid.planner.chain_plan import Chain
from cepheid.planner.prepare import Prepared, costs_of
from cepheid.planner.succession_layout import SuccessionLayout
from cepheid.planner.succession_plan import SuccessionPlan, equalities, shared_key


def succession_lines(
    prepared: Prepared, layout: SuccessionLayout, *, may_last: bool
) -> Iterator[str]:
    """The plan's section of `explain`; `may_last`: it reads what other queries derive."""
    plan = prepared.plan
    assert isinstance(plan, SuccessionPlan)
    yield "Plan"
    rows = [
        *_path(prepared, layout, may_last=may_last),
        ("shape", shape_text(plan.pattern)),
        ("key", _key(plan)),
        ("window", _window(plan, prepared)),
        ("state", _state(plan, prepared)),
        *(("runs", text) for text in _runs(plan, prepared)),
        ("final", f"a match leaves when the watermark has passed {_last(plan)}"),
    ]
    for name, text in rows:
        yield f"  {name:<9}{text}"
    yield ""
    yield "What each operator does"
    for node in reversed(list(walk(plan.pattern))):
        yield from (f"  {line}" for line in _operator(node, prepared))
    if plan.iterated and plan.window is None:
        yield ""
        yield "Warnings"
        yield "  - an iteration without a window finds every prefix of every run (cap= bounds them)"
    costs = costs_of(prepared.options)
    if costs is not None:
        yield ""
        yield compare_costs(prepared.query.pattern, prepared.optimised, costs)


def _path(
    prepared: Prepared, layout: SuccessionLayout, *, may_last: bool
) -> Iterator[tuple[str, str]]:
    """Which kernel runs, and why it is not that of chains."""
    chain = prepared.chain
    if isinstance(chain, Chain) and not may_last:
        steps = len(prepared.plan.components)
        yield "path", f"compiled kernel of plain chains, {steps} steps"
        plain = prepared.chain_layout(prepared.column_types).is_plain
        if plain and prepared.lateness == 0 and prepared.options.types is None:
            yield "reads", "batches in order of time as they are, while keys are close integers"
        return
    source = condition_source(table(layout.shape).conditions)
    digest = blake2b(source.encode(), digest_size=4).hexdigest()
    yield "path", f"compiled kernel, {len(layout.shape.operators)} operators, conditions {digest}"
    yield "no chain", chain if isinstance(chain, str) else "events of other queries may last"


def _key(plan: SuccessionPlan) -> str:
    shared = shared_key(plan)
    if shared is None:
        return "none: no FILTER holds all components together by equality"
    return " = ".join(f"{variable}.{name}" for variable, name in shared.items())


def _window(plan: SuccessionPlan, prepared: Prepared) -> str:
    if plan.window is None:
        return "none spans the whole match"
    window = plan.window - plan.delay
    length = duration_text(window, is_timestamp=prepared.domain.is_timestamp)
    return f"end of last - end of first <= {length}"


def _last(plan: SuccessionPlan) -> str:
    return "its timer" if plan.delay else "its last event"


def _state(plan: SuccessionPlan, prepared: Prepared) -> str:
    most = prepared.options.limits.live_events
    if plan.window is None:
        return f"instances until their successor comes, at most {most:,}; no window lets them go"
    length = duration_text(plan.window, is_timestamp=prepared.domain.is_timestamp)
    return f"instances until their successor comes or {length} have passed, at most {most:,}"


def _runs(plan: SuccessionPlan, prepared: Prepared) -> Iterator[str]:
    """What is kept of iterations: their events, or totals over them."""
    if not plan.iterated:
        return
    totals = prepared.totals
    if isinstance(totals, str):
        yield f"their events are stored: {totals}"
        return
    for run in totals.runs:
        yield f"{run} (workloads store its events)"
    yield from totals.stored


def _operator(node: Pattern, prepared: Prepared) -> Iterator[str]:
    match node:
        case Atom():
            types = " or ".join(node.types) if node.types else "of any type"
            own = "" if node.predicate == TRUE else f" with {expression_text(node.predicate)}"
            yield f"{node.variable}: events {types}{own}"
        case Filter():
            yield f"keeps those with {expression_text(node.predicate)}"
        case Within():
            assert isinstance(node.window, int)
            length = duration_text(node.window, is_timestamp=prepared.domain.is_timestamp)
            yield f"keeps those with {node.first} and {node.second} ending within {length}"
        case Next():
            after, what = (", ".join(bound_variables(n)) for n in (node.first, node.second))
            yield f"{after} ; {what}: the next of {what} after {after}{_conditions(node)}"
        case Plus():
            yield f"{', '.join(bound_variables(node))}+: every run{_conditions(node)}"
        case Timer():
            assert isinstance(node.delay, int)
            length = duration_text(node.delay, is_timestamp=prepared.domain.is_timestamp)
            yield f"{', '.join(bound_variables(node))} @: ends {length} later, by a timer"
        case Except():
            gone = ", ".join(bound_variables(node.negated))
            yield f"drops those with {gone} after {node.since}"


def _conditions(node: Next | Plus) -> str:
    texts = []
    if node.skip != TRUE:
        indexed = ", indexed" if equalities(node) else ", instances are looked through"
        texts.append(f"passing over all without {expression_text(node.skip)}{indexed}")
    if node.test != TRUE:
        texts.append(f"lost unless {expression_text(node.test)}")
    return "".join(f"; {text}" for text in texts)
