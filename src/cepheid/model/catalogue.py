"""The one catalogue: event types with their attributes, and the sources and sinks of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa

from cepheid.model.diagnostics import Diagnostic, Span, did_you_mean
from cepheid.model.errors import OptionError


class AttributeType(Enum):
    """The type of an attribute's values; UNKNOWN fits everything."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    TIMESTAMP = "timestamp"
    UNKNOWN = "unknown"

    def merge(self, other: AttributeType) -> AttributeType:
        """The type of an attribute that is `self` in some events and `other` in others."""
        if self is other:
            return self
        return AttributeType.FLOAT if {self, other} == _NUMERIC else AttributeType.UNKNOWN


_NUMERIC = {AttributeType.INT, AttributeType.FLOAT}
_SPELLINGS = {
    AttributeType.BOOL: "bool boolean",
    AttributeType.INT: "int integer long bigint int8 int16 int32 int64 uint8 uint16 uint32",
    AttributeType.FLOAT: "float double number real float32 float64",
    AttributeType.STRING: "string str text utf8 varchar",
    AttributeType.TIMESTAMP: "timestamp datetime",
    AttributeType.UNKNOWN: "unknown any",
}
TYPE_NAMES = {word: kind for kind, words in _SPELLINGS.items() for word in words.split()}


@dataclass(frozen=True, slots=True)
class EventType:
    """The name of a type and the attributes its events have; names are case-sensitive."""

    name: str
    attributes: Mapping[str, AttributeType]

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.attributes.items())))


@dataclass(frozen=True, slots=True)
class Source:
    """A registered source, whose records become events of the type of its name.

    `own_names` tells what a field of the type is called in the records, where that differs; `time`
    names the records' field of the time, or the two of start and end. A clock that is off by at
    most `clock_error`, an amount and a unit, makes the instant t the interval from t - e to t + e
    (NEXT, section 3.1). `places` tell where a text names the records' fields, for messages.
    """

    name: str
    own_names: tuple[tuple[str, str], ...] = ()
    time: tuple[str, ...] = ()
    clock_error: tuple[int | float, str | None] | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def own_name(self, attribute: str) -> str:
        """What the records call a field of the schema."""
        return dict(self.own_names).get(attribute, attribute)


class SinkKind(Enum):
    """Where a sink puts the results it gets."""

    TABLE = "table"
    FILE = "file"
    CONSOLE = "console"
    CALLBACK = "callback"


