"""Each qualification goes to the lowest operator that binds all its variables (SPEC A1.2, Part F).

The paper compiles qualifications into the predicates of operators and does not say to which. With
this rule both its examples mean what its prose says: a FILTER becomes phi (events that fail it are
skipped), a plain condition theta (an event that fails it ends the instance), an OCCURS WITHIN a
window; what is about the first operand alone belongs to that operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cepheid.algebra.expression import (
    Absent,
    Apart,
    Every,
    Expression,
    Previous,
    Window,
    conjunction,
    variables,
    walk,
)
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Measure,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    bound_variables,
)
from cepheid.languages.findings import Findings
from cepheid.languages.next.operators import all_variables, iterated_variables, last_variables
from cepheid.model.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate; with `skips` it stood in FILTER."""

    predicate: Expression
    skips: bool
    span: Span

    @property
    def variables(self) -> frozenset[str]:
        """The variables it names."""
        return variables(self.predicate)

    @property
    def elements(self) -> frozenset[str]:
        """The variables whose elements PREV and ALL look back at."""
        parts = walk(self.predicate)
        return frozenset(each.variable for each in parts if isinstance(each, Previous | Every))


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """`(first, second) OCCURS WITHIN window`; with `skips` it stood in FILTER."""

    first: str
    second: str
    window: Window
    skips: bool
    span: Span

    @property
    def variables(self) -> frozenset[str]:
        """The variables it names."""
        return frozenset((self.first, self.second))

    @property
    def elements(self) -> frozenset[str]:
        """None: only conditions look back."""
        return frozenset()

    @property
    def predicate(self) -> Expression:
        """The same as a condition, for places where a window can not stand."""
        return Apart(self.first, self.second, self.window, span=self.span)


Qualification: TypeAlias = Condition | TimeLimit


def attach(node: Pattern, given: Sequence[Qualification], findings: Findings) -> Pattern:
    """The pattern with its qualifications; one that fits nowhere is noted and left out."""
    return _Placement(findings, frozenset(bound_variables(node))).attach(node, given)


@dataclass(frozen=True, slots=True)
class _Placement:
    findings: Findings
    detected: frozenset[str]

    def attach(self, node: Pattern, given: Sequence[Qualification]) -> Pattern:
        match node:
            case Union(patterns):
                parts = []
                for each in patterns:
                    below, given = _divide(given, each)
                    parts.append(self.attach(each, below))
                return self._over(replace(node, patterns=tuple(parts)), given)
            case Plus(pattern):
                below, own = _below(given, pattern)
                return self._predicated(replace(node, pattern=self.attach(pattern, below)), own)
            case Next(first, second):
                before, rest = _divide(given, first)
                after, own = _below(rest, second)
                parts = [self.attach(first, before), self.attach(second, after)]
                return self._predicated(replace(node, first=parts[0], second=parts[1]), own)
            case Except():
                return self._excepted(node, given)
            case Timer(pattern):
                return replace(node, pattern=self.attach(pattern, given))
            case _:
                return self._over(node, given)

    def _predicated(self, node: Next | Plus, own: Sequence[Qualification]) -> Pattern:
        """A Next or Plus with its phi and theta, and its windows directly above it."""
        reached = self._reached(own, bound_variables(node))
        if isinstance(node, Next):
            reached = _skipping(reached, set(last_variables(node.second)))
        conditions = [each for each in reached if isinstance(each, Condition)]
        skip = conjunction([each.predicate for each in conditions if each.skips])
        test = conjunction([each.predicate for each in conditions if not each.skips])
        return _limited(replace(node, skip=skip, test=test), reached)

    def _over(self, node: Pattern, own: Sequence[Qualification]) -> Pattern:
        """A pattern without predicates of its own, filtered.

        Over a union this is where conditions on several branches stand: an atom that names a
        variable of the other branch is false.
        """
        reached = self._reached(own, bound_variables(node))
        conditions = [each for each in reached if isinstance(each, Condition)]
        if conditions:
            predicate = conjunction([each.predicate for each in conditions])
            span = conditions[0].span.to(conditions[-1].span)
            node = Filter(node, predicate, Absent.FALSE, span=span)
        return _limited(node, reached)

    def _excepted(self, node: Except, given: Sequence[Qualification]) -> Pattern:
        """What names the exception is its lambda, which sees all that the match binds so far."""
        names = all_variables(node.negated)
        about = [each for each in given if each.variables & names]
        inner = [each for each in given if not each.variables & names]
        below, own = _below(about, node.negated)
        visible = (*bound_variables(node.pattern), *bound_variables(node.negated))
        # A match has no event for an exception, so a window could not tell its time.
        conditions = [each.predicate for each in self._reached(own, visible)]
        return replace(
            node,
            pattern=self.attach(node.pattern, inner),
            negated=self.attach(node.negated, below),
            predicate=conjunction(conditions),
        )

    def _reached(self, own: Iterable[Qualification], visible: Iterable[str]) -> list[Qualification]:
        """The qualifications whose variables are all known here; the others are refused."""
        known = frozenset(visible)
        reached = []
        for each in own:
            if each.variables <= known:
                reached.append(each)
            else:
                self._refuse(each)
        return reached

    def _refuse(self, each: Qualification) -> None:
        raised = min(each.variables - self.detected)
        others = sorted(each.variables - {raised})
        self.findings.error(
            "exception-out-of-reach",
            f"`{raised}` and `{others[0]}` are never known together",
            each.span,
            f"`{raised}` only raises an exception",
            help="compare an exception with what is detected before it is decided",
        )


def _skipping(own: Iterable[Qualification], last: set[str]) -> list[Qualification]:
    """FILTER's limits on a time that does not grow with the order of the candidates, as conditions.

    Candidates come in the order of their ends. Up to the last event of a candidate it makes no
    difference whether a limit skips or ends: if the next one is too late, all others are (SPEC B5),
    and a window lets the instance go. Up to an inner event skipping finds others, and so it does
    where only some candidates end with the event: those of another branch of a union are skipped.
    """
    return [
        Condition(each.predicate, True, each.span)
        if isinstance(each, TimeLimit) and each.skips and not last <= each.variables
        else each
        for each in own
    ]


def _limited(node: Pattern, own: Iterable[Qualification]) -> Pattern:
    for each in own:
        if isinstance(each, TimeLimit):
            node = Within(
                node,
                each.window,
                inclusive=True,
                measure=Measure.END_TO_END,
                first=each.first,
                second=each.second,
                span=each.span,
            )
    return node


def _below(
    given: Sequence[Qualification], operand: Pattern
) -> tuple[list[Qualification], list[Qualification]]:
    """What belongs to an operand that is an operator itself; a source has no predicates.

    Nor has a timer: a source is asked the same, delayed or not.
    """
    source = operand
    while isinstance(source, Timer):
        source = source.pattern
    return ([], list(given)) if isinstance(source, Atom) else _divide(given, operand)


def _divide(
    given: Sequence[Qualification], operand: Pattern
) -> tuple[list[Qualification], list[Qualification]]:
    """What an operand can decide alone, and the rest; PREV and ALL need an iteration in it.

    What names no variable at all stays further up, so that it holds for all branches of a union.
    """
    names, iterated = all_variables(operand), iterated_variables(operand)
    below: list[Qualification] = []
    rest: list[Qualification] = []
    for each in given:
        fits = each.variables and each.variables <= names and each.elements <= iterated
        (below if fits else rest).append(each)
    return below, rest
