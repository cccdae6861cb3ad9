"""Estimated shares against shares counted in a generated stream."""

from __future__ import annotations

import operator

import pytest

from cepheid.algebra.expression import And, Attribute, Call, Compare, Literal, Not, Or
from cepheid.generate import StreamParameters, generate_stream
from cepheid.model.options import Options
from cepheid.statistics.collect import StatisticsCollector
from cepheid.statistics.selectivity import GUESS, selectivity

STREAM = generate_stream(
    StreamParameters(
        events=20_000, types=1, attributes=2, domain_sizes=(40, 4), null_fraction=0.1, seed=2
    )
)
TYPES = {"x": ("E1",), "y": ("E1",)}
PYTHON = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.fixture(scope="module")
def statistics():
    collector = StatisticsCollector(Options())
    for batch in STREAM.to_batches():
        collector.add(batch)
    return collector.finish()


@pytest.mark.parametrize("op", ["=", "<", ">", "<=", ">="])
@pytest.mark.parametrize("constant", [1, 13, 39])
def test_comparison_with_a_constant(statistics, op, constant):
    test = Compare(op, Attribute("x", "attr1"), Literal(constant))
    values = [v for v in STREAM["attr1"].to_pylist() if v is not None]
    counted = sum(PYTHON[op](v, constant) for v in values) / STREAM.num_rows
    assert selectivity(test, TYPES, statistics) == pytest.approx(counted, abs=0.06)
    turned = Compare(
        {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op), test.right, test.left
    )
    assert selectivity(turned, TYPES, statistics) == selectivity(test, TYPES, statistics)


def test_equality_of_two_events_is_one_value_in_all(statistics):
    test = Compare("=", Attribute("x", "attr1"), Attribute("y", "attr1"))
    assert selectivity(test, TYPES, statistics) == 1 / 40


def test_and_or_not_combine(statistics):
    quarter = Compare("=", Attribute("x", "attr2"), Literal(2))
    share = selectivity(quarter, TYPES, statistics)
    assert share == pytest.approx(0.9 / 4, rel=0.1)
    assert selectivity(And((quarter, quarter)), TYPES, statistics) == pytest.approx(share**2)
    assert selectivity(Not(quarter), TYPES, statistics) == pytest.approx(1 - share)
    either = selectivity(Or((quarter, quarter)), TYPES, statistics)
    assert either == pytest.approx(1 - (1 - share) ** 2)


def test_unknown_attributes_and_calls_are_guessed(statistics):
    call = Call("contains", (Attribute("x", "name"), Literal("a")))
    assert selectivity(call, TYPES, statistics) == GUESS
    unknown = Compare("<", Attribute("x", "nothing"), Literal(3))
    assert selectivity(unknown, TYPES, statistics) == GUESS
