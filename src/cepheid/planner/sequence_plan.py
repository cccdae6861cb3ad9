"""The physical plan of a sequence with negations, read off a closed algebra tree.

It recognises guards, filters and windows, in any order, over a Seq of Atoms or one Atom (the shape
of every SASE query, docs/semantics.md#sase) and places each conjunct: tests of one component at its
stack, equalities over all components as the partitioning key, the rest in construction, at the
earliest level that has all its variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cepheid.algebra.expression import (
    TRUE,
    Absent,
    And,
    Attribute,
    Compare,
    Expression,
    Window,
    conjunction,
    conjuncts,
    variables,
)
from cepheid.algebra.pattern import (
    Atom,
    Filter,
    Guard,
    Measure,
    Order,
    Pattern,
    Seq,
    Side,
    TimeBound,
    Within,
)
from cepheid.model.errors import QueryError


class Place(Enum):
    """Where a negated component stands."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True, slots=True)
class Component:
    """A positive component: its types, and the tests that concern it alone."""

    variable: str
    types: tuple[str, ...]
    test: Expression


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated component, its own tests, and its tests against the positive ones.

    `after` is the index of the positive component before it (MIDDLE); `reach` the distance of the
    far bound from its anchor: back from the last event (START), on from the first (END).
    """

    variable: str
    types: tuple[str, ...]
    test: Expression
    joint: Expression
    place: Place
    after: int
    reach: int
    closed: bool


@dataclass(frozen=True, slots=True)
class SequencePlan:
    """All a host needs to run one sequence query.

    `window`: last - first < window, None for no limit. `joint`: conjuncts over two or more positive
    components, key equalities included. `retention`: how long an event can still matter.
    """

    components: tuple[Component, ...]
    negations: tuple[Negation, ...]
    joint: tuple[Expression, ...]
    window: int | None
    arrival_order: bool
    absent: Absent
    ends_at_deadline: bool

    @property
    def length(self) -> int:
        """The number of positive components."""
        return len(self.components)

    @property
    def is_monotone(self) -> bool:
        """Whether no later arrival can revoke a match: it may leave at once."""
        return not self.negations

    @property
    def retention(self) -> int | None:
        """An event older than the watermark by this much matters no more; None: never so."""
        reaches = [n.reach + 1 for n in self.negations if n.place is not Place.MIDDLE]
        if self.length == 1:
            return max([1, *reaches])  # equal events of one instant are numbered
        return None if self.window is None else max([self.window, *reaches])

    def index(self, variable: str) -> int:
        """The position of a positive component."""
        return next(i for i, c in enumerate(self.components) if c.variable == variable)


def plan_sequence(pattern: Pattern) -> SequencePlan:
    """The plan of a closed pattern, or a QueryError naming the node no kernel runs yet."""
    guards: list[Guard] = []
    predicates: list[Expression] = []
    windows: list[int] = []
    absents: set[Absent] = set()
    node = pattern
    # Tests of whole matches may stand in any order: each decides about a match by its events alone.
    while isinstance(node, Guard | Filter | Within):
        if isinstance(node, Guard):
            guards.append(node)
        elif isinstance(node, Filter):
            predicates.insert(0, node.predicate)
        else:
            windows.append(_window(node))
        if not isinstance(node, Within) and node.predicate != TRUE:
            absents.add(node.absent)
        node = node.pattern
    order = Order.STRICT
    operands: tuple[Pattern, ...] = (node,)
    if isinstance(node, Seq):
        operands, order = node.patterns, node.order
        if node.window is not None:
            windows.append(_length(node, node.window, node.inclusive))
    atoms = tuple(_atom(each) for each in operands)
    names = tuple(atom.variable for atom in atoms)
    tested = [*atoms, *(_atom(guard.negated) for guard in guards)]
    absents.update(atom.absent for atom in tested if atom.predicate != TRUE)
    if len(absents) > 1:
        raise _no_kernel(pattern, "its conditions treat missing attributes in different ways")
    own, joint = _split(conjunction(predicates), names)
    components = tuple(
        Component(a.variable, a.types, conjunction((a.predicate, own[a.variable]))) for a in atoms
    )
    negations = tuple(_negation(guard, names) for guard in reversed(guards))
    moves_end = any(guard.ends_match for guard in guards)
    if moves_end and len({n.reach for n in negations if n.place is Place.END}) != 1:
        raise _no_kernel(pattern, "its negated ends do not agree on the end of a match")
    return SequencePlan(
        components,
        negations,
        joint,
        min(windows, default=None),
        Order.SEQUENCE in (order, *(guard.order for guard in guards)),
        next(iter(absents), Absent.TRUE),
        moves_end,
    )


def _window(node: Within) -> int:
    below = node.pattern
    while isinstance(below, Guard | Filter | Within):
        if isinstance(below, Guard) and below.ends_match:
            raise _no_kernel(node, "it measures up to an end that a negation has moved")
        below = below.pattern
    if node.measure is not Measure.LAST_MINUS_FIRST:
        raise _no_kernel(node)
    return _length(node, node.window, node.inclusive) + node.ticks


def _length(node: Pattern, window: Window, inclusive: bool) -> int:
    """The window as the strict bound that kernels test; for instants all measures agree."""
    if not isinstance(window, int):
        raise _no_kernel(node)
    return window + 1 if inclusive else window


def _atom(node: Pattern) -> Atom:
    if not isinstance(node, Atom):
        raise _no_kernel(node)
    return node


def _split(
    predicate: Expression, names: tuple[str, ...]
) -> tuple[dict[str, Expression], tuple[Expression, ...]]:
    own: dict[str, list[Expression]] = {name: [] for name in names}
    joint: list[Expression] = []
    for part in conjuncts(predicate):
        used = variables(part)
        if len(used) == 1:
            own[next(iter(used))].append(part)
        elif not used:  # a test of constants concerns every match: the first component carries it
            own[names[0]].append(part)
        else:
            joint.append(part)
    return {name: conjunction(parts) for name, parts in own.items()}, tuple(joint)


def _negation(guard: Guard, names: tuple[str, ...]) -> Negation:
    atom = _atom(guard.negated)
    own: list[Expression] = [atom.predicate]
    joint: list[Expression] = []
    for part in conjuncts(guard.predicate):
        (own if variables(part) <= {atom.variable} else joint).append(part)
    place, after, reach = _placed(guard, names)
    return Negation(
        atom.variable,
        atom.types,
        conjunction(own),
        conjunction(joint),
        place,
        after,
        reach,
        guard.high_closed,
    )


def _placed(guard: Guard, names: tuple[str, ...]) -> tuple[Place, int, int]:
    low, high, window = guard.low, guard.high, guard.window
    first, last = names[0], names[-1]
    if guard.low_closed:
        raise _no_kernel(guard)
    if not guard.high_closed and not low.ticks and not high.ticks:
        for i in range(len(names) - 1):
            if _is(low, Side.END, names[i], 0) and _is(high, Side.START, names[i + 1], 0):
                return Place.MIDDLE, i, 0
    if isinstance(window, int):
        is_before = _is(low, Side.END, last, -1) and _is(high, Side.START, first, 0)
        if is_before and not guard.high_closed and not high.ticks:
            return Place.START, -1, window - low.ticks
        if _is(low, Side.END, last, 0) and _is(high, Side.START, first, 1) and not low.ticks:
            return Place.END, len(names) - 1, window + high.ticks
    raise _no_kernel(guard)


def _is(bound: TimeBound, side: Side, variable: str, windows: int) -> bool:
    return bound.side is side and bound.groups == ((variable,),) and bound.windows == windows


def _no_kernel(node: Pattern, why: str | None = None) -> QueryError:
    kind = type(node).__name__
    return QueryError.of(
        "no-kernel",
        f"there is no kernel for this use of {kind}" + (f": {why}" if why else ""),
        help="sequences of event types with negated components can be run",
    )


@dataclass(frozen=True, slots=True)
class Key:
    """The partitioning key: for each key column, the attribute of every component.

    `of[variable]` lists the attributes of that component, one per key column. `negated` holds the
    negated components the key covers, and of those `decided` have no other joint test.
    `tests` are the conjuncts of `joint` that equality of keys makes true.
    """

    of: dict[str, tuple[str, ...]]
    tests: frozenset[Expression]
    decided: frozenset[str]

    @property
    def width(self) -> int:
        """The number of key columns."""
        return len(next(iter(self.of.values())))


def find_key(plan: SequencePlan, allowed: frozenset[str] | None = None) -> Key | None:
    """The equivalence tests over all positive components, as one combined key (SASE's PAIS).

    Sound only while no key attribute is absent in a row: equality by way of an absent value is not
    transitive (docs/semantics.md#null-and-absent), so hosts leave the key when they meet one.
    `allowed` limits the attributes of the first component that may take part (the paper's
    experiments partition by one).
    """
    if plan.length < 2 and not plan.negations:
        return None
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(x: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(x, x) != x:
            x = parent[x]
        return x

    equalities = [(test, sides) for test in plan.joint if (sides := _equality(test)) is not None]
    for _, (left, right) in equalities:
        parent[root(left)] = root(right)
    classes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for member in list(parent):
        classes.setdefault(root(member), []).append(member)
    names = [c.variable for c in plan.components]
    if plan.length == 1:
        # One positive component: its attributes compared with a negated one can still be the key.
        own = sorted(
            {
                side[1]
                for n in plan.negations
                for test in conjuncts(n.joint)
                if (sides := _equality(test)) is not None
                for side in sides
                if side[0] == names[0]
            }
        )
        classes = {(names[0], a): [(names[0], a)] for a in own}
    columns: list[dict[str, str]] = []
    for members in classes.values():
        chosen: dict[str, str] = {}
        for variable, attribute in sorted(members):
            chosen.setdefault(variable, attribute)
        if all(name in chosen for name in names) and (
            allowed is None or chosen[names[0]] in allowed
        ):
            columns.append({name: chosen[name] for name in names})
    columns.sort(key=lambda c: tuple(c[name] for name in names))
    if not columns:
        return None
    of = {name: tuple(column[name] for column in columns) for name in names}
    covered = {(name, column[name]) for column in columns for name in names}
    tests = frozenset(
        test for test, (a, b) in equalities if a in covered and b in covered and root(a) == root(b)
    )
    decided = set()
    for negation in plan.negations:
        bound = _negation_key(negation, columns)
        if bound is None:
            continue
        attributes, left_over = bound
        of[negation.variable] = attributes
        if not left_over:
            decided.add(negation.variable)
    return Key(of, tests, frozenset(decided))


def _negation_key(
    negation: Negation, columns: list[dict[str, str]]
) -> tuple[tuple[str, ...], tuple[Expression, ...]] | None:
    """The negated component's attribute for each key column, and its joint tests beyond them."""
    chosen: list[str] = []
    used: set[Expression] = set()
    for column in columns:
        partner: str | None = None
        for test in conjuncts(negation.joint):
            sides = _equality(test)
            if sides is None:
                continue
            for mine, other in (sides, sides[::-1]):
                same = mine[0] == negation.variable and column.get(other[0]) == other[1]
                if same and partner in (None, mine[1]):
                    partner = mine[1]
                    used.add(test)
        if partner is None:
            return None
        chosen.append(partner)
    rest = tuple(t for t in conjuncts(negation.joint) if t not in used)
    return tuple(chosen), rest


def _equality(test: Expression) -> tuple[tuple[str, str], tuple[str, str]] | None:
    match test:
        case Compare("=", Attribute(v1, a1), Attribute(v2, a2)) if v1 != v2:
            return (v1, a1), (v2, a2)
    return None


def rest_of_joint(negation: Negation, key: Key | None) -> tuple[Expression, ...]:
    """The joint tests of a negated component that its key does not already decide."""
    if key is None or negation.variable not in key.of:
        return conjuncts(negation.joint)
    columns = [
        {v: attributes[c] for v, attributes in key.of.items() if v != negation.variable}
        for c in range(key.width)
    ]
    bound = _negation_key(negation, columns)
    assert bound is not None
    return bound[1]


def is_trivial(test: Expression) -> bool:
    """Whether a test is the empty conjunction."""
    return isinstance(test, And) and not test.operands
