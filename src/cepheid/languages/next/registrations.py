"""The Stream Definition Language: sources and sinks that a text registers (section 3.5).

The paper gives sources and sinks an identifier, a schema and a wrapper "that translates their
internal event representation to the one prescribed by their schema", and no syntax. Ours is data,
never code: which of a record's fields is which, and where its time is.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from cepheid.languages.durations import check_unit
from cepheid.languages.findings import Findings
from cepheid.languages.next.syntax import (
    ClockError,
    Field,
    ProgramText,
    QueryText,
    SinkRegistration,
    SourceRegistration,
)
from cepheid.languages.references import enumerate_names
from cepheid.languages.terms import Name, String
from cepheid.model.catalogue import TYPE_NAMES, AttributeType, Catalogue, Sink, SinkKind, Source
from cepheid.model.diagnostics import Span, did_you_mean
from cepheid.model.match_formats import SUFFIXES, format_of_name

_KINDS = {kind.value: kind for kind in SinkKind}


def register(text: ProgramText, catalogue: Catalogue, findings: Findings) -> Catalogue:
    """The catalogue with the sources and sinks of a text."""
    places: dict[str, Name] = {}
    for source in text.sources:
        if _is_new(source.name, "source", catalogue.sources, places, findings):
            schema = _schema(source.fields, findings)
            made = Source(
                source.name.text,
                _own_names(source, schema, findings),
                tuple(name.text for name in source.time),
                _clock_error(source.clock_error, findings),
                _places(source),
            )
            catalogue = catalogue.with_source(made, schema)
    places = {}
    for sink in text.sinks:
        if _is_new(sink.name, "sink", catalogue.sinks, places, findings):
            catalogue = catalogue.with_sink(_sink(sink, findings))
    return catalogue


def check_sink(
    sink: Sink,
    query: QueryText,
    made: dict[str, AttributeType] | None,
    findings: Findings,
) -> None:
    """Refuse a query that does not give its sink what the sink's schema asks for."""
    span = query.name.span if query.name else query.span
    for name, wanted in sink.fields or ():
        given = (made or {}).get(name)
        if given is None:
            problem = f"the query does not select `{name}`"
            help = f"select it, e.g. with AS {name}, or take it out of the sink's schema"
        elif _never_fit(wanted, given):
            problem = f"the query gives `{name}` as {given.value}, not {wanted.value}"
            help = "change the type in the sink's schema"
        else:
            continue
        findings.error(
            "sink-schema",
            f"the sink `{sink.name}` does not fit: {problem}",
            span,
            "not what the sink's schema says",
            help=help,
        )


def _never_fit(wanted: AttributeType, given: AttributeType) -> bool:
    unknown = AttributeType.UNKNOWN
    return unknown not in (wanted, given) and wanted.merge(given) is unknown


def warn_of_idle_sinks(text: ProgramText, names: tuple[str, ...], findings: Findings) -> None:
    """Tell of sinks that get nothing: a sink gets the results of the query of its name."""
    for sink in text.sinks:
        if sink.name.text not in names:
            findings.warning(
                "sink-without-query",
                f"no query of the text is called `{sink.name.text}`",
                sink.name.span,
                "this sink gets nothing",
                "name the query as its sink: QUERY name SELECT ...",
            )


def _is_new(
    name: Name, what: str, known: Container[str], places: dict[str, Name], findings: Findings
) -> bool:
    first = places.setdefault(name.text, name)
    if first is name and name.text not in known:
        return True
    there = "in the catalogue" if first is name else f"at {findings.place(first.span)}"
    findings.error(
        "registered-twice",
        f"the {what} `{name.text}` is registered twice",
        name.span,
        "registered again",
        notes=(f"it is registered {there}",),
        help=f"give each {what} a name of its own",
    )
    return False


def _schema(fields: Sequence[Field], findings: Findings) -> dict[str, AttributeType]:
    schema: dict[str, AttributeType] = {}
    for field in fields:
        if field.name.text in schema:
            _note_repeated(field.name, "the schema", findings)
        schema.setdefault(field.name.text, _type(field.type, findings))
    return schema


