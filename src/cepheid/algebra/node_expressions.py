"""The scalar expressions that stand in a pattern node itself, read and changed in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from cepheid.algebra.expression import Expression
from cepheid.algebra.pattern import (
    Absence,
    Agg,
    Atom,
    Conj,
    Dedup,
    Except,
    Filter,
    Guard,
    Lossy,
    Map,
    Next,
    Nth,
    Pair,
    Pattern,
    Plus,
    Seq,
    Timer,
    Union,
    Within,
)


def node_expressions(node: Pattern) -> tuple[Expression, ...]:
    """The expressions that stand in a node itself, not in its operands."""
    match node:
        case Atom() | Filter() | Guard() | Except():
            return (node.predicate,)
        case Next() | Plus():
            return (node.skip, node.test)
        case Dedup():
            return node.key
        case Map():
            return tuple(expression for _, expression in node.attributes)
        case Pair():
            return (*(side for pair in node.key for side in pair), node.predicate)
        case Lossy():
            return (node.predicate, *(default for _, _, default in node.defaults))
        case Agg():
            argument = () if node.argument is None else (node.argument,)
            return (*argument, *(key for _, key in node.group), node.having)
        case Union() | Within() | Conj() | Seq() | Timer() | Absence() | Nth():
            return ()
        case _:
            assert_never(node)


def with_node_expressions(node: Pattern, change: Callable[[Expression], Expression]) -> Pattern:
    """The same node with `change` applied to each of its own expressions."""
    match node:
        case Atom() | Filter() | Guard() | Except():
            return replace(node, predicate=change(node.predicate))
        case Next() | Plus():
            return replace(node, skip=change(node.skip), test=change(node.test))
        case Dedup():
            return replace(node, key=tuple(change(key) for key in node.key))
        case Map():
            return replace(node, attributes=tuple((n, change(e)) for n, e in node.attributes))
        case Pair():
            key = tuple((change(first), change(second)) for first, second in node.key)
            return replace(node, key=key, predicate=change(node.predicate))
        case Lossy():
            defaults = tuple((v, a, change(e)) for v, a, e in node.defaults)
            return replace(node, predicate=change(node.predicate), defaults=defaults)
        case Agg():
            return replace(
                node,
                argument=None if node.argument is None else change(node.argument),
                group=tuple((name, change(key)) for name, key in node.group),
                having=change(node.having),
            )
        case Union() | Within() | Conj() | Seq() | Timer() | Absence() | Nth():
            return node
        case _:
            assert_never(node)
