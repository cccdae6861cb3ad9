"""The running state of a kernel of NEXT's operators, and its upkeep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepheid.kernels.compiled import load
from cepheid.kernels.match_nodes import (
    WIDTH,
    close_ranks,
    keep_witnesses,
    mark_waiting,
    renumber,
)
from cepheid.kernels.succession_shape import SuccessionShape
from cepheid.kernels.succession_source import (
    DONE,
    UPKEEP,
    control_size,
    kernel_arguments,
    kernel_results,
    succession_source,
)

_FIRST_ROWS = 256
_FIRST_LISTS = 64
_FIRST_UPKEEP = 1 << 16
_ROWS_AT_ONCE = 1 << 18
FAR = 2**62


@dataclass(frozen=True, slots=True)
class Columns:
    """Live events as arrays by their number less `base`."""

    base: int
    mask: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    others: tuple[np.ndarray, ...]


Deliver = Callable[[np.ndarray, np.ndarray], None]
"""Takes `ends` (one past each match's last row) and rows [variable, event]; copies of their own."""


class Succession:
    """Instances of all operators of one query."""

    def __init__(self, shape: SuccessionShape) -> None:
        """No instances yet; compiles or loads the kernel."""
        self.shape = shape
        self._kernel: Callable[..., Any] = load(
            succession_source(shape), ("processor", "scalar", "match_nodes")
        ).kernel
        self._names = kernel_arguments(shape)
        self._results = kernel_results(shape)
        self.counters = np.zeros(3, np.int64)
        self._control = np.zeros(control_size(shape), np.int64)
        self._upkeep_at = _FIRST_UPKEEP
        self._arrays: dict[str, np.ndarray] = {"nodes": _rows(3), "out": _rows(2)}
        self._arrays["out_ends"] = _rows(1)
        for k in range(len(shape.operators)):
            self._arrays[f"found{k}"] = _rows(3)
        for k in shape.waiting:
            self._arrays[f"waiting{k}"] = _rows(WIDTH)
            self._arrays[f"lists{k}"] = np.full((_FIRST_LISTS, 2), -1, np.int64)
            self._control[4 + 3 * k + 1] = -1
        for k in shape.witnesses:
            self._arrays[f"witnesses{k}"] = _rows(4)

    @property
    def instances(self) -> int:
        """How many partial matches wait."""
        return int(sum(self._control[4 + 3 * k + 2] for k in self.shape.waiting))

    @property
    def node_count(self) -> int:
        """How many nodes are in use or waiting to be given back."""
        return int(self._control[0])

    def run(
        self,
        columns: Columns,
        order: np.ndarray,
        settings: dict[str, Any],
        deliver: Deliver,
    ) -> None:
        """Work on events in the stable order, whole sets of one end; matches go to `deliver`."""
        begin = 0
        given = {
            "order": order,
            "end": len(order),
            "base": columns.base,
            "mask": columns.mask,
            "starts": columns.starts,
            "ends": columns.ends,
            "counters": self.counters,
            "control": self._control,
            "output_at": _ROWS_AT_ONCE,
            **{f"c{number}": each for number, each in enumerate(columns.others)},
            **settings,
        }
        while True:
            given |= self._arrays
            given |= {"begin": begin, "upkeep_at": self._upkeep_at}
            begin, status, *arrays = self._kernel(*[given[name] for name in self._names])
            self._arrays.update(zip(self._results, arrays, strict=True))
            count, rows = int(self._control[2]), int(self._control[3])
            if count:
                deliver(
                    self._arrays["out_ends"][:count, 0].copy(), self._arrays["out"][:rows].copy()
                )
            if status == DONE:
                return
            if status == UPKEEP:
                self.upkeep(columns, int(columns.ends[order[begin] - columns.base]))
                self._upkeep_at = max(_FIRST_UPKEEP, 2 * self.node_count)

    def upkeep(self, columns: Columns, now: int) -> int:
        """Give back what nothing can need after `now`; the earliest end of an event still held."""
        nodes, count = self._arrays["nodes"], self.node_count
        marks = np.zeros(count, np.bool_)
        earliest = FAR
        for k in self.shape.waiting:
            waiting, lists = self._arrays[f"waiting{k}"], self._arrays[f"lists{k}"]
            counts = self._control[4 + 3 * k : 7 + 3 * k]
            held = mark_waiting(
                nodes, marks, waiting, lists, counts, now, columns.ends, columns.base
            )
            earliest = min(earliest, int(held))
        for k in self.shape.witnesses:
            rows = self._arrays[f"witnesses{k}"]
            at = 4 + 3 * k
            self._control[at] = keep_witnesses(nodes, marks, rows, self._control[at], earliest)
        numbers, self._control[0] = close_ranks(nodes, count, marks)
        for k in self.shape.waiting:
            renumber(self._arrays[f"waiting{k}"], self._arrays[f"lists{k}"], numbers)
        for k in self.shape.witnesses:
            rows = self._arrays[f"witnesses{k}"][: self._control[4 + 3 * k]]
            rows[:, 0] = numbers[rows[:, 0]]
        return earliest


def _rows(width: int) -> np.ndarray:
    return np.empty((_FIRST_ROWS, width), np.int64)
