"""A query text, translated: what `cepheid.compile` returns and every host takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cepheid.algebra.bind import query_parameters
from cepheid.algebra.pattern import Atom, walk
from cepheid.algebra.query import Program, Query
from cepheid.languages.registry import detect_language, meaning_options, translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import Diagnostic, SourceText, did_you_mean
from cepheid.model.errors import OptionError, QueryError
from cepheid.model.options import Options, make_options


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A checked program and the query of it that is asked for (the last one, if not chosen).

    It is a small value made of text, so that it travels to workers and is translated there again.
    """

    source: SourceText
    language: str
    name: str

    @property
    def program(self) -> Program:
        """All queries of the text."""
        return _translated_by_default(self.source, self.language).program

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the program's queries, in the order written."""
        return tuple(query.name for query in self.program.queries)

    @property
    def query(self) -> Query:
        """The chosen query's algebra."""
        return self.program.query(self.name)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The `:name` parameters of the whole program."""
        return _translated_by_default(self.source, self.language).parameters

    def __getitem__(self, name: str) -> CompiledQuery:
        """The same program, asked for another of its queries."""
        if name not in self.names:
            raise QueryError.of(
                "unknown-query",
                f"the program has no query `{name}`",
                help=did_you_mean(name, self.names) or f"queries: {', '.join(self.names)}",
            )
        return replace(self, name=name)

    def explain(self, events: Any = None, *, statistics: Any = None, **options: Any) -> str:
        """What the query means and how it runs: algebra, plan, state bound, warnings.

        `events` (a table, a schema, a DataFrame or dicts) tell the columns' types; `statistics`, an
        EventStatistics or the path of its file, add estimated rates, matches and state.
        """
        # Loaded by those who ask for it: a short run should not wait for what it does not use.
        from cepheid.planner.events_schema import schema_of  # noqa: PLC0415
        from cepheid.planner.explain import explain  # noqa: PLC0415
        from cepheid.planner.registered_sources import registrations_of  # noqa: PLC0415
        from cepheid.statistics.event_statistics import load_statistics  # noqa: PLC0415

        known = make_options(options)
        registrations = registrations_of(self, known)
        if registrations is not None:
            events = None if events is None else registrations.described(events)
            known = registrations.options
        schema = None if events is None else schema_of(events)
        if isinstance(statistics, str | Path):
            statistics = load_statistics(statistics)
        return explain(self, known, schema, statistics)

    def warnings(self, options: Options) -> tuple[Diagnostic, ...]:
        """What is legal but doubtful in the text, under these options."""
        return self._under(options).warnings

    def stages(self, options: Options) -> tuple[Query, ...]:
        """The chosen query and those whose events it reads, inputs first, under these options."""
        program = self._under(options).program
        made_by = {query.event_type: query for query in program.queries}
        needed: list[Query] = []

        def need(query: Query) -> None:
            for node in walk(query.pattern):
                if isinstance(node, Atom):
                    for name in node.types:
                        maker = made_by.get(name)
                        if maker is not None and maker.name != query.name and maker not in needed:
                            need(maker)
            if query not in needed:
                needed.append(query)

        need(program.query(self.name))
        if len(needed) > 1 and options.tie == "seqno":
            raise OptionError.of(
                "tie-over-queries",
                "events that a query makes do not arrive, so arrival cannot decide their ties",
                help='leave out tie="seqno", or run the queries one after the other',
            )
        return tuple(needed)

    def _under(self, options: Options) -> _Translated:
        catalogue = Catalogue.from_option(options.types)
        return _translated(
            self.source, self.language, catalogue, meaning_options(self.language, options)
        )


def compile_text(text: str, language: str | None = None, *, name: str = "query") -> CompiledQuery:
    """Translate and check a text; the language is told by its first words unless given."""
    source = SourceText(text, name)
    chosen = language.casefold() if language else detect_language(source)
    program = _translated_by_default(source, chosen).program
    return CompiledQuery(source, chosen, program.queries[-1].name)


class _Translated(NamedTuple):
    """A text's program, the warnings that its translation gave, and the program's parameters."""

    program: Program
    warnings: tuple[Diagnostic, ...]
    parameters: tuple[str, ...]


def _translated_by_default(source: SourceText, language: str) -> _Translated:
    return _translated(source, language, Catalogue(), meaning_options(language, Options()))


@lru_cache(maxsize=4096)
def _translated(
    source: SourceText,
    language: str,
    catalogue: Catalogue,
    options: tuple[tuple[str, object], ...],
) -> _Translated:
    found: list[Diagnostic] = []
    program = translate(source, language, catalogue, report=found.append, **dict(options))
    names = dict.fromkeys(p for query in program.queries for p in query_parameters(query))
    return _Translated(program, tuple(found), tuple(names))
