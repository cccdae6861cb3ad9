"""Unions within unions become one."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.pattern import Pattern, Union


def flatten_union(node: Pattern) -> Pattern | None:
    """
    Union(Union(A, B), C)  ->  Union(A, B, C)

    Sound because a bag union adds up: in which groups the matches are added makes no difference.
    It would not be for a node that chooses among its operands' matches, such as Next: there the
    operands of one Next compete, and those of two do not.
    """
    if not isinstance(node, Union) or not any(isinstance(p, Union) for p in node.patterns):
        return None
    flat = [
        part
        for pattern in node.patterns
        for part in (pattern.patterns if isinstance(pattern, Union) else (pattern,))
    ]
    return replace(node, patterns=tuple(flat))
