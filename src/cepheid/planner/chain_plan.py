"""Which patterns of successors are plain chains, and what the kernel of chains is told of them.

A plain chain is `A ; B ; C ...` with brackets to the left, in which an event is passed over only
for its own sake or for another key. Then all instances of a key that wait for a step have the same
successor, and a condition that does not pass over only decides whether an instance goes on with it:
it may be tested as soon as its events are known, wherever it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from cepheid.algebra.expression import (
    Aggregate,
    Apart,
    Attribute,
    Compare,
    Every,
    Expression,
    Previous,
    ScalarType,
    conjuncts,
    variables,
    walk,
)
from cepheid.algebra.pattern import Atom, Filter, Next, Pattern, Within
from cepheid.model.options import Options
from cepheid.planner.kernel_expression import StringConstant
from cepheid.planner.succession_plan import SuccessionPlan, length_of

MOST_STEPS = 24
"""An event's mask has two bits for each step."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A plain chain; steps are the plan's components, in their order.

    `key` are the attributes that are equal in all its events, if any. `filters` are further tests
    that an event must pass to come for a step at all, `tests` those to go on with it.
    `windows` are (earlier step, later step, greatest distance).
    """

    key: tuple[str, ...]
    filters: tuple[tuple[int, Expression], ...]
    tests: tuple[tuple[int, Expression], ...]
    windows: tuple[tuple[int, int, int], ...]


class _NoChainError(Exception):
    """Raised with the reason while a pattern is looked at."""


def chain_of(plan: SuccessionPlan, options: Options) -> Chain | str:
    """The plain chain that a plan is, or the reason why it is none, for people."""
    if not options.plan.chains:
        return "the plan option chains is off"
    if options.start is not None:
        return "events may last"
    if len(plan.components) > MOST_STEPS:
        return f"it has more than {MOST_STEPS} steps"
    try:
        reader = _Reader(plan)
        reader.read(plan.pattern)
        return reader.chain()
    except _NoChainError as reason:
        return str(reason)


class _Reader:
    """Walks down the left brackets and sorts all conditions."""

    def __init__(self, plan: SuccessionPlan) -> None:
        self._step = {c.variable: step for step, c in enumerate(plan.components)}
        self._keys: list[frozenset[str]] = []
        self._filters: list[tuple[int, Expression]] = []
        self._tests: list[tuple[int, Expression]] = []
        self._windows: list[tuple[int, int, int]] = []

    def chain(self) -> Chain:
        if not self._keys:
            _refuse("it has one event only")
        if len(set(self._keys)) > 1:
            _refuse("not every ; passes over events by the same key")
        return Chain(
            tuple(sorted(self._keys[0])),
            tuple(self._filters),
            tuple(self._tests),
            tuple(dict.fromkeys(self._windows)),
        )

    def read(self, node: Pattern) -> None:
        match node:
            case Atom():
                pass  # its own tests are the plan's
            case Within():
                assert node.first is not None and node.second is not None
                self._window(node.first, node.second, length_of(node))
                self.read(node.pattern)
            case Filter():
                self._go_on(node.predicate)
                self.read(node.pattern)
            case Next(second=Atom()):
                assert isinstance(node.second, Atom)
                self.read(node.first)
                self._pass_over(node.skip, node.second.variable)
                self._go_on(node.test)
            case Next(second=Next() | Filter() | Within()):
                _refuse("brackets to the right")
            case _:
                _refuse("it has more than ; and conditions")

    def _pass_over(self, skip: Expression, coming: str) -> None:
        key = set()
        for test in conjuncts(skip):
            match test:
                case Compare("=", Attribute(one, name), Attribute(other, same)) if (
                    name == same and one != other and coming in (one, other)
                ):
                    key.add(name)
                case _ if variables(test) == {coming} and not _looks_back(test):
                    self._filters.append((self._step[coming], test))
                case _:
                    _refuse("a FILTER compares events other than by one key")
        self._keys.append(frozenset(key))

    def _go_on(self, condition: Expression) -> None:
        for test in conjuncts(condition):
            used = variables(test)
            if isinstance(test, Apart):
                assert isinstance(test.window, int)
                self._window(test.first, test.second, test.window)
            elif len(used) == 1 and not _looks_back(test):
                self._tests.append((self._step[next(iter(used))], test))
            else:
                _refuse("a condition compares several events")

    def _window(self, one: str, other: str, length: int) -> None:
        earlier, later = sorted((self._step[one], self._step[other]))
        if earlier == later:
            _refuse("a window over one event")
        self._windows.append((earlier, later, length))


def _looks_back(test: Expression) -> bool:
    return any(isinstance(part, Previous | Every | Aggregate) for part in walk(test))


def _refuse(reason: str) -> NoReturn:
    raise _NoChainError(reason)


# -- over columns of known types ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChainLayout:
    """What a running chain is fed with; the names are those of a sequence's layout.

    Bit s of a row's mask says that the row may come for step s, bit steps + s that an instance may
    go on with it there.
    """

    plan: SuccessionPlan
    chain: Chain
    type_bits: Mapping[str, int]
    bits_of_any_type: int
    bit_tests: tuple[tuple[int, str, Expression], ...]
    key_attributes: tuple[tuple[str, ...], ...]
    key_kinds: tuple[ScalarType, ...]
    bit_keys: tuple[tuple[int, int], ...]

    columns: tuple[tuple[str, ScalarType], ...] = ()
    computed: tuple[tuple[str, Expression], ...] = ()
    int_constants: tuple[int | StringConstant, ...] = ()
    float_constants: tuple[float, ...] = ()

    dispatcher: ClassVar[None] = None
    """Events are told apart by their type and `bit_tests` alone."""

    @property
    def is_plain(self) -> bool:
        """Whether the columns of a batch need not be looked up: at most one key, of integers."""
        return not self.bits_of_any_type and self.key_kinds in ((), (ScalarType.INT,))

    @property
    def steps(self) -> int:
        """How many events a match has."""
        return len(self.plan.components)


def lay_out_chain(
    plan: SuccessionPlan, chain: Chain, type_of_column: Callable[[str], ScalarType]
) -> ChainLayout:
    """Give the steps their bits and the key its types."""
    steps = len(plan.components)
    bits: dict[str, int] = {}
    of_any = 0
    tests: list[tuple[int, str, Expression]] = []
    for step, component in enumerate(plan.components):
        both = 1 << step | 1 << (steps + step)
        for name in component.types:
            bits[name] = bits.get(name, 0) | both
        of_any |= 0 if component.types else both
        tests += [(step, component.variable, test) for test in conjuncts(component.test)]
    variable = [component.variable for component in plan.components]
    tests += [(step, variable[step], test) for step, test in chain.filters]
    # Nobody asks whether an instance goes on with its first event: there it is none.
    tests += [(step + steps if step else 0, variable[step], test) for step, test in chain.tests]
    return ChainLayout(
        plan,
        chain,
        {name: mask | of_any for name, mask in bits.items()},
        of_any,
        tuple(tests),
        (chain.key,) if chain.key else (),
        tuple(type_of_column(name) for name in chain.key),
        tuple((step, 0) for step in range(steps)) if chain.key else (),
    )
