"""A compiled query under options: what is declared, what every event has, what is doubtful."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.model.errors import QueryError
from cepheid.model.options import make_options
from cepheid.planner import compiled_query
from cepheid.planner.prepare import prepare
from cepheid.testing import assert_matches

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
TYPES = {"A": ["v"], "B": {"v": "int"}}


def test_columns_that_every_event_has_need_no_declaration() -> None:
    events = "A1@1(v=1) B1@3(v=1) A2@4(v=1) B2@9(v=1)"
    query = "EVENT SEQ(A x, B y) WHERE x.v = y.v AND x.ts > 2 AND y.type = 'B' AND x.id != 'A3'"
    assert_matches(events, query, ["A2 B2"], types=TYPES)
    # the test is a real one, not true for want of the attribute
    assert_matches(events, query.replace("> 2", "> 5"), [], types=TYPES)
    with pytest.raises(QueryError) as error:
        assert_matches(events, query.replace("x.ts", "x.tz"), [], types=TYPES)
    assert error.value.code == "unknown-attribute"


def test_a_column_of_the_events_is_compared_in_construction_too() -> None:
    events = "A1@1(v=1) B1@3(v=2) B2@9(v=2)"
    query = "EVENT SEQ(A x, B y) WHERE y.ts - x.ts > 5"
    assert_matches(events, query, ["A1 B2"], types=TYPES)


def test_a_text_is_translated_once_for_each_catalogue() -> None:
    query = cepheid.compile("EVENT SEQ(A x, B y) WHERE x.v = y.v AND x.v != 41 -- asked only here")
    before = compiled_query._translated.cache_info()
    for _ in range(3):
        query.stages(make_options({"types": {"A": ["v"], "B": ["v"]}}))
    after = compiled_query._translated.cache_info()
    assert after.misses == before.misses + 1
    assert after.hits == before.hits + 2


def test_warnings_depend_on_the_options() -> None:
    query = cepheid.compile("EVENT SEQ(A x, B y) WHERE x.v = y.w")
    assert query.warnings(make_options({})) == ()
    found = query.warnings(make_options({"types": {"A": ["v"], "B": ["v", "w"], "C": ["w"]}}))
    assert found == ()
    (warning,) = query.warnings(make_options({"types": {"A": ["v"], "B": ["v"], "C": ["w"]}}))
    assert (warning.code, warning.severity) == ("absent-attribute", "warning")


def test_the_steps_of_the_optimiser_can_be_told() -> None:
    options = make_options({})
    query = cepheid.compile("EVENT SEQ(A x, B y) WHERE x.v > 1 WITHIN 5").stages(options)[-1]
    prepared = prepare(query, options, SCHEMA)
    assert [step.rule for step in prepared.optimised.trace] == [
        "push_filter_into_atoms",
        "drop_true_filter",
    ]
    off = make_options({"plan": {"rules_off": ["push_filter_into_atoms"]}})
    assert prepare(query, off, SCHEMA).optimised.trace == ()
    # a match keeps its name, whatever is rewritten
    assert prepare(query, off, SCHEMA).form.fingerprint == prepared.form.fingerprint
