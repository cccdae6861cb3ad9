"""First pass over a batch: which rows matter to the query, which are late, is it in order.

Called by hosts/engine.py for every batch; O(rows), reads type codes and times only. Twin:
`tests/kernels/naive.py`.
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled
from cepheid.kernels.memory import room


@compiled
def is_in_order(times, start):  # type: ignore[no-untyped-def]
    """Whether no time is below `start` or below the one before it."""
    if times.shape[0] == 0:
        return True
    falls = np.int64(times[0] < start)
    for i in range(1, times.shape[0]):
        falls |= np.int64(times[i] < times[i - 1])
    return falls == 0


@compiled
def flag_types(types, wanted, flags):  # type: ignore[no-untyped-def]
    """flags[i] = 1 for rows whose type is one of a few `wanted` codes; runs in vector registers."""
    one_type = wanted[0]
    for i in range(types.shape[0]):
        flags[i] = types[i] == one_type
    for w in range(1, wanted.shape[0]):
        one_type = wanted[w]
        for i in range(types.shape[0]):
            flags[i] |= types[i] == one_type


@compiled
def flag_by_table(types, wanted, flags):  # type: ignore[no-untyped-def]
    """flags[i] = wanted[type]: for queries over many types."""
    for i in range(types.shape[0]):
        flags[i] = wanted[types[i]]


@compiled
def collect(words, selected):  # type: ignore[no-untyped-def]
    """The rows whose flag is set; a word has eight flags."""
    count = np.uint64(0)
    one = np.uint64(1)
    for j in range(words.shape[0]):
        word = words[j]
        if word != 0:
            row = np.int64(j) * 8
            for byte in range(8):
                selected[count] = row + byte
                count += word & one
                word >>= np.uint64(8)
    return count


@compiled
def look_up(types, bits, times, mask, copied):  # type: ignore[no-untyped-def]
    """Masks and times of all rows."""
    for i in range(types.shape[0]):
        mask[i] = bits[types[i]]
        copied[i] = times[i]


@compiled
def gather(selected, types, bits, times, mask, chosen):  # type: ignore[no-untyped-def]
    """Masks and times of the selected rows."""
    for j in range(selected.shape[0]):
        i = np.uint64(selected[j])
        mask[j] = bits[types[i]]
        chosen[j] = times[i]


@compiled
def select_any_order(  # type: ignore[no-untyped-def]
    types, times, wanted, latest, watermark, lateness, selected, late
):
    """Rows of wanted types in any order; a row older than the running watermark is late.

    The watermark after row i is max(watermark, latest time up to i - lateness), so what is late
    depends on the order of arrival alone, never on how arrivals were cut into batches.
    """
    count = 0
    late_count = 0
    for i in range(types.shape[0]):
        now = times[i]
        if now < watermark:
            late[late_count] = i
            late_count += 1
            continue
        if now > latest:
            latest = now
            if latest - lateness > watermark:
                watermark = latest - lateness
        selected[count] = i
        count += wanted[types[i]]
    return count, late_count, latest, watermark


@compiled
def select_by_input(  # type: ignore[no-untyped-def]
    inputs, times, last, silent, latest, watermark, timeout, selected, late
):
    """The same where each input is in order: the watermark is the least of their `last` times.

    inputs[i] is the input of row i, -1 for none. A silent one is waited for up to `timeout`;
    `silent` has for each input whether it is so now, and how often it has become so.
    """
    count = 0
    late_count = 0
    for i in range(times.shape[0]):
        now = times[i]
        of = inputs[i]
        if of >= 0:
            last[of] = max(last[of], now)
            silent[of, 0] &= last[of] < watermark
        if now < watermark:
            late[late_count] = i
            late_count += 1
            continue
        latest = max(latest, now)
        watermark = max(watermark, moved_on(last, silent, latest - timeout))
        selected[count] = i
        count += 1
    return count, late_count, latest, watermark


@compiled
def moved_on(last, silent, bound):  # type: ignore[no-untyped-def]
    """The least of the last times, or `bound` where that is later: then some are silent."""
    least = last[0]
    for of in range(1, last.shape[0]):
        least = min(least, last[of])
    if least >= bound:
        return least
    for of in range(last.shape[0]):
        if last[of] < bound:
            silent[of, 1] += 1 - silent[of, 0]
            silent[of, 0] = 1
    return bound


@compiled
def _take(values, selected, out):  # type: ignore[no-untyped-def]
    for j in range(selected.shape[0]):
        out[j] = values[np.uint64(selected[j])]


def take(values: np.ndarray, selected: np.ndarray) -> np.ndarray:
    """values[selected] for rows known to be inside; no bounds are checked."""
    out = room(len(selected), dtype=values.dtype)
    _take(values, selected, out)
    return out


def take_into(values: np.ndarray, selected: np.ndarray, out: np.ndarray) -> None:
    """The same, into an array that is there."""
    _take(values, selected, out)


class RowSelector:
    """Finds the relevant rows of batches that are in order of time; keeps its scratch space."""

    _FEW = 12

    def __init__(self) -> None:
        """No scratch space yet."""
        self._flags = np.zeros(0, np.uint8)

    def select(self, types: np.ndarray, wanted: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Rows of wanted types; `codes` lists the wanted codes, `wanted` is the table of flags."""
        rows = len(types)
        words = (rows + 7) // 8 * 8
        if len(self._flags) < words:
            self._flags = np.zeros(2 * words, np.uint8)
        flags = self._flags[:words]
        flags[rows:] = 0
        if len(codes) == 0:
            return np.zeros(0, np.int64)
        if len(codes) <= self._FEW:
            flag_types(types, codes, flags)
        else:
            flag_by_table(types, wanted, flags)
        selected = room(words + 1)
        # The view is made here, for which a kernel would need all that numba knows of arrays.
        return selected[: int(collect(flags.view(np.uint64), selected))]
