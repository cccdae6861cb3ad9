"""A pattern of NEXT as single operators that can run on different nodes (NEXT, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.algebra.expression import conjuncts
from cepheid.algebra.pattern import Atom, Pattern, Union, Within, operands, with_operands
from cepheid.optimizer.union_shape import UnionShape, nested_union
from cepheid.planner.canonical_succession import CanonicalForms
from cepheid.statistics.next_costs import NextCosts, NotCosted


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a query: what it finds, whom it listens to, what it sends and costs.

    `canonical` is the text of the whole sub-tree, equal for sub-trees that find the same. Operands
    are numbers of operators of the same query, or names of sources. `rate` is the paper's mu, the
    events it sends per unit of time, `cpu` the events it handles.
    """

    number: int
    canonical: str
    operands: tuple[int | str, ...]
    rate: float
    cpu: float


def operators_of(pattern: Pattern, costs: NextCosts) -> tuple[Operator, ...] | NotCosted:
    """The operators of a pattern, operands before those that use them, the root last.

    Unions become trees of two by two, the rarest first; an atom is a source, and one with a
    condition a filter over it. A window is a condition of the operator below it (assumption 2 of
    section 4.2). A bare atom is no operator: nothing is left to place.

    >>> from cepheid.algebra.text import from_text
    >>> costs = NextCosts({"A": 10, "B": 3})
    >>> [each] = operators_of(from_text("Next(Atom([A], a), Atom([B], b))"), costs)
    >>> each.canonical, each.operands, each.rate, each.cpu
    ('Next(Atom([A]), Atom([B]))', ('A', 'B'), 10.0, 20.0)
    """
    found: list[Operator] = []

    def add(node: Pattern, whole: Pattern) -> int | str | NotCosted:
        """The operator of a node; `whole` is the node with the windows above it."""
        if isinstance(node, Within):
            return add(node.pattern, whole)
        if isinstance(node, Atom) and not conjuncts(node.predicate) and whole is node:
            return source_name(node)
        below: list[int | str] = []
        for each in operands(node):
            inner = add(each, each)
            if isinstance(inner, NotCosted):
                return inner
            below.append(inner)
        if isinstance(node, Atom):
            below.append(source_name(node))
        traffic = costs.of(whole)
        if isinstance(traffic, NotCosted):
            return traffic
        number = len(found)
        text = forms.of(whole).text
        found.append(Operator(number, text, tuple(below), traffic.rate, traffic.cpu))
        return number

    two_by_two = _with_binary_unions(pattern, costs)
    if isinstance(two_by_two, NotCosted):
        return two_by_two
    whole_traffic = costs.of(two_by_two)
    if isinstance(whole_traffic, NotCosted):
        return whole_traffic  # what has no costs need not have a canonical form
    forms = CanonicalForms()
    forms.add_query(two_by_two)
    root = add(two_by_two, two_by_two)
    return root if isinstance(root, NotCosted) else tuple(found)


def source_name(atom: Atom) -> str:
    """The stream that an atom listens to; `*` is all of them."""
    return ", ".join(atom.types) or "*"


def _with_binary_unions(node: Pattern, costs: NextCosts) -> Pattern | NotCosted:
    below: list[Pattern] = []
    for each in operands(node):
        inner = _with_binary_unions(each, costs)
        if isinstance(inner, NotCosted):
            return inner
        below.append(inner)
    rebuilt = with_operands(node, tuple(below))
    if not isinstance(rebuilt, Union) or len(rebuilt.patterns) <= 2:
        return rebuilt
    tree = costs.union_tree(rebuilt)
    return tree if isinstance(tree, NotCosted) else nested_union(UnionShape(rebuilt, tree))
