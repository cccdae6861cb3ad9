"""A condition on rows that files can be asked before they are read: Parquet's statistics know it.

Every row that matters passes it; others may pass too, and the engine tests again.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expression import (
    MIRRORED,
    And,
    Attribute,
    Compare,
    Expression,
    Literal,
    Or,
    ScalarType,
    conjuncts,
)
from cepheid.hosts.prepared_program import PreparedProgram
from cepheid.model.options import Options
from cepheid.planner.match_schema import scalar_type
from cepheid.planner.sequence_plan import Component, Negation

_COMPARE = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def row_condition(program: PreparedProgram, schema: pa.Schema) -> Any:
    """The condition as a pyarrow expression over columns of `schema`; None when there is none."""
    ways = [_may_fill(component, program, schema) for component in program.components()]
    if any(way is None for way in ways):
        return None
    return reduce(or_, ways)


def _may_fill(component: Component | Negation, program: PreparedProgram, schema: pa.Schema) -> Any:
    parts = []
    if component.types and _is_text(schema, program.options.type):
        parts.append(pc.field(program.options.type).isin(list(component.types)))
    for test in conjuncts(component.test):
        translated = _translated(test, component.types, schema, program.options)
        if translated is not None:
            parts.append(translated)
    return reduce(and_, parts) if parts else None


def _is_text(schema: pa.Schema, name: str) -> bool:
    where = schema.get_field_index(name)
    return where >= 0 and scalar_type(schema.field(where).type) is ScalarType.STRING


def _translated(
    test: Expression, types: tuple[str, ...], schema: pa.Schema, options: Options
) -> Any:
    match test:
        case And(operands) if operands:
            parts = [_translated(each, types, schema, options) for each in operands]
            known = [part for part in parts if part is not None]
            return reduce(and_, known) if known else None
        case Or(operands) if operands:
            parts = [_translated(each, types, schema, options) for each in operands]
            return None if any(part is None for part in parts) else reduce(or_, parts)
        case Compare(op, Attribute(_, name), Literal(value)):
            return _comparison(op, name, value, types, schema, options)
        case Compare(op, Literal(value), Attribute(_, name)):
            return _comparison(MIRRORED[op], name, value, types, schema, options)
        case _:
            return None


def _comparison(
    op: str, name: str, value: Any, types: tuple[str, ...], schema: pa.Schema, options: Options
) -> Any:
    where = schema.get_field_index(name)
    if where < 0 or any(_lacks(each, name, options) for each in types):
        return None
    literal = _literal(schema.field(where).type, value)
    if literal is None:
        return None
    field = pc.field(name)
    # A null may stand for an attribute the event does not have, and then the test holds.
    return field.is_null() | _COMPARE[op](field, literal)


def _lacks(event_type: str, name: str, options: Options) -> bool:
    declared = options.attributes_of(event_type)
    return declared is not None and name not in declared


def _literal(kind: Any, value: Any) -> Any:
    """The constant in the column's own type; None when the two are not simply comparable."""
    is_a = pa.types
    if isinstance(value, bool):
        return pa.scalar(value) if is_a.is_boolean(kind) else None
    if isinstance(value, str):
        return pa.scalar(value) if scalar_type(kind) is ScalarType.STRING else None
    if isinstance(value, int) and abs(value) < 2**62:
        if is_a.is_integer(kind):
            return pa.scalar(value, pa.int64())
        if is_a.is_timestamp(kind):
            return pa.scalar(value, pa.int64()).cast(pa.timestamp("us", kind.tz))
    if isinstance(value, int | float) and (is_a.is_float32(kind) or is_a.is_float64(kind)):
        return pa.scalar(float(value), pa.float64())
    return None
