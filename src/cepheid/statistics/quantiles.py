"""Quantiles of non-negative integers in constant memory, each within a few percent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_STEPS = 16  # buckets per power of two: a value is known to 1 part in 32
_BUCKETS = 64 * _STEPS


class GapHistogram:
    """A histogram with buckets of equal relative width, as HDR histograms have."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._sum = 0
        self._least: int | None = None
        self._greatest: int | None = None

    def add(self, values: npt.NDArray[np.int64]) -> None:
        """Count values of 0 and more."""
        if not len(values):
            return
        self._counts += np.bincount(_bucket(values), minlength=_BUCKETS)
        self._sum += int(values.sum(dtype=np.int64))
        least, greatest = int(values.min()), int(values.max())
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)

    @property
    def count(self) -> int:
        """How many values were added."""
        return int(self._counts.sum())

    @property
    def mean(self) -> float:
        """Their exact mean; 0 for none."""
        return self._sum / self.count if self.count else 0.0

    @property
    def least(self) -> int:
        """The smallest value; 0 for none."""
        return self._least or 0

    @property
    def greatest(self) -> int:
        """The largest value; 0 for none."""
        return self._greatest or 0

    def quantile(self, share: float) -> int:
        """A value that about this share of all values does not exceed."""
        if not self.count:
            return 0
        wanted = max(1, int(np.ceil(share * self.count)))
        bucket = int(np.searchsorted(np.cumsum(self._counts), wanted))
        return min(max(_middle(bucket), self.least), self.greatest)


def _bucket(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Values below the number of steps have a bucket each; then the leading bits decide."""
    exponent = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    shift = np.maximum(exponent - 4, 0)  # keeps the leading bit and the four after it
    return np.where(values < 2 * _STEPS, values, shift * _STEPS + (values >> shift))


def _middle(bucket: int) -> int:
    if bucket < 2 * _STEPS:
        return bucket
    shift, leading = bucket // _STEPS - 1, bucket % _STEPS + _STEPS
    return (leading << shift) + (1 << shift) // 2
