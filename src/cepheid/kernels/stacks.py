"""The state of a sequence kernel as arrays: rings per state, heads per key, and how they grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from cepheid.kernels.compiled import function
from cepheid.kernels.sequence_source import (
    COUNTERS,
    DONE,
    OUTPUT_FULL,
    RING_FULL,
    SequenceShape,
    sequence_source,
)

_NEVER = -(2**63)
_FIRST_RING = 1024


@njit(cache=True, nogil=True)
def _undo(control, state, since, times, keys, prev, heads):  # type: ignore[no-untyped-def]
    mask = times.shape[0] - 1
    n = control[2 * state]
    tail = control[2 * state + 1]
    while n > tail and times[(n - 1) & mask] >= since:
        x = (n - 1) & mask
        heads[keys[x]] = prev[x]
        n -= 1
    control[2 * state] = n


class Stacks:
    """Rings, heads and output buffers of one running sequence kernel."""

    def __init__(self, shape: SequenceShape, *, output_rows: int = 1 << 15) -> None:
        """Empty stacks for a kernel of this shape; compiles or loads the kernel."""
        self.shape = shape
        self._kernel: Callable[..., Any] = function(sequence_source(shape), "kernel")
        self._names = shape.arguments()
        self._keys = 0
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self.control = np.zeros(max(2, 2 * shape.length), np.int64)
        self._arrays: dict[str, np.ndarray] = {}
        for state in range(shape.length - 1):
            self._arrays[f"h{state}"] = np.zeros(0, np.int64)
            for name, dtype in shape.entry_fields(state):
                self._arrays[name] = np.zeros(_FIRST_RING, dtype)
        for negation in shape.negations:
            self._arrays[f"last{negation.bit}"] = np.zeros(0, np.int64)
            self._arrays[f"before{negation.bit}"] = np.zeros(0, np.int64)
        self._output_rows = output_rows
        self.admit_keys(1)

    def admit_keys(self, count: int) -> None:
        """Room for key codes below `count`."""
        if count <= self._keys:
            return
        size = max(256, 1 << (count - 1).bit_length())
        for name, old in list(self._arrays.items()):
            if name.startswith(("h", "last", "before")):
                fill = -1 if name.startswith("h") else _NEVER
                new = np.full(size, fill, np.int64)
                new[: len(old)] = old
                self._arrays[name] = new
        self._keys = size

    @property
    def live_entries(self) -> int:
        """Entries in all rings that have not been pruned."""
        return int(
            sum(self.control[2 * s] - self.control[2 * s + 1] for s in range(self.shape.length - 1))
        )

    def run(
        self,
        inputs: dict[str, Any],
        rows: int,
        deliver: Callable[[dict[str, np.ndarray], int, int], None],
    ) -> None:
        """Feed `rows` rows; `deliver(outputs, filled, listed)` gets each filled set of buffers.

        Buffers passed to `deliver` belong to the receiver: fresh ones are made for what follows.
        """
        begin = 0
        while True:
            out = self._fresh_output()
            values = {**inputs, **self._arrays, **out}
            values["begin"], values["end"] = begin, rows
            values["control"], values["counters"] = self.control, self.counters
            begin, filled, listed, status = self._kernel(*[values[n] for n in self._names])
            if filled:
                deliver(out, filled, listed)
            if status == DONE:
                return
            if status == OUTPUT_FULL:
                if not filled:
                    self._output_rows *= 2
            else:
                self._grow(status - RING_FULL)

    def undo(self, since: int) -> None:
        """Take back every entry whose time is `since` or later."""
        for s in range(self.shape.length - 1):
            a = self._arrays
            _undo(self.control, s, since, a[f"t{s}"], a[f"key{s}"], a[f"prev{s}"], a[f"h{s}"])

    def _fresh_output(self) -> dict[str, np.ndarray]:
        shape, rows = self.shape, self._output_rows
        if shape.factorised:
            out = {f"out{s}": np.empty(rows, np.int64) for s in range(1, shape.length)}
            out |= {n: np.empty(rows, np.int64) for n in ("out_from", "out_count")}
            out["listed"] = np.empty(rows, np.int64)
            return out
        return {f"out{s}": np.empty(rows, np.int64) for s in range(shape.length)}

    def _grow(self, state: int) -> None:
        n, tail = int(self.control[2 * state]), int(self.control[2 * state + 1])
        live = np.arange(tail, n)
        for name, _ in self.shape.entry_fields(state):
            old = self._arrays[name]
            new = np.zeros(2 * len(old), old.dtype)
            new[live & (len(new) - 1)] = old[live & (len(old) - 1)]
            self._arrays[name] = new
