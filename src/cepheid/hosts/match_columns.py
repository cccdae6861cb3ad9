"""Attributes of candidate matches as columns, for tests that no kernel takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
            known[name] = _column(view, options, name)
        return known[name].take(rows_of(variable) - view.base)

    holds = np.ones(count, np.bool_)
    for test in tests:
        holds &= evaluate_predicate(test, lookup, count, plan.absent)
    return holds


def _column(view: View, options: Options, name: str) -> Column:
    """A column of all events of the view, with absent told from null as everywhere."""
    table, declared = view.table, options.types
    if declared is not None:
        kinds = table.column(options.type).to_pylist()
        absent = np.array([k in declared and name not in declared[k] for k in kinds], np.bool_)
        undeclared = np.array([k not in declared for k in kinds], np.bool_)
        if name not in table.column_names:
            values = np.where(absent | undeclared, np.int64(ABSENT_INT), np.int64(NULL_INT))
            return Column(ScalarType.UNKNOWN, values)
        column = table.column(name)
        if undeclared.any():
            absent |= undeclared & column.is_null().to_numpy()
        return from_arrow(column, null_is_absent=False, absent=absent, name=name)
    if name not in table.column_names:
        return Column(ScalarType.UNKNOWN, np.full(len(table), ABSENT_INT, np.int64))
    column = table.column(name)
    if not any(name in chunk.lacks for chunk in view.chunks):
        return from_arrow(column, null_is_absent=True, name=name)
    absent = np.concatenate([chunk.lacking(name) for chunk in view.chunks])
    return from_arrow(column, null_is_absent=False, absent=absent, name=name)
