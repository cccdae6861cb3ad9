"""The canonical form of patterns of successors: equal texts mean equal operators.

Variables are called by their place in the pattern, so that the same pattern inside different
queries, or at different places of one, has the same text. Conjuncts, the operands of unions and the
sides of comparisons are sorted; windows are written as the distance they allow. By it the operators
of a graph are shared (shared_successions), and found again where they run (operator_graph).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cepheid.algebra.expression import (
    MIRRORED,
    Absent,
    And,
    Apart,
    Attribute,
    Compare,
    Every,
    Expression,
    Or,
    Previous,
    conjuncts,
    rebuild,
)
from cepheid.algebra.expression_text import expression_text, name_text, window_text
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    failing,
    walk,
)
from cepheid.algebra.text import to_text
from cepheid.planner.succession_plan import length_of

_OF_NEXT = (Atom, Filter, Within, Timer, Union, Next, Plus, Except)


def canonical(pattern: Pattern) -> str:
    """The canonical text of any whole pattern.

    Two texts may differ although the patterns find the same: then something is not shared. They are
    never equal for patterns that find different things.

    >>> from cepheid.algebra.text import from_text
    >>> canonical(from_text("Next(Atom([B], y), Atom([A], x), test=y.v < x.v)"))
    'Next(Atom([B]), Atom([A]), test=(v0.v < v1.v))'
    """
    if not all(isinstance(node, _OF_NEXT) for node in walk(pattern)):
        return to_text(pattern)  # other nodes name variables in ways that are not looked at here
    return CanonicalForms().add_query(pattern).text


@dataclass(frozen=True, slots=True)
class Canonical:
    """A pattern's text, and what its variables 0, 1, ... are called in the query."""

    text: str
    variables: tuple[str, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """The place of each variable."""
        return {name: number for number, name in enumerate(self.variables)}


class CanonicalForms:
    """The canonical forms of all parts of some queries' patterns."""

    def __init__(self) -> None:
        """Nothing known yet."""
        self._forms: dict[int, tuple[Pattern, Canonical]] = {}
        self._reporting: set[int] = set()
        self._in_order: set[int] = set()

    def add_query(self, pattern: Pattern) -> Canonical:
        """The form of a whole query.

        Failures come out of a query only. Each tells the exception that comes first, of several at
        once the one it finds first: there the operands of unions stay as they are.
        """
        for each in failing(pattern):
            self._reporting.add(id(each))
            self._in_order.update(id(node) for node in walk(each.negated))
        return self.of(pattern)

    def reports(self, node: Except) -> bool:
        """Whether its failures come out of a query."""
        return id(node) in self._reporting

    def of(self, node: Pattern) -> Canonical:
        """The form of a pattern; it is worked out once, and kept with the pattern it is of."""
        known = self._forms.get(id(node))
        if known is None:
            known = self._forms[id(node)] = (node, self._form(node))
        return known[1]

    def _form(self, node: Pattern) -> Canonical:
        match node:
            case Atom():
                types = ", ".join(sorted({name_text(name) for name in node.types}))
                test = _conditions(node.predicate, {node.variable: "v0"}, node.absent)
                return Canonical(f"Atom([{types}]{test})", (node.variable,))
            case Filter():
                below = self.of(node.pattern)
                test = _conditions(node.predicate, _names(below.variables), node.absent)
                return Canonical(f"Filter({below.text}{test})", below.variables)
            case Within():
                below = self.of(node.pattern)
                names = _names(below.variables)
                ends = ", ".join(sorted(names[v] for v in (node.first, node.second) if v))
                text = f"Within({below.text}, {ends}, {_window(node)})"
                return Canonical(text, below.variables)
            case Union():
                return self._union(node)
            case Next():
                first, second = self.of(node.first), self.of(node.second)
                variables = first.variables + second.variables
                tests = self._waiting(node, variables)
                return Canonical(f"Next({first.text}, {second.text}{tests})", variables)
            case Plus():
                below = self.of(node.pattern)
                most = "" if node.most is None else f", most={node.most}"
                tests = self._waiting(node, below.variables)
                return Canonical(f"Plus({below.text}{tests}{most})", below.variables)
            case Except():
                return self._exception(node)
            case Timer():
                below = self.of(node.pattern)
                return Canonical(f"Timer({below.text}, {window_text(node.delay)})", below.variables)
            case _:
                raise AssertionError(node)  # plan_succession has refused it

    def _waiting(self, node: Next | Plus, variables: tuple[str, ...]) -> str:
        names = _names(variables)
        skip = _conditions(node.skip, names, node.absent)
        test = _conditions(node.test, names, node.absent)
        return (f", skip={skip[2:]}" if skip else "") + (f", test={test[2:]}" if test else "")

    def _union(self, node: Union) -> Canonical:
        forms = [self.of(each) for each in node.patterns]
        if id(node) not in self._in_order:
            forms.sort(key=lambda form: form.text)
        variables = tuple(dict.fromkeys(name for form in forms for name in form.variables))
        names = _names(variables)
        # Which variables the operands have in common is part of what it is.
        parts = [f"{form.text} as {' '.join(names[v] for v in form.variables)}" for form in forms]
        return Canonical(f"Union({', '.join(parts)})", variables)

    def _exception(self, node: Except) -> Canonical:
        below, negated = self.of(node.pattern), self.of(node.negated)
        names = _names(below.variables)
        since = ", ".join(sorted(names[v] for v in (node.since, *node.or_since)))
        test = _conditions(node.predicate, _names(negated.variables, "n") | names, node.absent)
        word = "Failures" if self.reports(node) else "Except"
        text = f"{word}({below.text}, {negated.text}, since={since}{test})"
        return Canonical(text, below.variables)


def _names(variables: tuple[str, ...], letter: str = "v") -> dict[str, str]:
    return {name: f"{letter}{number}" for number, name in enumerate(variables)}


def _window(node: Within) -> str:
    """The distance that is allowed; while it has no length yet, as written."""
    if isinstance(node.window, int):
        return str(length_of(node))
    ticks = f" + {node.ticks} ticks" if node.ticks else ""
    return f"{'<=' if node.inclusive else '<'} {window_text(node.window)}{ticks}"


def _conditions(expression: Expression, names: Mapping[str, str], absent: Absent) -> str:
    """The conjuncts over renamed variables, sorted; nothing for none.

    What an absent attribute makes of them is told where it is not what NEXT says.
    """
    plain = rebuild(expression, lambda part: _sorted(_renamed(part, names)))
    texts = sorted({expression_text(part) for part in conjuncts(plain)})
    if not texts:
        return ""
    told = "" if absent is Absent.FALSE else f" absent={absent.value}"
    return f", {' and '.join(f'({text})' for text in texts)}{told}"


def _renamed(part: Expression, names: Mapping[str, str]) -> Expression:
    match part:
        case Attribute(variable, name):
            return Attribute(names[variable], name)
        case Previous(variable, name):
            return Previous(names[variable], name)
        case Every(variable, name):
            return Every(names[variable], name)
        case Apart(first, second, window):
            first, second = sorted((names[first], names[second]))
            return Apart(first, second, window)
        case _:
            return part


def _sorted(part: Expression) -> Expression:
    """The same condition with its operands in the order of their texts."""
    match part:
        case Compare(op, left, right) if expression_text(left) > expression_text(right):
            return Compare(MIRRORED[op], right, left)
        case And(operands):
            return And(tuple(sorted(operands, key=expression_text)))
        case Or(operands):
            return Or(tuple(sorted(operands, key=expression_text)))
        case _:
            return part
