"""The state of a sequence kernel as arrays: rings per state, heads per key, and how they grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from cepheid.kernels.compiled import load
from cepheid.kernels.sequence_shape import (
    COUNTERS,
    DONE,
    KEY_OUTSIDE,
    OUT_OF_ORDER,
    OUTPUT_FULL,
    RING_FULL,
    SequenceShape,
)
from cepheid.kernels.sequence_source import BLOCK, sequence_source

_NEVER = -(2**62)
_FIRST_RING = 1024


@njit(cache=True, nogil=True)
def _undo(control, state, since, entries, time, key, prev, heads):  # type: ignore[no-untyped-def]
    mask = entries.shape[0] - 1
    n = control[2 * state]
    tail = control[2 * state + 1]
    while n > tail and entries[(n - 1) & mask, time] >= since:
        x = (n - 1) & mask
        heads[entries[x, key]] = entries[x, prev]
        n -= 1
    control[2 * state] = n


Deliver = Callable[[dict[str, np.ndarray], int, int], None]


class _Call:
    """The arguments of a kernel, put together once and then only changed where they change."""

    def __init__(self, names: tuple[str, ...], function: Callable[..., Any]) -> None:
        self.function = function
        self.arguments: list[Any] = [None] * len(names)
        self.version = -1
        self._place = {name: place for place, name in enumerate(names)}

    def set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            place = self._place.get(name)
            if place is not None:
                self.arguments[place] = value


class Stacks:
    """Rings, heads and output buffers of one running sequence kernel."""

    def __init__(self, shape: SequenceShape, *, output_rows: int = 1 << 15) -> None:
        """Empty stacks for a kernel of this shape; compiles or loads the kernel."""
        self.shape = shape
        module = load(sequence_source(shape))
        self._functions = {"kernel": module.kernel, "plain": module.plain}
        self._kernel_call = _Call(shape.arguments(), module.kernel)
        self._plain_call: _Call | None = None
        self._flags = np.zeros(BLOCK, np.uint8)
        self._selected = np.empty(0, np.int64)
        self._version = 0
        self._keys = 0
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self.control = np.zeros(2 * shape.length + 1, np.int64)
        self._arrays: dict[str, np.ndarray] = {}
        for state in range(shape.length - 1):
            self._arrays[f"h{state}"] = np.zeros(0, np.int64)
            for name, dtype in shape.rings(state):
                size = _FIRST_RING << self._shift(name, state)
                self._arrays[name] = np.zeros(size, dtype)
        for negation in shape.negations:
            self._arrays[f"last{negation.bit}"] = np.zeros(0, np.int64)
            self._arrays[f"before{negation.bit}"] = np.zeros(0, np.int64)
        self._output_rows = output_rows
        self._output = self._fresh_output()
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
        self._version += 1

    @property
    def live_entries(self) -> int:
        """Entries in all rings that have not been pruned."""
        return int(
            sum(self.control[2 * s] - self.control[2 * s + 1] for s in range(self.shape.length - 1))
        )

    def run(self, inputs: dict[str, Any], rows: int, deliver: Deliver) -> None:
        """Feed `rows` rows; `deliver(outputs, filled, listed)` gets each filled set of buffers.

        The buffers are used again: `deliver` copies what it keeps.
        """
        begin = 0
        while True:
            begin, status = self._call(self._kernel_call, inputs, begin, rows, deliver)
            if status == DONE:
                return

    def run_plain(
        self, inputs: dict[str, Any], rows: int, deliver: Deliver
    ) -> tuple[int, np.ndarray]:
        """Feed a batch as it is: returns how many rows it could take and which were relevant."""
        if self._plain_call is None:
            self._plain_call = _Call(self.shape.arguments(plain=True), self._functions["plain"])
        call = self._plain_call
        if len(self._selected) < rows:
            self._selected = np.empty(2 * rows, np.int64)
        selected = self._selected
        inputs |= {"selected": selected, "flags": self._flags}
        first_row, begin, seen = inputs["row_base"], 0, 0
        while True:
            inputs["row_base"] = first_row + seen
            inputs["selected"] = selected[seen:]
            begin, status = self._call(call, inputs, begin, rows, deliver)
            seen += int(self.control[-1])
            if status in (DONE, OUT_OF_ORDER, KEY_OUTSIDE):
                return begin, selected[:seen].copy()

    def _call(
        self, call: _Call, inputs: dict[str, Any], begin: int, rows: int, deliver: Deliver
    ) -> tuple[int, int]:
        """One call of a kernel; then its output is delivered and what was full has grown."""
        if call.version != self._version:
            call.set({**self._arrays, **self._output})
            call.set({"control": self.control, "counters": self.counters})
            call.version = self._version
        call.set(inputs)
        call.arguments[0], call.arguments[1] = begin, rows
        begin, filled, listed, status = call.function(*call.arguments)
        if filled:
            deliver(self._output, filled, listed)
        if status == OUTPUT_FULL and not filled:
            self._output_rows *= 2
            self._output = self._fresh_output()
            self._version += 1
        elif status >= RING_FULL:
            self._grow(status - RING_FULL)
            self._version += 1
        return begin, status

    def undo(self, since: int) -> None:
        """Take back every entry whose time is `since` or later."""
        for s in range(self.shape.length - 1):
            fields = self.shape.entry_fields(s)
            entries = self._arrays[f"r{s}"].reshape(-1, 1 << self.shape.entry_shift(s))
            time, key, prev = (fields.index(name) for name in ("t", "key", "prev"))
            _undo(self.control, s, since, entries, time, key, prev, self._arrays[f"h{s}"])

    def _fresh_output(self) -> dict[str, np.ndarray]:
        shape, rows = self.shape, self._output_rows
        if shape.factorised:
            out = {f"out{s}": np.empty(rows, np.int64) for s in range(1, shape.length)}
            out |= {n: np.empty(rows, np.int64) for n in ("out_from", "out_count", "listed")}
            return out
        return {f"out{s}": np.empty(rows, np.int64) for s in range(shape.length)}

    def _grow(self, state: int) -> None:
        n, tail = int(self.control[2 * state]), int(self.control[2 * state + 1])
        live = np.arange(tail, n)
        for name, _ in self.shape.rings(state):
            width = 1 << self._shift(name, state)
            old = self._arrays[name].reshape(-1, width)
            new = np.zeros((2 * len(old), width), old.dtype)
            new[live & (len(new) - 1)] = old[live & (len(old) - 1)]
            self._arrays[name] = new.reshape(-1)

    def _shift(self, name: str, state: int) -> int:
        return self.shape.entry_shift(state) if name == f"r{state}" else 0
