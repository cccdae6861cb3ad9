"""Which sequences can run together, and the atoms that they have in common.

A sequence shares its events with others if nothing but its window and one key holds it together:
then all that is particular to it is which atoms it is made of. Others run on their own; what stands
in the way is said in words, for `explain`.
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
from cepheid.kernels.shared_rings import SequenceTable
from cepheid.kernels.shared_sequences import ATOM_WIDTH, QUERY_WIDTH
from cepheid.model.options import PlanOptions
from cepheid.planner.active import Active
from cepheid.planner.prepare import Prepared
from cepheid.planner.sequence_plan import Key, SequencePlan, find_key

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


@dataclass(frozen=True, slots=True)
class SharedSequences:
    """Sequences by their atoms. `steps[q]` are the atoms of query q."""

    atoms: tuple[SharedAtom, ...]
    steps: tuple[tuple[int, ...], ...]
    windows: tuple[int | None, ...]
    key_groups: tuple[tuple[str, ...], ...]
    absent: Absent

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
            row[0] = groups[atom.key] if atom.key else -1
        queries = np.zeros((len(order), QUERY_WIDTH), np.int64)
        listed: list[int] = []
        for place, query in enumerate(order):
            steps, window = self.steps[query], self.windows[query]
            reach = _NO_WINDOW if window is None else min(window, _NO_WINDOW)
            when = active[query]
            queries[place] = (reach, when.since, when.until, len(listed), len(steps))
            listed += steps
            for step in steps[:-1]:
                atoms[step, 1] = 1
                atoms[step, 2] = max(atoms[step, 2], reach)
            last = atoms[steps[-1]]
            if not last[4]:
                last[3] = place
            last[4] += 1
        return SequenceTable(atoms, queries, np.array(listed, np.int64)), np.array(order, np.int64)


def share_sequences(prepared: Sequence[Prepared]) -> SharedSequences:
    """The common atoms of sequences that can be shared (`why_alone` says None for each)."""
    atoms: dict[SharedAtom, int] = {}
    steps, windows = [], []
    for each in prepared:
        plan = _plan_of(each)
        key = _common_key(plan)
        own = []
        for component in plan.components:
            names = key.of[component.variable] if key else ()
            atom = SharedAtom(
                tuple(sorted(component.types)), _renamed(component.test, component.variable), names
            )
            own.append(atoms.setdefault(atom, len(atoms)))
        steps.append(tuple(own))
        windows.append(plan.window)
    groups = tuple(dict.fromkeys(atom.key for atom in atoms if atom.key))
    absent = _plan_of(prepared[0]).absent
    return SharedSequences(tuple(atoms), tuple(steps), tuple(windows), groups, absent)


def why_alone(prepared: Prepared, type_of: Callable[[str], ScalarType]) -> str | None:
    """What keeps a sequence from being shared; None if nothing does."""
    plan = prepared.plan
    if not isinstance(plan, SequencePlan):
        return "it is no sequence"
    if plan.negations:
        return "a negated component needs witnesses of its own"
    if plan.arrival_order:
        return "ties are decided by arrival"
    if plan.window is not None and plan.window <= 0:
        return "its window is empty"
    if plan.length > _MOST_STEPS:
        return f"it has more than {_MOST_STEPS} components"
    key = _common_key(plan)
    known = key.tests if key else frozenset()
    rest = [test for test in plan.joint if test not in known]
    if rest:
        return f"a condition over several events is its own: {expression_text(rest[0])}"
    if key is not None and _kinds_of(key, type_of) is None:
        return "its key compares columns of different types"
    plain = PlanOptions(placement=prepared.options.plan.placement)
    if prepared.options.plan != plain:
        return "plan options are given for it"
    return None


def sharing_group(prepared: Prepared, type_of: Callable[[str], ScalarType]) -> object:
    """Sequences with equal groups can run together."""
    plan = _plan_of(prepared)
    is_keyed = _common_key(plan) is not None
    return (key_kinds(prepared, type_of) if is_keyed else None, plan.absent)


def key_kinds(prepared: Prepared, type_of: Callable[[str], ScalarType]) -> tuple[ScalarType, ...]:
    """The types of the key's columns; none without a key."""
    key = _common_key(_plan_of(prepared))
    return (_kinds_of(key, type_of) or ()) if key else ()


def _kinds_of(key: Key, type_of: Callable[[str], ScalarType]) -> tuple[ScalarType, ...] | None:
    """The type of each key column; None where components differ."""
    kinds = []
    for column in range(key.width):
        found = {type_of(names[column]) for names in key.of.values()} - {ScalarType.UNKNOWN}
        if len(found) > 1:
            return None
        kinds.append(next(iter(found), ScalarType.UNKNOWN))
    return tuple(kinds)


def _common_key(plan: SequencePlan) -> Key | None:
    return find_key(plan) if plan.length > 1 else None


def _plan_of(prepared: Prepared) -> SequencePlan:
    assert isinstance(prepared.plan, SequencePlan)
    return prepared.plan


def _renamed(test: Expression, variable: str) -> Expression:
    """The test of one event under the common name, its parts in one order."""

    def change(node: Expression) -> Expression:
        if isinstance(node, Attribute) and node.variable == variable:
            return Attribute(ANY, node.name)
        return node

    parts = [rebuild(part, change) for part in conjuncts(test)]
    return conjunction(sorted(set(parts), key=expression_text))
