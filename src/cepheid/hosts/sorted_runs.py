"""Rows that arrive sorted by a number, told apart by it, in pieces that are worth a call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

ROWS_PER_FEED = 1 << 18
"""Spark hands over batches of 10,000 rows: too small to pay a feed for each."""


class SortedRuns:
    """Sorted tables cut where the number in a column changes."""

    def __init__(self, tables: Iterator[pa.Table], column: str) -> None:
        """Nothing is read yet."""
        self._tables = tables
        self._column = column
        self._held: pa.Table | None = None

    def current(self) -> int | None:
        """The number that comes next; None at the end."""
        if self._held is None or not len(self._held):
            self._held = next(self._tables, None)
        return None if self._held is None else int(self._held.column(self._column)[0].as_py())

    def of(self, number: int) -> Iterator[pa.Table]:
        """The rows of a number that stand at the front, without it."""
        while self.current() == number:
            assert self._held is not None
            table = self._held
            column = table.column(self._column).to_numpy()
            rows = int(np.searchsorted(column, number, side="right"))
            self._held = table.slice(rows)
            yield table.slice(0, rows).drop_columns([self._column])


def in_large_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in the same order, in fewer pieces."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_PER_FEED:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)
