"""Which runs are kept as totals instead of events (SPEC A1.4: an automaton may aggregate).

A run of one component can be one, if nobody asks for its events: the query returns aggregates and
its last event at most, and no condition looks back at all of it. Where it stands in the pattern
matters, too: operators that look for the earliest of composite successors compare their stamps one
by one, and totals tell the order of runs only where nothing else stands around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from cepheid.algebra.expression import Aggregate, Every, Expression, Previous, ScalarType, walk
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    bound_variables,
    operands,
)
from cepheid.algebra.query import Output
from cepheid.model.errors import OptionError
from cepheid.model.options import Options
from cepheid.planner.succession_plan import SuccessionPlan


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A variable whose runs are totals; `measured` are the attributes that aggregates ask for.

    Its runs are `ranked` where something follows with the earliest of them.
    """

    variable: str
    measured: tuple[str, ...]
    ranked: bool
    asked: tuple[str, ...]

    def __str__(self) -> str:
        """What is kept, for people."""
        return f"{self.variable}+ kept as running totals: {', '.join(self.asked)}"


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """The runs of a query that are kept as totals, and the reasons why others are not."""

    runs: tuple[KeptRun, ...]
    stored: tuple[str, ...] = ()

    @property
    def attributes(self) -> frozenset[str]:
        """All attributes that are measured."""
        return frozenset(name for run in self.runs for name in run.measured)

    def of(self, variable: str) -> KeptRun | None:
        """What is kept of a variable's runs, if these are totals."""
        return next((run for run in self.runs if run.variable == variable), None)


def running_totals(
    plan: SuccessionPlan,
    output: Output | None,
    options: Options,
    events: pa.Schema,
    types: Mapping[str, ScalarType],
) -> RunningTotals | str:
    """The runs that need not store their events, or the reason why all of them do, for people."""
    if not plan.iterated:
        return "nothing is iterated"
    if options.plan.running_totals is False:
        return "the plan option running_totals is off"
    if output is None:
        return "SELECT * asks for the events"
    if options.failures:
        return "failures tell their events"
    if not _counts_in_microseconds(events, options):
        return "times are finer than microseconds"
    returned = [part for _, each in output.attributes for part in walk(each)]
    if any(isinstance(p, Aggregate) and p.name and p.variable is None for p in returned):
        return "an aggregate goes over several variables"
    for part in returned:
        if isinstance(part, Aggregate) and part.variable in plan.iterated and part.name:
            if types.get(part.name, ScalarType.UNKNOWN) is ScalarType.UNKNOWN:
                return f"the type of {part.name} is not known yet"
    kept: list[KeptRun] = []
    stored: list[str] = []
    for node, place in _iterations(plan.pattern, _FIRST):
        for variable in bound_variables(node):
            reason = _reason(variable, node, place, plan, returned, types)
            if reason is None:
                kept.append(_kept(variable, returned, ranked=place == _SECOND))
            else:
                stored.append(f"{variable}+ stored: {reason}")
    return RunningTotals(tuple(kept), tuple(dict.fromkeys(stored))) if kept else "; ".join(stored)


def refuse_storing(totals: RunningTotals | str) -> None:
    """Refuse to store the events of any run."""
    if isinstance(totals, str):
        reason = totals
    elif totals.stored:
        reason = "; ".join(totals.stored)
    else:
        return
    raise OptionError.of(
        "no-running-totals",
        f"not all runs can be kept as running totals: {reason}",
        help="leave the plan option running_totals out, and they are kept where they can be",
    )


_FIRST, _SECOND, _INSIDE = range(3)
"""Where a run stands: it begins what waits, it alone is waited for, or it is a part of that."""


def _iterations(node: Pattern, place: int) -> Iterator[tuple[Plus, int]]:
    match node:
        case Plus():
            yield node, place
            return  # what is inside of a run is no single component
        case Filter() | Within():
            yield from _iterations(node.pattern, place)
        case Next():
            is_first = place == _FIRST
            yield from _iterations(node.first, place if is_first else _INSIDE)
            yield from _iterations(node.second, _SECOND if is_first else _INSIDE)
        case Timer() | Union():
            for each in operands(node):
                yield from _iterations(each, place if place == _FIRST else _INSIDE)
        case Except():
            yield from _iterations(node.pattern, place if place == _FIRST else _INSIDE)
            yield from _iterations(node.negated, _INSIDE)
        case _:
            return


def _reason(
    variable: str,
    node: Plus,
    place: int,
    plan: SuccessionPlan,
    returned: list[Expression],
    types: Mapping[str, ScalarType],
) -> str | None:
    """Why a variable's events have to be stored."""
    if not isinstance(node.pattern, Atom):
        return "more than one component is repeated"
    if place == _INSIDE:
        return "it is a part of what is waited for"
    tests = [part for test in plan.joint for part in walk(test)]
    if any(isinstance(p, Every) and p.variable == variable for p in tests):
        return "ALL looks at every event of it"
    if any(isinstance(p, Every | Previous) and p.variable == variable for p in returned):
        return "PREV or ALL is returned"
    for part in returned:
        if isinstance(part, Aggregate) and part.variable == variable and part.name:
            if types[part.name] is ScalarType.STRING and part.function != "count":
                return f"{part.function} of texts"
    return None


def _kept(variable: str, returned: list[Expression], *, ranked: bool) -> KeptRun:
    own = [part for part in returned if isinstance(part, Aggregate) and part.variable == variable]
    asked = [f"{part.function}({part.name})" if part.name else part.function for part in own]
    measured = dict.fromkeys(part.name for part in own if part.name)
    return KeptRun(variable, tuple(measured), ranked, tuple(dict.fromkeys(["count", *asked])))


def _counts_in_microseconds(events: pa.Schema, options: Options) -> bool:
    """Whether the engine's times tell those of the columns exactly."""
    for name in (options.end_column, options.start):
        where = -1 if name is None else events.get_field_index(name)
        if where >= 0:
            kind = events.field(where).type
            if pa.types.is_timestamp(kind) and kind.unit == "ns":
                return False
    return True
