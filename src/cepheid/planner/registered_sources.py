"""How the records of registered sources become events: which columns, which times (NEXT, 3.5).

The paper's sources have a wrapper "that translates their internal event representation to the one
prescribed by their schema". Here it is data: `Registrations` says what an event column is made of,
and hosts make it, each in its own way (hosts.registered_events, hosts.spark_registered). What comes
out is what every host takes anyway: tables of events, and options that name their columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from cepheid.algebra.pattern import Atom, walk
from cepheid.model.catalogue import AttributeType, Catalogue, Source, attribute_type
from cepheid.model.diagnostics import Diagnostic, SourceText, did_you_mean
from cepheid.model.errors import CepheidError, DataError, QueryError
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import Options, make_options
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.events_schema import schema_of


@dataclass(frozen=True, slots=True)
class Part:
    """One column of records, and the sources for which an event column is made of it.

    A time is moved by the clock error of its source, `sign` times.
    """

    own: str
    sources: tuple[str, ...]
    sign: int = 0


@dataclass(frozen=True, slots=True)
class Registrations:
    """What a text's registered sources make of records.

    `given` are the options as they tell of the records, `options` as they tell of the events. The
    query that is asked for reads the sources `read`. `texts` say where each source is registered.
    """

    catalogue: Catalogue
    given: Options
    options: Options
    read: frozenset[str]
    texts: Mapping[str, SourceText]

    @property
    def sources(self) -> Mapping[str, Source]:
        """The registered sources by name."""
        return self.catalogue.sources

    def schema_of(self, source: str) -> Mapping[str, AttributeType]:
        """The fields of a source's events with their types."""
        return self.catalogue.types[source].attributes

    def only_source(self) -> str | None:
        """The one source that there is; records need not tell it then."""
        return next(iter(self.sources)) if len(self.sources) == 1 else None

    def event_columns(self, sources: Iterable[str]) -> dict[str, tuple[Part, ...]]:
        """The columns of the sources' events but their type, and what each is made of."""
        names = tuple(sources)
        options = self.options
        columns: dict[str, dict[tuple[str, int], list[str]]] = {}

        def note(column: str, own: str, source: str, sign: int = 0) -> None:
            columns.setdefault(column, {}).setdefault((own, sign), []).append(source)

        for name in names:
            source = self.sources[name]
            start, end = _record_times(source, self.given)
            moved = source.clock_error is not None
            if options.start is not None:
                note(options.start, start, name, -1 if moved else 0)
            note(options.end_column, end, name, 1 if moved else 0)
            for field in self.schema_of(name):
                if field not in (options.start, options.end_column):
                    note(field, source.own_name(field), name)
            if options.id is not None and options.id not in self.schema_of(name):
                note(options.id, options.id, name)
        return {
            column: tuple(
                part
                for (own, sign), users in made_of.items()
                for part in self._by_error(own, sign, users)
            )
            for column, made_of in columns.items()
        }

    def _by_error(self, own: str, sign: int, users: list[str]) -> Iterable[Part]:
        """Sources whose clocks are off by the same are one part."""
        groups: dict[object, list[str]] = {}
        for name in users:
            error = self.sources[name].clock_error if sign else None
            groups.setdefault(error, []).append(name)
        return (Part(own, tuple(each), sign) for each in groups.values())

    def clock_error(self, part: Part, kind: pa.DataType) -> int:
        """How far the times of a part are moved, in the time column's unit."""
        source = self.sources[part.sources[0]]
        if not part.sign or source.clock_error is None:
            return 0
        amount, unit = source.clock_error
        domain = TimeDomain(pa.types.is_timestamp(kind), self.given.tick_us)
        try:
            # The shortest decimal that means this float is what was written, as in windows.
            return part.sign * domain.resolve(Fraction(repr(amount)), unit)
        except QueryError as problem:
            said = problem.message.replace("the window", f"the clock error of `{source.name}`")
            help = (problem.help or "").replace("the window", "the clock error")
            help = help.replace("WITHIN 10 s", "clock error 10 ms")
            raise QueryError.of(problem.code, said, help=help or None) from None

    def event_schema(
        self, records: pa.Schema, sources: Collection[str], *, is_open: bool = False
    ) -> pa.Schema:
        """The columns of the events that records of the sources become, their type left out.

        Refuses records that lack a column or hold another type than the source's schema says. With
        `is_open` a field may be missing, since records that are dicts bring what they have.
        """
        for name in sources:
            self._check(self.sources[name], records, is_open)
        found: list[pa.Field] = []
        for column, parts in self.event_columns(sources).items():
            kinds = [
                self._event_type(column, part, records.field(part.own).type)
                for part in parts
                if records.get_field_index(part.own) >= 0
            ]
            if kinds:
                found.append(pa.field(column, _common_type(kinds, column)))
        return pa.schema(found)

    def _event_type(self, column: str, part: Part, kind: pa.DataType) -> pa.DataType:
        if column in (self.options.start, self.options.end_column):
            return _time_type(kind)
        wanted = self.schema_of(part.sources[0]).get(column)
        is_whole = attribute_type(kind) is AttributeType.INT
        return pa.float64() if wanted is AttributeType.FLOAT and is_whole else kind

    def described(self, records: Any) -> pa.Schema:
        """The columns of the events of records in any form, by source or not, unread."""
        if isinstance(records, Mapping) and not isinstance(records.get(self.given.type), str):
            strange = next((name for name in records if name not in self.sources), None)
            if strange is not None:
                raise self.unknown_source(strange)
            parts = [self.event_schema(schema_of(each), [name]) for name, each in records.items()]
        else:
            schema = schema_of([records] if isinstance(records, Mapping) else records)
            only = self.only_source()
            by_type = only is None or self.given.type in schema.names
            names = self.participants(schema) if by_type or only is None else (only,)
            parts = [self.event_schema(schema, names)]
        return pa.unify_schemas(
            [pa.schema([(self.options.type, pa.string())]), *parts], promote_options="permissive"
        )

    def participants(self, records: pa.Schema) -> tuple[str, ...]:
        """The sources of which one table may hold records.

        What the query reads must be there; another source takes part if its columns are there.
        """
        names = set(records.names)
        return tuple(
            name
            for name, source in self.sources.items()
            if name in self.read
            or names.issuperset(
                (
                    *_record_times(source, self.given),
                    *(source.own_name(field) for field in self.schema_of(name)),
                )
            )
        )

    def _check(self, source: Source, records: pa.Schema, is_open: bool) -> None:
        times = set(_record_times(source, self.given))
        fields = self.schema_of(source.name)
        wanted = {source.own_name(field): kind for field, kind in fields.items()}
        for own in dict.fromkeys((*times, *wanted)):
            if records.get_field_index(own) < 0:
                if not is_open:
                    raise self._missing(source, own, records.names)
                continue
            kind = records.field(own).type
            if own in times:
                _time_type(kind, self._wrong(source, own, kind, "a time: timestamps or integers"))
            if own in wanted and not _fits(wanted[own], kind):
                raise self._wrong(source, own, kind, wanted[own].value)

    def missing_time(self, records: Collection[str]) -> DataError:
        """The error for records none of which has a time."""
        source = next(iter(self.sources.values()))
        return self._missing(source, _record_times(source, self.given)[1], records)

    def unknown_source(self, name: object) -> DataError:
        """The error for events that are given by the name of no source."""
        known = list(self.sources)
        return DataError.of(
            "unknown-source",
            f"events are given for `{name}`, and the query registers no such source",
            help=did_you_mean(str(name), known) or f"sources: {', '.join(known)}",
        )

    def _missing(self, source: Source, own: str, known: Collection[str]) -> DataError:
        return self._told(
            source,
            own,
            Diagnostic(
                "unknown-column",
                f"the records of the source `{source.name}` have no column `{own}`",
                label="not a column of the records",
                help=did_you_mean(own, known) or f"columns: {', '.join(known)}",
            ),
        )

    def _wrong(self, source: Source, own: str, kind: pa.DataType, wanted: str) -> DataError:
        return self._told(
            source,
            own,
            Diagnostic(
                "wrong-type",
                f"the column `{own}` of the source `{source.name}` holds {kind}, not {wanted}",
                label=f"the records hold {kind}",
                help="change the schema, or cast the column",
            ),
        )

    def _told(self, source: Source, own: str, problem: Diagnostic) -> DataError:
        span = source.places.get(own)
        if span is None:  # a time column that an option names, or the default
            return DataError(replace(problem, label=""))
        return DataError(replace(problem, span=span, source=self.texts[source.name]))


