"""A plan of successors over columns of known types: the kernel's shape and what it is fed with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cepheid.algebra.expression import (
    Apart,
    Expression,
    ScalarType,
    conjunction,
    conjuncts,
)
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
    bound_variables,
    failing,
    operands,
)
from cepheid.kernels.succession_shape import (
    OWN_START,
    Condition,
    Deadline,
    Delay,
    Exclude,
    Follow,
    Leaf,
    Merge,
    Operator,
    Repeat,
    SuccessionShape,
    Test,
)
from cepheid.planner.dispatch import Dispatcher
from cepheid.planner.kernel_expression import StringConstant
from cepheid.planner.run_totals import Measure
from cepheid.planner.succession_conditions import Conditions
from cepheid.planner.succession_plan import (
    SuccessionPlan,
    equalities,
    last_variable,
    length_of,
    longest_delay,
)


@dataclass(frozen=True, slots=True)
class Above:
    """What the operators above a part ask of its matches.

    They must pass `windows`, and may last no longer than `span` from start to end, delays counted.
    """

    windows: tuple[Within, ...] = ()
    span: int | None = None


ALONE = Above()
"""Nothing stands above the whole pattern, and nothing limits what may only raise an exception."""


@dataclass(frozen=True, slots=True)
class SuccessionLayout:
    """What running successors need besides events; the names are those of a sequence's layout.

    Bit b of a row's mask says that the row may fill component b. `bit_tests` are own tests of
    components, `computed` other tests of single events, both worked out as columns before the
    kernel. Variables are numbered in the order of the components; a match names them by number.
    `columns` are the whole numbers (with the codes of strings), then the floats. With a
    `dispatcher` there is no mask: what stands for it is the dispatcher's number of a row's type.
    `orders_strings`: conditions read the ranks of all strings, behind the whole constants.
    `kept_runs` are the variables whose runs are totals, `measures` what these tell (totals_layout).
    """

    plan: SuccessionPlan
    shape: SuccessionShape
    columns: tuple[tuple[str, ScalarType], ...]
    computed: tuple[tuple[str, Expression], ...]
    type_bits: Mapping[str, int]
    bits_of_any_type: int
    bit_tests: tuple[tuple[int, str, Expression], ...]
    int_constants: tuple[int | StringConstant, ...]
    float_constants: tuple[float, ...]
    most: int

    key_attributes: tuple[tuple[str, ...], ...] = ()
    key_kinds: tuple[ScalarType, ...] = ()
    bit_keys: tuple[tuple[int, int], ...] = ()
    dispatcher: Dispatcher | None = None
    kept_runs: frozenset[int] = frozenset()
    measures: Mapping[tuple[int, str], Measure] = field(default_factory=dict)
    orders_strings: bool = False


def lay_out_succession(
    plan: SuccessionPlan, type_of_column: Callable[[str], ScalarType]
) -> SuccessionLayout:
    """Number variables and columns, write the conditions."""
    return OneQuery(plan, type_of_column).build()


class OperatorBuilder(ABC):
    """Makes the operators of patterns, operands first.

    What variables are called in the findings of an operator, and whether an operator is there
    already, is for subclasses to say.
    """

    def __init__(self, type_of_column: Callable[[str], ScalarType]) -> None:
        """No operators yet."""
        self.conditions = Conditions(lambda _, name: type_of_column(name))
        self.operators: list[Operator] = []
        self.most = 0

    @abstractmethod
    def numbers(self, node: Pattern) -> Mapping[str, int]:
        """What the variables of a pattern are called in its findings."""

    @abstractmethod
    def atom(self, node: Atom) -> int:
        """The number of an atom that has no leaf yet."""

    @abstractmethod
    def reports(self, node: Except) -> bool:
        """Whether failures come out of it."""

    def known(self, node: Pattern) -> int | None:
        """The operator that is there for a pattern already."""
        return None

    def add(self, node: Pattern, operator: Operator) -> int:
        """Put a pattern's operator behind the others; its number."""
        self.operators.append(operator)
        return len(self.operators) - 1

    @property
    def columns(self) -> tuple[tuple[str, ScalarType], ...]:
        """The columns that conditions read."""
        of = self.conditions
        return tuple((name, of.type_of(name)) for name in (*of.whole, *of.real))

    def operator(self, node: Pattern, above: Above = ALONE) -> int:
        """The number of the operator for a node; `above` is what its matches must pass."""
        known = self.known(node)
        operands = [self.operator(*each) for each in operands_below(node, above)]
        if known is None:
            return self.add(node, self._made(node, operands, above))
        found = self.operators[known]
        if isinstance(node, Next | Plus) and isinstance(found, Follow | Repeat):
            # Whoever else uses it may have to wait longer.
            waits = _looser(found.deadlines, self._deadlines(node, above))
            self.operators[known] = replace(found, deadlines=waits)
        return known

    def _made(self, node: Pattern, operands: list[int], above: Above) -> Operator:
        match node:
            case Atom():
                (variable,) = self.numbers(node).values()
                return Leaf(self.atom(node), variable)
            case Filter():
                return Test(operands[0], self._test(node.pattern, node.predicate))
            case Within():
                assert node.first is not None and node.second is not None
                apart = Apart(node.first, node.second, length_of(node))
                return Test(operands[0], self._test(node.pattern, apart))
            case Union():
                return self._merge(node, operands)
            case Next():
                return self._follow(node, operands, above)
            case Plus():
                return self._repeat(node, operands, above)
            case Except():
                return self._exclude(node, operands)
            case Timer():
                assert isinstance(node.delay, int)
                return Delay(operands[0], node.delay)
            case _:
                raise AssertionError(node)  # plan_succession has refused it

    def _test(self, below: Pattern, predicate: Expression) -> Condition:
        return self.conditions.condition(predicate, self.numbers(below), {})

    def _merge(self, node: Union, operands: list[int]) -> Merge:
        numbers = self.numbers(node)
        renamings = []
        for each in node.patterns:
            own = self.numbers(each)
            same = all(numbers[name] == number for name, number in own.items())
            by_number = sorted(own, key=lambda name: own[name])
            renamings.append(() if same else tuple(numbers[name] for name in by_number))
        return Merge(tuple(operands), tuple(renamings))

    def _follow(self, node: Next, operands: list[int], above: Above) -> Follow:
        first, second = operands
        bound, coming = self.numbers(node), self.numbers(node.second)
        (shift,) = {bound[name] - number for name, number in coming.items()}
        pairs = equalities(node)
        return Follow(
            first,
            second,
            self.conditions.condition(node.skip, bound, coming),
            self.conditions.condition(node.test, bound, coming),
            self.conditions.key(pairs, bound, of_bound=True),
            self.conditions.key(pairs, coming, of_bound=False),
            self._deadlines(node, above),
            not isinstance(self.operators[second], Leaf),
            shift,
        )

    def _deadlines(self, node: Next | Plus, above: Above) -> tuple[tuple[Deadline, ...], ...]:
        """How long an instance may wait: until it can no longer pass what is above."""
        found = [] if above.span is None else [Deadline(OWN_START, above.span)]
        if isinstance(node, Next):
            numbers = self.numbers(node.first)
            found += [Deadline(numbers[name], limit) for name, limit in _ahead(node, above)]
        return (tuple(dict.fromkeys(found)),) if found else ()

    def _repeat(self, node: Plus, operands: list[int], above: Above) -> Repeat:
        numbers = self.numbers(node.pattern)
        pairs = equalities(node)
        if node.most is not None:
            self.most = node.most
        start = conjunction((node.skip, node.test))
        return Repeat(
            operands[0],
            self.conditions.condition(start, numbers, numbers),
            self.conditions.condition(node.skip, numbers, numbers),
            self.conditions.condition(node.test, numbers, numbers),
            self.conditions.key(pairs, numbers, of_bound=True),
            self.conditions.key(pairs, numbers, of_bound=False),
            not isinstance(self.operators[operands[0]], Leaf),
            node.most is not None,
            self._deadlines(node, above),
            _is_iteration(node.pattern),
        )

    def _exclude(self, node: Except, operands: list[int]) -> Exclude:
        operand, negated = operands
        own, coming = self.numbers(node.pattern), self.numbers(node.negated)
        # A match binds no variable of an exception: looking back for one finds nothing.
        free = 1 + max(own.values())
        bound = {name: free + n for n, name in enumerate(coming)} | dict(own)
        return Exclude(
            operand,
            negated,
            tuple(own[name] for name in (node.since, *node.or_since)),
            self.conditions.condition(node.predicate, bound, coming),
            self.reports(node),
        )


