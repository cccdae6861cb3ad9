"""`explain`: what a query means, how it will run and why, read off the plan that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.algebra.expression import (
    Absent,
    Apart,
    Duration,
    Expression,
    ScalarType,
    attributes,
    conjuncts,
    variables,
)
from cepheid.algebra.expression import walk as walk_expression
from cepheid.algebra.expression_text import expression_text
from cepheid.algebra.node_expressions import node_expressions
from cepheid.algebra.pattern import Pattern, walk
from cepheid.algebra.query import Query
from cepheid.algebra.text import to_text
from cepheid.kernels.multi_source import MultiShape, multi_source
from cepheid.kernels.nfa_source import nfa_source
from cepheid.kernels.sequence_source import sequence_source
from cepheid.model.catalogue import AttributeType, Catalogue
from cepheid.model.errors import OptionError, QueryError
from cepheid.model.event_time import duration_text
from cepheid.model.options import Options
from cepheid.planner.estimates import estimate_sequence
from cepheid.planner.explain_succession import succession_lines
from cepheid.planner.kernel_expression import is_native
from cepheid.planner.prepare import Prepared, prepare
from cepheid.planner.sequence_layout import Layout, Probe, lay_out
from cepheid.planner.sequence_plan import (
    Negation,
    Place,
    SequencePlan,
    find_key,
    rest_of_joint,
)
from cepheid.statistics.event_statistics import EventStatistics

if TYPE_CHECKING:
    from cepheid.planner.compiled_query import CompiledQuery

_ARROW: dict[AttributeType, pa.DataType] = {
    AttributeType.BOOL: pa.bool_(),
    AttributeType.INT: pa.int64(),
    AttributeType.FLOAT: pa.float64(),
    AttributeType.STRING: pa.string(),
    AttributeType.TIMESTAMP: pa.timestamp("us", "UTC"),
}


def explain(
    compiled: CompiledQuery,
    options: Options,
    schema: pa.Schema | None = None,
    statistics: EventStatistics | None = None,
) -> str:
    """Algebra, plan, places of predicates, state and warnings of a query and its inputs, as text.

    Without a schema the columns' types are taken from `types=` and the statistics as far as they
    tell them.
    """
    if statistics is not None and options.statistics is None:
        options = replace(options, statistics=statistics)
    stages = compiled.stages(options)
    blocks = [
        "\n".join(_stage(compiled, stage, options, schema, statistics)).rstrip() for stage in stages
    ]
    found = compiled.warnings(options)
    if found:
        blocks.append("\n".join(("Remarks on the text", *_indented(d.render() for d in found))))
    return "\n\n".join(blocks) + "\n"


def _stage(
    compiled: CompiledQuery,
    query: Query,
    options: Options,
    schema: pa.Schema | None,
    statistics: EventStatistics | None,
) -> Iterator[str]:
    yield f"Query {query.name} ({query.language})"
    if query.output is not None:
        names = ", ".join(name for name, _ in query.output.attributes)
        yield f"  returns events of type {query.output.type} with {names}"
    yield ""
    yield "Algebra"
    yield from _indented([to_text(query.pattern, multiline=True)])
    missing = [name for name in compiled.parameters if name not in options.params]
    if missing:
        yield ""
        yield "Plan"
        yield f"  needs values for {', '.join(f':{name}' for name in missing)} (params=)"
        return
    events = schema or _assumed_schema(query, options, statistics, compiled.program.catalogue)
    open_schema = schema is None or query.name != compiled.stages(options)[0].name
    try:
        prepared = prepare(
            query,
            options,
            events,
            open_schema=open_schema,
            known_parameters=compiled.parameters,
        )
    except QueryError as problem:
        if problem.code != "no-kernel":
            raise
        yield ""
        yield "Plan"
        yield f"  none: {problem.message}"
        return
    yield ""
    yield f"Optimised, bound to {_time_words(prepared, schema is None)}"
    yield from _indented([to_text(prepared.optimised.pattern, multiline=True)])
    rules = ", ".join(dict.fromkeys(step.rule for step in prepared.optimised.trace))
    yield f"  by {rules}" if rules else "  no rewrite applies"
    yield ""
    if not isinstance(prepared.plan, SequencePlan):
        layout_of = prepared.succession(prepared.column_types)
        may_last = query.name != compiled.stages(options)[0].name
        yield from succession_lines(prepared, layout_of, may_last=may_last)
        return
    layout = lay_out(
        prepared.plan,
        lambda name: prepared.column_types.get(name, ScalarType.UNKNOWN),
        options.plan,
    )
    yield from _Plan(prepared, layout, is_assumed=schema is None).lines()
    if statistics is not None:
        yield ""
        yield from _estimates(prepared, prepared.plan, statistics)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in "\n".join(lines).split("\n"):
        yield f"  {line}".rstrip()


def _time_words(prepared: Prepared, is_assumed: bool) -> str:
    kind = "timestamps in microseconds" if prepared.domain.is_timestamp else "integer ticks"
    return f"{kind}{', assumed' if is_assumed else ''}"


def assumed_schema(queries: Sequence[CompiledQuery], options: Options) -> pa.Schema:
    """What the planner needs to plan several queries over events that nobody has seen yet."""
    known = options.statistics if isinstance(options.statistics, EventStatistics) else None
    stages = [(query, stage) for query in queries for stage in query.stages(options)]
    found = [
        _assumed_schema(stage, options, known, query.program.catalogue) for query, stage in stages
    ]
    name = options.end_column
    times = [schema.field(name).type for schema in found]
    time = next((kind for kind in times if pa.types.is_timestamp(kind)), pa.int64())
    same = [s.set(s.get_field_index(name), pa.field(name, time)) for s in found]
    return pa.unify_schemas(same, promote_options="permissive") if same else pa.schema([])


def _assumed_schema(
    query: Query,
    options: Options,
    statistics: EventStatistics | None,
    registered: Catalogue,
) -> pa.Schema:
    """The least the planner needs: a type, a time, and whatever is known of other columns."""
    if statistics is not None:
        is_timestamp = statistics.time_unit == "us"
    else:
        is_timestamp = options.tick is None and _has_unit(query.pattern)
    kinds: dict[str, AttributeType] = {}
    declared = Catalogue.from_option(options.types).types.values()
    for event_type in (*declared, *registered.types.values()):
        for name, kind in event_type.attributes.items():
            kinds[name] = kinds[name].merge(kind) if name in kinds else kind
    for each in statistics.types.values() if statistics else ():
        for name, attribute in each.attributes.items():
            kinds.setdefault(name, AttributeType(attribute.type))
    fields = {name: _ARROW[kind] for name, kind in kinds.items() if kind in _ARROW}
    fields[options.type] = pa.string()
    fields[options.end_column] = pa.timestamp("us", "UTC") if is_timestamp else pa.int64()
    return pa.schema(list(fields.items()))


def _has_unit(pattern: Pattern) -> bool:
    windows = [getattr(node, "window", None) for node in walk(pattern)]
    windows += [
        part.window
        for node in walk(pattern)
        for expression in node_expressions(node)
        for part in walk_expression(expression)
        if isinstance(part, Apart)
    ]
    return any(isinstance(each, Duration) and each.unit is not None for each in windows)


class _Plan:
    """The plan's section: every line states a fact of the layout."""

    def __init__(self, prepared: Prepared, layout: Layout, *, is_assumed: bool) -> None:
        assert isinstance(prepared.plan, SequencePlan)
        self.prepared = prepared
        self.plan = prepared.plan
        self.layout = layout
        self.options = prepared.options
        self.is_assumed = is_assumed

    def lines(self) -> Iterator[str]:
        yield "Plan"
        rows = [
            ("path", self._path()),
            ("key", self._key()),
            ("window", self._window()),
            ("output", self._output()),
            ("state", self._state()),
            ("final", self._finality()),
            ("columns", self._columns()),
        ]
        for name, text in rows:
            yield f"  {name:<9}{text}"
        yield ""
        yield "Where each condition runs"
        yield from self._table(self._conditions())
        doubts = list(self._warnings())
        if doubts:
            yield ""
            yield "Warnings"
            yield from (f"  - {doubt}" for doubt in doubts)

    def _table(self, rows: list[tuple[str, str]]) -> Iterator[str]:
        widest = min(44, max((len(left) for left, _ in rows), default=0))
        for left, right in rows:
            yield f"  {left:<{widest}}  {right}"

    def duration(self, amount: int) -> str:
        return duration_text(amount, is_timestamp=self.prepared.domain.is_timestamp)

    def _path(self) -> str:
        digest = blake2b(self._source().encode(), digest_size=4).hexdigest()
        how = {
            "stacks": "Active Instance Stacks",
            "nfa": "run-time stack of an NFA (forced)",
            "multi": "stacks for each key attribute (forced)",
        }[self.layout.scan]
        events = f"{self.plan.length} event" + ("s" if self.plan.length > 1 else "")
        return f"compiled kernel {digest}: {how}, {events} per match"

    def _source(self) -> str:
        shape = self.layout.shape
        match self.layout.scan:
            case "nfa":
                return nfa_source(shape)
            case "multi":
                return multi_source(MultiShape(shape, self.layout.families))
            case _:
                return sequence_source(shape)

    def _key(self) -> str:
        key = self.layout.key
        if key is not None:
            columns = [
                " = ".join(f"{variable}.{names[column]}" for variable, names in key.of.items())
                for column in range(key.width)
            ]
            return "; ".join(columns)
        if self.layout.scan == "nfa":
            return "none: an NFA's run-time stack has no partitions"
        if self.options.plan.partition == "none":
            return "none: switched off by the plan option partition"
        if self.plan.length == 1 and not self.plan.negations:
            return "none: one event needs no partner"
        if find_key(self.plan) is None:
            return "none: no attribute is equal in all events of a match"
        return "none: the compared columns have different types, or the plan options leave it out"

    def _window(self) -> str:
        if self.plan.window is None:
            return "none"
        shape = self.layout.shape
        places = [
            name
            for name, used in (
                ("scan", shape.window_in_scan),
                ("construction", shape.window_in_construction),
            )
            if used and self.plan.length > 1
        ]
        where = f"; tested in {' and '.join(places)}" if places else ""
        return f"last - first < {self.duration(self.plan.window)}{where}"

    def _output(self) -> str:
        if self.layout.shape.factorised:
            return "factorised: matches that differ in their first event only are one entry"
        return f"flat: {self._why_flat()}"

    def _why_flat(self) -> str:
        shape, plan, first = self.layout.shape, self.plan, self.plan.components[0].variable
        reasons = (
            (plan.length == 1, "one event per match"),
            (self.layout.scan != "stacks", "the forced kernel visits each sequence"),
            (not self.options.plan.factorised, "switched off by the plan option factorised"),
            (self.options.plan.counting, "the plan option counting visits each sequence"),
            (plan.arrival_order, "ties are ordered by arrival"),
            (bool(self.layout.selection), "a condition is tested on whole matches"),
            (bool(self.layout.probes), "a negation is decided for each match"),
            (bool(shape.before_first), f"what precedes `{first}` is checked for each match"),
            (bool(shape.between and shape.between[0]), f"a negation follows `{first}`"),
            (bool(shape.joint[0]), f"a condition compares `{first}` with later events"),
            (bool(shape.joint[-1]), "conditions are tested on the complete sequence"),
            (not shape.window_in_scan, "the window is not used in the scan"),
            (not shape.window_in_construction, "the window is not used in construction"),
        )
        return next((reason for holds, reason in reasons if holds), "the plan's shape asks for it")

    def _state(self) -> str:
        retention = self.plan.retention
        if retention is None:
            return "unbounded: every relevant event is kept, there is no WITHIN"
        if self.plan.length == 1 and not self.plan.negations:
            return "the events of the current instant, so that equal ones are told apart"
        limit = self.options.limits.live_events
        return (
            f"relevant events of the last {self.duration(retention)} before the watermark, "
            f"at most {limit:,}"
        )

    def _finality(self) -> str:
        if self.plan.is_monotone:
            return "a match leaves with its last event"
        if any(n.place is Place.END for n in self.plan.negations):
            reach = max(n.reach for n in self.plan.negations if n.place is Place.END)
            return (
                f"a match leaves when the watermark is {self.duration(reach)} past its first event"
            )
        return "a match leaves when the watermark has reached its last event"

    def _columns(self) -> str:
        options, types = self.options, self.prepared.column_types
        known = [f"{options.type} (event type)", f"{options.end_column} (time)"]
        for name in self.prepared.needed_columns:
            kind = types.get(name, ScalarType.UNKNOWN)
            known.append(f"{name} ({kind.value if kind is not ScalarType.UNKNOWN else 'any type'})")
        return ", ".join(dict.fromkeys(known))

    def _conditions(self) -> list[tuple[str, str]]:
        rows: list[tuple[str, str]] = []
        for bit, component in enumerate(self.plan.components):
            rows.append((f"{component.variable} is {_types(component.types)}", "type codes"))
            rows += [(expression_text(t), self._own(bit, t)) for t in conjuncts(component.test)]
        rows += [(expression_text(test), self._joint(test)) for test in self.plan.joint]
        for number, negation in enumerate(self.plan.negations):
            bit = self.plan.length + number
            probe = next((p for p in self.layout.probes if p.bit == bit), None)
            rows.append(
                (f"no {negation.variable}, {_types(negation.types)}", self._place(negation))
            )
            rows += [
                (f"  {expression_text(t)}", self._own(bit, t)) for t in conjuncts(negation.test)
            ]
            rows += [
                (f"  {expression_text(t)}", self._against(negation, probe, t))
                for t in conjuncts(negation.joint)
            ]
            rows.append(("", self._decided(negation, probe)))
        return rows

    def _own(self, bit: int, test: Expression) -> str:
        as_column = any(b == bit and t == test for b, _, t in self.layout.bit_tests)
        if bit < self.plan.length and self.plan.length > 1 and not self.options.plan.simple_in_scan:
            return "on the complete sequence (forced)"
        if not as_column:
            return "in the kernel, before the event is stored"
        if is_native(test, self.layout_type) and not self._on_strings(test):
            return "as a column, before the kernel (the negation is decided outside it)"
        return "as a column, before the kernel (strings)"

    def _joint(self, test: Expression) -> str:
        key = self.layout.key
        if key is not None and test in key.tests:
            return "by the key"
        if test in self.layout.selection:
            return "on whole matches, as columns (no kernel form for these strings)"
        if self.options.plan.predicates == "selection":
            return "in the kernel, on the complete sequence (forced)"
        first = min(variables(test), key=self.plan.index)
        return f"in the kernel, in construction, when `{first}` is reached"

    def _against(self, negation: Negation, probe: Probe | None, test: Expression) -> str:
        if probe is not None and test in probe.pair_tests:
            return "on pairs of match and witness, as columns"
        is_keyed = probe is None or probe.key_group is not None
        left = rest_of_joint(negation, self.layout.key if is_keyed else None)
        return "in the probe's kernel" if test in left else "by the key"

    def _place(self, negation: Negation) -> str:
        names = [component.variable for component in self.plan.components]
        match negation.place:
            case Place.MIDDLE:
                return f"between {names[negation.after]} and {names[negation.after + 1]}"
            case Place.START:
                reach = self.duration(negation.reach)
                return f"less than {reach} before {names[-1]}, and before {names[0]}"
            case Place.END:
                word = "at most" if negation.closed else "less than"
                return f"after {names[-1]}, {word} {self.duration(negation.reach)} after {names[0]}"

    def _decided(self, negation: Negation, probe: Probe | None) -> str:
        if probe is None:
            return "decided in the kernel, by the latest witness"
        witnesses = "of the same key" if probe.key_group is not None else "of every key"
        when = "when its time is over" if negation.place is Place.END else "after construction"
        return f"decided {when}, by a search among the witnesses {witnesses}"

    def layout_type(self, variable: str, name: str) -> ScalarType:
        return self.prepared.column_types.get(name, ScalarType.UNKNOWN)

    def _on_strings(self, test: Expression) -> bool:
        return any(self.layout_type(v, n) is ScalarType.STRING for v, n in attributes(test))

    def _warnings(self) -> Iterator[str]:
        if self.is_assumed and self.prepared.needed_columns:
            yield "the events' columns are not known: their types may change where conditions run"
        if self.plan.retention is None:
            yield "without WITHIN the state grows with the stream: nothing ever becomes too old"
        used = set(self.prepared.needed_columns)
        if self.options.types is None and used and self.plan.absent is Absent.TRUE:
            yield (
                "a null counts as an attribute that the event does not have, and a test of it "
                "holds; types= tells which attributes each type has"
            )
        if self.layout.key is not None:
            yield (
                "an event that lacks a key attribute makes the query run without the key from "
                "then on: right, but slower"
            )
        elif self.plan.length > 1:
            yield "no key: on a Spark stream one task does all the work"


