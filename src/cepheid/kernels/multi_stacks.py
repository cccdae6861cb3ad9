"""The state of the Multi-PAIS kernel as arrays: rings per state, heads per attribute and key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cepheid.kernels.compiled import function
from cepheid.kernels.machine_code import compiled
from cepheid.kernels.multi_source import MultiShape, multi_source
from cepheid.kernels.resumable import Deliver, OutputBuffers, run_to_end, widened_ring
from cepheid.kernels.sequence_shape import COUNTERS

_FIRST_RING = 1024


@compiled
def _take_back(end, newer, mask, keys, prev, heads):  # type: ignore[no-untyped-def]
    for entry in range(newer - 1, end - 1, -1):
        x = entry & mask
        heads[keys[x]] = prev[x]


class MultiStacks:
    """Stacks partitioned by each equivalence attribute; a sibling of `Stacks`."""

    def __init__(self, shape: MultiShape, *, output_rows: int = 1 << 15) -> None:
        """Empty stacks for a kernel of this shape; compiles or loads the kernel."""
        self.shape = shape
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self._states = range(shape.sequence.length - 1)
        self.control = np.zeros(2 * len(self._states), np.int64)
        self._kernel: Callable[..., Any] = function(multi_source(shape), "kernel")
        self._names = shape.arguments()
        self._heads = {name: np.zeros(0, np.int64) for s in self._states for name in shape.heads(s)}
        self._rings = {
            name: np.zeros(_FIRST_RING, dtype)
            for s in self._states
            for name, dtype in shape.entry_fields(s)
        }
        self._buffers = OutputBuffers(shape.sequence.length, output_rows)
        self._keys = 0
        self.admit_keys(1)

    def admit_keys(self, count: int) -> None:
        """Room for key codes below `count`."""
        if count <= self._keys:
            return
        self._keys = max(256, 1 << (count - 1).bit_length())
        for name, old in self._heads.items():
            new = np.full(self._keys, -1, np.int64)
            new[: len(old)] = old
            self._heads[name] = new

    @property
    def live_entries(self) -> int:
        """Entries in all rings that have not been pruned."""
        return int(sum(self.control[0::2] - self.control[1::2]))

    def run(self, inputs: dict[str, Any], rows: int, deliver: Deliver) -> None:
        """Feed `rows` rows; `deliver(outputs, filled, 0)` gets each filled set of buffers."""

        def values() -> dict[str, Any]:
            own = {"control": self.control, "counters": self.counters}
            return {**inputs, **self._heads, **self._rings, **own}

        run_to_end(self._kernel, self._names, values, rows, self._buffers, deliver, self._grow)

    def undo(self, since: int) -> None:
        """Take back every entry whose time is `since` or later."""
        for s in self._states:
            newer, tail = int(self.control[2 * s]), int(self.control[2 * s + 1])
            times, mask = self._rings[f"t{s}"], len(self._rings[f"t{s}"]) - 1
            end = tail + int(np.searchsorted(times[np.arange(tail, newer) & mask], since))
            for f, heads in enumerate(self.shape.heads(s)):
                keys, prev = self._rings[f"key{s}_{f}"], self._rings[f"prev{s}_{f}"]
                _take_back(end, newer, mask, keys, prev, self._heads[heads])
            self.control[2 * s] = end

    def _grow(self, state: int) -> None:
        end, tail = int(self.control[2 * state]), int(self.control[2 * state + 1])
        for name, _ in self.shape.entry_fields(state):
            self._rings[name] = widened_ring(self._rings[name], tail, end)
