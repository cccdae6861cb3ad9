"""Attributes of candidate matches as columns, for tests that no kernel takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expression import Expression, ScalarType
from cepheid.hosts.store import View
from cepheid.model.options import Options
from cepheid.model.undefined import ABSENT_INT, NULL_INT
from cepheid.planner.column_expression import evaluate_predicate
from cepheid.planner.columns import Column, from_arrow
from cepheid.planner.sequence_plan import SequencePlan


def holds_for(
    tests: tuple[Expression, ...],
    plan: SequencePlan,
    view: View,
    options: Options,
    rows_of: Callable[[str], np.ndarray],
    count: int,
) -> np.ndarray:
    """Where all tests hold; `rows_of` gives the ordinals bound to a variable, one per candidate."""
    known: dict[str, Column] = {}

    def lookup(variable: str, name: str) -> Column:
        if name not in known:
            known[name] = event_column(view, options, name)
        return known[name].take(rows_of(variable) - view.base)

    holds = np.ones(count, np.bool_)
    for test in tests:
        holds &= evaluate_predicate(test, lookup, count, plan.absent)
    return holds


def event_column(view: View, options: Options, name: str) -> Column:
    """A column of all events of the view, with absent told from null as everywhere."""
    if name not in view.table.column_names:
        # A declared attribute that never came is null; any other is absent.
        having = [t for t, names in (options.types or {}).items() if name in names]
        has = _is_of(view, options, having)
        return Column(ScalarType.UNKNOWN, np.where(has, np.int64(NULL_INT), np.int64(ABSENT_INT)))
    absent = _absent_rows(view, options, name)
    column = view.table.column(name)
    return from_arrow(column, null_is_absent=absent is None, absent=absent, name=name)


def _absent_rows(view: View, options: Options, name: str) -> np.ndarray | None:
    """Which events lack the attribute; None when a null is all that says so."""
    told: np.ndarray | None = None
    if any(name in chunk.lacks for chunk in view.chunks):
        told = np.concatenate([chunk.lacking(name) for chunk in view.chunks])
    declared = options.types
    if declared is None:
        return told
    lacking = _is_of(view, options, [t for t in declared if name not in declared[t]])
    stated = _is_of(view, options, list(declared))
    if told is None:
        told = view.table.column(name).is_null().to_numpy()
    absent: np.ndarray = lacking | (~stated & told)
    return absent


def _is_of(view: View, options: Options, types: list[str]) -> np.ndarray:
    """Which events are of one of these types."""
    kinds = view.table.column(options.type)
    if pa.types.is_dictionary(kinds.type):
        kinds = kinds.cast(kinds.type.value_type)
    found: np.ndarray = pc.is_in(kinds.cast(pa.string()), pa.array(types, pa.string())).to_numpy()
    return found
