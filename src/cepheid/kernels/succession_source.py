"""The source of a query's conditions on successors: one function, told which one is meant."""

from __future__ import annotations

from cepheid.kernels.succession_shape import Condition


def condition_source(conditions: tuple[Condition, ...]) -> str:
    """The module text; each condition returns a truth value, or a hash, as an integer."""
    lines = [
        "from cepheid.kernels.succession_run import CONDITION",
        "",
        "@numba.njit(CONDITION, cache=True, nogil=True)",
        "def condition(which, nodes, m, q, base, facts, numbers, ci, cf):",
    ]
    for number, condition in enumerate(conditions):
        lines.append(f"    if which == {number}:")
        lines += [f"        {line}" for line in condition.lines]
        lines.append(f"        return np.int64({condition.answer})")
    lines.append("    return np.int64(1)")
    return "\n".join(lines) + "\n"
