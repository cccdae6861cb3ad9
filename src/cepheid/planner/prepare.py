"""A query made ready for events of a known schema: bound, optimised, planned, checked."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from cepheid.algebra.bind import bind_query
from cepheid.algebra.expression import (
    Absent,
    Attribute,
    Expression,
    ScalarType,
    attributes,
    conjunction,
    conjuncts,
    walk,
)
from cepheid.algebra.fingerprint import fingerprint
from cepheid.algebra.pattern import Pattern
from cepheid.algebra.query import Query
from cepheid.algebra.typing import check_predicate, coerce, decide
from cepheid.model.diagnostics import Diagnostic, SourceText, did_you_mean
from cepheid.model.errors import DataError, MismatchWarning, QueryError
from cepheid.model.event_time import TimeDomain, parse_duration
from cepheid.model.options import Options
from cepheid.optimizer.next_search import Search
from cepheid.optimizer.optimizer import Optimised, optimise
from cepheid.planner.chain_plan import Chain, ChainLayout, chain_of, lay_out_chain
from cepheid.planner.match_schema import MatchForm, scalar_type
from cepheid.planner.running_totals import RunningTotals, refuse_storing, running_totals
from cepheid.planner.sequence_layout import Layout, lay_out
from cepheid.planner.sequence_plan import Place, SequencePlan, plan_sequence
from cepheid.planner.succession_plan import SuccessionPlan, is_succession, plan_succession
from cepheid.statistics.event_statistics import load_statistics
from cepheid.statistics.next_costs import Mode, NextCosts

if TYPE_CHECKING:
    from cepheid.planner.succession_layout import SuccessionLayout


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query ready to run: its plan, the form of its matches, and the columns it reads.

    `query` holds the pattern as it was bound, which names its matches; `optimised` is the pattern
    that was planned, with the trace of rewrites that led to it. `lateness` is in the time column's
    unit. `column_types` hold what the schema said of the needed columns; a column that dicts have
    not brought yet is missing there.
    """

    query: Query
    optimised: Optimised
    plan: SequencePlan | SuccessionPlan
    form: MatchForm
    options: Options
    domain: TimeDomain
    lateness: int
    needed_columns: tuple[str, ...]
    column_types: Mapping[str, ScalarType]
    layouts: dict[object, Layout] = field(default_factory=dict, compare=False, repr=False)
    successions: dict[object, SuccessionLayout] = field(
        default_factory=dict, compare=False, repr=False
    )
    chain: Chain | str = "it is a sequence"
    """What the kernel of plain chains is told, or the reason why it cannot run the plan."""

    totals: RunningTotals | str = "nothing is iterated"
    """The runs that need not store their events, or the reason why there are none."""

    keeps_totals: bool = False
    """Whether this is for an engine that keeps them; others store the events of every run."""

    @property
    def is_succession(self) -> bool:
        """Whether the kernels of successors run it."""
        return isinstance(self.plan, SuccessionPlan)

    def succession(self, types: Mapping[str, ScalarType]) -> SuccessionLayout:
        """How a plan of successors runs over columns of these types; worked out once for each."""
        asked = tuple(types.get(name) for name in self.needed_columns)
        known = self.successions.get(asked)
        if known is None:
            assert isinstance(self.plan, SuccessionPlan)
            # These load the kernels of successors, which a sequence does without.
            from cepheid.planner.succession_layout import lay_out_succession  # noqa: PLC0415
            from cepheid.planner.totals_layout import lay_out_totals  # noqa: PLC0415

            def type_of(name: str) -> ScalarType:
                return types.get(name, ScalarType.UNKNOWN)

            if self.keeps_totals and isinstance(self.totals, RunningTotals):
                known = lay_out_totals(self.plan, self.totals, type_of)
            else:
                known = lay_out_succession(self.plan, type_of)
            self.successions[asked] = known
        return known

    @property
    def may_keep_totals(self) -> bool:
        """Whether runs can be kept as totals; refused by name where they must and cannot."""
        plan = self.plan
        if isinstance(plan, SuccessionPlan) and plan.iterated and self.options.plan.running_totals:
            refuse_storing(self.totals)
        return isinstance(self.totals, RunningTotals)

    def keeping_totals(self) -> Prepared:
        """The same for an engine that keeps running totals: it reads what these measure, too."""
        assert isinstance(self.totals, RunningTotals)
        needed = tuple(sorted({*self.needed_columns, *self.totals.attributes}))
        types = {f.name: scalar_type(f.type) for f in self.form.events if f.name in needed}
        return replace(
            self, keeps_totals=True, needed_columns=needed, column_types=types, successions={}
        )

    def chain_layout(self, types: Mapping[str, ScalarType]) -> ChainLayout:
        """How a plain chain runs over columns of these types."""
        assert isinstance(self.plan, SuccessionPlan) and isinstance(self.chain, Chain)
        return lay_out_chain(
            self.plan, self.chain, lambda name: types.get(name, ScalarType.UNKNOWN)
        )

    def layout(
        self, types: Mapping[str, ScalarType], *, partitioned: bool, undoable: bool
    ) -> Layout:
        """How the plan runs over columns of these types; worked out once for each."""
        asked = (tuple(types.get(name) for name in self.needed_columns), partitioned, undoable)
        known = self.layouts.get(asked)
        if known is None:
            assert isinstance(self.plan, SequencePlan)
            known = self.layouts[asked] = lay_out(
                self.plan,
                lambda name: types.get(name, ScalarType.UNKNOWN),
                self.options.plan,
                partitioned=partitioned,
                undoable=undoable,
            )
        return known


