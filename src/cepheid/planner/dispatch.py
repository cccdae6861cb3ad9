"""Which atoms of many patterns an event touches, found through an index of their predicates.

An atom is a set of event types and a predicate on one event. One that compares an attribute with a
constant by = is found by the value the event has there; what else its predicate asks is evaluated
on the few rows that are left. The answer is that of `evaluate_predicate` for every atom and row,
without looking at every atom (SPEC C: many queries must cost less than the sum of them).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cepheid.algebra.expression import (
    Absent,
    Attribute,
    Compare,
    Expression,
    Literal,
    ScalarType,
    attributes,
    conjunction,
    conjuncts,
    rebuild,
)
from cepheid.algebra.text import to_text
from cepheid.kernels.dispatch import AtomIndex, lists_of
from cepheid.kernels.interning import StringTable
from cepheid.kernels.memory import room
from cepheid.model.undefined import ABSENT_INT, NULL_INT
from cepheid.planner.column_expression import evaluate_predicate
from cepheid.planner.columns import Column, string_buffers
from cepheid.planner.operator_types import comparison_type, literal_number, literal_type

Kinds: TypeAlias = tuple[ScalarType, ...]

_EXACT = 2.0**53
"""Below it an integer and the float it is compared as name each other."""


@dataclass(frozen=True, slots=True)
class _Equality:
    """A conjunct `attribute = constant`."""

    name: str
    constant: Literal
    test: Expression


@dataclass(frozen=True, slots=True)
class _Atom:
    types: tuple[str, ...]
    equality: _Equality | None
    others: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The index for columns of certain types, and what is left to evaluate for each atom."""

    index: AtomIndex
    left_of: np.ndarray
    left: tuple[Expression, ...]


