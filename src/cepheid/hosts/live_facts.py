"""Live events as the two tables that the kernels of successors read: whole numbers, and floats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cepheid.kernels.match_nodes import END, FACTS, MASK, START


class LiveFacts:
    """Columns indexed by ordinal that grow at the end and are dropped from the front."""

    def __init__(self, whole: int, real: int) -> None:
        """Room for `whole` columns of integers besides mask and times, and `real` of floats."""
        self.base = 0
        self.end = 0
        self._whole = np.zeros((FACTS + whole, 1024), np.int64)
        self._real = np.zeros((real, 1024), np.float64)

    def append(self, columns: Mapping[str, np.ndarray], rows: int) -> None:
        """Add `rows` rows: mask, t (end), s (start), and c0, c1, ... with the floats last."""
        start = self.end - self.base
        if start + rows > self._whole.shape[1]:
            self._move(0, 2 * (start + rows))
        place = slice(start, start + rows)
        for number, name in ((MASK, "mask"), (END, "t"), (START, "s")):
            self._whole[number, place] = columns[name]
        others = len(self._whole) - FACTS
        for number in range(others):
            self._whole[FACTS + number, place] = columns[f"c{number}"]
        for number in range(len(self._real)):
            self._real[number, place] = columns[f"c{others + number}"]
        self.end += rows

    def drop_before(self, ordinal: int) -> None:
        """Forget rows below `ordinal`; space is given back once half of it is dead."""
        dead = ordinal - self.base
        if dead <= 0 or (dead < 65536 and 2 * dead < self.end - self.base):
            return
        self._move(dead, max(1024, 2 * (self.end - ordinal)))
        self.base = ordinal

    def keep_only(self, rows: np.ndarray, base: int) -> None:
        """Forget all rows but these; the first of them gets the ordinal `base`."""
        self._whole = np.ascontiguousarray(self._whole[:, rows])
        self._real = np.ascontiguousarray(self._real[:, rows])
        self.base, self.end = base, base + len(rows)

    def column(self, number: int, *, is_real: bool) -> np.ndarray:
        """A column that conditions read, as whole numbers that are equal where its values are."""
        live = self.end - self.base
        if is_real:
            return (self._real[number, :live] + 0.0).view(np.int64)  # -0.0 equals 0.0
        return self._whole[FACTS + number, :live]

    def _move(self, dead: int, room: int) -> None:
        live = self.end - self.base - dead
        for name in ("_whole", "_real"):
            old: np.ndarray = getattr(self, name)
            new = np.zeros((len(old), room), old.dtype)
            new[:, :live] = old[:, dead : dead + live]
            setattr(self, name, new)

    @property
    def facts(self) -> np.ndarray:
        """Masks, ends, starts and the columns of whole numbers, a row each."""
        return self._whole[:, : self.end - self.base]

    @property
    def numbers(self) -> np.ndarray:
        """The columns of floats, a row each."""
        return self._real[:, : self.end - self.base]

    def ends(self, ordinals: np.ndarray) -> np.ndarray:
        """When some events end."""
        found: np.ndarray = self._whole[END, ordinals - self.base]
        return found

    def starts(self, ordinals: np.ndarray) -> np.ndarray:
        """When some events start."""
        found: np.ndarray = self._whole[START, ordinals - self.base]
        return found