def prepare(
    query: Query,
    options: Options,
    events: pa.Schema,
    *,
    open_schema: bool = False,
    known_parameters: Collection[str] = (),
) -> Prepared:
    """Bind, optimise, plan and check a query; errors name the column and the place in the query.

    `open_schema`: columns the schema lacks may still come (events given as dicts). What has been
    prepared is kept, because detectors of one query are made again and again: a stream's bucket
    restores its own for every batch.
    """
    names = tuple(known_parameters)
    if query.source is None:
        return _prepare(query, options, events, open_schema, names)
    return _prepared(query, query.source, _Told(options), events, open_schema, names)


class _Told:
    """Options compared by what they say: mappings have no hash."""

    __slots__ = ("options", "words")

    def __init__(self, options: Options) -> None:
        self.options = options
        self.words = repr(options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Told) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)


@lru_cache(maxsize=512)
def _prepared(
    query: Query,
    source: SourceText,  # tells apart `1`, `1.0` and `true`, which are equal in Python
    told: _Told,
    events: pa.Schema,
    open_schema: bool,
    known_parameters: tuple[str, ...],
) -> Prepared:
    return _prepare(query, told.options, events, open_schema, known_parameters)


def _prepare(
    query: Query,
    options: Options,
    events: pa.Schema,
    open_schema: bool,
    known_parameters: tuple[str, ...],
) -> Prepared:
    domain = time_domain(events, options)
    lasts = options.start is not None
    if lasts and not query.lasting and not is_succession(query.pattern):
        raise QueryError.of(
            "intervals-not-available",
            "this query works on events that happen at an instant",
            help="name one time column with time= instead of start= and end=",
        )
    bound = bind_query(query, domain, options.params, known=known_parameters)
    optimised = optimise(
        bound.pattern,
        off=options.plan.rules_off,
        costs=costs_of(options),
        search=cast(Search, options.plan.search),
    )
    plan = plan_pattern(optimised.pattern, lasts=lasts)
    types = {f.name: scalar_type(f.type) for f in events}
    plan = _checked(plan, types, query)
    needed = _needed(plan, options)
    if not open_schema:
        _refuse_missing(plan, bound, events, options)
    form = MatchForm(
        query.name,
        query.columns,
        options,
        fingerprint(bound.pattern, bound.output),
        events,
        bound.output,
        _deadline(plan),
        plan.absent,
        *_in_chains(plan, query),
    )
    found = {name: types[name] for name in needed if name in types}
    lateness = lateness_of(options, domain)
    prepared = Prepared(bound, optimised, plan, form, options, domain, lateness, needed, found)
    if isinstance(plan, SuccessionPlan):
        totals = running_totals(plan, bound.output, options, events, types)
        return replace(prepared, chain=chain_of(plan, options), totals=totals)
    return prepared


def time_domain(events: pa.Schema, options: Options) -> TimeDomain:
    """How the time column counts, from its type."""
    where = events.get_field_index(options.end_column)
    if where < 0:
        raise DataError.of(
            "unknown-column",
            f"the events have no time column `{options.end_column}`",
            help=did_you_mean(options.end_column, events.names)
            or f"name it with time=; columns: {', '.join(events.names)}",
        )
    kind = events.field(where).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise DataError.of(
            "bad-time-column",
            f"the time column `{options.end_column}` holds {kind}, not integers or timestamps",
            help="name the right column with time=, or cast it to timestamps or integer ticks",
        )
    return TimeDomain(pa.types.is_timestamp(kind), options.tick_us)


def lateness_of(options: Options, domain: TimeDomain) -> int:
    """The allowed lateness in the time column's unit."""
    return in_time_unit(options.lateness, "lateness", domain)


def in_time_unit(given: int | str | timedelta, option: str, domain: TimeDomain) -> int:
    """A duration that an option gives, in the time column's unit."""
    if isinstance(given, int):
        return given
    micro = parse_duration(given, option) or 0
    if domain.is_timestamp:
        return micro
    return domain.resolve(micro, "us")


def costs_of(options: Options) -> NextCosts | None:
    """The cost model over the statistics that the options give; None without any."""
    known = with_statistics(options).statistics
    return None if known is None else NextCosts(known, cast(Mode, options.plan.costs))


