"""Which operators have still to be visited: bits of two levels, of which the lowest comes first."""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import compiled
from cepheid.kernels.succession_shape import USERS
from cepheid.kernels.waiting_lists import DEADLINE

_ONE, _SIX, _TWELVE, _LAST = np.uint64(1), np.uint64(6), np.uint64(12), np.uint64(63)
_LOW_BIT = np.zeros(64, np.int64)
_LOW_BIT[[(0x03F79D71B4CB0A89 << n) % 2**64 >> 58 for n in range(64)]] = np.arange(64)


@compiled
def activate(operators, users, operator, active, groups):  # type: ignore[no-untyped-def]
    """Note that the users of an operator have to be visited."""
    for at in range(operators[operator, USERS], operators[operator + 1, USERS]):
        mark(np.uint64(users[at]), active, groups)


@compiled
def activate_timers(timers, waiting, queues, now, active, groups):  # type: ignore[no-untyped-def]
    """Note the timers that have an instant now."""
    for queue in range(timers.shape[0]):
        row = queues[queue, 0]
        if row >= 0 and waiting[row, DEADLINE] == now:
            mark(np.uint64(timers[queue]), active, groups)


@compiled
def mark(operator, active, groups):  # type: ignore[no-untyped-def]
    """Note that an operator has to be visited."""
    active[operator >> _SIX] |= _ONE << (operator & _LAST)
    groups[operator >> _TWELVE] |= _ONE << ((operator >> _SIX) & _LAST)


@compiled
def next_active(active, groups):  # type: ignore[no-untyped-def]
    """The lowest operator that has to be visited, which is done with that; -1 for none."""
    for group in range(groups.shape[0]):
        if groups[group] != 0:
            word = (np.uint64(group) << _SIX) + _lowest(groups[group])
            operator = (word << _SIX) + _lowest(active[word])
            active[word] &= active[word] - _ONE
            if active[word] == 0:
                groups[group] &= groups[group] - _ONE
            return np.int64(operator)
    return np.int64(-1)


@compiled
def _lowest(bits):  # type: ignore[no-untyped-def]
    """The number of the lowest bit that is set: de Bruijn's sequence tells it from its weight."""
    weight = bits & (~bits + _ONE)
    return np.uint64(_LOW_BIT[(weight * np.uint64(0x03F79D71B4CB0A89)) >> np.uint64(58)])