@dataclass(frozen=True, slots=True)
class Sink:
    """A registered sink, which gets the results of the query of its name; `path` is a FILE's.

    `fields` are the attributes that it asks for, None when it takes whatever the query gives.
    `place` is where a text says so, for messages.
    """

    name: str
    kind: SinkKind = SinkKind.TABLE
    path: str | None = None
    fields: tuple[tuple[str, AttributeType], ...] | None = None
    place: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is known of the events before they are seen; `Catalogue()` knows, and checks, nothing.

    `types` are the declared types. An event of another type has the attributes `columns`, or, when
    that is None, any attribute. `shared` are the attributes that every event has (the columns of
    time, type and id). When `closed`, there are no other types than the declared ones.
    `sources` and `sinks` are those that are registered.
    """

    types: Mapping[str, EventType] = field(default_factory=dict)
    columns: Mapping[str, AttributeType] | None = None
    shared: Mapping[str, AttributeType] = field(default_factory=dict)
    closed: bool = False
    sources: Mapping[str, Source] = field(default_factory=dict)
    sinks: Mapping[str, Sink] = field(default_factory=dict)

    def __hash__(self) -> int:
        columns = None if self.columns is None else frozenset(self.columns.items())
        shared = frozenset(self.shared.items())
        streams = (frozenset(self.sources.values()), frozenset(self.sinks.values()))
        return hash((frozenset(self.types.values()), columns, shared, self.closed, streams))

    @classmethod
    def from_option(cls, types: object, *, closed: bool = False) -> Catalogue:
        """The catalogue of the option `types`; None is the empty catalogue.

        >>> catalogue = Catalogue.from_option({"Shelf": ["id", "shelf"], "Exit": {"id": "int"}})
        >>> catalogue.attribute("Exit", "id")
        <AttributeType.INT: 'int'>
        >>> catalogue.attribute("Exit", "shelf") is None
        True
        """
        if types is None:
            return cls(closed=closed)
        if not isinstance(types, Mapping):
            message = f"types={types!r} is not a mapping"
            raise _bad_option(message)
        declared = {}
        for name, attributes in types.items():
            if not isinstance(name, str):
                message = f"{name!r} is not the name of an event type"
                raise _bad_option(message)
            declared[name] = EventType(name, dict(_attributes_of(name, attributes)))
        return cls(declared, closed=closed)

    @classmethod
    def from_arrow(cls, schema: pa.Schema | Mapping[str, pa.Schema]) -> Catalogue:
        """The catalogue of one wide table, or of one table for each event type.

        >>> Catalogue.from_arrow(pa.schema([("id", pa.int64())])).knows_attribute("price")
        False
        """
        if isinstance(schema, pa.Schema):
            return cls(columns=columns_of(schema))
        return cls({name: EventType(name, columns_of(each)) for name, each in schema.items()})

    def with_schema(self, schema: pa.Schema) -> Catalogue:
        """The same types, with what the wide table's schema adds: column types, other columns."""
        columns = columns_of(schema)
        unknown = AttributeType.UNKNOWN
        types = {
            name: EventType(
                name,
                {
                    attribute: columns.get(attribute, kind) if kind is unknown else kind
                    for attribute, kind in event_type.attributes.items()
                },
            )
            for name, event_type in self.types.items()
        }
        return replace(self, types=types, columns=columns)

    def with_shared(self, names: Iterable[str]) -> Catalogue:
        """The same catalogue with attributes that every event has, whatever its type."""
        shared = dict(self.shared)
        for name in names:
            kind = AttributeType.UNKNOWN if self.columns is None else self.columns.get(name)
            shared[name] = kind or AttributeType.UNKNOWN
        return replace(self, shared=shared)

    def with_type(self, event_type: EventType) -> Catalogue:
        """The same catalogue with one type more; a type declared twice has both's attributes."""
        attributes = dict(event_type.attributes)
        known = self.types.get(event_type.name)
        for name, kind in known.attributes.items() if known else ():
            attributes[name] = kind.merge(attributes[name]) if name in attributes else kind
        merged = EventType(event_type.name, attributes)
        return replace(self, types={**self.types, event_type.name: merged})

    def with_source(self, source: Source, schema: Mapping[str, AttributeType]) -> Catalogue:
        """The same catalogue with a source; once there is one, all must be registered.

        >>> catalogue = Catalogue().with_source(Source("t"), {"acc": AttributeType.STRING})
        >>> catalogue.knows_type("t"), catalogue.knows_type("u"), catalogue.attribute("t", "x")
        (True, False, None)
        """
        known = self.with_type(EventType(source.name, schema))
        return replace(known, closed=True, sources={**self.sources, source.name: source})

    def with_sink(self, sink: Sink) -> Catalogue:
        """The same catalogue with one sink more."""
        return replace(self, sinks={**self.sinks, sink.name: sink})

    def attributes(self, type: str) -> Mapping[str, AttributeType] | None:
        """The attributes of a type's events, or None when they are not known."""
        if type in self.types:
            return {**self.shared, **self.types[type].attributes}
        return None if self.columns is None else {**self.shared, **self.columns}

    def attribute(self, type: str, name: str) -> AttributeType | None:
        """The type of an attribute, UNKNOWN if nobody said; None: such events do not have it."""
        attributes = self.attributes(type)
        return AttributeType.UNKNOWN if attributes is None else attributes.get(name)

    def knows_type(self, type: str) -> bool:
        """Whether there may be events of that type."""
        return not self.closed or type in self.types

    def knows_attribute(self, name: str) -> bool:
        """Whether events of any type may have that attribute."""
        if name in self.shared or any(name in each.attributes for each in self.types.values()):
            return True
        if self.columns is not None:
            return name in self.columns
        return not self.closed and not self.types

    def nearest_type(self, name: str) -> str | None:
        """A help sentence with the declared type whose name is nearest."""
        return did_you_mean(name, self.types)


def columns_of(schema: pa.Schema) -> dict[str, AttributeType]:
    """The columns of an Arrow schema as attributes."""
    return {column.name: attribute_type(column.type) for column in schema}


def attribute_type(arrow: pa.DataType) -> AttributeType:
    """The type of an Arrow column's values as attributes; nested and binary ones are UNKNOWN.

    >>> attribute_type(pa.dictionary(pa.int32(), pa.string()))
    <AttributeType.STRING: 'string'>
    """
    if pa.types.is_dictionary(arrow):
        return attribute_type(arrow.value_type)
    if pa.types.is_boolean(arrow):
        return AttributeType.BOOL
    if pa.types.is_integer(arrow):
        return AttributeType.INT
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return AttributeType.FLOAT
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return AttributeType.STRING
    if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow):
        return AttributeType.TIMESTAMP
    return AttributeType.UNKNOWN


def _attributes_of(type: str, given: object) -> Iterable[tuple[str, AttributeType]]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        message = f"the attributes of `{type}` are {given!r}"
        raise _bad_option(message)
    kinds = given if isinstance(given, Mapping) else dict.fromkeys(given, "unknown")
    for name, kind in kinds.items():
        if not isinstance(name, str):
            message = f"{name!r} is not the name of an attribute of `{type}`"
            raise _bad_option(message)
        word = str(kind.value if isinstance(kind, Enum) else kind).casefold()
        if word not in TYPE_NAMES:
            message = f"`{type}.{name}` has no known type: {kind!r}"
            raise _bad_option(message, did_you_mean(word, TYPE_NAMES))
        yield name, TYPE_NAMES[word]


def _bad_option(message: str, help: str | None = None) -> OptionError:
    example = 'write e.g. types={"Shelf": ["id"]} or types={"Shelf": {"id": "int"}}'
    return OptionError(Diagnostic("bad-types-option", message, help=help or example))
