"""The atoms that events touch, kept for as long as the events are held back from the kernel."""

from __future__ import annotations

import numpy as np

from cepheid.kernels.succession import Touches
from cepheid.kernels.touches import chosen_lists


class LiveTouches:
    """Lists of atoms by ordinal, in ascending order of ordinals."""

    def __init__(self) -> None:
        """No events."""
        self._ordinals = np.zeros(0, np.int64)
        self._starts = np.zeros(1, np.int64)
        self._atoms = np.zeros(0, np.int64)

    def append(self, first: int, size: int, rows: np.ndarray, atoms: np.ndarray) -> None:
        """Add events `first`, `first` + 1, ...: pairs of row and atom, sorted by row."""
        new = np.searchsorted(rows, np.arange(1, size + 1))
        self._ordinals = np.concatenate([self._ordinals, np.arange(first, first + size)])
        self._starts = np.concatenate([self._starts, self._starts[-1] + new])
        self._atoms = np.concatenate([self._atoms, atoms])

    def of(self, ordinals: np.ndarray) -> Touches:
        """The atoms of some events, in their order."""
        return Touches(*chosen_lists(self._starts, self._atoms, self._places(ordinals)))

    def keep_only(self, ordinals: np.ndarray) -> None:
        """Forget all other events; the ordinals ascend."""
        kept = self.of(ordinals)
        self._ordinals, self._starts, self._atoms = ordinals, kept.starts, kept.atoms

    def rename(self, ordinals: np.ndarray) -> None:
        """Call the events by other ordinals, which ascend, too."""
        self._ordinals = ordinals

    def _places(self, ordinals: np.ndarray) -> np.ndarray:
        known = self._ordinals
        if len(known) and known[-1] - known[0] == len(known) - 1:
            return np.asarray(ordinals - known[0])
        return np.searchsorted(known, ordinals)
