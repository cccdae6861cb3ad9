"""The operators of a query, for placing it: from its optimised algebra, with rates and loads."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cepheid.algebra.bind import bind_query
from cepheid.algebra.expression import conjuncts
from cepheid.algebra.pattern import Atom, Filter, Pattern, Within, operands, walk
from cepheid.model.errors import CepheidError
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import Options
from cepheid.optimizer.optimizer import optimise
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.operator_graph import Operator, canonical, operators_of, source_name
from cepheid.planner.succession_plan import is_succession
from cepheid.planner.workload_plan import prepared_stages
from cepheid.statistics.event_statistics import EventStatistics
from cepheid.statistics.next_costs import NextCosts, NotCosted
from cepheid.statistics.selectivity import selectivity

_UNKNOWN_RATE = 1.0
"""Events per unit of time, of every type, while nothing is known of any."""


def query_operators(
    query: CompiledQuery,
    options: Options,
    schema: pa.Schema | None,
    statistics: EventStatistics | None,
) -> tuple[Operator, ...]:
    """The operators of a query and of those whose events it reads, operands first.

    Raises what is wrong with the query; what is wrong only with its use of the events is found
    when their schema is known.
    """
    found: list[Operator] = []
    for pattern in _optimised(query, options, schema):
        first = len(found)
        for each in _of_pattern(pattern, statistics):
            below = tuple(o + first if isinstance(o, int) else o for o in each.operands)
            found.append(Operator(each.number + first, each.canonical, below, each.rate, each.cpu))
    return tuple(found)


def _optimised(
    query: CompiledQuery, options: Options, schema: pa.Schema | None
) -> Sequence[Pattern]:
    if schema is not None:
        stages = prepared_stages(query, options, schema, open_schema=False)
        return [stage.optimised.pattern for stage in stages]
    return [
        optimise(_bound(stage, query, options), off=options.plan.rules_off).pattern
        for stage in query.stages(options)
    ]


def _bound(stage: object, query: CompiledQuery, options: Options) -> Pattern:
    """A query with its windows resolved, when nobody has seen a time yet: timestamps, or ticks."""
    problem: CepheidError | None = None
    for is_timestamp in (True, False):
        domain = TimeDomain(is_timestamp, options.tick_us)
        try:
            return bind_query(stage, domain, options.params, known=query.parameters).pattern  # type: ignore[arg-type]
        except CepheidError as found:
            problem = problem or found
    assert problem is not None
    raise problem


def _of_pattern(pattern: Pattern, statistics: EventStatistics | None) -> Sequence[Operator]:
    atoms = [each for each in walk(pattern) if isinstance(each, Atom)]
    if is_succession(pattern):
        assumed = {name: _UNKNOWN_RATE for each in atoms for name in each.types}
        rates = statistics if statistics is not None and statistics.events else assumed
        costed = operators_of(pattern, NextCosts(rates))
        if not isinstance(costed, NotCosted):
            return costed or _by_structure(pattern, statistics)
    return _by_structure(pattern, statistics)


def _by_structure(pattern: Pattern, statistics: EventStatistics | None) -> Sequence[Operator]:
    """Operators of a pattern that the cost model does not know, a sequence above all.

    An atom is one: the stack that holds its events, which sequences share (SASE, section 4.2.1).
    Every other one handles what comes from its operands, and sends no more than the rarest of them
    brings; a window or a condition is part of the operator below it.
    """
    found: list[Operator] = []

    def add(node: Pattern, whole: Pattern) -> int:
        if isinstance(node, Filter | Within):
            return add(node.pattern, whole)
        if isinstance(node, Atom):
            below: tuple[int | str, ...] = (source_name(node),)
            cpu = rate = _rate(node, statistics)
            if statistics is not None and conjuncts(node.predicate):
                rate *= selectivity(node.predicate, {node.variable: node.types}, statistics)
        else:
            inner = [add(each, each) for each in operands(node)]
            below = tuple(inner)
            cpu = sum(found[each].rate for each in inner)
            rate = min((found[each].rate for each in inner), default=0.0)
        number = len(found)
        found.append(Operator(number, canonical(whole), below, rate, cpu))
        return number

    add(pattern, pattern)
    return found


def _rate(atom: Atom, statistics: EventStatistics | None) -> float:
    if statistics is None or not statistics.events:
        return _UNKNOWN_RATE * max(1, len(atom.types))
    return statistics.rate(atom.types)