def operands_below(node: Pattern, above: Above) -> tuple[tuple[Pattern, Above], ...]:
    """The operands of a node, with what their matches must pass.

    No part of a match lasts longer than the match. What follows an event begins after that event
    ends, so a window from there to its own end, or beyond, limits how long it lasts. Without those
    that last too long a later successor may be chosen, but that ends no earlier, and does not pass
    the window either (as in the optimiser's bound_next_by_window).
    """
    match node:
        case Atom():
            return ()
        case Within():
            return ((node.pattern, replace(above, windows=(*above.windows, node))),)
        case Next():
            limits = [limit - 1 for _, limit in _ahead(node, above)]
            limits += [] if above.span is None else [above.span]
            return ((node.first, above), (node.second, Above((), min(limits, default=None))))
        case Except():
            # A match that is too long may still fail, and be reported.
            passed = ALONE if node.report_failures else above
            return ((node.pattern, passed), (node.negated, ALONE))
        case Plus():
            return ((node.pattern, Above((), above.span)),)
        case _:
            return tuple((each, above) for each in operands(node))


def _ahead(node: Next, above: Above) -> Iterator[tuple[str, int]]:
    """Variables of what is bound, each with the time after which a window can no longer hold.

    That is where the other end of the window is still to come, so not an event in the middle of
    what comes next: it may lie far before the end of that. What a timer delays comes later than its
    last event.
    """
    bound, coming = bound_variables(node.first), bound_variables(node.second)
    lag = longest_delay(node.second)
    for within in above.windows:
        for one, other in ((within.first, within.second), (within.second, within.first)):
            is_ahead = other not in coming or other == last_variable(node.second)
            if one is not None and one in bound and other not in bound and is_ahead:
                yield one, length_of(within) + lag


