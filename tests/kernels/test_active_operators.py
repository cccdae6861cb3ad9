"""The operators still to visit come out lowest first, also when users join while they do."""

from __future__ import annotations

import random

import numpy as np

from cepheid.kernels.active_operators import activate, next_active
from cepheid.kernels.succession_shape import TABLE_WIDTH, USERS

OPERATORS = 20_000


def test_the_lowest_comes_first_and_each_comes_once() -> None:
    for seed in range(20):
        r = random.Random(seed)
        size = r.choice((1, 5, 64, 65, 4_096, 4_097, OPERATORS))
        users = [
            sorted(
                {r.randrange(n + 1, size) for _ in range(r.choice((0, 1, 3)))}
                if n + 1 < size
                else ()
            )
            for n in range(size)
        ]
        table = np.zeros((size + 1, TABLE_WIDTH), np.int64)
        table[:, USERS] = np.cumsum([0, *map(len, users)])
        members = np.array([n for each in users for n in each] or [0], np.int64)
        active = np.zeros((size >> 6) + 1, np.uint64)
        groups = np.zeros((size >> 12) + 1, np.uint64)
        begun = r.sample(range(size), min(size, 5))
        expected, waiting = [], {n for each in begun for n in users[each]}
        for each in begun:
            activate(table, members, each, active, groups)
        found = []
        while (operator := int(next_active(active, groups))) >= 0:
            found.append(operator)
            activate(table, members, operator, active, groups)
        while waiting:
            lowest = min(waiting)
            expected.append(lowest)
            waiting = (waiting - {lowest}) | set(users[lowest])
        assert found == expected
        assert not active.any()
        assert not groups.any()
