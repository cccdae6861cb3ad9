"""Factorised matches made flat, and the numbers by which users know their events."""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled, inlined_late
from cepheid.kernels.processor import write_eight


@inlined_late
def _write_group(out, row, listed, begin, end, later):  # type: ignore[no-untyped-def]
    """out[row...] = (listed[begin...], *later); the row after them."""
    one, eight = np.uint64(1), np.uint64(8)
    # Eight rows at a time even where fewer are wanted: the next group writes over the others. So
    # how many a group has decides on no jump, which would be guessed wrong for most of them.
    last_row, last_begin = np.int64(out.shape[0]) - 8, np.int64(listed.shape[0]) - 8
    while begin < end and np.int64(row) <= last_row and np.int64(begin) <= last_begin:
        write_eight(out, row, listed, begin, later)  # type: ignore[call-arg]
        many = min(eight, end - begin)
        row += many
        begin += many
    while begin < end:
        out[row, 0] = listed[begin]
        for s in range(len(later)):
            out[row, 1 + s] = later[s]
        row += one
        begin += one
    return row


@compiled
def expand_groups(later, start, count, listed, out):  # type: ignore[no-untyped-def]
    """out[row] = (first event, later events...) for every first event of every group.

    `later[:, g]` are the events of group g after the first; its first events are
    listed[start[g] : start[g] + count[g]].
    """
    width = later.shape[0]
    row = np.uint64(0)
    one = np.uint64(1)
    for g in range(later.shape[1]):
        begin, end = np.uint64(start[g]), np.uint64(start[g] + count[g])
        if width == 2:  # a sequence of three, and below of two: most are
            row = _write_group(out, row, listed, begin, end, (later[0, g], later[1, g]))
        elif width == 1:
            row = _write_group(out, row, listed, begin, end, (later[0, g],))
        else:
            while begin < end:
                out[row, 0] = listed[begin]
                for s in range(width):
                    out[row, 1 + s] = later[s, g]
                row += one
                begin += one
    return row


@compiled
def expand_columns(later, start, count, listed, base, out):  # type: ignore[no-untyped-def]
    """The same with a row of `out` for each variable; from all numbers `base` is taken off."""
    width = later.shape[0]
    row = np.uint64(0)
    for g in range(later.shape[1]):
        begin, size = np.uint64(start[g]), np.uint64(count[g])
        for j in range(size):
            out[0, row + j] = listed[begin + j] - base
        for s in range(width):
            number = later[s, g] - base
            for j in range(size):
                out[s + 1, row + j] = number
        row += size


@compiled
def named(ordinals, base, names, out):  # type: ignore[no-untyped-def]
    """out[j] = the name of event ordinals[j], which is names[ordinals[j] - base]."""
    for j in range(ordinals.shape[0]):
        out[np.uint64(j)] = names[np.uint64(ordinals[np.uint64(j)] - base)]


@compiled
def arrival_numbers(ordinals, base, first, selected, out):  # type: ignore[no-untyped-def]
    """out[j] = the arrival number of event ordinals[j], for those in one chunk of events.

    The chunk has the ordinals from `base` on; they are rows `selected` of a batch that begins with
    arrival number `first`.
    """
    rows = np.uint64(selected.shape[0])
    for j in range(ordinals.shape[0]):
        row = np.uint64(ordinals[j] - base)
        if row < rows:
            out[j] = selected[row] + first


@compiled
def places(positions, first, base, out):  # type: ignore[no-untyped-def]
    """out[arrival number - first] = ordinal, for events with the ordinals from `base` on."""
    for j in range(positions.shape[0]):
        out[np.uint64(positions[np.uint64(j)] - first)] = base + j
