"""The operators of a query that is submitted, also before any event has told its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pyarrow as pa

from cepheid.algebra.bind import bind_query
from cepheid.algebra.pattern import Pattern
from cepheid.algebra.query import Query
from cepheid.model.errors import CepheidError
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import Options
from cepheid.optimizer.optimizer import optimise
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.operator_graph import Operator
from cepheid.planner.prepare import costs_of
from cepheid.planner.query_operators import query_operators
from cepheid.planner.workload_plan import prepared_stages
from cepheid.statistics.event_statistics import EventStatistics
from cepheid.statistics.next_costs import Mode, NextCosts


def submitted_operators(
    query: CompiledQuery,
    options: Options,
    schema: pa.Schema | None,
    statistics: EventStatistics | None,
) -> tuple[Operator, ...]:
    """The operators of a query, with loads by what is known of the events.

    Raises what is wrong with the query; what is wrong only with its use of the events is found
    when their schema is known. What was counted goes before the statistics of the options.
    """
    if statistics is not None and statistics.events:
        costs: NextCosts | None = NextCosts(statistics, cast(Mode, options.plan.costs))
    else:
        costs = costs_of(options)
    return query_operators(_optimised(query, options, schema), costs)


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


def _bound(stage: Query, query: CompiledQuery, options: Options) -> Pattern:
    """A query with its windows resolved, when nobody has seen a time yet: timestamps, or ticks."""
    problems: list[CepheidError] = []
    for is_timestamp in (True, False):
        domain = TimeDomain(is_timestamp, options.tick_us)
        try:
            return bind_query(stage, domain, options.params, known=query.parameters).pattern
        except CepheidError as found:
            problems.append(found)
    # A window without its unit, or without a tick, only tells that time is of the other kind.
    raise next((each for each in problems if each.code not in _OTHER_KIND), problems[0])


_OTHER_KIND = ("window-needs-unit", "window-needs-tick")
