"""Conditions on one event are tested where the event is taken, before any match is built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cepheid.algebra.expression import conjunction
from cepheid.algebra.pattern import Atom, Conj, Filter, Pattern, Seq, Within
from cepheid.optimizer.movable import may_move, only_variable, split, takes, with_tests


def push_filter_into_atoms(node: Pattern) -> Pattern | None:
    """
    Filter(Seq(A x, B y), p(x) and q(x, y))          ->  Filter(Seq(A x if p(x), B y), q(x, y))
    Filter(Within(Seq(A x, B y), w), p(x))           ->  Filter(Within(Seq(A x if p(x), B y), w))
    Filter(A x, p(x))                                ->  Filter(A x if p(x))

    Sound because a Seq or Conj takes every combination: the matches with an x that fails are those
    that a Seq without that x does not build (SASE section 4, simple predicates). The Atom takes
    over the absent rule, so it must have the same one, or no test of its own yet.

    It would not be for nodes that choose one match among several: below a Next the next B would
    become the next B *with p* (t1:2000 t2:50 t3:3000, both > 1000, finds t1 t3), and below a Pair
    other runs would be cut. Nor for an x under a Union, which a match may not have, nor for a p
    that fails on missing attributes, which below is asked about events that are in no match.
    """
    if not isinstance(node, Filter) or not may_move(node.predicate, node.absent):
        return None
    windows: list[Within] = []
    inner = node.pattern
    while isinstance(inner, Within):
        windows.append(inner)
        inner = inner.pattern
    atoms = {atom.variable: atom for atom in _atoms(inner) if takes(atom, node.absent)}
    moved, kept = split(node.predicate, lambda part: only_variable(part) in atoms)
    if not moved:
        return None
    tested = {
        name: with_tests(atom, [part for part in moved if only_variable(part) == name], node.absent)
        for name, atom in atoms.items()
    }
    inner = _with_atoms(inner, tested)
    for window in reversed(windows):
        inner = replace(window, pattern=inner)
    return replace(node, pattern=inner, predicate=conjunction(kept))


def _atoms(node: Pattern) -> Iterable[Atom]:
    match node:
        case Atom():
            return (node,)
        case Seq(patterns) | Conj(patterns):
            return [each for each in patterns if isinstance(each, Atom)]
        case _:
            return ()


def _with_atoms(node: Pattern, tested: dict[str, Atom]) -> Pattern:
    match node:
        case Atom():
            return tested[node.variable]
        case Seq() | Conj():
            patterns = [
                tested.get(each.variable, each) if isinstance(each, Atom) else each
                for each in node.patterns
            ]
            return replace(node, patterns=tuple(patterns))
        case _:
            return node
