"""Drives a kernel that stops when a buffer is full: drain or grow, then go on at the same event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cepheid.kernels.sequence_shape import DONE, OUTPUT_FULL, RING_FULL

Deliver = Callable[[dict[str, np.ndarray], int, int], None]


class OutputBuffers:
    """Fresh buffers for flat matches, larger ones after a single event has filled them alone."""

    def __init__(self, length: int, rows: int) -> None:
        """Buffers for matches of `length` events."""
        self._length = length
        self._rows = rows

    def fresh(self) -> dict[str, np.ndarray]:
        """Empty buffers; whoever got the ones before keeps them."""
        return {f"out{s}": np.empty(self._rows, np.int64) for s in range(self._length)}

    def widen(self) -> None:
        """Twice the room from now on."""
        self._rows *= 2


def run_to_end(
    kernel: Callable[..., tuple[int, int, int, int]],
    names: Sequence[str],
    values: Callable[[], Mapping[str, Any]],
    rows: int,
    buffers: OutputBuffers,
    deliver: Deliver,
    grow: Callable[[int], None],
) -> None:
    """Feed `rows` rows; `values` gives the kernel's arrays anew after `grow(ring)` changed them."""
    begin = 0
    while True:
        out = buffers.fresh()
        arguments = {**values(), **out, "begin": begin, "end": rows}
        begin, filled, listed, status = kernel(*[arguments[name] for name in names])
        if filled:
            deliver(out, filled, listed)
        if status == DONE:
            return
        if status == OUTPUT_FULL:
            if not filled:
                buffers.widen()
        else:
            grow(status - RING_FULL)


def widened_ring(old: np.ndarray, tail: int, end: int) -> np.ndarray:
    """A ring of twice the size with entries tail..end where they belong in it."""
    new = np.zeros(2 * len(old), old.dtype)
    live = np.arange(tail, end)
    new[live & (len(new) - 1)] = old[live & (len(old) - 1)]
    return new
