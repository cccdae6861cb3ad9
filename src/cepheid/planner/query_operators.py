"""The operators of a whole query, whatever it is made of: for placing it, with rates and loads.

What the cost model of NEXT knows is told by it (operator_graph); the rest by its structure. Rates
come from statistics; while there are none, every type counts the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cepheid.algebra.expression import TRUE, conjuncts
from cepheid.algebra.pattern import Atom, Filter, Pattern, Within, operands, walk
from cepheid.planner.canonical_succession import canonical
from cepheid.planner.operator_graph import Operator, operators_of, source_name
from cepheid.planner.succession_plan import is_succession
from cepheid.statistics.next_costs import NextCosts, NotCosted

_UNKNOWN_RATE = 1.0
"""Events per unit of time, of every type, while nothing is known of any."""


def query_operators(patterns: Iterable[Pattern], costs: NextCosts | None) -> tuple[Operator, ...]:
    """The operators of a query and of those whose events it reads, operands first.

    `patterns` are the optimised patterns of its stages, inputs first.

    >>> from cepheid.algebra.text import from_text
    >>> pattern = from_text("Seq(Atom([A], x), Atom([B], y))")
    >>> [(each.operands, each.cpu) for each in query_operators([pattern], None)]
    [(('A',), 1.0), (('B',), 1.0), ((0, 1), 2.0)]
    """
    found: list[Operator] = []
    for pattern in patterns:
        first = len(found)
        for each in _of_pattern(pattern, costs):
            below = tuple(o + first if isinstance(o, int) else o for o in each.operands)
            found.append(replace(each, number=each.number + first, operands=below))
    return tuple(found)


def source_rates(patterns: Iterable[Pattern], costs: NextCosts | None) -> dict[str, float]:
    """Events per unit of time of every source that the patterns read, by its name."""
    return {
        source_name(node): _source_rate(node, costs)
        for pattern in patterns
        for node in walk(pattern)
        if isinstance(node, Atom)
    }


def _of_pattern(pattern: Pattern, costs: NextCosts | None) -> Sequence[Operator]:
    if is_succession(pattern):
        atoms = [each for each in walk(pattern) if isinstance(each, Atom)]
        assumed = dict.fromkeys((name for each in atoms for name in each.types), _UNKNOWN_RATE)
        costed = operators_of(pattern, costs or NextCosts(assumed))
        if not isinstance(costed, NotCosted) and costed:
            return costed
    return _by_structure(pattern, costs)


def _by_structure(pattern: Pattern, costs: NextCosts | None) -> Sequence[Operator]:
    """Operators of a pattern that the cost model does not know, a sequence above all.

    An atom is one: the stack that holds its events, which sequences share (SASE, section 4.2.1).
    Every other one handles what comes from its operands, and sends no more than the rarest of them
    brings; a window or a condition is part of the operator below it.
    """
    found: list[Operator] = []

    def add(node: Pattern, whole: Pattern) -> int:
        if isinstance(node, Filter | Within):
            return add(node.pattern, whole)
        if isinstance(node, Atom):
            below: tuple[int | str, ...] = (source_name(node),)
            cpu = _source_rate(node, costs)
            known = costs.of(node) if costs is not None and conjuncts(node.predicate) else None
            rate = cpu if known is None or isinstance(known, NotCosted) else known.rate
        else:
            inner = [add(each, each) for each in operands(node)]
            below = tuple(inner)
            cpu = sum(found[each].rate for each in inner)
            rate = min((found[each].rate for each in inner), default=0.0)
        number = len(found)
        found.append(Operator(number, canonical(whole), below, rate, cpu))
        return number

    add(pattern, pattern)
    return found


def _source_rate(atom: Atom, costs: NextCosts | None) -> float:
    """The events of an atom's types; where others have rates, a type without one never comes."""
    if costs is None:
        return _UNKNOWN_RATE * max(1, len(atom.types))
    known = costs.of(replace(atom, predicate=TRUE))
    return 0.0 if isinstance(known, NotCosted) else known.rate
