"""Exact dense codes for strings and keys: hash tables whose entries are compared in full.

`intern_strings` gives each distinct byte string a code (`find_strings` only looks for one);
`encode_keys` gives each distinct tuple of 64-bit values a code. Both are resumable: they stop when
a table is full, the caller grows it and goes on. Equal hashes never merge different values: the
stored value decides.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cepheid.kernels.machine_code import compiled
from cepheid.kernels.memory import room

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_OFFSET = np.uint64(1469598103934665603)
_PRIME = np.uint64(1099511628211)
_SHIFT = np.uint64(32)


@compiled
def _bytes_hash(data, start, end):  # type: ignore[no-untyped-def]
    h = _OFFSET
    for b in range(start, end):
        h = (h ^ np.uint64(data[b])) * _PRIME
    h ^= h >> _SHIFT
    return h * _MULTIPLIER


@compiled
def intern_strings(  # type: ignore[no-untyped-def]
    begin, rows, offsets, data, codes, slots, hashes, starts, pool, count
):
    """Codes of the strings at `rows`; the bytes of code c are pool[starts[c] : starts[c + 1]].

    Returns (rows done, strings known). It stops early when slots (half full) or pool has no room.
    """
    limit = slots.shape[0] >> 1
    mask = slots.shape[0] - 1
    for i in range(begin, rows.shape[0]):
        start = offsets[rows[i]]
        end = offsets[rows[i] + 1]
        size = end - start
        h = _bytes_hash(data, start, end)
        slot = np.int64(h >> _SHIFT) & mask
        code = np.int64(-1)
        while True:
            code = slots[slot]
            if code < 0:
                break
            if hashes[code] == h and starts[code + 1] - starts[code] == size:
                same = True
                base = starts[code]
                for b in range(size):
                    if pool[base + b] != data[start + b]:
                        same = False
                        break
                if same:
                    break
            slot = (slot + 1) & mask
        if code < 0:
            if count >= limit or starts[count] + size > pool.shape[0]:
                return i, count
            base = starts[count]
            for b in range(size):
                pool[base + b] = data[start + b]
            starts[count + 1] = base + size
            hashes[count] = h
            slots[slot] = count
            code = count
            count += 1
        codes[i] = code
    return rows.shape[0], count


@compiled
def find_strings(rows, offsets, data, codes, slots, hashes, starts, pool):  # type: ignore[no-untyped-def]
    """Codes of the strings at `rows`; -1 for one that is not in the table, which stays as it is."""
    mask = slots.shape[0] - 1
    for i in range(rows.shape[0]):
        start = offsets[rows[i]]
        end = offsets[rows[i] + 1]
        h = _bytes_hash(data, start, end)
        slot = np.int64(h >> _SHIFT) & mask
        code = slots[slot]
        while code >= 0:
            base = starts[code]
            if hashes[code] == h and starts[code + 1] - base == end - start:
                b = end - start - 1
                while b >= 0 and pool[base + b] == data[start + b]:
                    b -= 1
                if b < 0:
                    break
            slot = (slot + 1) & mask
            code = slots[slot]
        codes[i] = code


@compiled
def match_names(offsets, data, names, name_offsets, codes):  # type: ignore[no-untyped-def]
    """codes[i] = which of a few names string i is, or their number when it is none of them.

    Looks at the length and the last byte first (names of types tend to differ there), then at the
    rest; no hashing, no table.
    """
    count = name_offsets.shape[0] - 1
    for i in range(codes.shape[0]):
        start = offsets[i]
        size = offsets[i + 1] - start
        code = count
        for n in range(count):
            base = name_offsets[n]
            if name_offsets[n + 1] - base == size:
                b = size - 1
                while b >= 0 and data[np.uint64(start + b)] == names[np.uint64(base + b)]:
                    b -= 1
                if b < 0:
                    code = n
                    break
        codes[i] = code


@compiled
def rehash_strings(slots, hashes, count):  # type: ignore[no-untyped-def]
    """Put all known strings in a fresh slot table."""
    mask = slots.shape[0] - 1
    for code in range(count):
        slot = np.int64(hashes[code] >> _SHIFT) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code


@compiled
def _key_hash(values, i):  # type: ignore[no-untyped-def]
    h = np.uint64(values[0, i]) * _MULTIPLIER
    h ^= h >> _SHIFT
    for c in range(1, values.shape[0]):
        h = (h ^ np.uint64(values[c, i])) * _MULTIPLIER
        h ^= h >> _SHIFT
    return np.int64((h * _MULTIPLIER) >> _SHIFT)


@compiled
def encode_key(begin, values, codes, slots, known, count):  # type: ignore[no-untyped-def]
    """Codes for one 64-bit value per row; known[code] is the value."""
    limit = slots.shape[0] >> 1
    mask = slots.shape[0] - 1
    for i in range(begin, values.shape[0]):
        value = values[i]
        h = np.uint64(value) * _MULTIPLIER
        h ^= h >> _SHIFT
        slot = np.int64((h * _MULTIPLIER) >> _SHIFT) & mask
        code = slots[slot]
        while code >= 0 and known[code] != value:
            slot = (slot + 1) & mask
            code = slots[slot]
        if code < 0:
            if count >= limit:
                return i, count
            known[count] = value
            slots[slot] = count
            code = count
            count += 1
        codes[i] = code
    return values.shape[0], count


@compiled
def encode_keys(begin, values, codes, slots, known, count):  # type: ignore[no-untyped-def]
    """Codes for columns of 64-bit values (values[c, i]); known[c, code] holds the tuples."""
    limit = slots.shape[0] >> 1
    mask = slots.shape[0] - 1
    width = values.shape[0]
    for i in range(begin, values.shape[1]):
        slot = _key_hash(values, i) & mask
        code = slots[slot]
        while code >= 0:
            same = True
            for c in range(width):
                if known[c, code] != values[c, i]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & mask
            code = slots[slot]
        if code < 0:
            if count >= limit:
                return i, count
            for c in range(width):
                known[c, count] = values[c, i]
            slots[slot] = count
            code = count
            count += 1
        codes[i] = code
    return values.shape[1], count


@compiled
def rehash_keys(slots, known, count):  # type: ignore[no-untyped-def]
    """Put all known key tuples in a fresh slot table (one column: pass a 2-d view)."""
    mask = slots.shape[0] - 1
    for code in range(count):
        if known.shape[0] == 1:
            h = np.uint64(known[0, code]) * _MULTIPLIER
            h ^= h >> _SHIFT
            slot = np.int64((h * _MULTIPLIER) >> _SHIFT) & mask
        else:
            slot = _key_hash(known, code) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code


class StringTable:
    """Distinct strings of a stream and their codes."""

    def __init__(self) -> None:
        """An empty table that grows by doubling."""
        self.count = 0
        self._slots = np.full(1024, -1, np.int64)
        self._hashes = np.zeros(512, np.uint64)
        self._starts = np.zeros(513, np.int64)
        self._pool = np.zeros(8192, np.uint8)

    def codes(self, rows: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
        """Codes of the strings at `rows` of an Arrow string array's buffers."""
        out = np.empty(len(rows), np.int64)
        done = 0
        while True:
            done, self.count = intern_strings(
                done,
                rows,
                offsets,
                data,
                out,
                self._slots,
                self._hashes,
                self._starts,
                self._pool,
                self.count,
            )
            if done == len(rows):
                return out
            row = rows[done]
            self._grow(int(offsets[row + 1] - offsets[row]))

    def known_codes(self, rows: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
        """The same without learning new strings: -1 for those."""
        out = np.empty(len(rows), np.int64)
        find_strings(rows, offsets, data, out, self._slots, self._hashes, self._starts, self._pool)
        return out

    def code(self, text: str) -> int:
        """The code of one string."""
        data = np.frombuffer(text.encode("utf-8") or b"\0", np.uint8)
        size = len(text.encode("utf-8"))
        return int(self.codes(np.zeros(1, np.int64), np.array([0, size], np.int64), data)[0])

    def ranks(self) -> np.ndarray:
        """The place of each code's string among all known ones, in the order of their bytes."""
        starts = self._starts[: self.count + 1]
        pool = self._pool[: starts[-1]].tobytes()
        texts = [pool[begin:end] for begin, end in pairwise(starts.tolist())]
        ranks = np.empty(self.count, np.int64)
        ranks[sorted(range(self.count), key=texts.__getitem__)] = np.arange(self.count)
        return ranks

    def _grow(self, needed: int) -> None:
        if self.count >= len(self._slots) >> 1:
            self._slots = np.full(2 * len(self._slots), -1, np.int64)
            self._hashes = np.concatenate([self._hashes, np.zeros_like(self._hashes)])
            self._starts = np.concatenate(
                [self._starts, np.zeros(len(self._hashes) // 2, np.int64)]
            )
            rehash_strings(self._slots, self._hashes, self.count)
        room = max(2 * len(self._pool), len(self._pool) + needed)
        pool = np.zeros(room, np.uint8)
        pool[: len(self._pool)] = self._pool
        self._pool = pool


@compiled
def subtract_base(values, base, size, codes):  # type: ignore[no-untyped-def]
    """codes = values - base; False when one of them is not in 0..size-1."""
    outside = np.int64(0)
    for i in range(values.shape[0]):
        code = values[i] - base
        codes[i] = code
        outside |= np.int64(code < 0) | np.int64(code >= size)
    return outside == 0


class KeyTable:
    """Distinct keys (tuples of 64-bit values) of a stream and their dense codes.

    Single integers that lie close together are their own code, less a base: no table at all. The
    first value outside that range turns the codes given so far into entries of the hash table.
    """

    _CLOSE = 1 << 15

    def __init__(self, width: int) -> None:
        """An empty table for keys of `width` columns."""
        self.width = width
        self.count = 0
        self._base: int | None = None
        self._direct = width == 1
        self._slots = np.full(2048, -1, np.int64)
        self._known = np.zeros((width, 1024), np.int64)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Codes of the keys in values[column, row]."""
        out = room(values.shape[1])
        if self._direct:
            if self._base is None and len(out):
                self._base = _rounded_down(int(values[0].min()), self._CLOSE)
            if self._base is None or subtract_base(values[0], self._base, self._CLOSE, out):
                if len(out):
                    self.count = max(self.count, int(out.max()) + 1)
                return out
            self._leave_direct()
        done = 0
        while True:
            if self.width == 1:
                done, self.count = encode_key(
                    done, values[0], out, self._slots, self._known[0], self.count
                )
            else:
                done, self.count = encode_keys(
                    done, values, out, self._slots, self._known, self.count
                )
            if done == values.shape[1]:
                return out
            self._grow(2 * len(self._slots))

    def close_range(self, values: np.ndarray) -> tuple[int, int] | None:
        """Base and number of the codes, while keys are their own codes; None once they are not.

        `values` are looked at only when the base is not chosen yet.
        """
        if not self._direct:
            return None
        if self._base is None:
            if not len(values):
                return None
            self._base = _rounded_down(int(values.min()), self._CLOSE)
        self.count = self._CLOSE
        return self._base, self._CLOSE

    def _leave_direct(self) -> None:
        assert self._base is not None
        self._direct = False
        size = len(self._slots)
        while size < 4 * self.count:
            size *= 2
        self._known = np.zeros((1, size // 2), np.int64)
        self._known[0, : self.count] = self._base + np.arange(self.count)
        self._slots = np.full(size, -1, np.int64)
        rehash_keys(self._slots, self._known, self.count)

    def _grow(self, size: int) -> None:
        known = np.zeros((self.width, size // 2), np.int64)
        known[:, : self._known.shape[1]] = self._known
        self._known = known
        self._slots = np.full(size, -1, np.int64)
        rehash_keys(self._slots, self._known, self.count)


def _rounded_down(value: int, step: int) -> int:
    """A base below the first values, with room on both sides."""
    return max(value - step // 4, -(2**62)) if value < 0 or value > step // 2 else 0
