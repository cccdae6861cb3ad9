"""A pattern of NEXT as single operators that can run on different nodes (NEXT, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cepheid.algebra.expression import (
    Aggregate,
    Apart,
    Attribute,
    Every,
    Expression,
    Previous,
    conjuncts,
    rebuild,
)
from cepheid.algebra.pattern import (
    Atom,
    Except,
    Filter,
    Next,
    Pattern,
    Plus,
    Timer,
    Union,
    Within,
    operands,
    walk,
    with_operands,
)
from cepheid.algebra.text import to_text
from cepheid.optimizer.union_shape import UnionShape, nested_union
from cepheid.statistics.next_costs import NextCosts, NotCosted

_OF_NEXT = (Atom, Filter, Within, Timer, Union, Next, Plus, Except)


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
    ('Next(Atom([A], v0), Atom([B], v1))', ('A', 'B'), 10.0, 20.0)
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
        found.append(Operator(number, canonical(whole), tuple(below), traffic.rate, traffic.cpu))
        return number

    two_by_two = _with_binary_unions(pattern, costs)
    if isinstance(two_by_two, NotCosted):
        return two_by_two
    root = add(two_by_two, two_by_two)
    return root if isinstance(root, NotCosted) else tuple(found)


def source_name(atom: Atom) -> str:
    """The stream that an atom listens to; `*` is all of them."""
    return ", ".join(atom.types) or "*"


def canonical(pattern: Pattern) -> str:
    """A text that is equal for patterns that differ in names of variables or in a union's order.

    Two texts may differ although the patterns find the same: then something is not reused. They are
    never equal for patterns that find different things.

    >>> from cepheid.algebra.text import from_text
    >>> canonical(from_text("Union(Atom([B], y), Atom([A], x))"))
    'Union(Atom([A], v0), Atom([B], v1))'
    """
    if not all(isinstance(node, _OF_NEXT) for node in walk(pattern)):
        return to_text(pattern)  # other nodes name variables in ways that are not looked at here
    return _numbered(_in_order(pattern))


def _in_order(node: Pattern) -> Pattern:
    """The pattern with the operands of every union sorted by their own canonical texts."""
    below = with_operands(node, tuple(_in_order(each) for each in operands(node)))
    if isinstance(below, Union):
        return replace(below, patterns=tuple(sorted(below.patterns, key=_numbered)))
    return below


def _numbered(pattern: Pattern) -> str:
    """The text with variables numbered in the order in which they stand."""
    names: dict[str, str] = {}
    for node in walk(pattern):
        if isinstance(node, Atom):
            names.setdefault(node.variable, f"v{len(names)}")
    return to_text(_renamed(pattern, names))


def _renamed(node: Pattern, names: dict[str, str]) -> Pattern:
    below = with_operands(node, tuple(_renamed(each, names) for each in operands(node)))

    def renamed(expression: Expression) -> Expression:
        return rebuild(expression, lambda part: _expression_renamed(part, names))

    def of(name: str | None) -> str | None:
        return None if name is None else names.get(name, name)

    match below:
        case Atom():
            return replace(
                below, variable=names[below.variable], predicate=renamed(below.predicate)
            )
        case Filter():
            return replace(below, predicate=renamed(below.predicate))
        case Within():
            return replace(below, first=of(below.first), second=of(below.second))
        case Next() | Plus():
            return replace(below, skip=renamed(below.skip), test=renamed(below.test))
        case Except():
            return replace(
                below,
                predicate=renamed(below.predicate),
                since=names.get(below.since, below.since),
                or_since=tuple(names.get(each, each) for each in below.or_since),
            )
        case _:
            return below


def _expression_renamed(part: Expression, names: dict[str, str]) -> Expression:
    match part:
        case Attribute() | Previous() | Every():
            return replace(part, variable=names.get(part.variable, part.variable))
        case Apart():
            return replace(
                part,
                first=names.get(part.first, part.first),
                second=names.get(part.second, part.second),
            )
        case Aggregate(variable=str(variable)):
            return replace(part, variable=names.get(variable, variable))
        case _:
            return part


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
