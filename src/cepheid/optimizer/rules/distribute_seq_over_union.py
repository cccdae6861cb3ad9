"""A sequence with alternatives becomes alternative sequences, which simpler kernels can run."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Pattern, Seq, Union


def distribute_seq_over_union(node: Pattern) -> Pattern | None:
    """
    Seq(A, Union(B, C), D; w)  ->  Union(Seq(A, B, D; w), Seq(A, C, D; w))

    Sound because a Seq takes every combination of its operands' matches, and the combinations with
    B and those with C are apart. It would not be for Next: after A the *first* of B and C counts,
    not the first B and the first C. Each union multiplies the sequences, so this is done on demand.
    """
    if not isinstance(node, Seq):
        return None
    for position, pattern in enumerate(node.patterns):
        if isinstance(pattern, Union):
            before, after = node.patterns[:position], node.patterns[position + 1 :]
            return Union(
                tuple(
                    replace(node, patterns=(*before, branch, *after)) for branch in pattern.patterns
                ),
                span=pattern.span,
            )
    return None
