"""count, sum, avg, min and max over the events of each match (RETURN clauses)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.algebra.expression import Aggregate, ScalarType
from cepheid.model.errors import InternalError
from cepheid.model.undefined import (
    ABSENT_FLOAT,
    MAX_INT,
    MIN_INT,
    NULL_FLOAT,
    NULL_INT,
    is_value,
)
from cepheid.planner.columns import Column

if TYPE_CHECKING:
    from cepheid.planner.run_totals import RunValues  # loads the kernels of successors

_Rows = npt.NDArray[np.int64]
_EXACT_IN_FLOATS = 2.0**53


@dataclass(frozen=True, slots=True)
class Elements:
    """A variable's events, match after match: those of match i are offsets[i] to offsets[i + 1].

    `column` is the asked attribute of those events; None when only their number was asked.
    """

    offsets: _Rows
    column: Column | None = None


ElementsOf: TypeAlias = "Callable[[str, str | None], Elements | RunValues | None]"
"""A variable's events, or its running totals; None for one that is bound once in every match."""


@dataclass(frozen=True, slots=True)
class _Values:
    """The defined values of one attribute and the match each belongs to."""

    type: ScalarType
    data: Any
    rows: _Rows


def aggregate(
    node: Aggregate,
    lookup: Callable[[str, str], Column],
    rows: int,
    variables: tuple[str, ...],
    elements: ElementsOf | None = None,
) -> Column:
    """One value per match; undefined (count: 0) where no event has a defined value.

    Values are added in the order of the variables and of their events, so sums of floats are the
    same on every host.
    """
    over = variables if node.variable is None else (node.variable,)
    if node.name is None:
        return _whole(_count_events(over, rows, elements))
    if node.variable is not None and elements is not None:
        totals = elements(node.variable, node.name)
        if totals is not None and not isinstance(totals, Elements):
            return totals.aggregate(node.function)
    groups = [_defined(variable, node.name, lookup, rows, elements) for variable in over]
    members = np.concatenate([np.empty(0, np.int64), *(group.rows for group in groups)])
    counts = np.bincount(members, minlength=rows).astype(np.int64)
    if node.function == "count":
        return _whole(counts)
    groups = [group for group in groups if len(group.rows)]
    kinds = {group.type for group in groups}
    if not kinds or (ScalarType.STRING in kinds and len(kinds) > 1):
        return Column(ScalarType.UNKNOWN, np.full(rows, NULL_INT, np.int64), may_be_absent=False)
    members = np.concatenate([group.rows for group in groups])
    if kinds == {ScalarType.STRING}:
        texts = [text for group in groups for text in group.data]
        return _texts(node.function, members, texts, rows)
    kind = kinds.pop() if len(kinds) == 1 else _of_mixed(kinds)
    dtype = np.float64 if kind is ScalarType.FLOAT else np.int64
    data = np.concatenate([np.asarray(group.data, dtype) for group in groups])
    return _numbers(node.function, kind, members, data, counts)


def _of_mixed(kinds: set[ScalarType]) -> ScalarType:
    return ScalarType.FLOAT if ScalarType.FLOAT in kinds else ScalarType.INT


def _whole(values: _Rows) -> Column:
    return Column(ScalarType.INT, values, may_be_undefined=False, may_be_absent=False)


def _count_events(
    over: tuple[str, ...],
    rows: int,
    elements: ElementsOf | None,
) -> _Rows:
    total = np.zeros(rows, np.int64)
    for variable in over:
        found = elements(variable, None) if elements is not None else None
        if found is None:
            total += 1
        else:
            total += np.diff(found.offsets) if isinstance(found, Elements) else found.events
    return total


def _defined(
    variable: str,
    name: str,
    lookup: Callable[[str, str], Column],
    rows: int,
    elements: ElementsOf | None,
) -> _Values:
    found = elements(variable, name) if elements is not None else None
    if found is None:
        column, owners = lookup(variable, name), np.arange(rows, dtype=np.int64)
    else:
        assert isinstance(found, Elements) and found.column is not None
        column = found.column
        owners = np.repeat(np.arange(rows, dtype=np.int64), np.diff(found.offsets))
    if column.strings is not None:
        kept = column.strings.is_valid().to_numpy(zero_copy_only=False)
        return _Values(column.type, column.strings.drop_null().to_pylist(), owners[kept])
    numbers = column.numbers
    if column.type is ScalarType.FLOAT:
        kept = (numbers == numbers) & (numbers != ABSENT_FLOAT)
    else:
        kept = numbers >= MIN_INT
    return _Values(column.type, numbers[kept], owners[kept])


def _texts(function: str, members: _Rows, texts: list[str], rows: int) -> Column:
    if function not in ("min", "max"):
        nothing = np.full(rows, NULL_INT, np.int64)
        return Column(ScalarType.UNKNOWN, nothing, may_be_absent=False)
    best: list[str | None] = [None] * rows
    for row, text in zip(members.tolist(), texts, strict=True):
        # Python compares by code point, as the languages do.
        known = best[row]
        if known is None or (text < known if function == "min" else text > known):
            best[row] = text
    return Column(ScalarType.STRING, strings=pa.array(best, pa.string()), may_be_absent=False)


def _numbers(function: str, kind: ScalarType, members: _Rows, data: Any, counts: _Rows) -> Column:
    result: Any
    match function:
        case "min" | "max":
            lowest, highest = (-np.inf, np.inf) if data.dtype == np.float64 else (MIN_INT, MAX_INT)
            choose = np.minimum if function == "min" else np.maximum
            result = np.full(len(counts), highest if function == "min" else lowest, data.dtype)
            choose.at(result, members, data)
        case "sum":
            kind = ScalarType.FLOAT if kind is ScalarType.FLOAT else ScalarType.INT
            result = _sums(members, data, len(counts))
            if result.dtype == object:
                result = np.array([n if is_value(n) else NULL_INT for n in result], np.int64)
        case "avg":
            kind = ScalarType.FLOAT
            result = _sums(members, data, len(counts)) / np.maximum(counts, 1)
            result = result.astype(np.float64)
        case _:
            raise InternalError.of("unknown-function", f"no aggregate `{function}`")
    if kind is ScalarType.FLOAT:
        result = np.where((counts == 0) | (result == ABSENT_FLOAT), NULL_FLOAT, result)
    else:
        result = np.where(counts == 0, NULL_INT, result)
    return Column(kind, result, may_be_absent=False)


def _sums(members: _Rows, data: Any, rows: int) -> Any:
    """Sums per match; those of integers are exact, as Python's own where floats could be off."""
    if data.dtype == np.int64:
        magnitude = np.zeros(rows)
        np.add.at(magnitude, members, np.abs(data.astype(np.float64)))
        if np.any(magnitude >= _EXACT_IN_FLOATS):
            data = data.astype(object)
    sums = np.zeros(rows, data.dtype)
    with np.errstate(all="ignore"):
        np.add.at(sums, members, data)
    return sums
