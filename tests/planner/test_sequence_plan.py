"""The plan of a sequence, whatever order its tests stand in, before and after optimising."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cepheid
from cepheid.algebra.bind import bind
from cepheid.algebra.expression import Absent
from cepheid.algebra.expression_text import expression_text
from cepheid.algebra.text import from_text
from cepheid.model.errors import OptionError, QueryError
from cepheid.model.event_time import TimeDomain
from cepheid.model.options import make_options
from cepheid.optimizer.optimizer import RULES, optimise
from cepheid.planner.sequence_plan import Place, SequencePlan, plan_sequence
from cepheid.testing import assert_matches
from tests.laws.random_queries import random_case

MIDDLE = "low=max end([x]), low_closed=false, high=min start([y]), high_closed=false"
END = (
    "low=max end([y]), low_closed=false, high=min start([x]) + 1 windows - 1 ticks, "
    "high_closed=true, window=9, ends_match=true"
)
AB = "Seq(Atom([A], x), Atom([B], y))"


def plan(text: str) -> SequencePlan:
    return plan_sequence(from_text(text))


def without_order(plan: SequencePlan) -> SequencePlan:
    """Guards commute: where two plans have them in another order, they are the same plan."""
    return replace(plan, negations=tuple(sorted(plan.negations, key=lambda n: n.variable)))


def test_tests_may_stand_in_any_order() -> None:
    usual = (
        f"Guard(Guard(Filter(Within({AB}, window=8, inclusive=false), x.v > 1 and x.k = y.k), "
        f"Atom([N], n), {MIDDLE}, predicate=n.k = x.k), Atom([C], m), {END})"
    )
    mixed = (
        f"Filter(Guard(Filter(Guard(Within({AB}, window=8, inclusive=false), Atom([N], n), "
        f"{MIDDLE}, predicate=n.k = x.k), x.v > 1), Atom([C], m), {END}), x.k = y.k)"
    )
    assert plan(mixed) == plan(usual)
    assert [n.place for n in plan(usual).negations] == [Place.MIDDLE, Place.END]
    assert expression_text(plan(usual).components[0].test) == "x.v > 1"


def test_the_tightest_window_counts() -> None:
    twice = f"Within(Within({AB}, window=9, inclusive=false), window=5, inclusive=true)"
    assert plan(twice).window == 6
    assert plan("Seq(Atom([A], x), Atom([B], y), window=4)").window == 5
    inside = "Within(Seq(Atom([A], x), Atom([B], y), window=4), window=3, inclusive=false)"
    assert plan(inside).window == 3


def test_the_absent_rule_is_that_of_the_tests() -> None:
    assert plan(AB).absent is Absent.TRUE
    assert plan(f"Filter({AB}, x.v < y.v, absent=false)").absent is Absent.FALSE
    atoms = "Seq(Atom([A], x, x.v > 1, absent=false), Atom([B], y))"
    assert plan(atoms).absent is Absent.FALSE
    # an Atom or Filter that asks nothing has no say
    assert plan(f"Filter(Filter({AB}, always, absent=error), x.v > 1)").absent is Absent.TRUE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"Filter(Filter({AB}, x.v > 1), y.v > 1, absent=false)", "missing attributes"),
        (
            f"Guard({AB}, Atom([N], n, n.v > 1, absent=false), {MIDDLE}, predicate=n.k = x.k)",
            "missing attributes",
        ),
        (
            f"Within(Guard({AB}, Atom([N], n), {END}), window=5, inclusive=true)",
            "an end that a negation has moved",
        ),
        (
            f"Guard(Guard({AB}, Atom([N], n), {END}), Atom([C], m), "
            f"{END.replace('window=9', 'window=7')})",
            "do not agree on the end",
        ),
        (f"Guard({AB}, Atom([N], n), {MIDDLE.replace('low_closed=false', 'low_closed=true')})", ""),
        (f"Guard({AB}, Atom([N], n), {MIDDLE.replace('([y])', '([y]) - 1 ticks')}, window=1)", ""),
        ("Seq(Atom([A], x), Union(Atom([B], y), Atom([C], z)))", "Union"),
        ("Next(Atom([A], x), Atom([B], y))", "Next"),
        (f"Nth({AB}, position=1)", "Nth"),
    ],
)
def test_what_no_kernel_runs_is_refused(text: str, why: str) -> None:
    with pytest.raises(QueryError) as error:
        plan(text)
    assert error.value.code == "no-kernel"
    assert why in error.value.message


def test_optimising_leaves_the_plan_of_a_sase_query_as_it_is() -> None:
    # The planner places tests itself, so that it does not depend on rules that may be switched off.
    every = [rule.__name__ for rule in RULES]
    planned = 0
    for seed in range(400):
        case = random_case(seed)
        options = make_options(case.options)
        query = cepheid.compile(case.text).stages(options)[-1]
        bound = bind(query.pattern, TimeDomain(is_timestamp=False), {})
        plain = plan_sequence(optimise(bound, off=every).pattern)
        done = plan_sequence(optimise(bound, check=True).pattern)
        assert without_order(done) == without_order(plain), case.text
        planned += done != plan_sequence(bound)
    assert planned > 0, "no query had its guards put in another order"


def test_rules_can_be_switched_off_by_name() -> None:
    query = "EVENT SEQ(!(N n), A x, !(C m), B y) WHERE [k] AND x.v > 1 WITHIN 9"
    events = "N1@1(k=1) A1@5(k=1, v=2) B1@6(k=1) A2@12(k=1, v=2) C1@13(k=1) B2@14(k=1)"
    for off in ([], ["order_guards"], [rule.__name__ for rule in RULES]):
        assert_matches(events, query, [], plan={"rules_off": off})
        assert_matches(events.replace("N1@1", "N1@0"), query, [], plan={"rules_off": off})
        later = events.replace("k=1) A1", "k=2) A1")
        assert_matches(later, query, ["A1 B1"], plan={"rules_off": off})
    with pytest.raises(OptionError, match="no rule `order_guard`"):
        assert_matches(events, query, [], plan={"rules_off": ["order_guard"]})
    with pytest.raises(OptionError, match="not a list of rules"):
        assert_matches(events, query, [], plan={"rules_off": "order_guards"})
