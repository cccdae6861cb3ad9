"""The relevant rows of a batch whose columns can be read as they are: in order, one pass.

A block of rows and the next one, which comes in meanwhile, fit the first-level cache. Rows
in order of time and, if there is a key, with keys close to each other: at the first block that is
not like that it stops.
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled
from cepheid.kernels.processor import lowest_bit, prefetch

_BLOCK = 512
_U = np.uint64
_EIGHT_FLAGS = np.uint64(0x0102040810204080)


@compiled
def _select(  # type: ignore[no-untyped-def]
    types, bits, wanted, times, latest, keys, base, size, flags, words, selected, mask, moments,
    codes,
):  # fmt: skip
    """How many rows it took, and how many of them are of a wanted type.

    Of these it writes the place, mask, time and, where there are `keys`, key less `base`. `words`
    are the flags, eight at a time.
    """
    rows = types.shape[0]
    keyed = keys.shape[0] > 0
    count = 0
    start = 0
    while start < rows:
        stop = min(start + _BLOCK, rows)
        falls = np.int64(times[_U(start)] < latest)
        for j in range(start + 1, stop):
            falls |= np.int64(times[_U(j)] < times[_U(j - 1)])
        if falls:
            return start, count
        many = stop - start
        one_type = wanted[0]
        for j in range(many):
            flags[_U(j)] = types[_U(start + j)] == one_type
        for choice in range(1, wanted.shape[0]):
            one_type = wanted[choice]
            for j in range(many):
                flags[_U(j)] |= types[_U(start + j)] == one_type
        whole = (many + 63) >> 6
        for j in range(many, whole << 6):
            flags[_U(j)] = 0
        before = count
        outside = np.int64(0)
        ahead = stop
        for j in range(whole):
            word = _U(0)
            for byte in range(8):
                # Eight flags, a byte each, become eight bits: the product has them on top.
                eight = (words[_U((j << 3) + byte)] * _EIGHT_FLAGS) >> _U(56)
                word |= eight << _U(byte << 3)
            place = start + (j << 6)
            while word:
                # Meanwhile the next block comes in: a line of eight rows for each row.
                prefetch(times, ahead)  # type: ignore[call-arg]
                if keyed:
                    prefetch(keys, ahead)
                ahead += 8
                row = place + lowest_bit(word)
                word &= word - _U(1)
                x = _U(row)
                at = _U(count)
                selected[at] = row
                mask[at] = bits[_U(types[x])]
                moments[at] = times[x]
                if keyed:
                    code = keys[x] - base
                    codes[at] = code
                    outside |= code | (size - 1 - code)
                count += 1
        if outside < 0:
            return start, before
        latest = times[_U(stop - 1)]
        start = stop
    return rows, count


class PlainRows:
    """Finds the relevant rows of batches, with scratch space that is used again."""

    def __init__(self) -> None:
        """No scratch space yet."""
        self._flags = np.zeros(_BLOCK, np.uint8)
        # Made here: a kernel that makes a view needs what numba knows of arrays when it is loaded.
        self._words = self._flags.view(np.uint64)
        self._room = np.zeros((4, 0), np.int64)

    def select(
        self,
        types: np.ndarray,
        bits: np.ndarray,
        wanted: np.ndarray,
        times: np.ndarray,
        latest: int,
        keys: np.ndarray,
        close: tuple[int, int],
    ) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """How many rows it could take, and of the relevant ones places, masks, times and keys.

        All but the places are written over by the next call. `close` is the base of the keys, and
        how many there are.
        """
        rows = len(types)
        if self._room.shape[1] < rows:
            self._room = np.zeros((4, rows), np.int64)
        selected, mask, moments, codes = self._room
        if not len(keys):
            codes[:rows] = 0
        taken, count = _select(
            types, bits, wanted, times, latest, keys, *close, self._flags, self._words, selected,
            mask, moments, codes,
        )  # fmt: skip
        return taken, selected[:count].copy(), mask[:count], moments[:count], codes[:count]