def with_statistics(options: Options) -> Options:
    """The options with the statistics themselves in place of their path, which workers lack."""
    given = options.statistics
    if not isinstance(given, str | Path):
        return options
    return replace(options, statistics=load_statistics(given))


def plan_pattern(pattern: Pattern, *, lasts: bool = False) -> SequencePlan | SuccessionPlan:
    """The plan for a closed pattern: of successors where it has any, else of a sequence.

    Events that last are run as successors even if there is but one: sequences know instants only.
    """
    if lasts or is_succession(pattern):
        return plan_succession(pattern)
    return plan_sequence(pattern)


def _in_chains(
    plan: SequencePlan | SuccessionPlan, query: Query
) -> tuple[frozenset[str], tuple[int, ...]]:
    """Which variables are iterated, and what the columns' variables are called in chains."""
    if isinstance(plan, SequencePlan):
        return frozenset(), ()
    numbers = {component.variable: n for n, component in enumerate(plan.components)}
    return plan.iterated, tuple(numbers[name] for name in query.columns)


def _deadline(plan: SequencePlan | SuccessionPlan) -> int | None:
    if isinstance(plan, SuccessionPlan) or not plan.ends_at_deadline:
        return None
    return next(n.reach for n in plan.negations if n.place is Place.END)


def _checked(
    plan: SequencePlan | SuccessionPlan, types: Mapping[str, ScalarType], query: Query
) -> SequencePlan | SuccessionPlan:
    """Every predicate typed against the columns; ISO texts compared with times become times.

    Where what is undefined is false, so are atoms whose types never fit: a warning tells of them.
    """

    def checked(expression: Expression) -> Expression:
        of = {
            (variable, name): types.get(name, ScalarType.UNKNOWN)
            for variable, name in attributes(expression)
        }
        if plan.absent is not Absent.FALSE:
            check_predicate(expression, of, query.source)
            return coerce(expression, of)
        decided, problems = decide(expression, of, query.source)
        told.update(dict.fromkeys(problems))
        return coerce(decided, of)

    def each(expression: Expression) -> Expression:
        return conjunction([checked(part) for part in conjuncts(expression)])

    told: dict[Diagnostic, None] = {}
    if isinstance(plan, SuccessionPlan):
        found: SequencePlan | SuccessionPlan = plan.checked(checked)
    else:
        negations = (replace(n, test=each(n.test), joint=each(n.joint)) for n in plan.negations)
        found = replace(
            plan,
            components=tuple(replace(c, test=each(c.test)) for c in plan.components),
            negations=tuple(negations),
            joint=tuple(checked(test) for test in plan.joint),
        )
    for problem in told:
        text = problem.render().removeprefix(f"{problem.severity}[{problem.code}]: ")
        warnings.warn(f"never true: {text}", MismatchWarning, stacklevel=2)
    return found


def _tests(plan: SequencePlan | SuccessionPlan) -> list[Expression]:
    tests = [c.test for c in plan.components] + [n.test for n in plan.negations]
    return [*tests, *(n.joint for n in plan.negations), *plan.joint]


def _needed(plan: SequencePlan | SuccessionPlan, options: Options) -> tuple[str, ...]:
    names = {name for test in _tests(plan) for _, name in attributes(test)}
    return tuple(sorted(names))


def _refuse_missing(
    plan: SequencePlan | SuccessionPlan, bound: Query, events: pa.Schema, options: Options
) -> None:
    columns = [*_tests(plan), *(e for _, e in (bound.output.attributes if bound.output else ()))]
    types_of = {component.variable: component.types for component in plan.components}
    types_of |= {negation.variable: negation.types for negation in plan.negations}
    for expression in columns:
        for variable, name in sorted(attributes(expression)):
            if events.get_field_index(name) >= 0 or _declared_without(
                types_of[variable], name, options
            ):
                continue
            raise _missing(name, variable, expression, events, bound)
    for what, column in (("type", options.type), ("id", options.id)):
        if column is not None and events.get_field_index(column) < 0:
            raise DataError.of(
                "unknown-column",
                f"the events have no column `{column}`",
                help=did_you_mean(column, events.names)
                or f"name the {what} column with {what}=; columns: {', '.join(events.names)}",
            )


def _declared_without(types: tuple[str, ...], name: str, options: Options) -> bool:
    """Whether types= says that none of these event types has the attribute."""
    declared = [options.attributes_of(t) for t in types]
    return bool(declared) and all(d is not None and name not in d for d in declared)


def _missing(
    name: str, variable: str, expression: Expression, events: pa.Schema, bound: Query
) -> DataError:
    place = next(
        (p.span for p in walk(expression) if p == Attribute(variable, name) and p.span), None
    )
    return DataError(
        Diagnostic(
            "unknown-column",
            f"the events have no column `{name}`",
            place,
            f"needed for `{variable}`",
            help=did_you_mean(name, events.names) or f"columns: {', '.join(events.names)}",
            source=bound.source,
        )
    )
