"""A sequence plan over columns of known types: the kernel's shape and everything it is fed with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from cepheid.algebra.expression import Expression, ScalarType, attributes, conjuncts, variables
from cepheid.kernels.sequence_shape import Between, SequenceShape
from cepheid.kernels.witness_source import ProbeShape
from cepheid.model.errors import OptionError
from cepheid.model.options import PlanOptions
from cepheid.planner.kernel_expression import KernelSource, StringConstant, is_native
from cepheid.planner.sequence_plan import (
    Key,
    Negation,
    Place,
    SequencePlan,
    find_key,
    rest_of_joint,
)

_LONGEST_MULTI = 16
"""Its construction is a loop for each event, and Python nests no more than twenty."""

_DTYPE = {ScalarType.FLOAT: "float64"}


@dataclass(frozen=True, slots=True)
class Probe:
    """A negated component decided after construction, by looking for a witness."""

    negation: Negation
    bit: int
    key_group: int | None
    shape: ProbeShape
    pair_tests: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a running sequence needs besides events.

    Bit b of a row's mask says that the row may fill positive component b, or negated component
    b - length. `bit_tests` are own tests computed as columns before the kernel; `selection` are
    joint tests computed as columns after it. `scan` says which kernel runs; for "multi" `families`
    lists, per equivalence attribute, the key group of each positive component.
    """

    plan: SequencePlan
    shape: SequenceShape
    key: Key | None
    key_attributes: tuple[tuple[str, ...], ...]
    key_kinds: tuple[ScalarType, ...]
    columns: tuple[tuple[str, ScalarType], ...]
    type_bits: Mapping[str, int]
    bits_of_any_type: int
    bit_tests: tuple[tuple[int, str, Expression], ...]
    bit_keys: tuple[tuple[int, int], ...]
    selection: tuple[Expression, ...]
    probes: tuple[Probe, ...]
    int_constants: tuple[int | StringConstant, ...]
    float_constants: tuple[float, ...]
    scan: str
    families: tuple[tuple[int, ...], ...]
    computed: tuple[tuple[str, Expression], ...] = ()

    dispatcher: ClassVar[None] = None
    """Events are told apart by their type and `bit_tests` alone."""

    @property
    def is_plain(self) -> bool:
        """Whether the columns of a batch need not be looked up: at most one key, of integers."""
        if self.scan != "stacks" or self.bits_of_any_type or len(self.key_attributes) > 1:
            return False
        return not self.key_attributes or self.key_kinds == (ScalarType.INT,)

    @property
    def needs_flat_rows(self) -> bool:
        """Whether a match must be looked at one by one after construction."""
        return bool(self.selection or self.probes)


def lay_out(
    plan: SequencePlan,
    type_of_column: Callable[[str], ScalarType],
    options: PlanOptions,
    *,
    partitioned: bool = True,
    undoable: bool = True,
) -> Layout:
    """Choose key, places of tests and output form.

    `partitioned=False` leaves the key unused; `undoable=False` promises events in order of time.
    """
    return _Builder(plan, type_of_column, options, partitioned, undoable).build()


