"""Sequences within a sequence become one, so that one kernel runs them."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Guard, Pattern, Seq, walk


def flatten_seq(node: Pattern) -> Pattern | None:
    """
    Seq(A, Seq(B, C); w)  ->  Seq(A, B, C; w)
    Seq(Seq(A, B), C)     ->  Seq(A, B, C)             only without a window

    Sound because in a sequence of B and C the start is that of B and the end is that of C, so A
    comes before both if it comes before B. An inner window is a test of its own and stays.

    It would not be for a first operand under a window, which counts from the *end of the first
    operand*: the end of Seq(A, B) is that of B, the end of A is earlier (a@1 b@5 c@8, w = 3). Nor
    where an inner operand's end was moved by a guard (`ends_match`), perhaps to before its start.
    """
    if not isinstance(node, Seq):
        return None
    flat: list[Pattern] = []
    for position, pattern in enumerate(node.patterns):
        is_timed = position == 0 and node.window is not None
        if isinstance(pattern, Seq) and not is_timed and _is_plain(pattern, node):
            flat.extend(pattern.patterns)
        else:
            flat.append(pattern)
    return replace(node, patterns=tuple(flat)) if len(flat) > len(node.patterns) else None


def _is_plain(inner: Seq, outer: Seq) -> bool:
    return (
        inner.window is None
        and inner.order is outer.order
        and not any(isinstance(each, Guard) and each.ends_match for each in walk(inner))
    )
