"""What share of the events, or of the pairs of events, a condition lets through."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from cepheid.algebra.expression import (
    MIRRORED,
    And,
    Attribute,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
)
from cepheid.statistics.event_statistics import AttributeStatistics, EventStatistics

GUESS = 1 / 3
"""For a condition nothing is known about (Selinger et al., SIGMOD 1979, guess the same)."""
_GUESSED_EQUAL = 1 / 10


def selectivity(
    test: Expression, types_of: Mapping[str, tuple[str, ...]], statistics: EventStatistics
) -> float:
    """The estimated share, conditions being independent of one another.

    `types_of` names the event types of each variable; an empty tuple means any type.
    """
    match test:
        case And(operands):
            return prod(selectivity(each, types_of, statistics) for each in operands)
        case Or(operands):
            return 1 - prod(1 - selectivity(each, types_of, statistics) for each in operands)
        case Not(operand):
            return 1 - selectivity(operand, types_of, statistics)
        case Compare(op, Attribute() as attribute, Literal(value)):
            return _with_constant(_of(attribute, types_of, statistics), op, value)
        case Compare(op, Literal(value), Attribute() as attribute):
            return _with_constant(_of(attribute, types_of, statistics), MIRRORED[op], value)
        case Compare(op, Attribute() as left, Attribute() as right):
            found = [_of(left, types_of, statistics), _of(right, types_of, statistics)]
            distinct = max((each.distinct for each in found if each), default=0)
            equal = 1 / distinct if distinct else _GUESSED_EQUAL
            return {"=": equal, "!=": 1 - equal}.get(op, 0.5)
        case Compare("=", _, _):
            return _GUESSED_EQUAL
        case Compare("!=", _, _):
            return 1 - _GUESSED_EQUAL
        case _:
            return GUESS


def _of(
    attribute: Attribute, types_of: Mapping[str, tuple[str, ...]], statistics: EventStatistics
) -> AttributeStatistics | None:
    """The attribute's statistics; of several types, those of the commonest one that has it."""
    names = types_of.get(attribute.variable) or tuple(statistics.types)
    known = [statistics.types[name] for name in names if name in statistics.types]
    having = [each for each in known if attribute.name in each.attributes]
    if not having:
        return None
    return max(having, key=lambda each: each.count).attributes[attribute.name]


def _with_constant(found: AttributeStatistics | None, op: str, value: object) -> float:
    if op in ("=", "!="):
        equal = _GUESSED_EQUAL if found is None else _share_of_value(found, value)
        return equal if op == "=" else 1 - equal
    if found is None or not _is_number(value):
        return GUESS
    least, greatest = found.least, found.greatest
    if not (_is_number(least) and _is_number(greatest)):
        return GUESS
    assert isinstance(least, int | float)
    assert isinstance(greatest, int | float)
    assert isinstance(value, int | float)
    if greatest == least:
        below = 0.0 if value <= least else 1.0
    else:
        below = min(1.0, max(0.0, (value - least) / (greatest - least)))
    defined = 1 - found.null_fraction
    return defined * (below if op in ("<", "<=") else 1 - below)


def _share_of_value(found: AttributeStatistics, value: object) -> float:
    for frequent, share in found.frequent:
        if frequent == value:
            return share
    others = max(1, found.distinct - len(found.frequent))
    rest = 1 - found.null_fraction - sum(share for _, share in found.frequent)
    return max(0.0, rest) / others


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
