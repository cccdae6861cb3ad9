"""The leaves that events touch, from the atoms they fulfil: as bits of a mask, or as lists."""

from __future__ import annotations

import numpy as np

from cepheid.kernels.machine_code import allocating
from cepheid.kernels.match_nodes import MASK


@allocating
def leaves_by_mask(order, base, facts, leaf_starts, leaves):  # type: ignore[no-untyped-def]
    """Starts and leaves of the events `order`; bit a of an event's mask stands for atom a."""
    atoms = leaf_starts.shape[0] - 1
    starts = np.empty(order.shape[0] + 1, np.int64)
    touched = np.empty(order.shape[0] * leaves.shape[0], np.int64)
    count = 0
    for i in range(order.shape[0]):
        starts[i] = count
        mask = facts[MASK, order[i] - base]
        for atom in range(atoms):
            if mask >> atom & 1:
                for at in range(leaf_starts[atom], leaf_starts[atom + 1]):
                    touched[count] = leaves[at]
                    count += 1
    starts[order.shape[0]] = count
    return starts, touched[: max(count, 1)]


@allocating
def leaves_by_atom(atom_starts, atoms, leaf_starts, leaves):  # type: ignore[no-untyped-def]
    """The same for events that name their atoms."""
    starts = np.empty_like(atom_starts)
    count = 0
    for i in range(atom_starts.shape[0] - 1):
        starts[i] = count
        for at in range(atom_starts[i], atom_starts[i + 1]):
            count += leaf_starts[atoms[at] + 1] - leaf_starts[atoms[at]]
    starts[-1] = count
    touched = np.empty(max(count, 1), np.int64)
    count = 0
    for at in range(atom_starts[0], atom_starts[-1]):
        for each in range(leaf_starts[atoms[at]], leaf_starts[atoms[at] + 1]):
            touched[count] = leaves[each]
            count += 1
    return starts, touched


@allocating
def chosen_lists(starts, members, rows):  # type: ignore[no-untyped-def]
    """Starts and members of some of the lists, in the order of `rows`."""
    chosen = np.empty(rows.shape[0] + 1, np.int64)
    count = 0
    for i in range(rows.shape[0]):
        chosen[i] = count
        count += starts[rows[i] + 1] - starts[rows[i]]
    chosen[rows.shape[0]] = count
    out = np.empty(count, np.int64)
    count = 0
    for i in range(rows.shape[0]):
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            out[count] = members[at]
            count += 1
    return chosen, out