def _type(name: Name | None, findings: Findings) -> AttributeType:
    if name is None:
        return AttributeType.UNKNOWN
    if name.text.casefold() not in TYPE_NAMES:
        kinds = [kind.value for kind in AttributeType if kind is not AttributeType.UNKNOWN]
        findings.error(
            "unknown-field-type",
            f"`{name.text}` is not a type of values",
            name.span,
            "not a type",
            help=did_you_mean(name.text, TYPE_NAMES) or f"the types are {enumerate_names(kinds)}",
        )
    return TYPE_NAMES.get(name.text.casefold(), AttributeType.UNKNOWN)


def _own_names(
    source: SourceRegistration, schema: dict[str, AttributeType], findings: Findings
) -> tuple[tuple[str, str], ...]:
    names: dict[str, str] = {}
    for renaming in source.renamings:
        field = renaming.field
        if field.text not in schema:
            findings.error(
                "unknown-field",
                f"the schema of `{source.name.text}` has no field `{field.text}`",
                field.span,
                "not in the schema",
                help=did_you_mean(field.text, schema) or f"it has {enumerate_names(schema)}",
            )
        elif field.text in names:
            _note_repeated(field, "FROM", findings)
        else:
            names[field.text] = renaming.own.text
    return tuple(names.items())


def _places(source: SourceRegistration) -> dict[str, Span]:
    """Where the text names the records' fields; a renamed one is named after FROM."""
    named = {each.field.text: each.own for each in source.renamings}
    names = [named.get(each.name.text, each.name) for each in source.fields]
    return {each.text: each.span for each in (*names, *source.time)}


def _note_repeated(field: Name, where: str, findings: Findings) -> None:
    findings.error(
        "duplicate-field",
        f"{where} names the field `{field.text}` twice",
        field.span,
        "named a second time",
        help="leave one of them out",
    )


def _clock_error(
    error: ClockError | None, findings: Findings
) -> tuple[int | float, str | None] | None:
    if error is None:
        return None
    check_unit(error.unit, findings)
    if error.amount.value is None:
        findings.error(
            "number-too-large",
            "the clock error is longer than any time",
            error.amount.span,
            "too large",
            help="leave it out if nothing is known of the clock",
        )
        return None
    return error.amount.value, None if error.unit is None else error.unit.text


def _sink(sink: SinkRegistration, findings: Findings) -> Sink:
    kind = None if sink.kind is None else _KINDS.get(sink.kind.text.casefold())
    if sink.kind is not None and kind is None:
        findings.error(
            "unknown-sink",
            f"`{sink.kind.text}` is not a kind of sink",
            sink.kind.span,
            "not a kind of sink",
            help=did_you_mean(sink.kind.text, _KINDS) or f"the kinds are {enumerate_names(_KINDS)}",
        )
    elif (kind is SinkKind.FILE) != (sink.path is not None):
        word = SinkKind.TABLE.value if kind is None else kind.value
        findings.error(
            "sink-path",
            "a file has a path" if sink.path is None else f"a {word} has no path",
            (sink.path or sink.kind or sink.name).span,
            "no path" if sink.path is None else "a path",
            help="write file 'folder/name.parquet'"
            if sink.path is None
            else "write file before the path, or leave it out",
        )
    elif sink.path is not None:
        _check_format(sink.name, sink.path, findings)
    fields = None if sink.fields is None else tuple(_schema(sink.fields, findings).items())
    path = None if sink.path is None else sink.path.value
    return Sink(sink.name.text, kind or SinkKind.TABLE, path, fields, (sink.path or sink.name).span)


def _check_format(name: Name, path: String, findings: Findings) -> None:
    if format_of_name(path.value) is None:
        findings.error(
            "unknown-format",
            f"the sink `{name.text}` writes to `{path.value}`, whose name tells no format",
            path.span,
            "not a file of matches",
            help=f"end it in {', '.join(SUFFIXES)}; a name without an ending is a folder",
        )
