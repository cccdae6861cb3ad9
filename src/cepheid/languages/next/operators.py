"""The operators of a NEXT pattern without its predicates: algebra before WHERE is looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from cepheid.algebra.expression import Window
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    bound_variables,
    operands,
    walk,
)
from cepheid.languages.next.syntax import (
    Alternatives,
    Delayed,
    EventPattern,
    Iteration,
    Primitive,
    Successor,
    Unless,
)
from cepheid.model.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Operators:
    """Makes the algebra of patterns: `variables` and `delays` by the places they stand at."""

    variables: Mapping[Span, str]
    delays: Mapping[Span, Window]
    cap: int | None = None
    failures: bool = False

    def of(self, pattern: EventPattern) -> Pattern:
        """The operators of a pattern; an exception gets its `since` from where it stands."""
        match pattern:
            case Primitive(source):
                return Atom((source.text,), self.variables[pattern.span], span=pattern.span)
            case Alternatives(patterns):
                return Union(tuple(self.of(each) for each in patterns), span=pattern.span)
            case Iteration(inner):
                return Plus(self.of(inner), most=self.cap, span=pattern.span)
            case Delayed(inner):
                return Timer(self.of(inner), self.delays[pattern.span], span=pattern.span)
            case Successor(first, second):
                return self._successor(pattern, self.of(first), second)
            case Unless(inner, exception):
                # Nothing precedes: the exception counts from the first operand of the chain.
                return self._except(self.of(inner), exception, self._heads(inner), pattern.span)
            case _:
                assert_never(pattern)

    def _successor(self, whole: Successor, first: Pattern, second: EventPattern) -> Pattern:
        r"""`A;(B\N)` is (A;B) excepted since the last event of A, while B is awaited (section 3.4).

        This is the rewriting of `E1;(E2\E3)` into `(E1;E2)\E3`, which is right only with `since`:
        in `A;(B;(C\N))` an N before B is harmless (SPEC D26).
        """
        exceptions = []
        while isinstance(second, Unless):
            exceptions.append(second)
            second = second.pattern
        node: Pattern = Next(first, self.of(second), span=whole.span)
        for each in reversed(exceptions):
            node = self._except(node, each.exception, last_variables(first), whole.span)
        return node

    def _heads(self, pattern: EventPattern) -> tuple[str, ...]:
        r"""The variables of the last event of E1 in `(E1; ..; Ek)\N`: one for each alternative."""
        match pattern:
            case Primitive():
                return (self.variables[pattern.span],)
            case Alternatives(patterns):
                return tuple(name for each in patterns for name in self._heads(each))
            case Successor(first, _):
                return (
                    self._heads(first)
                    if isinstance(first, Successor)
                    else last_variables(self.of(first))
                )
            case Unless(inner) | Iteration(inner) | Delayed(inner):
                return self._heads(inner)
            case _:
                assert_never(pattern)

    def _except(
        self, pattern: Pattern, exception: EventPattern, since: tuple[str, ...], span: Span
    ) -> Pattern:
        return Except(
            pattern,
            self.of(exception),
            since[0],
            report_failures=self.failures,
            or_since=since[1:],
            span=span,
        )


def all_variables(node: Pattern) -> frozenset[str]:
    """All variables of a pattern, also those that only raise exceptions."""
    return frozenset(each.variable for each in walk(node) if isinstance(each, Atom))


def iterated_variables(node: Pattern) -> frozenset[str]:
    """The variables that may have several events in a match; what raises exceptions has none."""
    found: frozenset[str] = frozenset()
    for each in walk(node):
        if isinstance(each, Plus):
            found |= frozenset(bound_variables(each))
    return found


def idle_exceptions(node: Pattern) -> Iterator[Except]:
    r"""Exceptions that no event can raise, as nothing is awaited after their `since`.

    A timer is awaited: `A @ 5 min \ N` finds an A without an N in the five minutes after it.
    """
    for each in walk(node):
        if (
            isinstance(each, Except)
            and set(last_variables(each.pattern)) <= {each.since, *each.or_since}
            and not any(isinstance(part, Timer) for part in walk(each.pattern))
        ):
            yield each


def last_variables(node: Pattern) -> tuple[str, ...]:
    """The variables that may hold the last event of a match: one for each branch of a union."""
    match node:
        case Union(patterns):
            return tuple(name for each in patterns for name in last_variables(each))
        case Next(_, second):
            return last_variables(second)
        case Except() | Plus() | Timer():
            return last_variables(node.pattern)
        case _:
            return bound_variables(node)


def unbounded_iterations(
    node: Pattern,
    limits: Collection[tuple[str, str]],
    before: frozenset[str] = frozenset(),
    after: frozenset[str] = frozenset(),
) -> Iterator[Plus]:
    """Iterations whose runs may go on for ever.

    A time limit between two variables ends a run if one of them is bound `before` it and the other
    in it or `after` it. One that begins with the run does not: it is measured from its last event.
    """
    match node:
        case Next(first, second):
            ahead, behind = all_variables(first), all_variables(second)
            yield from unbounded_iterations(first, limits, before, after | behind)
            yield from unbounded_iterations(second, limits, before | ahead, after)
        case Except():
            yield from unbounded_iterations(node.pattern, limits, before, after)
            yield from unbounded_iterations(node.negated, limits)
        case Plus():
            rest = all_variables(node) | after
            ended = any(before & set(pair) and rest & set(pair) for pair in limits)
            if node.most is None and not ended:
                yield node
            yield from unbounded_iterations(node.pattern, limits, before, after)
        case _:
            for each in operands(node):
                yield from unbounded_iterations(each, limits, before, after)


def depth(node: Pattern) -> int:
    """The number of nodes on the longest way down."""
    deepest = 0
    waiting = [(node, 1)]
    while waiting:
        current, level = waiting.pop()
        deepest = max(deepest, level)
        waiting += [(each, level + 1) for each in operands(current)]
    return deepest
