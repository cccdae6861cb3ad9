"""The physical plan of a pattern of successors, read off a closed algebra tree (SPEC A1, B3).

Every node becomes an operator of one kernel. The plan numbers the event components and the
variables, and finds for each waiting operator the equality by which its instances are indexed and
the windows that let them go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cepheid.algebra.expression import (
    Absent,
    Attribute,
    Compare,
    Expression,
    Previous,
    conjunction,
    conjuncts,
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
    operands,
    walk,
    with_operands,
)
from cepheid.model.errors import QueryError
from cepheid.model.event_time import MAX_TIME
from cepheid.planner.sequence_plan import Component, Negation

_OPERATORS = (Next, Plus, Except, Timer, Union)


def is_succession(pattern: Pattern) -> bool:
    """Whether a pattern needs the kernels of successors; else it is a sequence."""
    return any(isinstance(node, _OPERATORS) for node in walk(pattern)) or (
        isinstance(pattern, Within) and pattern.measure is Measure.END_TO_END
    )


@dataclass(frozen=True, slots=True)
class SuccessionPlan:
    """What hosts ask of a pattern of successors; `pattern` holds all the rest.

    `components` are all atoms, those of exceptions too. `window` is set when a match can last no
    longer than that (inclusive) from the end of its first event to its own end. `delay` is how much
    later than its last event a match can end (SPEC C4: lag).
    """

    pattern: Pattern
    components: tuple[Component, ...]
    names: tuple[str, ...]
    iterated: frozenset[str]
    window: int | None
    absent: Absent = Absent.FALSE
    delay: int = 0

    @property
    def negations(self) -> tuple[Negation, ...]:
        """None of them stands beside the pattern: exceptions are operators of it."""
        return ()

    @property
    def joint(self) -> tuple[Expression, ...]:
        """Conditions over several components, wherever they are tested."""
        return tuple(test for node in walk(self.pattern) for test in _conditions(node))

    @property
    def length(self) -> int:
        """The number of components; an iterated or delayed one counts for many."""
        return len(self.components) + len(self.iterated) + (self.delay > 0)

    @property
    def fewest(self) -> int:
        """How many events a match has at least."""
        return _fewest(self.pattern)

    @property
    def is_monotone(self) -> bool:
        """A later arrival can displace a successor, so a match waits for the watermark."""
        return False

    @property
    def retention(self) -> int | None:
        """An event older than the watermark by this much matters no more; None: it depends."""
        return None if self.window is None else self.window + 1

    @property
    def ends_at_deadline(self) -> bool:
        """A match ends with its last event."""
        return False

    def checked(self, check: Callable[[Expression], Expression]) -> SuccessionPlan:
        """The same plan with every condition passed through `check`."""
        components = tuple(
            replace(each, test=conjunction([check(part) for part in conjuncts(each.test)]))
            for each in self.components
        )
        return replace(self, components=components, pattern=_checked(self.pattern, check))


def plan_succession(pattern: Pattern) -> SuccessionPlan:
    """The plan of a closed pattern, or a QueryError naming the node no kernel runs yet."""
    atoms = []
    for node in walk(pattern):
        match node:
            case Atom():
                atoms.append(node)
            case Within(measure=Measure.LAST_MINUS_FIRST):
                raise _no_kernel(node, "a window over a whole match of successors")
            case Timer() if longest_delay(node) > MAX_TIME:
                raise QueryError.of(
                    "window-too-large", "the delays add up to more than 36,000 years"
                )
            case Filter() | Within() | Union() | Next() | Plus() | Except() | Timer():
                pass
            case _:
                raise _no_kernel(node)
    components = tuple(Component(atom.variable, atom.types, atom.predicate) for atom in atoms)
    iterated = frozenset(
        name for node in walk(pattern) if isinstance(node, Plus) for name in bound_variables(node)
    )
    longest, delay = _longest(pattern), longest_delay(pattern)
    return SuccessionPlan(
        pattern,
        components,
        bound_variables(pattern),
        iterated,
        None if longest is None else longest + delay,
        delay=delay,
    )


def _conditions(node: Pattern) -> tuple[Expression, ...]:
    match node:
        case Filter() | Except():
            return conjuncts(node.predicate)
        case Next() | Plus():
            return (*conjuncts(node.skip), *conjuncts(node.test))
        case _:
            return ()


def _checked(node: Pattern, check: Callable[[Expression], Expression]) -> Pattern:
    below = with_operands(node, tuple(_checked(each, check) for each in operands(node)))

    def each(expression: Expression) -> Expression:
        return conjunction([check(part) for part in conjuncts(expression)])

    match below:
        case Filter() | Except() | Atom():
            return replace(below, predicate=each(below.predicate))
        case Next() | Plus():
            return replace(below, skip=each(below.skip), test=each(below.test))
        case _:
            return below


def _longest(pattern: Pattern) -> int | None:
    """How long it can be from a match's first event to its last, if some window spans all of it."""
    first, last = _first_variable(pattern), last_variable(pattern)
    if first is None:
        return None
    node = pattern
    while not isinstance(node, Union):
        if isinstance(node, Atom):
            return 0
        if isinstance(node, Within) and {node.first, node.second} == {first, last}:
            return length_of(node)
        if isinstance(node, Next | Plus):
            return None
        node = operands(node)[0]
    return None


