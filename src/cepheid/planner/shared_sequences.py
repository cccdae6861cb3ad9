"""Which sequences and chains can run together, and the atoms that they have in common.

A sequence shares its events with others if nothing but its window and one key holds it together:
then all that is particular to it is which atoms it is made of. The same is true of a plain chain of
successors (planner.chain_plan) inside a window. Others run on their own; what stands in the way is
said in words, for `explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cepheid.algebra.expression import (
    Absent,
    Attribute,
    Expression,
    ScalarType,
    conjunction,
    conjuncts,
    rebuild,
)
from cepheid.algebra.expression_text import expression_text
from cepheid.kernels.shared_events import SequenceTable
from cepheid.kernels.shared_sequences import (
    ATOM_WIDTH,
    ENDINGS,
    FIRST_ENDING,
    FIRST_NEEDED,
    KEPT,
    KEY_GROUP,
    QUERY_WIDTH,
    REACH,
)
from cepheid.model.options import PlanOptions
from cepheid.planner.active import Active
from cepheid.planner.chain_plan import Chain
from cepheid.planner.prepare import Prepared
from cepheid.planner.sequence_plan import Component, SequencePlan, find_key
from cepheid.planner.succession_plan import SuccessionPlan

ANY = "e"
"""What the one event of an atom is called, whatever the queries call it."""

_NO_WINDOW = 2**61
_MOST_STEPS = 64


@dataclass(frozen=True, slots=True)
class SharedAtom:
    """Events of some types that pass a test of their own; `key` are the attributes of the key."""

    types: tuple[str, ...]
    test: Expression
    key: tuple[str, ...]

    @property
    def name(self) -> tuple[object, ...]:
        """What tells atoms apart: texts do, while 1, 1.0 and true are equal in Python."""
        return self.types, expression_text(self.test), self.key

    def __str__(self) -> str:
        """The atom, for people."""
        kinds = " | ".join(self.types) or "any type"
        tests = conjuncts(self.test)
        return f"{kinds} where {expression_text(self.test)}" if tests else kinds


@dataclass(frozen=True, slots=True)
class Shareable:
    """A query as atoms; in a succession every step has a rival, all that comes for it.

    `window` is strict, from the first event to the last; None for none. `kinds` are the types of
    the key's columns.
    """

    steps: tuple[SharedAtom, ...]
    rivals: tuple[SharedAtom, ...]
    window: int | None
    kinds: tuple[ScalarType, ...]
    absent: Absent
    is_succession: bool = False

    @property
    def group(self) -> object:
        """Queries of equal groups can run together."""
        return self.kinds, self.absent, self.is_succession


@dataclass(frozen=True, slots=True)
class SharedSequences:
    """Queries by their atoms: `steps[q]` and `rivals[q]` are the atoms of query q."""

    atoms: tuple[SharedAtom, ...]
    steps: tuple[tuple[int, ...], ...]
    rivals: tuple[tuple[int, ...], ...]
    windows: tuple[int | None, ...]
    key_groups: tuple[tuple[str, ...], ...]
    kinds: tuple[ScalarType, ...]
    absent: Absent
    is_succession: bool

    @property
    def retention(self) -> int | None:
        """An event older than the watermark by this much matters no more; None: never so."""
        reaches = [
            1 if len(steps) == 1 else window
            for steps, window in zip(self.steps, self.windows, strict=True)
        ]
        known = [reach for reach in reaches if reach is not None]
        return max(known, default=1) if len(known) == len(reaches) else None

    def table(self, active: Sequence[Active]) -> tuple[SequenceTable, np.ndarray]:
        """The kernel's tables, and for each of its queries which one it is."""
        order = sorted(range(len(self.steps)), key=lambda query: self.steps[query][-1])
        groups = {key: number for number, key in enumerate(self.key_groups)}
        atoms = np.zeros((len(self.atoms), ATOM_WIDTH), np.int64)
        for row, atom in zip(atoms, self.atoms, strict=True):
            row[KEY_GROUP] = groups[atom.key] if atom.key else -1
        queries = np.zeros((len(order), QUERY_WIDTH), np.int64)
        listed: list[tuple[int, int]] = []
        for place, query in enumerate(order):
            steps, window = self.steps[query], self.windows[query]
            rivals = self.rivals[query] if self.is_succession else steps
            reach = _NO_WINDOW if window is None else min(window, _NO_WINDOW)
            when = active[query]
            next_ = int(self.is_succession)
            needed = steps[-2] if len(steps) > 1 else steps[-1]
            query_row = (reach, when.since, when.until, next_, needed, len(listed), len(steps))
            queries[place] = query_row
            listed += zip(steps, rivals, strict=True)
            for kept in (*steps[:-1], *(rivals[1:] if self.is_succession else ())):
                atoms[kept, KEPT] = 1
                atoms[kept, REACH] = max(atoms[kept, REACH], reach)
            last = atoms[steps[-1]]
            if not last[ENDINGS]:
                last[FIRST_ENDING] = place
                last[FIRST_NEEDED] = needed
            last[ENDINGS] += 1
        table = SequenceTable(atoms, queries, np.array(listed, np.int64))
        return table, np.array(order, np.int64)


