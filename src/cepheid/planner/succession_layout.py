"""A plan of successors over columns of known types: the kernel's shape and what it is fed with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    Union,
    Within,
    bound_variables,
)
from cepheid.kernels.succession_shape import (
    Condition,
    Deadline,
    Exclude,
    Follow,
    Leaf,
    Merge,
    Operator,
    Repeat,
    SuccessionShape,
    Test,
)
from cepheid.planner.kernel_expression import StringConstant
from cepheid.planner.succession_conditions import Conditions
from cepheid.planner.succession_plan import (
    SuccessionPlan,
    equalities,
    last_variable,
    length_of,
)


@dataclass(frozen=True, slots=True)
class SuccessionLayout:
    """What running successors need besides events; the names are those of a sequence's layout.

    Bit b of a row's mask says that the row may fill component b. `bit_tests` are own tests of
    components, `computed` other tests of single events, both worked out as columns before the
    kernel. Variables are numbered in the order of the components; a match names them by number.
    `columns` are the whole numbers (with the codes of strings), then the floats.
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


def lay_out_succession(
    plan: SuccessionPlan, type_of_column: Callable[[str], ScalarType]
) -> SuccessionLayout:
    """Number variables and columns, write the conditions."""
    return _Builder(plan, type_of_column).build()


class _Builder:
    def __init__(self, plan: SuccessionPlan, type_of_column: Callable[[str], ScalarType]) -> None:
        self.plan = plan
        self.type_of_column = type_of_column
        self.numbers = {c.variable: n for n, c in enumerate(plan.components)}
        self.conditions = Conditions(self.numbers, lambda _, name: type_of_column(name))
        self.operators: list[Operator] = []
        self.most = 0
        self.bit_tests: list[tuple[int, str, Expression]] = []

    def build(self) -> SuccessionLayout:
        self._operator(self.plan.pattern, ())
        conditions = self.conditions
        columns = tuple(
            (name, conditions.type_of(name)) for name in (*conditions.whole, *conditions.real)
        )
        bits: dict[str, int] = {}
        of_any = 0
        for bit, component in enumerate(self.plan.components):
            for name in component.types:
                bits[name] = bits.get(name, 0) | 1 << bit
            of_any |= 0 if component.types else 1 << bit
        return SuccessionLayout(
            self.plan,
            SuccessionShape(tuple(self.operators)),
            columns,
            tuple(conditions.computed),
            {name: mask | of_any for name, mask in bits.items()},
            of_any,
            tuple(self.bit_tests),
            tuple(conditions.ints),
            tuple(conditions.floats),
            self.most,
        )

    def _add(self, operator: Operator) -> int:
        self.operators.append(operator)
        return len(self.operators) - 1

    def _operator(self, node: Pattern, above: tuple[Within, ...]) -> int:
        """The number of the operator for a node; `above` are the windows its matches must pass."""
        match node:
            case Atom():
                bit = self.numbers[node.variable]
                tests = conjuncts(node.predicate)
                self.bit_tests += [(bit, node.variable, test) for test in tests]
                return self._add(Leaf(bit, bit))
            case Filter():
                below = self._operator(node.pattern, above)
                return self._add(
                    Test(below, self.conditions.condition(node.predicate, frozenset()))
                )
            case Within():
                below = self._operator(node.pattern, (*above, node))
                return self._add(Test(below, self._within(node)))
            case Union():
                return self._add(Merge(tuple(self._operator(p, above) for p in node.patterns)))
            case Next():
                return self._follow(node, above)
            case Plus():
                return self._repeat(node)
            case Except():
                return self._exclude(node, above)
            case _:
                raise AssertionError(node)  # plan_succession has refused it

    def _follow(self, node: Next, above: tuple[Within, ...]) -> int:
        first, second = self._operator(node.first, above), self._operator(node.second, ())
        coming = frozenset(bound_variables(node.second))
        pairs = equalities(node)
        return self._add(
            Follow(
                first,
                second,
                self.conditions.condition(node.skip, coming),
                self.conditions.condition(node.test, coming),
                self.conditions.key(pairs, of_bound=True),
                self.conditions.key(pairs, of_bound=False),
                self._deadlines(node, above),
                not isinstance(self.operators[second], Leaf),
            )
        )

    def _deadlines(self, node: Next, above: tuple[Within, ...]) -> tuple[Deadline, ...]:
        """How long an instance may wait: until a window it must pass can no longer hold.

        That is when the other end of the window is still to come, so not for an event in the middle
        of what comes next: it may lie far before the end of that.
        """
        bound, coming = bound_variables(node.first), bound_variables(node.second)
        found = []
        for within in above:
            for one, other in ((within.first, within.second), (within.second, within.first)):
                is_ahead = other not in coming or other == last_variable(node.second)
                if one is not None and one in bound and other not in bound and is_ahead:
                    found.append(Deadline(self.numbers[one], length_of(within)))
        return tuple(dict.fromkeys(found))

    def _within(self, node: Within) -> Condition:
        assert node.first is not None and node.second is not None
        apart = Apart(node.first, node.second, length_of(node))
        return self.conditions.condition(apart, frozenset())

    def _repeat(self, node: Plus) -> int:
        operand = self._operator(node.pattern, ())
        coming = frozenset(bound_variables(node.pattern))
        pairs = equalities(node)
        if node.most is not None:
            self.most = node.most
        return self._add(
            Repeat(
                operand,
                self._start(node, coming),
                self.conditions.condition(node.skip, coming),
                self.conditions.condition(node.test, coming),
                self.conditions.key(pairs, of_bound=True),
                self.conditions.key(pairs, of_bound=False),
                not isinstance(self.operators[operand], Leaf),
                node.most is not None,
            )
        )

    def _start(self, node: Plus, coming: frozenset[str]) -> Condition:
        both = conjunction((node.skip, node.test))
        return self.conditions.condition(both, coming)

    def _exclude(self, node: Except, above: tuple[Within, ...]) -> int:
        operand = self._operator(node.pattern, above)
        negated = self._operator(node.negated, ())
        coming = frozenset(bound_variables(node.negated))
        return self._add(
            Exclude(
                operand,
                negated,
                tuple(self.numbers[name] for name in (node.since, *node.or_since)),
                self.conditions.condition(node.predicate, coming),
                # Only a query's own failures come out of it: what reads a failure fails itself.
                node.report_failures and node is self.plan.pattern,
            )
        )
