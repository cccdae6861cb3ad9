"""Every way to scan gives the oracle's answer: the paper's plans differ in work, not in matches."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.generate import StreamParameters, generate_stream
from cepheid.model.errors import OptionError
from tests.laws.engine_runs import in_cuts, in_disorder, oracle_answer, whole
from tests.laws.random_queries import Case, random_case, random_rows

NFA = {"scan": "nfa"}
MULTI = {"scan": "multi"}
ON_TOP = {
    "predicates": "selection",
    "simple_in_scan": False,
    "negation_in_scan": False,
    "window_in_scan": False,
    "window_in_construction": False,
}

QUERIES = {
    "two keys": "EVENT SEQ(A x, B y, C z) WHERE [k, v] WITHIN 12",
    "same type": "EVENT SEQ(A x, A y, B z) WHERE [k] AND x.v <= z.v WITHIN 9",
    "negated middle": "EVENT SEQ(A x, ANY(B, C) y, !(D n), C z) WHERE [k] AND y.v > 0 WITHIN 12",
    "negated ends": "EVENT SEQ(!(D m), A x, B y, !(C n)) WHERE [k] AND n.v > x.v WITHIN 7",
    "strings": "EVENT SEQ(A x, B y) WHERE [s, k] AND lower(x.s) != 'p' WITHIN 8",
    "no key": "EVENT SEQ(A x, B y, C z, D o) WHERE x.v + z.v > 2 AND y.w < 2 WITHIN 8",
    "no window": "EVENT SEQ(A x, B y) WHERE x.v < y.v",
    "alone": "EVENT A x WHERE x.v > 1",
}
PLANS = {
    "nfa": NFA,
    "multi": MULTI,
    "nfa, on top": NFA | ON_TOP,
    "multi, on top": MULTI | ON_TOP,
    "on top": ON_TOP,
}
RUNS = {
    "nfa": ("two keys", "same type", "negated middle", "no key", "no window", "alone"),
    "multi": ("two keys", "same type", "negated middle", "negated ends", "strings"),
    "nfa, on top": ("two keys", "no key"),
    "multi, on top": ("two keys", "strings"),
    "on top": ("two keys", "negated middle", "negated ends", "strings", "alone"),
}


def dense_rows(seed: int) -> list[dict[str, Any]]:
    """Events with many ties and few values, so that most streams hold some matches."""
    r = random.Random(seed)
    times = sorted(r.randint(0, 18) for _ in range(26))
    return [
        {
            "event": number,
            "type": r.choice("AABBCCD"),
            "ts": time,
            "k": r.randint(0, 1),
            "v": r.randint(0, 2),
            "w": r.choice((0.5, 1.0, 2.5)),
            "s": r.choice("pqQ"),
        }
        for number, time in enumerate(times)
    ]


def assert_agrees(case: Case, streams: list[list[dict[str, Any]]]) -> int:
    """Compare whole, cut and disordered runs with the oracle; the number of matches seen."""
    query = cepheid.compile(case.text)
    seen = 0
    for number, rows in enumerate(streams):
        right = oracle_answer(case, rows)
        seen += right.total()
        assert whole(query, case, rows) == right
        assert in_cuts(query, case, rows, number) == right
        assert in_disorder(query, case, rows, number) == right
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "query", "tie"),
    [
        *((plan, query, "strict") for plan, queries in RUNS.items() for query in queries),
        *((p, q, "seqno") for p in ("nfa", "multi") for q in ("same type", "negated middle")),
    ],
)
def test_fixed_queries_follow_the_oracle(plan: str, query: str, tie: str) -> None:
    case = Case(0, QUERIES[query], {"plan": PLANS[plan], "tie": tie})
    assert assert_agrees(case, [dense_rows(seed) for seed in range(8)]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["nfa", "multi", "on top"])
def test_random_queries_follow_the_oracle(plan: str) -> None:
    checked = 0
    for seed in range(7_000, 7_100):
        drawn = random_case(seed)
        case = Case(seed, drawn.text, {**drawn.options, "plan": PLANS[plan]})
        try:
            whole(cepheid.compile(case.text), case, dense_rows(0))
        except OptionError:
            continue
        assert_agrees(case, [random_rows(seed * 50 + n, size=24) for n in range(10)])
        checked += 1
        if checked == 3:
            return
    pytest.fail("hardly a query could be run")


def test_multi_pais_example_of_the_paper() -> None:
    """Figure 5: b5 shares attr1 with a2 and attr2 with a1 but all with nobody, so it is dropped."""
    rows = [
        {"type": kind, "ts": ts, "p": p, "q": q}
        for kind, ts, p, q in [
            ("A", 1, 1, 2),
            ("A", 2, 2, 3),
            ("A", 3, 1, 3),
            ("B", 5, 2, 2),
            ("B", 6, 1, 3),
        ]
    ]
    text = "EVENT SEQ(A x, B y) WHERE [p, q] WITHIN 100"
    detector = cepheid.Detector(text, plan=MULTI | {"counting": True})
    assert detector.feed(rows).ids.tolist() == [[2, 4]]
    assert detector.counters["sequences"] == 2  # a1 b6 is built too: the encoding is lossy
    longer = cepheid.Detector(
        "EVENT SEQ(A x, B y, C z) WHERE [p, q] WITHIN 100", plan=MULTI | {"counting": True}
    )
    longer.feed([*rows, {"type": "C", "ts": 7, "p": 2, "q": 2}])
    assert longer.counters["pushed"] == 4  # three a and b6
    assert longer.counters["sequences"] == 0


def test_nfa_example_of_the_paper() -> None:
    """Figure 2: d9 completes three sequences, found by a search over every cell of the window."""
    rows = [
        {"type": kind, "ts": ts}
        for kind, ts in [("A", 1), ("C", 2), ("B", 3), ("A", 4), ("C", 5), ("B", 6), ("D", 9)]
    ]
    text = "EVENT SEQ(A x, B y, D z) WITHIN 100"
    detector = cepheid.Detector(text, plan=NFA | {"counting": True})
    found = {tuple(match) for match in detector.feed(rows).ids.tolist()}
    assert found == {(0, 2, 6), (0, 5, 6), (3, 5, 6)}
    counters = detector.counters
    assert counters["sequences"] == 3
    assert counters["pushed"] == 7 + 5  # state 1 is active from a1 on, state 2 from b3 on
    stacks = cepheid.Detector(text, plan={"counting": True})
    stacks.feed(rows)
    assert stacks.counters["edges"] < counters["edges"]


@pytest.mark.parametrize("plan", [NFA, MULTI, {}], ids=["nfa", "multi", "stacks"])
def test_growth_and_resumption_change_neither_matches_nor_counters(plan: dict[str, Any]) -> None:
    """Rings, key tables and output buffers fill up on the way, also in the middle of an event."""
    parameters = StreamParameters(
        events=12_000, types=4, attributes=2, domain_sizes=(2, 3), seed=5, tie_fraction=0.1
    )
    table = generate_stream(parameters)
    text = "EVENT SEQ(E1 x, E2 y, E3 z) WHERE [attr1, attr2] AND x.attr1 > 0 WITHIN 300"
    right = in_order(cepheid.Detector(text).feed(table).ids)
    assert len(right) > 1 << 16  # more than the output buffers hold
    options = plan | {"counting": True, "factorised": False}
    at_once = cepheid.Detector(text, plan=options)
    assert np.array_equal(in_order(at_once.feed(table).ids), right)
    in_parts = cepheid.Detector(text, plan=options)
    found = [in_parts.feed(part).ids for part in parts_of(table, 97)]
    assert np.array_equal(in_order(np.concatenate(found)), right)
    assert in_parts.counters == at_once.counters
    if plan is not MULTI:
        assert at_once.counters["sequences"] == len(right)


def test_counters_outlive_the_forgetting_of_old_keys() -> None:
    """A key that is used once stays in the table until the stacks are built anew without it."""
    events = 240_000
    types = pa.array(["A", "B"] * (events // 2)).dictionary_encode()
    first = np.arange(events) // 2 * 2
    table = pa.table({"type": types, "ts": np.arange(events), "k": first, "v": first % 7})
    plan = {"counting": True, "factorised": False}
    detector = cepheid.Detector("EVENT SEQ(A x, B y) WHERE [k, v] WITHIN 10", plan=plan)
    found = sum(len(detector.feed(part)) for part in parts_of(table, 2_000))
    assert found == detector.counters["sequences"] == detector.counters["pushed"] == events // 2


def parts_of(table: pa.Table, rows: int) -> list[pa.Table]:
    return [table.slice(at, rows) for at in range(0, table.num_rows, rows)]


def in_order(ids: np.ndarray) -> np.ndarray:
    return ids[np.lexsort(ids.T[::-1])]


def test_the_nfa_keeps_a_cell_for_events_of_any_type() -> None:
    rows = [{"type": "Z", "ts": ts} for ts in range(10)]
    rows = [{"type": "A", "ts": -1}, *rows, {"type": "B", "ts": 10}]
    detector = cepheid.Detector("EVENT SEQ(A x, B y) WITHIN 100", plan=NFA | {"counting": True})
    assert len(detector.feed(rows)) == 1
    assert detector.counters["pushed"] == 12  # A is found from the first cell to the last


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("EVENT SEQ(A x, B y) WHERE x.v < y.v WITHIN 5", MULTI),
        ("EVENT SEQ(A x, B y) WHERE [k] WITHIN 5", MULTI | {"partition": "none"}),
        ("EVENT A x WHERE x.k = 1", MULTI),
        ("EVENT SEQ(A x, B y) WHERE [k] WITHIN 5", NFA | {"partition": "k"}),
    ],
)
def test_a_scan_that_does_not_fit_is_refused(text: str, plan: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as refused:
        cepheid.Detector(text, plan=plan).feed([{"type": "A", "ts": 1, "k": 1, "v": 1}])
    assert refused.value.code == "plan-does-not-fit"
    assert refused.value.help


def test_a_key_that_some_event_lacks_ends_the_partitions() -> None:
    """Equality through an absent attribute is not transitive: the stacks go on without a key."""
    rows: list[dict[str, Any]] = [
        {"type": "A", "ts": 1, "k": 1},
        {"type": "B", "ts": 2, "k": 2},
        {"type": "A", "ts": 3},
        {"type": "B", "ts": 4, "k": 1},
    ]
    text = "EVENT SEQ(A x, B y) WHERE [k] WITHIN 10"
    answers = [
        Counter(map(tuple, cepheid.Detector(text, plan=plan).feed(rows).ids.tolist()))
        for plan in ({}, MULTI, NFA)
    ]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].total() == 2


def test_explain_names_the_scan_and_where_tests_run() -> None:
    query = cepheid.compile(QUERIES["negated middle"])
    assert "run-time stack of an NFA" in query.explain(plan=NFA)
    assert "stacks for each key attribute" in query.explain(plan=MULTI)
    assert "on the complete sequence (forced)" in query.explain(plan={"simple_in_scan": False})
    assert "decided after construction" in query.explain(plan={"negation_in_scan": False})
