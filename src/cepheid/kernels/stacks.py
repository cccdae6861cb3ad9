"""The state of a sequence kernel as arrays: rings per state, heads per key, and how they grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cepheid.kernels.compiled import load
from cepheid.kernels.machine_code import compiled
from cepheid.kernels.memory import room
from cepheid.kernels.sequence_shape import (
    COUNTERS,
    DONE,
    OUTPUT_FULL,
    RING_FULL,
    SequenceShape,
)
from cepheid.kernels.sequence_source import BLOCK, sequence_source

_NEVER = -(2**62)
_FIRST_RING = 1024
_SMALLEST_BLOCK = 16


@compiled
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
        self._kernel = _Call(shape.arguments(), module.kernel)
        self._version = 0
        self._block = BLOCK
        self._dealt = np.zeros(shape.length * BLOCK, np.int64)
        self._keys = 0
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self.control = np.zeros(2 * shape.length + 2, np.int64)
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
        """Feed `rows` rows; `deliver(outputs, filled, listed)` gets each filled set of buffers."""
        call = self._kernel
        call.set(inputs)
        begin, status = 0, OUTPUT_FULL
        while status != DONE:
            if call.version != self._version:
                call.set({**self._arrays, **self._output})
                call.set({"control": self.control, "counters": self.counters})
                call.set({"dealt": self._dealt})
                call.version = self._version
            call.set({"begin": begin, "end": rows, "block": self._block})
            before = begin
            begin, filled, listed, status = call.function(*call.arguments)
            self._choose_block(begin - before)
            if filled:
                self._deliver(deliver, filled, listed)
            if status == OUTPUT_FULL and not filled:
                self._output_rows *= 2
                self._output = self._fresh_output()
                self._version += 1
            elif status >= RING_FULL:
                self._grow(status - RING_FULL)
                self._version += 1

    def _choose_block(self, rows: int) -> None:
        """Small blocks where few keys make events step back over many later ones of their key."""
        steps = int(self.control[-1])
        if 2 * steps > rows:
            self._block = max(_SMALLEST_BLOCK, self._block // 2)
        elif 16 * steps < rows:
            self._block = min(BLOCK, self._block * 2)

    def undo(self, since: int) -> None:
        """Take back every entry whose time is `since` or later."""
        for s in range(self.shape.length - 1):
            fields = self.shape.entry_fields(s)
            entries = self._arrays[f"r{s}"].reshape(-1, 1 << self.shape.entry_shift(s))
            time, key, prev = (fields.index(name) for name in ("t", "key", "prev"))
            _undo(self.control, s, since, entries, time, key, prev, self._arrays[f"h{s}"])

    def _fresh_output(self) -> dict[str, np.ndarray]:
        shape, rows = self.shape, self._output_rows
        if not shape.factorised:
            return {f"out{s}": np.empty(rows, np.int64) for s in range(shape.length)}
        later = room(shape.length - 1, rows)
        out = {f"out{s}": later[s - 1] for s in range(1, shape.length)}
        out |= {name: room(rows) for name in ("out_from", "out_count", "listed")}
        return out | {"later": later}

    def _deliver(self, deliver: Deliver, filled: int, listed: int) -> None:
        """Give the output away: the buffers themselves when they are full enough to be worth it."""
        out = self._output
        if 4 * filled >= self._output_rows:
            deliver(out, filled, listed)
            self._output = self._fresh_output()
            self._kernel.set(self._output)
            return
        if self.shape.factorised:
            kept = {name: out[name][:filled].copy() for name in ("out_from", "out_count")}
            kept["later"] = out["later"][:, :filled].copy()
            kept["listed"] = out["listed"][:listed].copy()
        else:
            kept = {name: values[:filled] for name, values in out.items()}  # copied into rows
        deliver(kept, filled, listed)

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
