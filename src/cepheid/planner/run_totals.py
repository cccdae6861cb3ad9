"""Totals of runs as a kernel writes them beside matches, read as the values of aggregates.

The same rules as for stored events (aggregates): undefined values are left out, integers are exact
and undefined where they do not fit, floats are added in the order of the events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cepheid.algebra.expression import ScalarType
from cepheid.kernels.match_nodes import COUNT, LANE, MEASURES, NODE_WIDTH, RUN_START
from cepheid.kernels.running_totals import DEFINED, HIGH, LEAST, LOW, MEASURE_WIDTH, MOST
from cepheid.model.errors import InternalError
from cepheid.model.undefined import ABSENT_FLOAT, MIN_INT, NULL_FLOAT, NULL_INT
from cepheid.planner.columns import Column

_EXACT_IN_FLOATS = 2**53


@dataclass(frozen=True, slots=True)
class Measure:
    """Where the totals of an attribute stand, and of which type its values are."""

    slot: int
    kind: ScalarType


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Rows beside those of chains, from COUNT on.

    `variables` are those whose runs are kept, by number; `measures` are by variable and attribute.
    """

    rows: np.ndarray
    variables: frozenset[int]
    measures: Mapping[tuple[int, str], Measure]

    def chosen(self, places: np.ndarray | slice) -> RunTotals:
        """Those of other rows."""
        return replace(self, rows=self.rows[places])

    @property
    def counts(self) -> np.ndarray:
        """How many events each row stands for as a run; 0 for a row that is an event."""
        counts: np.ndarray = self.rows[:, COUNT - NODE_WIDTH]
        return counts

    @property
    def starts(self) -> np.ndarray:
        """When the run of each row starts."""
        starts: np.ndarray = self.rows[:, RUN_START - NODE_WIDTH]
        return starts

    @property
    def lanes(self) -> np.ndarray:
        """The hash of the events of each row's run."""
        return np.ascontiguousarray(self.rows[:, LANE - NODE_WIDTH : LANE - NODE_WIDTH + 2])

    def values(
        self, variable: int, name: str | None, places: np.ndarray, owners: np.ndarray, matches: int
    ) -> RunValues:
        """The totals of a variable, whose rows are `places` and belong to the matches `owners`."""
        events = np.zeros(matches, np.int64)
        events[owners] = self.counts[places]
        if name is None:
            return RunValues(events, None, np.zeros((matches, MEASURE_WIDTH), np.int64))
        measure = self.measures[variable, name]
        begin = MEASURES - NODE_WIDTH + MEASURE_WIDTH * measure.slot
        own = np.zeros((matches, MEASURE_WIDTH), np.int64)
        own[owners] = self.rows[places, begin : begin + MEASURE_WIDTH]
        return RunValues(events, measure.kind, own)


@dataclass(frozen=True, slots=True)
class RunValues:
    """The totals of one variable and attribute, a row for each match."""

    events: np.ndarray
    kind: ScalarType | None
    totals: np.ndarray

    def aggregate(self, function: str) -> Column:
        """One value per match; undefined (count: 0) where no event has a defined value."""
        counts = self.events if self.kind is None else self.totals[:, DEFINED]
        if function == "count":
            return Column(
                ScalarType.INT, counts.copy(), may_be_undefined=False, may_be_absent=False
            )
        assert self.kind is not None
        kind, result = self.kind, self._numbers(function)
        if function == "avg":
            kind = ScalarType.FLOAT
        elif function == "sum" and kind is not ScalarType.FLOAT:
            kind = ScalarType.INT
        if kind is ScalarType.FLOAT:
            result = np.where((counts == 0) | (result == ABSENT_FLOAT), NULL_FLOAT, result)
        else:
            result = np.where(counts == 0, NULL_INT, result)
        return Column(kind, result, may_be_absent=False)

    def _numbers(self, function: str) -> Any:
        is_real = self.kind is ScalarType.FLOAT
        match function:
            case "min" | "max":
                return self._column(LEAST if function == "min" else MOST)
            case "sum":
                return self._column(LOW) if is_real else self._whole_sums()
            case "avg":
                defined = np.maximum(self.totals[:, DEFINED], 1)
                with np.errstate(all="ignore"):
                    return self._column(LOW) / defined if is_real else self._whole_means(defined)
            case _:
                raise InternalError.of("unknown-function", f"no aggregate `{function}`")

    def _column(self, number: int) -> Any:
        column = np.ascontiguousarray(self.totals[:, number])
        return column.view(np.float64) if self.kind is ScalarType.FLOAT else column

    def _whole_sums(self) -> np.ndarray:
        high, low = self.totals[:, HIGH], self.totals[:, LOW]
        fits = (high == (low >> 63)) & (low >= MIN_INT)
        return np.where(fits, low, NULL_INT)

    def _whole_means(self, defined: np.ndarray) -> np.ndarray:
        """Sums that floats cannot hold are divided as Python's integers, which rounds once."""
        high, low = self.totals[:, HIGH], self.totals[:, LOW]
        means: np.ndarray = low / defined
        large = (high != (low >> 63)) | (np.abs(low) >= _EXACT_IN_FLOATS) | (low < MIN_INT)
        for row in np.flatnonzero(large).tolist():
            total = (int(high[row]) << 64) + int(low[row]) % 2**64
            means[row] = total / int(defined[row])
        return means


def as_floats(rows: np.ndarray, slot: int) -> None:
    """Let the totals of a measure of whole numbers in rows of nodes be those of floats."""
    begin = MEASURES + MEASURE_WIDTH * slot
    own = rows[:, begin : begin + MEASURE_WIDTH]
    none = own[:, DEFINED] == 0
    sums = own[:, HIGH] * 2.0**64 + own[:, LOW].astype(np.uint64)
    for column, values, nothing in (
        (LOW, sums, 0.0),
        (LEAST, own[:, LEAST].astype(np.float64), np.inf),
        (MOST, own[:, MOST].astype(np.float64), -np.inf),
    ):
        own[:, column] = np.where(none, nothing, values).view(np.int64)
    own[:, HIGH] = 0