def _is_iteration(node: Pattern) -> bool:
    """Whether a match may be a run: then two of them, one after the other, may be a run as well.

    Variables tell apart all else that is repeated: `(A+; B)+` has one B in each element.
    """
    match node:
        case Plus():
            return True
        case Next():
            return False
        case Except():
            return _is_iteration(node.pattern)
        case _:
            return any(map(_is_iteration, operands(node)))


def _looser(
    one: tuple[tuple[Deadline, ...], ...], other: tuple[tuple[Deadline, ...], ...]
) -> tuple[tuple[Deadline, ...], ...]:
    """Deadlines that are over when both are; groups about the same variables become one."""
    if not one or not other:
        return ()
    groups: dict[tuple[int, ...], dict[int, int]] = {}
    for group in (*one, *other):
        shortest: dict[int, int] = {}
        for each in group:
            shortest[each.variable] = min(each.window, shortest.get(each.variable, each.window))
        known = groups.setdefault(tuple(sorted(shortest)), shortest)
        for variable, window in shortest.items():
            known[variable] = max(window, known[variable])
    return tuple(
        tuple(Deadline(variable, window) for variable, window in sorted(group.items()))
        for group in groups.values()
    )


class OneQuery(OperatorBuilder):
    """All operators of one plan, whose variables have one number each everywhere."""

    def __init__(self, plan: SuccessionPlan, type_of_column: Callable[[str], ScalarType]) -> None:
        super().__init__(type_of_column)
        self._plan = plan
        self._numbers = {c.variable: n for n, c in enumerate(plan.components)}
        self._bit_tests: list[tuple[int, str, Expression]] = []
        self._failing = tuple(failing(plan.pattern))

    def build(self) -> SuccessionLayout:
        """All operators, and the bits of masks that stand for components."""
        root = self.operator(self._plan.pattern)
        bits: dict[str, int] = {}
        of_any = 0
        for bit, component in enumerate(self._plan.components):
            for name in component.types:
                bits[name] = bits.get(name, 0) | 1 << bit
            of_any |= 0 if component.types else 1 << bit
        return SuccessionLayout(
            self._plan,
            SuccessionShape(tuple(self.operators), (root,)),
            self.columns,
            tuple(self.conditions.computed),
            {name: mask | of_any for name, mask in bits.items()},
            of_any,
            tuple(self._bit_tests),
            tuple(self.conditions.ints),
            tuple(self.conditions.floats),
            self.most,
            orders_strings=self.conditions.orders_strings,
        )

    def numbers(self, node: Pattern) -> Mapping[str, int]:
        """The numbers of the components."""
        return {name: self._numbers[name] for name in bound_variables(node)}

    def atom(self, node: Atom) -> int:
        """The bit of its component."""
        bit = self._numbers[node.variable]
        self._bit_tests += [(bit, node.variable, test) for test in conjuncts(node.predicate)]
        return bit

    def reports(self, node: Except) -> bool:
        """Whether it was asked to, and its failures come out of the whole pattern."""
        return any(each is node for each in self._failing)
