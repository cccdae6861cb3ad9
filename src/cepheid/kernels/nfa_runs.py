"""The state of the Basic kernel as arrays: one run-time stack of cells, and how it grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cepheid.kernels.compiled import function
from cepheid.kernels.nfa_source import cell_fields, nfa_arguments, nfa_source, search_lists
from cepheid.kernels.resumable import Deliver, OutputBuffers, run_to_end, widened_ring
from cepheid.kernels.sequence_shape import COUNTERS, SequenceShape

_FIRST_CELLS = 1024


class NfaRuns:
    """The run-time stack of an NFA over one sequence; a sibling of `Stacks`, without partitions."""

    def __init__(self, shape: SequenceShape, *, output_rows: int = 1 << 15) -> None:
        """An empty stack for a kernel of this shape; compiles or loads the kernel."""
        self.shape = shape
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self.control = np.zeros(2, np.int64)  # cells ever pushed, oldest live cell
        self._kernel: Callable[..., Any] = function(nfa_source(shape), "kernel")
        self._names = nfa_arguments(shape)
        self._cells = {name: np.zeros(_FIRST_CELLS, dtype) for name, dtype in cell_fields(shape)}
        self._lists = {name: np.zeros(_FIRST_CELLS, np.int64) for name in search_lists(shape)}
        self._buffers = OutputBuffers(shape.length, output_rows)

    def admit_keys(self, count: int) -> None:
        """Nothing to do: the stack knows no keys."""

    @property
    def live_entries(self) -> int:
        """Cells that have not been pruned."""
        return int(self.control[0] - self.control[1])

    def run(self, inputs: dict[str, Any], rows: int, deliver: Deliver) -> None:
        """Feed `rows` rows; `deliver(outputs, filled, 0)` gets each filled set of buffers."""

        def values() -> dict[str, Any]:
            own = {"control": self.control, "counters": self.counters}
            return {**inputs, **self._cells, **self._lists, **own}

        run_to_end(self._kernel, self._names, values, rows, self._buffers, deliver, self._grow)

    def undo(self, since: int) -> None:
        """Take back every cell whose time is `since` or later."""
        times, mask = self._cells["cell_t"], len(self._cells["cell_t"]) - 1
        end, tail = int(self.control[0]), int(self.control[1])
        live = np.arange(tail, end) & mask
        self.control[0] = tail + int(np.searchsorted(times[live], since, side="left"))

    def _grow(self, ring: int) -> None:
        end, tail = int(self.control[0]), int(self.control[1])
        self._cells = {n: widened_ring(old, tail, end) for n, old in self._cells.items()}
        room = len(self._cells["cell_t"])
        self._lists = {name: np.zeros(room, np.int64) for name in self._lists}