class Dispatcher:
    """Finds for each event the atoms whose type and predicate it fulfils.

    `type_numbers` and `number_of_any` are what `pairs` calls the types of events: give them to
    `hosts.type_codes.TypeCodes` as its bits. `columns` are the attributes that `pairs` asks for.

    >>> test = Compare("=", Attribute("x", "v"), Literal(3))
    >>> atoms = Dispatcher([(("A",), test), (("A", "B"), conjunction([]))], Absent.FALSE)
    >>> column = Column(ScalarType.INT, np.array([3, 4, 3]))
    >>> numbers = [atoms.type_numbers[name] for name in "AAB"]
    >>> rows, found = atoms.pairs(np.array(numbers), lambda name: column)
    >>> list(zip(rows.tolist(), found.tolist()))
    [(0, 1), (0, 0), (1, 1), (2, 1)]
    """

    type_numbers: Mapping[str, int]
    """1, 2, ... for the types that atoms name; 0 is a type that no atom wants."""

    number_of_any: int
    """The number of all other types: 0 when no atom takes any type."""

    def __init__(self, atoms: Sequence[tuple[tuple[str, ...], Expression]], absent: Absent) -> None:
        """`atoms` are types (none: any) and predicate, whatever its variable is called."""
        self._absent = absent
        plain = [(types, _without_variable(predicate)) for types, predicate in atoms]
        names = dict.fromkeys(name for types, _ in plain for name in types)
        self.type_numbers = {name: 1 + n for n, name in enumerate(names)}
        takes_any = any(not types for types, _ in plain)
        self.number_of_any = 1 + len(names) if takes_any else 0
        self._atoms = self._divided(plain)
        self.columns = tuple(sorted({n for _, test in plain for _, n in attributes(test)}))
        self._probed = tuple(
            dict.fromkeys(atom.equality.name for atom in self._atoms if atom.equality)
        )
        self._strings = StringTable()
        self._plans: dict[Kinds, _Plan] = {}

    def pairs(
        self, types: np.ndarray, column: Callable[[str], Column]
    ) -> tuple[np.ndarray, np.ndarray]:
        """All pairs (row, atom) that fit, as two arrays sorted by row.

        `types` holds the number of each row's type; `column` gives an attribute of all rows.
        """
        probed = [column(name) for name in self._probed]
        plan = self._plan(tuple(each.type for each in probed))
        values = room(len(probed), len(types))
        for row, each in zip(values, probed, strict=True):
            self._write_keys(each, row)
        rows, atoms = plan.index.pairs(types, values)
        return (
            self._evaluated(plan, rows, atoms, len(types), column) if plan.left else (rows, atoms)
        )

    def _evaluated(
        self,
        plan: _Plan,
        rows: np.ndarray,
        atoms: np.ndarray,
        size: int,
        column: Callable[[str], Column],
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pairs that pass what the index did not decide; a predicate is evaluated once."""
        left = plan.left_of[atoms]
        places = np.flatnonzero(left >= 0)
        places = places[np.argsort(left[places], kind="stable")]
        bounds = np.searchsorted(left[places], np.arange(len(plan.left) + 1))
        kept = np.ones(len(rows), np.bool_)
        for test, begin, end in zip(plan.left, bounds[:-1], bounds[1:], strict=True):
            if begin < end:
                some = places[begin:end]
                kept[some] = self._holds(test, rows[some], size, column)
        return rows[kept], atoms[kept]

    def _holds(
        self, test: Expression, rows: np.ndarray, size: int, column: Callable[[str], Column]
    ) -> np.ndarray:
        if 2 * len(rows) > size and self._absent is not Absent.ERROR:
            holds = evaluate_predicate(test, lambda _, name: column(name), size, self._absent)
            return np.asarray(holds[rows])
        return evaluate_predicate(
            test, lambda _, name: column(name).take(rows), len(rows), self._absent
        )

    # -- the index --------------------------------------------------------------------------------

    def _divided(self, atoms: list[tuple[tuple[str, ...], Expression]]) -> tuple[_Atom, ...]:
        """Each atom with the equality it is found by: that of the attribute that tells most apart.

        Where an absent attribute is an error, every row of a type has to be looked at for one.
        """
        found = [[_equality(part) for part in conjuncts(test)] for _, test in atoms]
        constants = {(e.name, repr(e.constant.value)) for parts in found for e in parts if e}
        distinct = Counter(name for name, _ in constants)
        divided = []
        for (types, test), parts in zip(atoms, found, strict=True):
            known = [e for e in parts if e is not None and self._absent is not Absent.ERROR]
            best = max(known, key=lambda e: distinct[e.name], default=None)
            others = tuple(p for p in conjuncts(test) if best is None or p is not best.test)
            divided.append(_Atom(types, best, others))
        return tuple(divided)

    def _plan(self, kinds: Kinds) -> _Plan:
        known = self._plans.get(kinds)
        if known is None:
            known = self._plans[kinds] = self._planned(dict(zip(self._probed, kinds, strict=True)))
        return known

    def _planned(self, kinds: Mapping[str, ScalarType]) -> _Plan:
        last = 1 + len(self.type_numbers)
        plain: list[list[int]] = [[] for _ in range(last + 1)]
        # For each type and attribute the atoms of each value.
        compared: list[dict[str, dict[int, list[int]]]] = [{} for _ in range(last + 1)]
        left: dict[str, tuple[int, Expression]] = {}  # by text: 1 and true are equal in Python
        left_of = np.full(len(self._atoms), -1, np.int64)
        for number, atom in enumerate(self._atoms):
            equality, others = atom.equality, atom.others
            key: int | None = None
            if equality is not None:
                key = self._key(equality.constant, kinds[equality.name])
                if key is None:
                    others = (equality.test, *others)
            if others:
                rest = conjunction(others)
                text = to_text(rest)
                place, _ = left.setdefault(text, (len(left), rest))
                left_of[number] = place
            for kind in [self.type_numbers[n] for n in atom.types] or range(1, last + 1):
                if equality is None or key is None:
                    plain[kind].append(number)
                    continue
                of_values = compared[kind].setdefault(equality.name, {})
                keys = {key, ABSENT_INT} if self._absent is Absent.TRUE else {key}
                for each in keys - {NULL_INT}:
                    of_values.setdefault(each, []).append(number)
        entries, atoms, group = [], [], 0
        for by_name in compared:
            for of_values in by_name.values():
                entries += [(group, key) for key in of_values]
                atoms += list(of_values.values())
                group += 1
        probes = [[self._probed.index(name) for name in by_name] for by_name in compared]
        index = AtomIndex(lists_of(plain), lists_of(probes), entries, lists_of(atoms))
        return _Plan(index, left_of, tuple(rest for _, rest in left.values()))

    def _key(self, constant: Literal, kind: ScalarType) -> int | None:
        """What `_write_keys` writes for values that equal the constant.

        NULL_INT where no value can; None where the index cannot tell.
        """
        of = literal_type(constant.value)
        match comparison_type("=", kind, of):
            case ScalarType.UNKNOWN:
                return NULL_INT
            case ScalarType.STRING:
                return self._strings.code(str(constant.value))
            case ScalarType.FLOAT:
                number = float(literal_number(constant))
                if kind is ScalarType.FLOAT:
                    key = int(np.float64(number + 0.0).view(np.int64))
                    return None if key == ABSENT_INT else key
                if abs(number) >= _EXACT:
                    return None
                return int(number) if number.is_integer() else NULL_INT
            case _:
                return int(literal_number(constant))

    def _write_keys(self, column: Column, out: np.ndarray) -> None:
        """Whole numbers that are equal where the values are; NULL_INT and ABSENT_INT for none."""
        if column.strings is not None:
            strings = column.strings
            if len(strings):
                rows = np.arange(strings.offset, strings.offset + len(strings))
                out[:] = self._strings.known_codes(rows, *string_buffers(strings))
            if strings.null_count:
                out[strings.is_null().to_numpy(zero_copy_only=False)] = NULL_INT
        elif column.type is ScalarType.FLOAT:
            out[:] = (column.numbers + 0.0).view(np.int64)  # -0.0 equals 0.0
            if self._absent is Absent.TRUE:
                out[out == ABSENT_INT] = NULL_INT  # the bits of the float next to zero
        else:
            out[:] = column.numbers
        absent = column.absent_rows()
        if absent is not None:
            out[absent] = ABSENT_INT


def _without_variable(predicate: Expression) -> Expression:
    """The predicate over the one event it is about, whatever that is called."""

    def plain(part: Expression) -> Expression:
        return Attribute("", part.name) if isinstance(part, Attribute) else part

    return rebuild(predicate, plain)


def _equality(test: Expression) -> _Equality | None:
    match test:
        case Compare("=", Attribute(_, name), Literal() as constant) | Compare(
            "=", Literal() as constant, Attribute(_, name)
        ):
            return _Equality(name, constant, test)
        case Attribute(_, name):
            return _Equality(name, Literal(True), test)
        case _:
            return None
