"""Zipf's law over a finite set: which ranks are drawn how often."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def zipf_probabilities(size: int, theta: float) -> npt.NDArray[np.float64]:
    """
    Probability of each rank 1..size, in proportion to `1 / rank**theta`; theta = 0 is uniform.

    >>> zipf_probabilities(3, 1.0).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights: npt.NDArray[np.float64] = np.arange(1, size + 1, dtype=np.float64) ** -theta
    weights /= weights.sum()
    return weights


def draw_ranks(
    random: np.random.Generator, size: int, theta: float, count: int
) -> npt.NDArray[np.int64]:
    """Draw `count` ranks from 1..size; a longer draw from the same generator begins alike."""
    if theta == 0:
        return random.integers(1, size, count, dtype=np.int64, endpoint=True)
    cumulative = zipf_probabilities(size, theta).cumsum()
    # Rounding may leave the last sum just under 1, and a draw above it would have rank size + 1.
    cumulative[-1] = 1.0
    return np.searchsorted(cumulative, random.random(count), side="right").astype(np.int64) + 1