def share_sequences(queries: Sequence[Shareable]) -> SharedSequences:
    """The common atoms of queries of one group."""
    numbers: dict[object, int] = {}
    atoms: list[SharedAtom] = []

    def number(atom: SharedAtom) -> int:
        if atom.name not in numbers:
            numbers[atom.name] = len(atoms)
            atoms.append(atom)
        return numbers[atom.name]

    steps = tuple(tuple(number(atom) for atom in query.steps) for query in queries)
    rivals = tuple(tuple(number(atom) for atom in query.rivals) for query in queries)
    first = queries[0]
    return SharedSequences(
        tuple(atoms),
        steps,
        rivals,
        tuple(query.window for query in queries),
        tuple(dict.fromkeys(atom.key for atom in atoms if atom.key)),
        first.kinds,
        first.absent,
        first.is_succession,
    )


def shareable(prepared: Prepared, type_of: Callable[[str], ScalarType]) -> Shareable | str:
    """A query as atoms, or what keeps it from being shared in this way."""
    given = prepared.options.plan
    if given != PlanOptions(placement=given.placement, cuts=given.cuts):
        return "plan options are given for it"
    if isinstance(prepared.plan, SuccessionPlan):
        return _chain(prepared, prepared.plan, type_of)
    return _sequence(prepared.plan, type_of)


def _sequence(plan: SequencePlan, type_of: Callable[[str], ScalarType]) -> Shareable | str:
    if plan.negations:
        return "a negated component needs witnesses of its own"
    if plan.arrival_order:
        return "ties are decided by arrival"
    if plan.window is not None and plan.window <= 0:
        return "its window is empty"
    if plan.length > _MOST_STEPS:
        return f"it has more than {_MOST_STEPS} components"
    key = find_key(plan) if plan.length > 1 else None
    known = key.tests if key else frozenset()
    rest = [test for test in plan.joint if test not in known]
    if rest:
        return f"a condition over several events is its own: {expression_text(rest[0])}"
    kinds = _kinds_of(list(key.of.values()), type_of) if key else ()
    if kinds is None:
        return "its key compares columns of different types"
    steps = tuple(_atom(c, (), key.of[c.variable] if key else ()) for c in plan.components)
    return Shareable(steps, (), plan.window, kinds, plan.absent)


def _chain(
    prepared: Prepared, plan: SuccessionPlan, type_of: Callable[[str], ScalarType]
) -> Shareable | str:
    chain = prepared.chain
    if not isinstance(chain, Chain):
        return str(chain)
    last = len(plan.components) - 1
    whole = [length for first, second, length in chain.windows if (first, second) == (0, last)]
    if not whole:
        return "no window from its first event to its last says how long events are kept"
    if any(length < min(whole) for _, _, length in chain.windows):
        return "a window inside it is shorter than the one around it"
    kinds = _kinds_of([chain.key], type_of)
    assert kinds is not None
    steps, rivals = [], []
    for step, component in enumerate(plan.components):
        comes = [test for at, test in chain.filters if at == step]
        goes_on = [test for at, test in chain.tests if at == step]
        steps.append(_atom(component, (*comes, *goes_on), chain.key))
        rivals.append(_atom(component, comes if step else (*comes, *goes_on), chain.key))
    return Shareable(
        tuple(steps), tuple(rivals), min(whole) + 1, kinds, plan.absent, is_succession=True
    )


def _kinds_of(
    keys: Sequence[tuple[str, ...]], type_of: Callable[[str], ScalarType]
) -> tuple[ScalarType, ...] | None:
    """The type of each key column; None where components differ."""
    kinds = []
    for names in zip(*keys, strict=True):
        found = {type_of(name) for name in names} - {ScalarType.UNKNOWN}
        if len(found) > 1:
            return None
        kinds.append(next(iter(found), ScalarType.UNKNOWN))
    return tuple(kinds)


def _atom(component: Component, more: Sequence[Expression], key: tuple[str, ...]) -> SharedAtom:
    """A component under the common name, the parts of its test in one order."""

    def change(node: Expression) -> Expression:
        if isinstance(node, Attribute) and node.variable == component.variable:
            return Attribute(ANY, node.name)
        return node

    tests = [part for test in (component.test, *more) for part in conjuncts(test)]
    parts = {expression_text(part): part for part in (rebuild(test, change) for test in tests)}
    test = conjunction([parts[text] for text in sorted(parts)])
    return SharedAtom(tuple(sorted(component.types)), test, key)
