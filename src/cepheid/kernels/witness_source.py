"""Source text of a negation probe: is there a witness against a candidate match?

The witnesses of one negated component lie in time order, chained per key. Candidates come with the
interval they guard as two (time, row) pairs; comparing pairs serves both orders: by time alone the
row bounds are at infinity. Walks from the newest witness that can matter and stops at the low end.
Cost: O(witnesses in the interval) per candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cepheid.kernels.kernel_text import DECORATOR


@dataclass(frozen=True, slots=True)
class ProbeShape:
    """What decides the text of a probe.

    `tests` are the joint predicates, over `x{v}_{c}[i]` (column c of positive component v) and
    `c{c}[w]` (column c of the witness). `listing` makes it write (candidate, witness) pairs instead
    of a verdict, for predicates that only whole columns can decide.
    """

    keyed: bool
    tests: tuple[str, ...]
    candidate_columns: tuple[tuple[int, int], ...]
    witness_columns: tuple[int, ...]
    listing: bool = False

    def arguments(self) -> tuple[str, ...]:
        """The probe's arguments, in order."""
        names = ["begin", "count", "low_t", "low_r", "high_t", "high_r", "codes", "dead"]
        names += ["wt", "wrow", "prev", "heads", "size", "base", "ci", "cf"]
        names += [f"x{v}_{c}" for v, c in self.candidate_columns]
        names += [f"c{c}" for c in self.witness_columns]
        if self.listing:
            names += ["pair_candidate", "pair_witness"]
        return tuple(names)


@lru_cache(maxsize=1024)
def probe_source(shape: ProbeShape) -> str:
    """The text of a module with one compiled function `probe`."""
    out = [DECORATOR, f"def probe({', '.join(shape.arguments())}):"]
    out.append("    pairs = 0")
    out.append("    for i in range(begin, count):")
    out.append("        if dead[i]:")
    out.append("            continue")
    out.append("        first_pair = pairs")
    if shape.keyed:
        out.append("        p = heads[codes[i]] if codes[i] < heads.shape[0] else -1")
    else:
        # The newest witness not after the high end, by bisection.
        out += [
            "        left = 0",
            "        right = size",
            "        while left < right:",
            "            middle = (left + right) >> 1",
            "            if wt[middle] <= high_t[i]:",
            "                left = middle + 1",
            "            else:",
            "                right = middle",
            "        p = left - 1",
        ]
    out += [
        "        while p >= 0:",
        "            tn = wt[p]",
        "            rn = wrow[p]",
        "            if tn < low_t[i] or (tn == low_t[i] and rn <= low_r[i]):",
        "                break",
        "            if tn < high_t[i] or (tn == high_t[i] and rn < high_r[i]):",
        "                w = rn - base",
    ]
    test = " and ".join(f"({t})" for t in shape.tests) or "True"
    out.append(f"                if {test}:")
    if shape.listing:
        out += [
            "                    if pairs == pair_candidate.shape[0]:",
            "                        return i, first_pair",
            "                    pair_candidate[pairs] = i",
            "                    pair_witness[pairs] = rn",
            "                    pairs += 1",
        ]
    else:
        out += ["                    dead[i] = 1", "                    break"]
    out.append(f"            p = {'prev[p]' if shape.keyed else 'p - 1'}")
    out.append("    return count, pairs")
    return "\n".join(out) + "\n"
