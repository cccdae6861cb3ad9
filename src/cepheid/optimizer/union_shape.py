"""How unions are merged two by two, where a plan needs a tree of binary operators.

In the algebra a union is flat and its operands stand in the order they were written: the order of
variables must not depend on rates, and a bag union has no other meaning in another order. The tree
is therefore a value beside the pattern, asked for by whoever builds binary operators from it.
"""

from __future__ import annotations

from typing import NamedTuple

from cepheid.algebra.pattern import Pattern, Union, walk
from cepheid.statistics.next_costs import NextCosts, NotCosted
from cepheid.statistics.union_tree import UnionTree, fold_tree


class UnionShape(NamedTuple):
    """A union of three or more patterns and the tree in which it costs least to merge them."""

    union: Union
    tree: UnionTree


def union_shapes(pattern: Pattern, costs: NextCosts) -> tuple[UnionShape, ...]:
    """The unions in a pattern that can be merged in more than one way and have known rates."""
    found = []
    for node in walk(pattern):
        if isinstance(node, Union) and len(node.patterns) > 2:
            tree = costs.union_tree(node)
            if not isinstance(tree, NotCosted):
                found.append(UnionShape(node, tree))
    return tuple(found)


def nested_union(shape: UnionShape) -> Pattern:
    """The same bag as a tree of binary unions.

    >>> from cepheid.algebra.text import from_text, to_text
    >>> union = from_text("Union(Atom([A], a), Atom([B], b), Atom([C], c))")
    >>> to_text(nested_union(UnionShape(union, ((1, 2), 0))))
    'Union(Union(Atom([B], b), Atom([C], c)), Atom([A], a))'
    """
    patterns, span = shape.union.patterns, shape.union.span
    return fold_tree(
        shape.tree,
        patterns.__getitem__,
        lambda left, right: Union((left, right), span=span),
    )
