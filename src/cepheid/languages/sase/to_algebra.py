"""The meaning of SASE: a checked text becomes algebra (docs/semantics.md#sase)."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.algebra.expression import TRUE, Duration, Expression, Parameter
from cepheid.algebra.pattern import (
    Atom,
    Extreme,
    Filter,
    Guard,
    Order,
    Pattern,
    Seq,
    Side,
    TimeBound,
    Within,
)
from cepheid.algebra.query import Output, Program, Query
from cepheid.languages.durations import window_of
from cepheid.languages.findings import Findings, Report
from cepheid.languages.hierarchy import QueryPlace, check_references, query_names, read_types
from cepheid.languages.limits import MOST_COMPONENTS, check_conditions, too_many_components
from cepheid.languages.outputs import attribute_names, output_types, translate_items
from cepheid.languages.result_names import check_variables
from cepheid.languages.sase import syntax
from cepheid.languages.sase.components import bind
from cepheid.languages.sase.expressions import SaseExpressions
from cepheid.languages.sase.parser import parse
from cepheid.languages.sase.references import SaseReferences
from cepheid.languages.sase.returning import check_hyphens, listed
from cepheid.languages.sase.split import SplitPredicate, split_predicate
from cepheid.languages.scope import Binding, Scope, Vocabulary
from cepheid.languages.terms import Term, conditions
from cepheid.model.catalogue import AttributeType, Catalogue
from cepheid.model.diagnostics import SourceText, Span
from cepheid.model.errors import OptionError

_ORDERS = {"strict": Order.STRICT, "seqno": Order.SEQUENCE}
_RENAME = "give the query or its RETURN clause another name"


def translate(
    source: SourceText,
    catalogue: Catalogue,
    *,
    discrete: bool = True,
    tie: str = "strict",
    report: Report | None = None,
) -> Program:
    """The program a SASE text means; raises QueryError with everything that is wrong with it.

    `discrete` decides SASE's negated end: time in ticks (the paper's T - 1), or continuous.
    `tie` is "strict" (events of one time never follow each other) or "seqno" (arrival decides).
    `report` is called with each warning.

    >>> program = translate(SourceText("EVENT SEQ(A, B) WITHIN 10"), Catalogue())
    >>> program.queries[0].columns
    ('A', 'B')
    """
    if tie not in _ORDERS:
        raise OptionError.of(
            "bad-option", f"tie={tie!r} is not known", help='write tie="strict" or tie="seqno"'
        )
    text = parse(source)
    findings = Findings(source, report)
    places = [_place(query) for query in text.queries]
    names = query_names(places, "EVENT", findings)
    check_references(places, catalogue, _RENAME, findings)
    read = read_types(places)
    vocabulary = Vocabulary(catalogue)
    queries = []
    for name, query in zip(names, text.queries, strict=True):
        translation = _Translation.of(query, vocabulary, findings, discrete, _ORDERS[tie])
        pattern, output = translation.pattern(), translation.output(name)
        made = name if output is None else output.type
        if made in read:
            vocabulary = vocabulary.with_query(made, translation.output_types(output))
        if pattern is not None:
            columns = tuple(each.variable for each in translation.scope.positives)
            queries.append(Query(name, "sase", pattern, columns, output, source))
        if findings.is_full:
            break
    findings.raise_errors()
    return Program(tuple(queries))


@dataclass(frozen=True, slots=True)
class _Translation:
    """The translation of one query; a part with errors is noted and becomes None."""

    text: syntax.QueryText
    scope: Scope
    findings: Findings
    discrete: bool
    order: Order

    @classmethod
    def of(
        cls,
        text: syntax.QueryText,
        vocabulary: Vocabulary,
        findings: Findings,
        discrete: bool,
        order: Order,
    ) -> _Translation:
        if len(text.components) > MOST_COMPONENTS:
            raise too_many_components(findings.source, text.components[MOST_COMPONENTS].span)
        bindings = bind(text.components, vocabulary.catalogue, findings)
        return cls(text, Scope(bindings, vocabulary), findings, discrete, order)

    # EVENT, WHERE, WITHIN

    def pattern(self) -> Pattern | None:
        """Guard*(Filter(Within(Seq(Atoms)))), each only where the query asks for it."""
        self._check_negations()
        window = self._window()
        split = self._predicate()
        if split is None or not self.scope.positives:
            return None
        positives = tuple(self._atom(each) for each in self.scope.positives)
        pattern: Pattern = positives[0]
        if len(positives) > 1:
            pattern = Seq(positives, order=self.order, span=self._span_of_pattern())
        # A window has no effect on one event, but a parameter in it must stay to be given a value.
        has_parameter = window is not None and isinstance(window.amount, Parameter)
        if window is not None and (len(self.scope.bindings) > 1 or has_parameter):
            pattern = self._within(pattern, window)
        if split.positive != TRUE:
            assert self.text.where is not None
            pattern = Filter(pattern, split.positive, span=self.text.where.span)
        for position, binding in enumerate(self.scope.bindings):
            if binding.negated:
                pattern = self._guard(pattern, position, window, split.negative[binding.variable])
        return pattern

    def _atom(self, binding: Binding) -> Atom:
        return Atom(binding.types, binding.variable, span=binding.span)

    def _within(self, pattern: Pattern, window: Duration) -> Pattern:
        # A negated end moves the match's end to first + T - 1, which the last positive event must
        # precede: one tick less than T. In continuous time first + T itself is never reached.
        assert self.text.within is not None
        ticks = -1 if self._has_negated_end() and self.discrete else 0
        return Within(pattern, window, inclusive=False, ticks=ticks, span=self.text.within.span)

    def _guard(
        self, pattern: Pattern, position: int, window: Duration | None, predicate: Expression
    ) -> Pattern:
        """The guard of one negative component, whose interval its place in the pattern decides."""
        bindings = self.scope.bindings
        before = [each for each in bindings[:position] if not each.negated]
        after = [each for each in bindings[position:] if not each.negated]
        first, last = self.scope.positives[0], self.scope.positives[-1]
        low, high = _end_of(last), _start_of(first)
        high_closed = ends_match = False
        if before and after:
            low, high, window = _end_of(before[-1]), _start_of(after[0]), None
        elif after:
            # Anchored on the last positive event. If the end is negated, too, the paper's
            # definitions taken one after the other would leave an empty interval.
            low = _end_of(last, windows=-1)
        else:
            high = _start_of(first, windows=1, ticks=-1 if self.discrete else 0)
            high_closed, ends_match = self.discrete, True
        return Guard(
            pattern,
            self._atom(bindings[position]),
            low,
            high,
            low_closed=False,
            high_closed=high_closed,
            window=window,
            predicate=predicate,
            ends_match=ends_match,
            order=self.order,
            span=bindings[position].span,
        )

    def _has_negated_end(self) -> bool:
        return self.scope.bindings[-1].negated

    def _span_of_pattern(self) -> Span:
        components = self.text.components
        return components[0].span.to(components[-1].span)

    def _check_negations(self) -> None:
        components = self.text.components
        for component in components:
            if component.negator is not None and component.negator.text != "!":
                self.findings.error(
                    "no-not",
                    "a negated component is written with `!`",
                    component.negator.span,
                    "not part of the language",
                    help=f"write !({_component_text(component)})",
                )
        if not self.scope.positives:
            self.findings.error(
                "no-positive-component",
                "the pattern has only negated components",
                self._span_of_pattern(),
                "nothing that can be matched",
                help="add a component without `!`",
            )
            return
        if self.text.within is not None:
            return
        for component, place in ((components[0], "begins"), (components[-1], "ends")):
            if component.negator is not None:
                self.findings.error(
                    "negation-without-window",
                    f"the pattern {place} with a negated component, but has no WITHIN",
                    component.span,
                    "missing for how long?",
                    help="add WITHIN and a length of time, e.g. WITHIN 12 hours",
                )

    def _window(self) -> Duration | None:
        within = self.text.within
        if within is None:
            return None
        if len(self.scope.bindings) == 1:
            self.findings.warning(
                "window-without-effect",
                "a window on a single component has no effect",
                within.span,
                "one event has no length",
            )
        return window_of(within, "leave WITHIN out to have no window", self.findings)

    def _predicate(self) -> SplitPredicate | None:
        if self.text.where is None:
            return split_predicate(TRUE, self.scope, self.findings)
        check_conditions(_places_of_conditions(self.text.where), self.findings.source)
        translator = SaseExpressions(SaseReferences(self.scope, self.findings))
        predicate = translator.condition(self.text.where)
        if predicate is None:
            return None
        translator.check_types(predicate)
        return split_predicate(predicate, self.scope, self.findings)

    # RETURN

    def output(self, name: str) -> Output | None:
        """The event that a match becomes."""
        if self.text.returning is None:
            written = (each.variable for each in self.text.components)
            check_variables(self.scope.bindings, written, self.findings)
            return None
        type, items = listed(self.text.returning)
        check_hyphens(self.text.returning, self.findings)
        translator = SaseExpressions(SaseReferences(self.scope, self.findings, in_result=True))
        attributes = translate_items(items, attribute_names(items), translator, self.findings)
        return Output(name if type is None else type.text, attributes)

    def output_types(self, output: Output | None) -> dict[str, AttributeType] | None:
        """The attributes of the derived events, also of a RETURN clause with errors."""
        if output is None or self.text.returning is None:
            return None
        _, items = listed(self.text.returning)
        return output_types(attribute_names(items), output, self.scope)


def _place(query: syntax.QueryText) -> QueryPlace:
    """A query is called by its name, else by its RETURN type; its events the other way round."""
    returned = None if query.returning is None else listed(query.returning)[0]
    reads = tuple(name for component in query.components for name in component.types)
    return QueryPlace(query.name or returned, returned or query.name, reads)


def _places_of_conditions(where: Term) -> list[Span]:
    """Where each condition stands; `[a]` is none of its own, as equal keys are no test."""
    places = []
    for each in conditions(where):
        if isinstance(each, syntax.Equivalence):
            places += [entry.span for entry in each.entries if entry.constant is not None]
        else:
            places.append(each.span)
    return places


def _end_of(binding: Binding, windows: int = 0) -> TimeBound:
    return TimeBound(Extreme.MAX, Side.END, ((binding.variable,),), windows)


def _start_of(binding: Binding, windows: int = 0, ticks: int = 0) -> TimeBound:
    return TimeBound(Extreme.MIN, Side.START, ((binding.variable,),), windows, ticks)


def _component_text(component: syntax.Component) -> str:
    types = ", ".join(name.text for name in component.types)
    types = f"ANY({types})" if len(component.types) > 1 else types
    return types if component.variable is None else f"{types} {component.variable.text}"