def length_of(node: Within) -> int:
    """The greatest distance that a window allows."""
    assert isinstance(node.window, int)
    return node.window + node.ticks - (0 if node.inclusive else 1)


def _first_variable(node: Pattern) -> str | None:
    """The variable of the first event of every match; None where that differs or repeats."""
    match node:
        case Atom():
            return node.variable
        case Filter() | Within() | Except() | Timer():
            return _first_variable(node.pattern)
        case Next():
            return _first_variable(node.first)
        case _:
            return None


def last_variable(node: Pattern) -> str | None:
    """The variable of the last event of every match; None where that differs."""
    match node:
        case Atom():
            return node.variable
        case Filter() | Within() | Except() | Plus() | Timer():
            return last_variable(node.pattern)
        case Next():
            return last_variable(node.second)
        case _:
            return None


def longest_delay(node: Pattern) -> int:
    """How much later than its last event a match can end at most."""
    match node:
        case Timer():
            assert isinstance(node.delay, int)
            return node.delay + longest_delay(node.pattern)
        case Next():
            return longest_delay(node.second)
        case Filter() | Within() | Except() | Plus():
            return longest_delay(node.pattern)
        case Union():
            return max(map(longest_delay, node.patterns))
        case _:
            return 0


def _fewest(node: Pattern) -> int:
    match node:
        case Next():
            return _fewest(node.first) + _fewest(node.second)
        case Filter() | Within() | Except() | Plus() | Timer():
            return _fewest(node.pattern)
        case Union():
            return min(map(_fewest, node.patterns))
        case _:
            return 1


# -- keys ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct of `skip` that compares what is bound with what comes next."""

    bound: Attribute
    coming: Attribute


def equalities(node: Next | Plus) -> tuple[Equality, ...]:
    """The equalities by which an operator's instances can be indexed."""
    coming = set(bound_variables(node.second if isinstance(node, Next) else node.pattern))
    # PREV of a variable that a run has not bound yet is no test at all, and no value either.
    surely = _surely_bound(node.pattern) if isinstance(node, Plus) else frozenset()
    found = []
    for test in conjuncts(node.skip):
        if not isinstance(test, Compare) or test.op != "=":
            continue
        for one, other in ((test.left, test.right), (test.right, test.left)):
            if not isinstance(other, Attribute) or other.variable not in coming:
                continue
            if isinstance(one, Previous) and one.variable in surely:
                found.append(Equality(Attribute(one.variable, one.name), other))
            elif isinstance(one, Attribute) and one.variable not in coming:
                found.append(Equality(one, other))
            else:
                continue
            break
    return tuple(found)


def _surely_bound(node: Pattern) -> frozenset[str]:
    """The variables that every match of a pattern binds."""
    match node:
        case Union():
            return frozenset.intersection(*map(_surely_bound, node.patterns))
        case Next():
            return _surely_bound(node.first) | _surely_bound(node.second)
        case Filter() | Within() | Except() | Plus() | Timer():
            return _surely_bound(node.pattern)
        case _:
            return frozenset(bound_variables(node))


def shared_key(plan: SuccessionPlan) -> dict[str, str] | None:
    """For each component the attribute by which events can be told apart into separate streams.

    Every operator must skip what has another value of it (SPEC B5: only equality in phi divides).
    """
    classes: dict[tuple[str, str], set[tuple[str, str]]] = {}

    def together(one: tuple[str, str], other: tuple[str, str]) -> None:
        merged = classes.get(one, {one}) | classes.get(other, {other})
        for each in merged:
            classes[each] = merged

    for node in walk(plan.pattern):
        if isinstance(node, Next | Plus):
            for each in equalities(node):
                together(
                    (each.bound.variable, each.bound.name), (each.coming.variable, each.coming.name)
                )
        if isinstance(node, Except):
            for one, other in _compared(node.predicate):
                together(one, other)
    for members in classes.values():
        attribute: dict[str, str] = {}
        for variable, name in sorted(members):
            attribute.setdefault(variable, name)
        if _divides(plan.pattern, attribute):
            return {c.variable: attribute[c.variable] for c in plan.components}
    return None


def _divides(node: Pattern, attribute: dict[str, str]) -> bool:
    """Whether every match of a pattern, and what competes with it, has one value of the key."""
    if not all(_divides(each, attribute) for each in operands(node)):
        return False
    match node:
        case Atom():
            return node.variable in attribute
        case Next() | Plus():
            pairs = {(e.bound, e.coming) for e in equalities(node)}
            return any(
                attribute.get(bound.variable) == bound.name
                and attribute.get(coming.variable) == coming.name
                for bound, coming in pairs
            )
        case Except():
            inside = set(bound_variables(node.negated))
            return any(
                attribute.get(one[0]) == one[1] and attribute.get(other[0]) == other[1]
                for one, other in _compared(node.predicate)
                if (one[0] in inside) != (other[0] in inside)
            )
        case _:
            return True


def _compared(predicate: Expression) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    found = []
    for test in conjuncts(predicate):
        match test:
            case Compare("=", Attribute(v1, a1), Attribute(v2, a2)) if v1 != v2:
                found.append(((v1, a1), (v2, a2)))
    return found


def _no_kernel(node: Pattern, why: str | None = None) -> QueryError:
    return QueryError.of(
        "no-kernel",
        f"there is no kernel for {type(node).__name__} among successors"
        + (f": {why}" if why else ""),
        help="patterns of ; | + @ and \\ over event types can be run",
    )
