"""All stages of a program, made ready for events of one schema: what Spark hosts plan with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.algebra.expression import Aggregate, Attribute, Every, Expression, Previous, walk
from cepheid.algebra.query import Query
from cepheid.hosts.set_aside import event_times
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.planner.columns import from_arrow
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.match_schema import MatchForm
from cepheid.planner.prepare import Prepared, prepare
from cepheid.planner.sequence_plan import Component, Negation


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """The queries to run, inputs first; `form` is that of the last one's matches."""

    stages: tuple[Prepared, ...]
    form: MatchForm
    options: Options

    @property
    def is_chained(self) -> bool:
        """Whether a query reads events that another one derives."""
        return len(self.stages) > 1

    def components(self) -> Iterator[Component | Negation]:
        """Every positive and negated component of every stage."""
        for stage in self.stages:
            yield from stage.plan.components
            yield from stage.plan.negations

    @property
    def types(self) -> tuple[str, ...] | None:
        """The event types that matter; None when events of any type do."""
        every = [component.types for component in self.components()]
        if not all(every):
            return None
        return tuple(sorted({name for types in every for name in types}))

    @property
    def lateness(self) -> int:
        """The allowed lateness in the time column's unit."""
        return self.stages[0].lateness

    def columns(self, events: pa.Schema) -> tuple[str, ...]:
        """The columns that must reach the engine, in the events' order.

        A match carries whole events, and without an id column an event is known by all it holds, so
        columns can be left behind only if the query says what it returns and events have ids.
        """
        options, output = self.options, self.form.output
        if output is None or options.id is None:
            return tuple(events.names)
        needed = {options.type, options.start, options.end_column, options.id}
        for stage in self.stages:
            needed.update(stage.needed_columns)
            derived = stage.query.output
            for _, expression in derived.attributes if derived else ():
                needed.update(_attribute_names(expression))
        return tuple(name for name in events.names if name in needed)


def prepare_program(
    query: CompiledQuery, options: Options, events: pa.Schema, *, open_schema: bool = False
) -> PreparedProgram:
    """Bind, check and plan every stage; all that is wrong with columns and options is told here."""
    stages = query.stages(options)
    known: list[Prepared] = []
    schema = events
    for stage in stages:
        prepared = prepare(
            stage,
            options,
            schema,
            open_schema=open_schema or len(stages) > 1,
            known_parameters=query.parameters,
        )
        known.append(prepared)
        if stage is not stages[-1]:
            schema = _with_derived(schema, prepared.form, stage, options)
    _check_columns(events, options)
    for prepared in known:
        for name in prepared.needed_columns:
            if schema.get_field_index(name) >= 0:  # refuses types that queries cannot compare
                from_arrow(_no_rows(schema.field(name).type), null_is_absent=True, name=name)
    return PreparedProgram(tuple(known), known[-1].form, options)


def _check_columns(events: pa.Schema, options: Options) -> None:
    """Refuse a time or type column of a wrong type before any row is read."""
    event_times(pa.RecordBatch.from_pylist([], schema=events), options)
    where = events.get_field_index(options.type)
    if where < 0:
        return  # `prepare` has told, unless events come from tables by type
    kind = events.field(where).type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_a = pa.types
    if not (
        is_a.is_string(value)
        or is_a.is_large_string(value)
        or is_a.is_string_view(value)
        or is_a.is_integer(value)
        or is_a.is_null(value)
    ):
        raise DataError.of(
            "bad-type-column",
            f"the type column `{options.type}` holds {kind}, not names of event types",
            help="name the right column with type=, or cast it to strings",
        )


def _no_rows(kind: Any) -> Any:
    return pa.array([], kind)


def _with_derived(events: pa.Schema, form: MatchForm, stage: Query, options: Options) -> pa.Schema:
    """The columns the next stage may see: what a derived event brings stands behind the others."""
    names = [name for name, _ in (stage.output.attributes if stage.output else ())]
    fields = list(events)
    for name in names:
        if events.get_field_index(name) < 0:
            fields.append(form.schema.field(name))
    if options.id is not None and events.get_field_index(options.id) < 0:
        fields.append(pa.field(options.id, pa.string()))
    return pa.schema(fields)


def _attribute_names(expression: Expression) -> Iterator[str]:
    for part in walk(expression):
        if isinstance(part, Attribute | Previous | Every | Aggregate) and part.name is not None:
            yield part.name