def registrations_of(query: CompiledQuery, options: Options) -> Registrations | None:
    """What a query's text registers; None when it registers no source."""
    catalogue = query.program.catalogue
    if not catalogue.sources:
        return None
    atoms = (node for stage in query.stages(options) for node in walk(stage.pattern))
    read = {name for atom in atoms if isinstance(atom, Atom) for name in atom.types}
    texts = dict.fromkeys(catalogue.sources, query.source)
    return Registrations(
        catalogue, options, event_options(catalogue, options), frozenset(read), texts
    )


def event_options(catalogue: Catalogue, given: Options) -> Options:
    """The options with the names that the columns of type and time have in the events."""
    sources = catalogue.sources.values()
    lasting = given.start is not None or any(
        len(source.time) > 1 or source.clock_error is not None for source in sources
    )

    def free(name: str, of_records: int | None) -> str:
        """The name, unless a field that is something else has it."""
        while any(
            name in catalogue.types[source.name].attributes
            and (
                of_records is None
                or source.clock_error is not None
                or source.own_name(name) != _record_times(source, given)[of_records]
            )
            for source in sources
        ):
            name = f"_{name}"
        return name

    chosen = {each.name: getattr(given, each.name) for each in fields(Options)}
    chosen["type"] = free(given.type, None)
    if lasting:
        chosen["start"] = free(given.start or "start", 0)
        chosen["end"] = free(given.end or "end", 1)
    else:
        chosen["time"] = free(given.time, 1)
    return make_options(chosen)


def _record_times(source: Source, given: Options) -> tuple[str, str]:
    """The records' columns of start and end, which are one for instants."""
    if source.time:
        return source.time[0], source.time[-1]
    return given.start or given.time, given.end_column


def _fits(wanted: AttributeType, kind: pa.DataType) -> bool:
    """Whether a column holds what a schema says; whole numbers are numbers, nulls are anything."""
    found = attribute_type(kind)
    if AttributeType.UNKNOWN in (wanted, found) or found is wanted:
        return True
    return wanted is AttributeType.FLOAT and found is AttributeType.INT


def _time_type(kind: pa.DataType, wrong: CepheidError | None = None) -> pa.DataType:
    """The type of an event's time: microseconds, or whole numbers."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_null(kind) or wrong is None:
        return kind
    raise wrong


def _common_type(kinds: list[pa.DataType], column: str) -> pa.DataType:
    if len(kinds) == 1:
        return kinds[0]
    # Values of several columns are chosen among, which codes of several dictionaries can't be.
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    try:
        whole = pa.unify_schemas(
            [pa.schema([(column, kind)]) for kind in plain], promote_options="permissive"
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise DataError.of(
            "mixed-types",
            f"the sources do not agree on the type of `{column}`: "
            + ", ".join(dict.fromkeys(str(kind) for kind in kinds)),
            help="give fields of one name the same type in every source",
        ) from None
    return whole.field(0).type
