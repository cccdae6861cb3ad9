"""How many distinct values a column has: exact up to a cap, then estimated in constant memory."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

KEPT = 4096
"""Hashes kept; the estimate's standard error is about 1 / sqrt(KEPT), 1.6 %."""

_RANGE = 2.0**64


class DistinctCount:
    """The K smallest hash values seen (Bar-Yossef et al., RANDOM 2002): their spread tells how many
    distinct values there are, and below K nothing has been forgotten."""

    def __init__(self) -> None:
        self._smallest: Hashes = np.empty(0, np.uint64)
        self._is_full = False

    def add(self, hashes: Hashes) -> None:
        """Take the hashes of some values; repeated values change nothing."""
        if self._is_full:
            hashes = hashes[hashes < self._smallest[-1]]
        if not len(hashes):
            return
        merged = np.unique(np.concatenate([self._smallest, hashes]))
        self._is_full = self._is_full or len(merged) > KEPT
        self._smallest = merged[:KEPT]

    @property
    def is_exact(self) -> bool:
        """Whether every distinct value seen is still known."""
        return not self._is_full

    @property
    def estimate(self) -> int:
        """The number of distinct values."""
        if not self._is_full:
            return len(self._smallest)
        return round((KEPT - 1) * _RANGE / (float(self._smallest[-1]) + 1.0))


def hash_numbers(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> Hashes:
    """Well-mixed hashes of numbers (the finaliser of SplitMix64); -0.0 and 0.0 are one value."""
    if values.dtype == np.float64:
        values = (values + 0.0).view(np.int64)
    bits = values.astype(np.int64, copy=False).view(np.uint64)
    with np.errstate(over="ignore"):
        bits = (bits + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def hash_texts(texts: list[str]) -> Hashes:
    """Hashes of strings, the same in every process."""
    digests = b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, np.uint64)
