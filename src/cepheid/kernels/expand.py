"""Factorised matches made flat, and the numbers by which users know their events."""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled


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
        if width == 2:  # a sequence of three, and below of two: written without a loop
            second, third = later[0, g], later[1, g]
            while begin < end:
                out[row, 0] = listed[begin]
                out[row, 1] = second
                out[row, 2] = third
                row += one
                begin += one
        elif width == 1:
            second = later[0, g]
            while begin < end:
                out[row, 0] = listed[begin]
                out[row, 1] = second
                row += one
                begin += one
        else:
            while begin < end:
                out[row, 0] = listed[begin]
                for s in range(width):
                    out[row, 1 + s] = later[s, g]
                row += one
                begin += one
    return row


@compiled
def expand_named(later, start, count, listed, base, names, out):  # type: ignore[no-untyped-def]
    """As expand_groups, with names[ordinal - base] in place of ordinals after the first."""
    width = later.shape[0]
    row = np.uint64(0)
    one = np.uint64(1)
    for g in range(later.shape[1]):
        begin, end = np.uint64(start[g]), np.uint64(start[g] + count[g])
        if width == 2:
            second = names[np.uint64(later[0, g] - base)]
            third = names[np.uint64(later[1, g] - base)]
            while begin < end:
                out[row, 0] = listed[begin]
                out[row, 1] = second
                out[row, 2] = third
                row += one
                begin += one
        else:
            while begin < end:
                out[row, 0] = listed[begin]
                for s in range(width):
                    out[row, 1 + s] = names[np.uint64(later[s, g] - base)]
                row += one
                begin += one


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