class _Builder:
    def __init__(
        self,
        plan: SequencePlan,
        type_of_column: Callable[[str], ScalarType],
        options: PlanOptions,
        partitioned: bool,
        undoable: bool,
    ) -> None:
        self.plan = plan
        self.undoable = undoable
        self.options = options
        self.type_of_column = type_of_column
        self.columns: dict[str, int] = {}
        self.ints: list[int | StringConstant] = []
        self.floats: list[float] = []
        self.key = self._choose_key() if partitioned else None
        self.scan = self._choose_scan(partitioned)
        self.groups: dict[tuple[str, ...], int] = {}

    def type_of(self, variable: str, name: str) -> ScalarType:
        return self.type_of_column(name)

    def build(self) -> Layout:
        plan, last = self.plan, self.plan.length - 1
        bit_tests: list[tuple[int, str, Expression]] = []
        on_top = plan.length > 1 and not self.options.simple_in_scan
        simple = tuple(
            "" if on_top else self._own_test(component.test, s, component.variable, bit_tests)
            for s, component in enumerate(plan.components)
        )
        tested_on_top = [t for c in plan.components for t in conjuncts(c.test)] if on_top else []
        joint, selection = self._place_joint_tests(tested_on_top)
        between: list[Between | None] = [None] * max(0, last)
        before_first: Between | None = None
        probes: list[Probe] = []
        for j, negation in enumerate(plan.negations):
            bit = plan.length + j
            group = None if self.scan == "multi" else self._group(negation.variable)
            place = self._kernel_place(negation, between, before_first)
            if place is None:  # a probe has no room for own tests: they become columns
                bit_tests += [(bit, negation.variable, t) for t in conjuncts(negation.test)]
                probes.append(self._probe(negation, bit, group))
                continue
            own = self._own_test(negation.test, bit, negation.variable, bit_tests)
            if place is Place.MIDDLE:
                between[negation.after] = Between(bit, group, own)
            else:
                before_first = Between(bit, group, own)
        families: tuple[tuple[int, ...], ...] = ()
        groups: tuple[int | None, ...] = (None,) * plan.length
        if self.scan == "multi":
            families = self._families()
        else:
            groups = tuple(self._group(c.variable) for c in plan.components)
        entry_columns = self._entry_columns(joint)
        shape = SequenceShape(
            length=plan.length,
            key_groups=groups,
            columns=tuple(_DTYPE.get(self.type_of_column(name), "int64") for name in self.columns),
            simple=simple,
            entry_columns=entry_columns,
            joint=tuple(tuple(self._joint_source(t) for t in tests) for tests in joint),
            between=tuple(between),
            before_first=before_first,
            window_in_scan=self.options.window_in_scan,
            window_in_construction=self.options.window_in_construction,
            arrival_order=plan.arrival_order,
            factorised=self._is_factorised(joint, between, before_first, probes, selection),
            undoable=self.undoable,
            counting=self.options.counting,
        )
        return Layout(
            plan,
            shape,
            self.key,
            tuple(self.groups),
            tuple(self._key_kind(column) for column in range(self.key.width if self.key else 0)),
            tuple((name, self.type_of_column(name)) for name in self.columns),
            *self._type_bits(),
            tuple(bit_tests),
            self._bit_keys(families),
            selection,
            tuple(probes),
            tuple(self.ints),
            tuple(self.floats),
            self.scan,
            families,
        )

    def _choose_scan(self, partitioned: bool) -> str:
        """The kernel asked for; an option that contradicts the query or another is refused."""
        scan, partition = self.options.scan, self.options.partition
        if scan == "nfa" and partition not in ("all", "none"):
            raise OptionError.of(
                "plan-does-not-fit",
                f"scan='nfa' has no partitions, but partition={partition!r} asks for them",
                help="leave one of the two plan options out",
            )
        if scan != "multi":
            return scan
        if self.plan.length < 2 or partition == "none" or find_key(self.plan) is None:
            raise OptionError.of(
                "plan-does-not-fit",
                "scan='multi' needs an attribute that is equal in two or more events of a match",
                help="add an equivalence test such as [id], or leave the plan option scan out",
            )
        if self.plan.length > _LONGEST_MULTI:
            raise OptionError.of(
                "plan-does-not-fit",
                f"scan='multi' runs sequences of up to {_LONGEST_MULTI} events, "
                f"this one has {self.plan.length}",
                help="leave the plan option scan out",
            )
        # Keys of mixed types, or absent in some row, do not partition: one stack has to do.
        return "multi" if partitioned and self.key is not None else "stacks"

    def _choose_key(self) -> Key | None:
        partition = self.options.partition
        if partition == "none" or self.options.scan == "nfa":
            return None
        key = find_key(self.plan, None if partition == "all" else frozenset((partition,)))
        if key is None:
            return None
        for column in range(key.width):
            kinds = {self.type_of_column(names[column]) for names in key.of.values()}
            if len(kinds - {ScalarType.UNKNOWN}) > 1:
                return None  # equal numbers of different types are not equal bits
        return key

    def _key_kind(self, column: int) -> ScalarType:
        """The type in which a key column's values are compared: the same for all components."""
        assert self.key is not None
        kinds = {self.type_of_column(names[column]) for names in self.key.of.values()}
        return next(iter(kinds - {ScalarType.UNKNOWN}), ScalarType.UNKNOWN)

    def _group(self, variable: str) -> int | None:
        if self.key is None or variable not in self.key.of:
            return None
        return self.groups.setdefault(self.key.of[variable], len(self.groups))

    def _families(self) -> tuple[tuple[int, ...], ...]:
        """For each equivalence attribute, the key group of every positive component."""
        assert self.key is not None
        of = self.key.of
        return tuple(
            tuple(
                self.groups.setdefault((of[c.variable][column],), len(self.groups))
                for c in self.plan.components
            )
            for column in range(self.key.width)
        )

    def _column(self, name: str) -> int:
        return self.columns.setdefault(name, len(self.columns))

    def _own_test(
        self,
        test: Expression,
        bit: int,
        variable: str,
        bit_tests: list[tuple[int, str, Expression]],
    ) -> str:
        """Numeric tests go into the kernel; tests on strings are quicker as columns."""
        inline: list[str] = []
        source = self._source(lambda _, name: f"c{self._column(name)}[i]")
        for part in conjuncts(test):
            strings = any(
                self.type_of_column(name) is ScalarType.STRING for _, name in attributes(part)
            )
            if strings or not is_native(part, self.type_of):
                bit_tests.append((bit, variable, part))
            else:
                inline.append(source.predicate(part, self.plan.absent))
        return " and ".join(inline)

    def _source(self, name_of: Callable[[str, str], str]) -> KernelSource:
        return KernelSource(
            name_of, self.type_of, int_constants=self.ints, float_constants=self.floats
        )

    def _place_joint_tests(
        self, own: list[Expression]
    ) -> tuple[list[list[Expression]], tuple[Expression, ...]]:
        """Each test at the level that binds its last variable; construction goes backwards.

        `own` are tests of single components that the plan options send to the selection on top.
        """
        joint: list[list[Expression]] = [[] for _ in self.plan.components]
        selection: list[Expression] = []
        for test in own:
            if is_native(test, self.type_of):
                joint[-1].append(test)
            else:
                selection.append(test)
        for test in self.plan.joint:
            if self.key is not None and test in self.key.tests:
                continue
            if not is_native(test, self.type_of):
                selection.append(test)
            elif self.options.predicates == "selection":
                joint[-1].append(test)
            else:
                joint[min(self.plan.index(v) for v in variables(test))].append(test)
        return joint, tuple(selection)

    def _entry_columns(self, joint: list[list[Expression]]) -> tuple[tuple[int, ...], ...]:
        needed: list[set[int]] = [set() for _ in self.plan.components]
        for tests in joint:
            for test in tests:
                # Sorted, so that the text is the same in every process and found in the cache.
                for variable, name in sorted(attributes(test)):
                    needed[self.plan.index(variable)].add(self._column(name))
        return tuple(tuple(sorted(columns)) for columns in needed)

    def _joint_source(self, test: Expression) -> str:
        last = self.plan.length - 1

        def name_of(variable: str, name: str) -> str:
            state, column = self.plan.index(variable), self._column(name)
            return f"c{column}[i]" if state == last else f"e{column}_{state}[q{state}]"

        return self._source(name_of).predicate(test, self.plan.absent)

    def _kernel_place(
        self, negation: Negation, between: list[Between | None], before_first: Between | None
    ) -> Place | None:
        """Where the kernel itself can decide a negation: by the latest witness of the key."""
        if self.scan != "stacks" or not self.options.negation_in_scan:
            return None
        if self.key is not None and negation.variable in self.key.of:
            decided = negation.variable in self.key.decided
        else:
            decided = not conjuncts(negation.joint)
        if not decided:
            return None
        if negation.place is Place.MIDDLE and between[negation.after] is None:
            return Place.MIDDLE
        plan = self.plan
        if (
            negation.place is Place.START
            and before_first is None
            and plan.length > 1
            and plan.window == negation.reach
            and not plan.arrival_order
        ):
            return Place.START
        return None

    def _probe(self, negation: Negation, bit: int, group: int | None) -> Probe:
        tests = rest_of_joint(negation, None if group is None else self.key)
        native = [t for t in tests if is_native(t, self.type_of)]
        pair_tests = tuple(t for t in tests if t not in native)
        candidate: set[tuple[int, int]] = set()
        witness: set[int] = set()

        def name_of(variable: str, name: str) -> str:
            column = self._column(name)
            if variable == negation.variable:
                witness.add(column)
                return f"c{column}[w]"
            state = self.plan.index(variable)
            candidate.add((state, column))
            return f"x{state}_{column}[i]"

        source = self._source(name_of)
        texts = tuple(source.predicate(t, self.plan.absent) for t in native)
        shape = ProbeShape(
            keyed=group is not None,
            tests=texts,
            candidate_columns=tuple(sorted(candidate)),
            witness_columns=tuple(sorted(witness)),
            listing=bool(pair_tests),
        )
        return Probe(negation, bit, group, shape, pair_tests)

    def _is_factorised(
        self,
        joint: list[list[Expression]],
        between: list[Between | None],
        before_first: Between | None,
        probes: list[Probe],
        selection: tuple[Expression, ...],
    ) -> bool:
        """Ranges of first events can be shared when nothing looks at them one by one."""
        options = self.options
        return (
            options.factorised
            and self.scan == "stacks"
            and not options.counting
            and self.plan.length > 1
            and not (joint[0] or joint[-1] or between[0] or before_first or probes or selection)
            and not self.plan.arrival_order
            and options.window_in_scan
            and options.window_in_construction
        )

    def _bit_keys(self, families: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int], ...]:
        """Which key groups each bit's rows are filed under."""
        if families:
            return tuple((bit, group) for family in families for bit, group in enumerate(family))
        names = [c.variable for c in self.plan.components]
        names += [n.variable for n in self.plan.negations]
        found = ((bit, self._group(name)) for bit, name in enumerate(names))
        return tuple((bit, group) for bit, group in found if group is not None)

    def _type_bits(self) -> tuple[dict[str, int], int]:
        bits: dict[str, int] = {}
        of_any = 0
        every: Iterable[tuple[str, ...]] = [
            *(c.types for c in self.plan.components),
            *(n.types for n in self.plan.negations),
        ]
        for bit, types in enumerate(every):
            if not types:
                of_any |= 1 << bit
            for name in types:
                bits[name] = bits.get(name, 0) | 1 << bit
        if self.scan == "nfa":
            # The self-loops are taken by events of any type: each of them gets its cell.
            of_any |= 1 << (self.plan.length + len(self.plan.negations))
        return {name: value | of_any for name, value in bits.items()}, of_any
