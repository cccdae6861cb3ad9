"""Which buckets of a streaming query an event goes to, and which bucket a match belongs to.

Events with equal keys meet in the bucket that the hash of their key names. An event that lacks its
key is compared with nothing, so it concerns every key and goes to every bucket; a match
belongs to the bucket of those of its events that have a whole key, and when none has, to one bucket
more, the stray one. That one sees all events without a whole key and all events that could stand in
a negation's way, so it decides such matches alone. Sound only if every two components are compared
with each other directly: otherwise two keys could meet by way of an event without one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expression import Attribute, Compare, Expression, conjuncts
from cepheid.hosts.division import KeyByType, Undivided, key_of
from cepheid.hosts.matches import Flat, Matches, Piece
from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.model.options import Options
from cepheid.planner.sequence_plan import SequencePlan
from cepheid.planner.succession_plan import SuccessionPlan

DEFAULT_BUCKETS = 32
"""Some for each of the tasks of a usual stream; each costs a few milliseconds a micro-batch."""


@dataclass(frozen=True, slots=True)
class Routing:
    """`key` None: everything in one bucket, for `reason`; or, where each match is one event, spread
    `by_instant`, which keeps equal events together. `witnesses`: types of negated components.

    `strays` says that events may lack their key, so that there is a stray bucket. A null key equals
    nothing, which keeps an event out of every match but one of its own: `is_lone`. `derived` are
    the types that stages make for each other, inside the bucket.
    """

    buckets: int
    key: KeyByType | None
    strays: bool = False
    witnesses: tuple[str, ...] | None = ()
    is_lone: bool = False
    derived: tuple[str, ...] = ()
    by_instant: bool = False
    reason: str = ""

    @property
    def is_one_task(self) -> bool:
        """Whether all events must meet in one bucket."""
        return self.key is None and not self.by_instant

    @property
    def stray_bucket(self) -> int:
        """The bucket of matches none of whose events has a whole key."""
        return self.buckets

    @property
    def null_bucket(self) -> int | None:
        """Where events with a null key go; None when they can be left out."""
        if self.strays:
            return self.stray_bucket
        return 0 if self.is_lone else None

    def owned(self, matches: Matches, bucket: int, options: Options) -> Matches:
        """The matches that belong to a bucket, of those it has found."""
        if self.key is None or not self.strays:
            return matches
        pieces = []
        for piece in matches.pieces:
            whole = self._has_whole_key(piece.view.table, options)
            if bucket != self.stray_bucket and whole.all():
                pieces.append(piece)
                continue
            rows = piece.rows
            some = whole[rows - piece.view.base].any(axis=1)
            mine = ~some if bucket == self.stray_bucket else some
            pieces.append(Piece(Flat(rows[mine]), piece.view))
        return Matches(matches.form, pieces)

    def is_whole(self, events: pa.Table, options: Options) -> bool:
        """Whether every one of these events has its key."""
        return bool(self._has_whole_key(events, options).all())

    def _has_whole_key(self, table: pa.Table, options: Options) -> np.ndarray:
        assert self.key is not None
        key = self.key
        if key.of_any is not None:
            whole = _all_valid(table, key.of_any)
            lacking = declared_without(key.of_any, options)
            return whole & ~_is_of(table, lacking, options) if lacking else whole
        whole = np.zeros(len(table), np.bool_)
        for attributes, types in key.groups().items():
            having = set(types) - set(declared_without(attributes, options))
            whole |= _is_of(table, having, options) & _all_valid(table, attributes)
        return whole


def _all_valid(table: pa.Table, names: Collection[str]) -> np.ndarray:
    valid = np.ones(len(table), np.bool_)
    for name in names:
        if name not in table.column_names:
            return np.zeros(len(table), np.bool_)
        column = table.column(name)
        if column.null_count:
            valid &= column.is_valid().to_numpy()
        if pa.types.is_floating(column.type):
            valid &= ~np.isnan(column.to_numpy())
    return valid


def route(program: PreparedProgram, events: pa.Schema, buckets: int | None) -> Routing:
    """How the events of a program are spread over buckets."""
    key = key_of(program)
    wanted = buckets or DEFAULT_BUCKETS
    if isinstance(key, Undivided):
        if not program.is_chained and not _needs_others(program.stages[0].plan):
            return Routing(wanted, None, by_instant=True)
        return Routing(1, None, reason=key.reason)
    is_lone = any(_may_be_alone(stage.plan) for stage in program.stages)
    derived = tuple(stage.query.event_type for stage in program.stages[:-1])
    makes_lone = any(_may_be_alone(stage.plan) for stage in program.stages[:-1])
    if makes_lone and any(events.field(n).nullable for a in key.groups() for n in a):
        reason = "a stage hands on the key of single events, which may be null"
        return Routing(1, None, reason=reason)
    if not _may_lack_key(key, program.options, events, derived):
        return Routing(wanted, key, is_lone=is_lone, derived=derived)
    if program.is_chained:
        reason = "in a program of several stages no event may lack its key, and these may"
        return Routing(1, None, reason=reason)
    plan = program.stages[0].plan
    if isinstance(plan, SuccessionPlan):  # what is absent equals nothing: it matches nothing
        return Routing(wanted, key, is_lone=is_lone)
    if not _compares_every_pair(plan, key):
        reason = "not every two components are compared directly, and events may lack their key"
        return Routing(1, None, reason=reason)
    negated = [n.types for n in plan.negations]
    types = tuple(sorted({name for types in negated for name in types})) if all(negated) else None
    return Routing(wanted, key, strays=True, witnesses=types, is_lone=is_lone)


def _needs_others(plan: SequencePlan | SuccessionPlan) -> bool:
    """Whether a match depends on more than one event."""
    return plan.length > 1 or bool(plan.negations)


def _may_be_alone(plan: SequencePlan | SuccessionPlan) -> bool:
    """Whether an event can be a match by itself, so that it needs no key: a run of one, a timer."""
    return plan.fewest == 1 if isinstance(plan, SuccessionPlan) else plan.length == 1


def _may_lack_key(
    key: KeyByType, options: Options, events: pa.Schema, derived: Collection[str]
) -> bool:
    """Whether some event could be without a key attribute (absent, not null)."""
    groups = key.groups() or {key.of_any or (): ()}
    for attributes, every in groups.items():
        types = [name for name in every if name not in derived]  # RETURN hands their key on
        if every and not types:
            continue
        declared = options.types or {}
        without = set(declared_without(attributes, options))
        if without & set(types) if types else without:
            return True
        undeclared = not types or any(name not in declared for name in types)
        if undeclared and any(
            events.get_field_index(name) < 0 or events.field(name).nullable for name in attributes
        ):
            return True
    return False


def declared_without(attributes: Collection[str], options: Options) -> list[str]:
    """The event types that do not have all these attributes, as the option `types` says."""
    declared = options.types or {}
    return [name for name, own in declared.items() if not set(attributes) <= set(own)]


def _is_of(table: pa.Table, types: Collection[str], options: Options) -> np.ndarray:
    kinds = table.column(options.type).cast(pa.string())
    found: np.ndarray = pc.is_in(kinds, value_set=pa.array(sorted(types), pa.string())).to_numpy()
    return found


def _compares_every_pair(plan: SequencePlan, key: KeyByType) -> bool:
    """Whether each key column is tested between any two components, not only along a chain."""
    direct = {pair for test in plan.joint for pair in _compared(test)}
    for negation in plan.negations:
        direct |= {pair for test in conjuncts(negation.joint) for pair in _compared(test)}

    def attributes_of(types: tuple[str, ...]) -> tuple[str, ...]:
        return key.of_any if key.of_any is not None else key.of[types[0]]

    positive = [(c.variable, attributes_of(c.types)) for c in plan.components]
    negated = [(n.variable, attributes_of(n.types)) for n in plan.negations]
    pairs = [*combinations(positive, 2), *((p, n) for p in positive for n in negated)]
    return all(
        frozenset(((first, a), (second, b))) in direct
        for (first, ours), (second, theirs) in pairs
        for a, b in zip(ours, theirs, strict=True)
    )


def _compared(test: Expression) -> list[frozenset[tuple[str, str]]]:
    match test:
        case Compare("=", Attribute(v1, a1), Attribute(v2, a2)):
            return [frozenset(((v1, a1), (v2, a2)))]
    return []
