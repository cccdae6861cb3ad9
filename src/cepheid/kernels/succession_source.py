"""The source of conditions on successors: one function, told which one is meant."""

from __future__ import annotations

from cepheid.kernels.succession_shape import Condition


def condition_source(conditions: tuple[Condition, ...]) -> str:
    """The module text; each condition returns a truth value, or a hash, as an integer.

    A call is told by its number: `ci` begins with three cells for each, which text is meant and
    where the constants of it begin.
    """
    lines = [
        "from cepheid.kernels.succession_control import CONDITION",
        "",
        "@numba.njit(CONDITION, cache=True, nogil=True, _nrt=False)",
        "def condition(call, nodes, m, q, base, facts, numbers, ci, cf):",
        "    which, i0, f0 = ci[3 * call], ci[3 * call + 1], ci[3 * call + 2]",
    ]
    for number, condition in enumerate(conditions):
        lines.append(f"    if which == {number}:")
        lines += [f"        {line}" for line in condition.lines]
        lines.append(f"        return np.int64({condition.answer})")
    lines.append("    return np.int64(1)")
    return "\n".join(lines) + "\n"
