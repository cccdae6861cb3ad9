"""128-bit hashes of events and of matches, in two lanes; the same on every host and machine.

An event's hash folds its columns in the order of their names; a match's hash folds its events in
pattern order, starting from the query's fingerprint. Nulls add nothing, so a wide table and a
narrow one agree. No floating point, no byte order, no Python hash() takes part.
"""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled, inlined_early

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_GOLD = np.uint64(0x9E3779B97F4A7C15)
_S30 = np.uint64(30)
_S27 = np.uint64(27)
_S31 = np.uint64(31)
_PRIME = np.uint64(1099511628211)

FIRST_FACTOR, OTHER_FACTOR = _M2, _M1
"""What the lanes of a match are multiplied with at each of its events."""


@inlined_early
def _mix(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@compiled
def fold_integers(lanes, values, valid, seed):  # type: ignore[no-untyped-def]
    """Fold one column of 64-bit values into the rows' lanes (lanes[2, rows])."""
    for i in range(values.shape[0]):
        if valid[i]:
            x = np.uint64(values[i])
            lanes[0, i] += _mix(x ^ seed)
            lanes[1, i] += _mix(x + seed * _GOLD + _M2)


@compiled
def fold_bytes(lanes, offsets, data, valid, seed):  # type: ignore[no-untyped-def]
    """Fold one column of byte strings into the rows' lanes."""
    for i in range(offsets.shape[0] - 1):
        if valid[i]:
            a = seed
            b = seed ^ _GOLD
            for j in range(offsets[i], offsets[i + 1]):
                x = np.uint64(data[j])
                a = (a ^ x) * _PRIME
                b = (b + x) * _M1
                b ^= b >> _S31
            lanes[0, i] += _mix(a)
            lanes[1, i] += _mix(b)


@compiled
def match_lanes(events, rows, first, second, out):  # type: ignore[no-untyped-def]
    """out[m]: the lanes of the match of events[:, rows[m, v]] for each variable v, in order.

    The events' lanes are mixed already: a polynomial in an odd constant keeps their order apart.
    """
    for m in range(rows.shape[0]):
        a = first
        b = second
        for v in range(rows.shape[1]):
            e = np.uint64(rows[m, v])
            a = a * _M2 + events[0, e]
            b = b * _M1 + events[1, e]
        out[m, 0] = _mix(a)
        out[m, 1] = _mix(b)


@inlined_early
def name_of_variable(number):  # type: ignore[no-untyped-def]
    """What a variable adds to each of its events."""
    return _mix(np.uint64(number) + _GOLD)


@compiled
def chain_lanes(events, ends, rows, first, second, out):  # type: ignore[no-untyped-def]
    """The same for matches of any length: rows [variable, event], those of match m up to ends[m].

    The variables take part, because matches of different shapes may share their events.
    """
    begin = 0
    for m in range(ends.shape[0]):
        a = first
        b = second
        for r in range(begin, ends[m]):
            e = np.uint64(rows[r, 1])
            name = name_of_variable(rows[r, 0])
            a = a * _M2 + (events[0, e] ^ name)
            b = b * _M1 + (events[1, e] + name)
        begin = ends[m]
        out[m, 0] = _mix(a)
        out[m, 1] = _mix(b)


@compiled
def run_lanes(events, ends, rows, counts, runs, first, second, out):  # type: ignore[no-untyped-def]
    """The same where a row r with counts[r] > 0 stands for a run of so many events.

    What its events would have added is known: runs[r], the polynomial of them alone.
    """
    begin = 0
    for m in range(ends.shape[0]):
        a = first
        b = second
        for r in range(begin, ends[m]):
            if counts[r] > 0:
                a = a * _power(_M2, counts[r]) + np.uint64(runs[r, 0])
                b = b * _power(_M1, counts[r]) + np.uint64(runs[r, 1])
                continue
            e = np.uint64(rows[r, 1])
            name = name_of_variable(rows[r, 0])
            a = a * _M2 + (events[0, e] ^ name)
            b = b * _M1 + (events[1, e] + name)
        begin = ends[m]
        out[m, 0] = _mix(a)
        out[m, 1] = _mix(b)


@compiled
def _power(factor, times):  # type: ignore[no-untyped-def]
    result = np.uint64(1)
    while times > 0:
        if times & 1:
            result = result * factor
        factor = factor * factor
        times >>= 1
    return result


@compiled
def hexadecimal(data, pairs, out):  # type: ignore[no-untyped-def]
    """Two hexadecimal characters for each byte; bytes of a lane stand as in memory."""
    for i in range(data.shape[0]):
        out[i] = pairs[data[i]]


PAIRS_OF_DIGITS = np.frombuffer("".join(f"{n:02x}" for n in range(256)).encode(), np.uint16)
