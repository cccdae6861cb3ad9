"""Pairs of rows and atoms however many there are: room is found, and nothing beside it written."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.kernels.dispatch import AtomIndex, lists_of


def expected_pairs(
    types: np.ndarray,
    values: np.ndarray,
    plain: list[list[int]],
    probed: list[list[int]],
    atoms: dict[tuple[int, int], list[int]],
) -> list[tuple[int, int]]:
    starts = np.cumsum([0, *map(len, probed)])
    found = []
    for row, kind in enumerate(types):
        found += [(row, atom) for atom in plain[kind]]
        for group, attribute in enumerate(probed[kind], starts[kind]):
            found += [(row, atom) for atom in atoms.get((group, int(values[attribute, row])), [])]
    return found


@pytest.mark.parametrize("rows", [0, 1, 7, 3_000])
@pytest.mark.parametrize("most", [0, 1, 3, 5, 40])
@pytest.mark.parametrize("spread", [10, 10**6])
def test_pairs_of_any_number(rows: int, most: int, spread: int) -> None:
    r = np.random.default_rng(rows + most)

    def some_atoms() -> list[int]:
        return r.integers(0, 1_000, r.integers(0, most + 1)).tolist()

    plain = [[], some_atoms(), [], some_atoms()]
    probed = [[], [0], [0, 1], []]
    keys = r.integers(0, spread, 12).tolist()
    atoms = {(group, key): some_atoms() for group in range(3) for key in set(keys)}
    index = AtomIndex(lists_of(plain), lists_of(probed), list(atoms), lists_of([*atoms.values()]))
    for _ in range(3):  # room is taken as the batch before it needed it
        types = r.integers(0, 4, rows)
        values = r.choice([*keys, -1, spread + 1], (2, rows))
        pairs = list(zip(*(part.tolist() for part in index.pairs(types, values)), strict=True))
        assert pairs == expected_pairs(types, values, plain, probed, atoms)
    many, few = np.full(rows, 3), np.zeros(rows, np.int64)
    for types in (few, many, few):
        at, _ = index.pairs(types, np.zeros((2, rows), np.int64))
        assert len(at) == sum(len(plain[kind]) for kind in types)
