"""From events to the atoms they can touch, through a hash index by type, attribute and value.

An event costs the atoms of its type that compare nothing, one look-up for each attribute that some
atom of its type compares with a constant, and the atoms found there; how many atoms there are in
all does not matter. Built by planner/dispatch.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cepheid.kernels.machine_code import compiled, inlined_late
from cepheid.kernels.memory import room
from cepheid.model.undefined import MAX_INT, MIN_INT

_PLACES_PER_KEY = 8
"""Up to so many are worth it to have a place for every value between the least and the greatest."""

_AT_ONCE = 4
_FIRST_ROOM = 1024
_SPARE = 1.1
"""How much more room than the last batch took."""


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of numbers one after the other: list i is members[starts[i] : starts[i + 1]]."""

    starts: np.ndarray
    members: np.ndarray


def lists_of(lists: Sequence[Sequence[int]]) -> Lists:
    """The lists as two arrays.

    >>> lists_of([[5], [], [7, 8]]).starts.tolist()
    [0, 1, 1, 3]
    """
    starts = np.cumsum([0, *(len(each) for each in lists)])
    return Lists(starts, np.array([n for each in lists for n in each], np.int64))


@compiled
def _place(group, key, size):  # type: ignore[no-untyped-def]
    h = (np.uint64(key) ^ (np.uint64(group) << np.uint64(40))) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    return np.int64((h * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(32)) & (size - 1)


@compiled
def _fill(groups, keys, slots):  # type: ignore[no-untyped-def]
    for entry in range(groups.shape[0]):
        slot = _place(groups[entry], keys[entry], slots.shape[0])
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = entry


@inlined_late
def _write_list(rows, atoms, count, row, members, begin, end):  # type: ignore[no-untyped-def]
    """Pairs of a row and the atoms of a list; how many pairs there are then.

    Four are written even where there are fewer, and the next list is written over the others: most
    lists are short, and their length decides on no jump, which nobody could foresee.
    """
    at = begin
    for _ in range(_AT_ONCE):
        rows[count + at - begin] = row
        atoms[count + at - begin] = members[at]
        at += np.uint64(1)
    while at < end:
        rows[count + at - begin] = row
        atoms[count + at - begin] = members[at]
        at += np.uint64(1)
    return count + (end - begin)


@compiled
def _pairs(  # type: ignore[no-untyped-def]
    i,
    count,
    types,
    plain_starts,
    probe_starts,
    probes,
    values,
    places,
    ranges,
    slots,
    groups,
    keys,
    entry_starts,
    members,
    rows,
    atoms,
):
    """Write pairs from row `i` on; the row it stopped at, for want of room, and their number.

    First the atoms that compare nothing, then those that the probes hit. The last entry is that of
    values which no atom asks for.
    """
    one = np.uint64(1)  # unsigned indices spare the test for negative ones
    last = np.uint64(slots.shape[0] - 1)
    none = np.int64(entry_starts.shape[0] - 2)
    room = np.int64(rows.shape[0]) - _AT_ONCE
    count = np.uint64(count)
    while i < types.shape[0]:
        kind = np.uint64(types[i])
        before = count
        size = plain_starts[kind + one] - plain_starts[kind]
        if size:
            if np.int64(count) + size > room:
                break
            begin, end = np.uint64(plain_starts[kind]), np.uint64(plain_starts[kind + one])
            count = _write_list(rows, atoms, count, i, members, begin, end)
        is_full = False
        for group in range(probe_starts[kind], probe_starts[kind + one]):
            key = values[np.uint64(probes[np.uint64(group)]), i]
            entry = none
            place = np.uint64(key - ranges[np.uint64(group), 1])
            if place < np.uint64(ranges[np.uint64(group), 2]):
                entry = places[np.uint64(ranges[np.uint64(group), 0]) + place]
            elif ranges[np.uint64(group), 3]:
                slot = np.uint64(_place(group, key, slots.shape[0]))
                entry = slots[slot]
                while entry >= 0 and (
                    keys[np.uint64(entry)] != key or groups[np.uint64(entry)] != group
                ):
                    slot = (slot + one) & last
                    entry = slots[slot]
                entry = none if entry < 0 else entry
            begin = np.uint64(entry_starts[np.uint64(entry)])
            end = np.uint64(entry_starts[np.uint64(entry) + one])
            if np.int64(count + (end - begin)) > room:
                is_full = True
                break
            count = _write_list(rows, atoms, count, i, members, begin, end)
        if is_full:
            count = before
            break
        i += 1
    return i, np.int64(count)


def _close_keys(groups: np.ndarray, keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For probes whose keys lie close together a place for each key, and where these are.

    Places of values that no entry has lead to the one after all entries.

    The latter as rows [first place, least key, places, whether there are keys outside of them].
    """
    ranges = np.zeros((count, 4), np.int64)
    parts: list[np.ndarray] = []
    first = 0
    for group in range(count):
        own = np.flatnonzero(groups == group)
        near = own[keys[own] >= MIN_INT]  # without what stands for an attribute that is not there
        least, most = int(keys[near].min(initial=MAX_INT)), int(keys[near].max(initial=MIN_INT))
        size = most - least + 1
        ranges[group, 3] = 1
        if 0 < size <= _PLACES_PER_KEY * len(near):
            places = np.full(size, len(keys), np.int64)
            places[keys[near] - least] = near
            parts.append(places)
            ranges[group] = first, least, size, len(near) < len(own)
            first += size
    return np.concatenate([*parts, np.zeros(0, np.int64)]), ranges


class AtomIndex:
    """Which atoms an event of a type with certain values touches."""

    def __init__(
        self, plain: Lists, probes: Lists, entries: Sequence[tuple[int, int]], atoms: Lists
    ) -> None:
        """`plain` and `probes` have a list for each type: atoms, and rows of `values` to look up.

        A probe's number is its place among all of them; entry e stands for values of probe
        entries[e][0] that are entries[e][1], and touches the atoms of list e.
        """
        self._plain_starts = plain.starts
        self._probes = probes
        self._groups = np.array([group for group, _ in entries], np.int64)
        self._keys = np.array([key for _, key in entries], np.int64)
        starts = atoms.starts + len(plain.members)
        self._entry_starts = np.append(starts, starts[-1])
        spare = np.zeros(_AT_ONCE, np.int64)
        self._members = np.concatenate([plain.members, atoms.members, spare])
        size = 16
        while size < 2 * len(entries):
            size *= 2
        self._slots = np.full(size, -1, np.int64)
        _fill(self._groups, self._keys, self._slots)
        self._places, self._ranges = _close_keys(self._groups, self._keys, len(probes.members))
        self._pairs_per_row = 1.0

    def pairs(self, types: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and atoms, sorted by row; `types` are numbers, values[attribute, row] are keys."""
        size = int(len(types) * self._pairs_per_row * _SPARE) + _FIRST_ROOM
        rows, atoms = room(size), room(size)
        row = count = 0
        while True:
            row, count = _pairs(
                row,
                count,
                types,
                self._plain_starts,
                self._probes.starts,
                self._probes.members,
                values,
                self._places,
                self._ranges,
                self._slots,
                self._groups,
                self._keys,
                self._entry_starts,
                self._members,
                rows,
                atoms,
            )
            if row == len(types):
                break
            rows, atoms = _twice(rows, count), _twice(atoms, count)
        self._pairs_per_row = count / max(1, len(types))
        return rows[:count], atoms[:count]


def _twice(array: np.ndarray, count: int) -> np.ndarray:
    larger = room(2 * len(array))
    larger[:count] = array[:count]
    return larger