def _types(names: tuple[str, ...]) -> str:
    return " or ".join(names) if names else "of any type"


def _estimates(
    prepared: Prepared, plan: SequencePlan, statistics: EventStatistics
) -> Iterator[str]:
    is_timestamp = prepared.domain.is_timestamp
    yield "Estimates, from the statistics"
    if is_timestamp != (statistics.time_unit == "us"):
        raise OptionError.of(
            "other-time-unit",
            "the statistics count time in another unit than the events",
            help="analyze these events anew",
        )
    estimate = estimate_sequence(plan, statistics)
    unit, name = (1_000_000, "s") if is_timestamp else (1, "tick")
    for each in estimate.components:
        rate, passing = each.rate * unit, each.passing * unit
        yield (
            f"  {each.variable:<9}{_figure(rate)} events/{name}, "
            f"{_figure(passing)} of them pass its own tests"
        )
    span = statistics.span
    if plan.negations:
        yield (
            f"  {'sequences':<9} {_figure(estimate.candidates * unit)} per {name} "
            f"before the negations, {_figure(estimate.candidates * span)} in the whole span"
        )
    yield (
        f"  {'matches':<9}{_figure(estimate.matches * unit)} per {name}, "
        f"{_figure(estimate.matches * span)} in the whole span of "
        f"{duration_text(span, is_timestamp=is_timestamp)}"
    )
    live = "grows for ever" if estimate.live_events is None else _figure(estimate.live_events)
    yield f"  {'state':<9}{live}{'' if estimate.live_events is None else ' events'}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
