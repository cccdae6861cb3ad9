"""The registered sources of several queries that read the same records.

What one text says of a source holds for all queries of a workload, so two texts that name the same
source must say the same of it: its schema, how its records are wrapped, its clock error. Times must
be told alike, too, so that a match is the same as when its query runs alone.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Atom, walk
from cepheid.model.catalogue import Catalogue
from cepheid.model.errors import QueryError
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery
from cepheid.planner.registered_sources import Registrations, event_options, registrations_of


def joined(known: Registrations | None, query: CompiledQuery, given: Options) -> Registrations:
    """The registrations of queries so far and of one more that registers sources."""
    own = registrations_of(query, given)
    assert own is not None
    if known is None:
        return own
    for name, source in own.sources.items():
        if name in known.sources:
            for what, one, other in (
                ("schema", known.schema_of(name), own.schema_of(name)),
                ("names of fields", known.sources[name].own_names, source.own_names),
                ("time", known.sources[name].time, source.time),
                ("clock error", known.sources[name].clock_error, source.clock_error),
            ):
                if one != other:
                    raise _contradiction(
                        query, f"the source `{name}` is registered with another {what} before"
                    )
    catalogue = Catalogue(
        types={**known.catalogue.types, **own.catalogue.types},
        sources={**known.sources, **own.sources},
    )
    options = event_options(catalogue, given)
    if not _told(known.options) == _told(own.options) == _told(options):
        raise _contradiction(
            query,
            "its events would have their times in other columns than those of the queries before: "
            f"{_told(own.options)}, not {_told(known.options)}",
        )
    return replace(
        known,
        catalogue=catalogue,
        options=options,
        read=known.read | own.read,
        texts={**own.texts, **known.texts},
    )


def refuse_unregistered(query: CompiledQuery, registrations: Registrations) -> None:
    """Refuse a query that reads what is no event of a registered source."""
    atoms = (
        node
        for stage in query.stages(registrations.options)
        for node in walk(stage.pattern)
        if isinstance(node, Atom)
    )
    derived = {stage.event_type for stage in query.stages(registrations.options)[:-1]}
    for atom in atoms:
        for name in atom.types or ("*",):
            if name not in registrations.sources and name not in derived:
                what = "events of any type" if name == "*" else f"`{name}`"
                raise _contradiction(
                    query, f"it reads {what}, and the other queries read registered sources"
                )


def _told(options: Options) -> str:
    """The columns of type and times."""
    times = [options.time] if options.start is None else [options.start, options.end_column]
    return ", ".join(f"`{name}`" for name in (options.type, *times))


def _contradiction(query: CompiledQuery, message: str) -> QueryError:
    return QueryError.of(
        "sources-disagree",
        f"`{query.name}` cannot run beside the others: {message}",
        help="register a source alike in all texts, or run the query in a workload of its own",
    )
