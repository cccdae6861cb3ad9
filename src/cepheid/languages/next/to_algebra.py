"""The meaning of NEXT: a checked text becomes algebra (docs/semantics.md#the-language-next)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cepheid.algebra.expression import Duration
from cepheid.algebra.expression_text import MAX_DEPTH
from cepheid.algebra.pattern import Pattern, bound_variables
from cepheid.algebra.query import Output, Program, Query
from cepheid.languages.durations import duration_of, is_nothing
from cepheid.languages.findings import Findings, Report
from cepheid.languages.hierarchy import QueryPlace, check_references, query_names, read_types
from cepheid.languages.limits import (
    MOST_COMPONENTS,
    check_conditions,
    too_deep,
    too_many_components,
)
from cepheid.languages.next import syntax
from cepheid.languages.next.expressions import NextExpressions, NextReferences
from cepheid.languages.next.idle_conditions import warn_of_branches, warn_of_empty_look_back
from cepheid.languages.next.operators import (
    Operators,
    depth,
    idle_exceptions,
    iterated_variables,
    unbounded_iterations,
)
from cepheid.languages.next.parser import parse
from cepheid.languages.next.placement import Condition, Qualification, TimeLimit, attach
from cepheid.languages.next.registrations import check_sink, register, warn_of_idle_sinks
from cepheid.languages.outputs import attribute_names, output_types, translate_items
from cepheid.languages.references import enumerate_names
from cepheid.languages.result_names import check_variables
from cepheid.languages.scope import Binding, Scope, Vocabulary, declare, implicit_variables
from cepheid.languages.terms import Conjunction, Item, Name, Reference, Term, conditions
from cepheid.model.catalogue import AttributeType, Catalogue
from cepheid.model.diagnostics import SourceText, Span
from cepheid.model.errors import OptionError

_RENAME = "give the query another name"


def translate(
    source: SourceText,
    catalogue: Catalogue,
    *,
    cap: int | None = None,
    failures: bool = False,
    report: Report | None = None,
) -> Program:
    """The program a NEXT text means; raises QueryError with everything that is wrong with it.

    `cap` is the most elements that a run of an iteration may have, None for any number. With
    `failures` a query that ends in an exception also reports failed detections, the paper's empty
    events. `report` is called with each warning.

    >>> program = translate(SourceText("SELECT * FROM t T1; t T2"), Catalogue())
    >>> program.queries[0].columns
    ('T1', 'T2')
    """
    if cap is not None and (isinstance(cap, bool) or cap < 1):
        raise OptionError.of(
            "bad-option", f"cap={cap!r} is not a number of elements", help="write e.g. cap=100"
        )
    text = parse(source)
    findings = Findings(source, report)
    catalogue = register(text, catalogue, findings)
    places = [_place(query) for query in text.queries]
    names = query_names(places, "SELECT", findings)
    check_references(places, catalogue, _RENAME, findings)
    read = read_types(places)
    vocabulary = Vocabulary(catalogue)
    queries = []
    for name, query in zip(names, text.queries, strict=True):
        translation = _Translation.of(query, vocabulary, findings, cap, failures)
        pattern, output = translation.pattern(), translation.output(name)
        types = translation.output_types(output)
        if name in read:
            vocabulary = vocabulary.with_query(name, types)
        if name in catalogue.sinks:
            check_sink(catalogue.sinks[name], query, types, findings)
        columns = bound_variables(pattern)
        queries.append(Query(name, "next", pattern, columns, output, source, lasting=True))
        if findings.is_full:
            break
    warn_of_idle_sinks(text, names, findings)
    findings.raise_errors()
    return Program(tuple(queries), catalogue)


@dataclass(frozen=True, slots=True)
class _Translation:
    """The translation of one query; what has errors is noted and left out."""

    text: syntax.QueryText
    scope: Scope
    findings: Findings
    operators: Pattern

    @classmethod
    def of(
        cls,
        text: syntax.QueryText,
        vocabulary: Vocabulary,
        findings: Findings,
        cap: int | None,
        failures: bool,
    ) -> _Translation:
        bindings = _bind(text.pattern, vocabulary.catalogue, findings)
        variables = {each.span: each.variable for each in bindings}
        delays = {each.span: _delay(each, findings) for each in syntax.delays(text.pattern)}
        operators = Operators(variables, delays, cap, failures).of(text.pattern)
        return cls(text, Scope(bindings, vocabulary), findings, operators)

    # FROM and WHERE

    def pattern(self) -> Pattern:
        """The operators with their predicates and windows."""
        check_conditions(self._places_of_conditions(), self.findings.source)
        given = list(self._qualifications())
        self._warn(given)
        warn_of_branches(self.operators, (each.predicate for each in given), self.findings)
        pattern = attach(self.operators, given, self.findings)
        warn_of_empty_look_back(pattern, self.findings)
        if depth(pattern) > MAX_DEPTH + 1:  # the root is at depth 0 there
            raise too_deep(self.findings.source, self.text.pattern.span)
        return pattern

    def _places_of_conditions(self) -> list[Span]:
        parts = [
            each.condition if isinstance(each, syntax.FilterTerm) else each
            for each in self.text.qualifications
        ]
        return [each.span for part in parts for each in conditions(part)]

    def _qualifications(self) -> Iterator[Qualification]:
        references = NextReferences(self.scope, self.findings)
        translator = NextExpressions(references, iterated_variables(self.operators))
        for qualification in self.text.qualifications:
            skips, whole = False, qualification
            if isinstance(whole, syntax.FilterTerm):
                skips, whole = True, whole.condition
            for term in _split(whole):
                if isinstance(term, syntax.OccursWithin):
                    limit = translator.time_limit(term)
                    if limit is not None:
                        yield TimeLimit(limit.first, limit.second, limit.window, skips, term.span)
                    continue
                predicate = translator.condition(term)
                if predicate is not None:
                    translator.check_types(predicate)
                    yield Condition(predicate, skips, term.span)

    def _warn(self, given: list[Qualification]) -> None:
        limits = [(each.first, each.second) for each in given if isinstance(each, TimeLimit)]
        for plus in unbounded_iterations(self.operators, limits):
            self.findings.warning(
                "unbounded-iteration",
                "the iteration has no bound: every event may make all runs longer",
                plus.span or self.text.span,
                "runs of any length",
                "give the option cap, or limit the time from an event before it: "
                "(A, B) OCCURS WITHIN 1 hour",
            )
        for idle in idle_exceptions(self.operators):
            self.findings.warning(
                "exception-without-effect",
                "the exception can not be raised: nothing is awaited when it could occur",
                idle.span or self.text.span,
                "nothing precedes the last event here",
                "write A ; (B \\ N) to give up on A when N comes before B",
            )

    # SELECT

    def output(self, name: str) -> Output | None:
        """The event that a match becomes; None for `SELECT *`."""
        if not self.text.items:
            written = (each.variable for each, _ in syntax.primitives(self.text.pattern))
            check_variables(self.scope.bindings, written, self.findings)
            return None
        references = NextReferences(self.scope, self.findings, in_result=True)
        translator = NextExpressions(references, iterated_variables(self.operators))
        names = _item_names(self.text)
        return Output(name, translate_items(self.text.items, names, translator, self.findings))

    def output_types(self, output: Output | None) -> dict[str, AttributeType] | None:
        """The attributes of the derived events, also of a list with errors."""
        if output is None:
            return None
        return output_types(_item_names(self.text), output, self.scope)


def _place(query: syntax.QueryText) -> QueryPlace:
    reads = tuple(primitive.source for primitive, _ in syntax.primitives(query.pattern))
    return QueryPlace(query.name, query.name, reads)


def _bind(
    pattern: syntax.EventPattern, catalogue: Catalogue, findings: Findings
) -> tuple[Binding, ...]:
    """Give every source its variable; refuse unknown sources, variables used twice."""
    found = tuple(syntax.primitives(pattern))
    if len(found) > MOST_COMPONENTS:
        raise too_many_components(findings.source, found[MOST_COMPONENTS][0].span)
    explicit: dict[str, Span] = {}
    for primitive, _ in found:
        if primitive.variable is not None:
            declare(primitive.variable, explicit, findings)
        _check_source(primitive.source, catalogue, findings)
    unnamed = [primitive.source.text for primitive, _ in found if primitive.variable is None]
    implicit = implicit_variables(unnamed, explicit)
    return tuple(
        Binding(
            primitive.variable.text if primitive.variable else next(implicit),
            (primitive.source.text,),
            negated,
            primitive.span,
        )
        for primitive, negated in found
    )


def _delay(pattern: syntax.Delayed, findings: Findings) -> Duration:
    found = duration_of(pattern.delay, "delay", "leave @ out to have no delay", findings)
    if is_nothing(found):
        findings.error(
            "delay-not-positive",
            "the delay has no length",
            pattern.delay.amount.span,
            "not more than 0",
            help="write a length above 0, e.g. A @ 10 s",
        )
    return Duration(1, None) if found is None else found


def _check_source(name: Name, catalogue: Catalogue, findings: Findings) -> None:
    if not catalogue.knows_type(name.text):
        known = enumerate_names(catalogue.types) if catalogue.types else "none"
        findings.error(
            "unknown-source",
            f"there is no source `{name.text}`",
            name.span,
            "not registered",
            help=catalogue.nearest_type(name.text) or f"the sources are {known}",
        )


def _split(term: Term) -> Iterator[Term]:
    """The parts of a qualification that AND joins (SPEC A1.2)."""
    if isinstance(term, Conjunction):
        for operand in term.operands:
            yield from _split(operand)
    else:
        yield term


def _item_names(query: syntax.QueryText) -> tuple[str | None, ...]:
    """The names of the selected values: a field that several variables have is `variable_field`."""
    names = attribute_names(query.items)
    variables = [_variable_of(item) for item in query.items]
    # A field of one variable that is selected twice has its name twice, and is refused for it.
    counts = Counter(name for name, _ in set(zip(names, variables, strict=True)))
    return tuple(
        name if variable is None or counts[name] == 1 else f"{variable}_{name}"
        for name, variable in zip(names, variables, strict=True)
    )


def _variable_of(item: Item) -> str | None:
    """The variable of a field that is selected under its own name."""
    match item:
        case Item(Reference(Name(variable), _), None):
            return variable
        case _:
            return None
