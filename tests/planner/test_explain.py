"""`explain` states facts of the layout that runs, not guesses."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.algebra.expression import ScalarType, conjuncts
from cepheid.algebra.text import to_text
from cepheid.generate import (
    QueryParameters,
    StreamParameters,
    generate_queries,
    generate_stream,
    stream_schema,
)
from cepheid.model.errors import CepheidError, DataError, OptionError
from cepheid.model.options import Options, make_options
from cepheid.planner.explain import explain
from cepheid.planner.prepare import prepare
from cepheid.planner.sequence_layout import Layout, lay_out
from cepheid.statistics.collect import StatisticsCollector
from cepheid.statistics.event_statistics import save_statistics

TICKS = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("v", pa.float64()),
        ("name", pa.string()),
    ]
)


def explained(query: str, schema: pa.Schema | None = TICKS, **options: object) -> str:
    return cepheid.compile(query).explain(schema, **options)


def layout_of(query: str, schema: pa.Schema, options: Options) -> Layout:
    compiled = cepheid.compile(query)
    prepared = prepare(compiled.stages(options)[-1], options, schema)
    types = prepared.column_types
    return lay_out(prepared.plan, lambda name: types.get(name, ScalarType.UNKNOWN), options.plan)


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        (
            "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10",
            [
                "key      x.id = y.id",
                "window   last - first < 10 ticks; tested in scan and construction",
                "output   factorised",
                "state    relevant events of the last 10 ticks",
                "final    a match leaves with its last event",
                "x.id = y.id  by the key",
            ],
        ),
        (
            "EVENT SEQ(A x, B y) WHERE x.v < y.v WITHIN 10",
            [
                "key      none: no attribute is equal in all events",
                "output   flat: a condition compares `x` with later events",
                "in construction, when `x` is reached",
                "no key: on a Spark stream one task does all the work",
            ],
        ),
        (
            "EVENT SEQ(A x, B y)",
            ["window   none", "state    unbounded", "without WITHIN the state grows"],
        ),
        (
            "EVENT SEQ(A x, !(B n), C y) WHERE [id] WITHIN 10",
            [
                "no n, B        between x and y",
                "decided in the kernel, by the latest witness",
                "final    a match leaves when the watermark has reached its last event",
                "output   flat: a negation follows `x`",
            ],
        ),
        (
            "EVENT SEQ(A x, C y, !(B n)) WHERE n.v > x.v WITHIN 10",
            [
                "after y, at most 9 ticks after x",
                "decided when its time is over, by a search among the witnesses of every key",
                "in the probe's kernel",
                "watermark is 9 ticks past its first event",
            ],
        ),
        (
            "EVENT A x WHERE contains(x.name, 'q') AND x.v > 2",
            [
                "state    the events of the current instant, so that equal ones are told apart",
                "contains(x.name, 'q')  as a column, before the kernel (strings)",
                "x.v > 2                in the kernel, before the event is stored",
                "key      none: one event needs no partner",
            ],
        ),
        (
            "EVENT SEQ(A x, B y) WHERE x.id = y.v WITHIN 9",
            ["key      none: the compared columns have different types"],
        ),
    ],
)
def test_plan_is_told(query, lines):
    text = explained(query)
    for line in lines:
        assert line in text, f"{line!r} is not in\n{text}"


def test_forced_options_are_told():
    query = "EVENT SEQ(A x, B y) WHERE [id] AND x.v < y.v WITHIN 10"
    text = explained(
        query,
        plan={"partition": "none", "predicates": "selection", "window_in_scan": False},
    )
    assert "switched off by the plan option partition" in text
    assert "on the complete sequence (forced)" in text
    assert "tested in construction" in text


def test_rewrites_are_told():
    query = "EVENT SEQ(A x, B y) WHERE x.v > 2 AND y.v < 9 WITHIN 10"
    text = explained(query)
    optimised = text.split("Optimised, bound to integer ticks\n")[1].split("\nPlan")[0]
    assert "Atom([A], x, x.v > 2)" in optimised
    assert "by push_filter_into_atoms" in optimised
    off = explained(query, plan={"rules_off": ["push_filter_into_atoms"]})
    assert "no rewrite applies" in off


def test_null_warning_goes_with_declared_types():
    query = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10"
    assert "a null counts as an attribute" in explained(query)
    assert "a null counts as" not in explained(query, types={"A": ["id"], "B": ["id"]})


def test_every_stage_of_a_program_is_explained():
    text = explained(
        """QUERY Pair EVENT SEQ(A x, B y) WHERE [id] WITHIN 10 RETURN x.id AS id;
        QUERY Twice EVENT SEQ(Pair p, Pair q) WHERE [id] WITHIN 50"""
    )
    assert "Query Pair (sase)" in text
    assert "returns events of type Pair with id" in text
    assert "Query Twice (sase)" in text
    assert text.count("\nPlan\n") == 2


def test_unbound_parameters_are_named_not_refused():
    query = "EVENT SEQ(A x, B y) WHERE x.v > :least WITHIN :w"
    assert "needs values for :least, :w" in explained(query)
    assert "last - first < 7 ticks" in explained(query, params={"least": 1, "w": 7})


def test_doubtful_text_is_remarked():
    assert "warning[window-without-effect]" in explained("EVENT A x WITHIN 10")


def test_without_a_schema_the_assumption_is_told():
    text = explained("EVENT SEQ(A x, B y) WHERE [id] WITHIN 2 hours", None)
    assert "Optimised, bound to timestamps in microseconds, assumed" in text
    assert "last - first < 2 h" in text
    assert "columns are not known" in text


def test_wrong_column_is_refused_with_its_place():
    with pytest.raises(DataError) as caught:
        explained("EVENT SEQ(A x, B y) WHERE x.idd = y.id")
    assert caught.value.code == "unknown-column"
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    "events",
    [
        TICKS,
        TICKS.empty_table(),
        pd.DataFrame({"type": ["A"], "ts": [1], "id": [1], "v": [0.5], "name": ["n"]}),
        [{"type": "A", "ts": 1, "id": 1}, {"type": "B", "ts": 2, "id": 1, "v": 0.5, "name": "n"}],
    ],
    ids=["schema", "table", "pandas", "dicts"],
)
def test_events_of_every_form_tell_their_columns(events):
    query = "EVENT SEQ(A x, B y) WHERE [id] AND x.v > 1 AND x.name = 'n' WITHIN 10"
    assert explained(query, events) == explained(query, TICKS)


def test_other_things_are_no_events():
    with pytest.raises(CepheidError) as caught:
        explained("EVENT A x", 7)
    assert caught.value.code == "unknown-events"


STREAM = StreamParameters(events=4000, types=8, attributes=4, domain_sizes=30, seed=5)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("predicates", ["construction", "selection"])
def test_every_condition_of_the_layout_is_told_once(seed, predicates):
    wanted = QueryParameters(
        length=3,
        equivalence_tests=seed % 3,
        inequality_predicates=seed % 4,
        simple_predicates=seed % 5 % 3,
        negations=seed % 3,
        negated_ends=seed % 2 == 0,
        window=500,
        seed=seed,
    )
    query = generate_queries(wanted, STREAM)[0]
    options = make_options({"plan": {"predicates": predicates}})
    schema = stream_schema(STREAM)
    layout = layout_of(query, schema, options)
    text = explain(cepheid.compile(query), options, schema)
    conditions = text.split("Where each condition runs\n")[1].split("\nWarnings")[0].split("\n")
    in_kernel = [line for line in conditions if "in construction" in line or "complete" in line]
    assert len(in_kernel) == sum(len(tests) for tests in layout.shape.joint)
    assert sum("as a column, before" in line for line in conditions) == len(layout.bit_tests)
    assert sum("decided in the kernel" in line for line in conditions) == len(
        layout.shape.negations
    )
    assert sum("search among" in line for line in conditions) == len(layout.probes)
    for level, tests in enumerate(layout.shape.joint):
        name = layout.plan.components[level].variable
        told = [line for line in conditions if f"when `{name}` is reached" in line]
        if predicates == "construction":
            assert len(told) == len(tests)
    for negation in layout.plan.negations:
        for test in conjuncts(negation.joint):
            assert any(to_text(test) in line for line in conditions)


def statistics_of(table: pa.Table):
    collector = StatisticsCollector(Options())
    for batch in table.to_batches():
        collector.add(batch)
    return collector.finish()


def test_estimates_are_near_the_truth():
    stream = generate_stream(STREAM)
    statistics = statistics_of(stream)
    query = "EVENT SEQ(E1 x, E2 y, E3 z) WHERE [attr1] AND x.attr2 < 16 WITHIN 400"
    text = cepheid.compile(query).explain(stream, statistics=statistics)
    line = next(line for line in text.split("\n") if line.startswith("  matches"))
    told = float(line.split("per tick, ")[1].split(" in the whole")[0].replace(",", ""))
    counted = len(cepheid.detect(stream, query))
    assert counted > 50
    assert told == pytest.approx(counted, rel=0.5)
    detector = cepheid.Detector(query)
    detector.feed(stream)
    state = next(line for line in text.split("\n") if line.startswith("  state   "))
    assert "relevant events" in state
    estimated = [line for line in text.split("\n") if line.startswith("  state")][-1]
    kept = float(estimated.split()[1].replace(",", ""))
    # The engine keeps batches whole until all their events are old, so it may hold more.
    assert kept == pytest.approx(400 * 3 / 8, rel=0.3)


def test_estimates_of_negations_lower_the_matches():
    stream = generate_stream(STREAM)
    statistics = statistics_of(stream)
    plain = "EVENT SEQ(E1 x, E3 z) WHERE [attr1] WITHIN 400"
    negated = "EVENT SEQ(E1 x, !(E2 n), E3 z) WHERE [attr1] WITHIN 400"

    def told(query: str) -> float:
        text = cepheid.compile(query).explain(stream, statistics=statistics)
        line = next(line for line in text.split("\n") if line.startswith("  matches"))
        return float(line.split("per tick, ")[1].split(" in the whole")[0].replace(",", ""))

    assert told(plain) == pytest.approx(len(cepheid.detect(stream, plain)), rel=0.5)
    assert told(negated) == pytest.approx(len(cepheid.detect(stream, negated)), rel=0.5)
    assert told(negated) < told(plain)


def test_statistics_may_come_as_a_file_and_must_fit(tmp_path):
    statistics = statistics_of(generate_stream(STREAM))
    path = tmp_path / "stats.json"
    save_statistics(statistics, path)
    query = cepheid.compile("EVENT SEQ(E1 x, E2 y) WHERE [attr1] WITHIN 40")
    assert query.explain(statistics=path) == query.explain(statistics=statistics)
    assert "attr1 (int)" in query.explain(statistics=path)
    in_hours = cepheid.compile("EVENT SEQ(E1 x, E2 y) WITHIN 1 hour")
    clock = pa.schema([("type", pa.string()), ("ts", pa.timestamp("us"))])
    with pytest.raises(OptionError) as caught:
        in_hours.explain(clock, statistics=path)
    assert caught.value.code == "other-time-unit"
