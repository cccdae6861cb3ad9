"""Vectors of SPEC Part A that concern meaning, and the nodes that the trap list does not reach."""

from __future__ import annotations

import pytest

from cepheid.algebra import pattern as pt
from cepheid.algebra.invariants import check
from cepheid.algebra.text import from_text
from tests.oracle.denotation import matches, stable
from tests.oracle.events import Match
from tests.oracle.histories import history
from tests.oracle.lossy import edge_score, unseen


def found(algebra: str, events: str, **options: int) -> list[str]:
    pattern = from_text(algebra)
    check(pattern, closed=True)
    return sorted(" ".join(m.ids) for m in matches(pattern, history(events), **options))


def only(algebra: str, events: str, **options: int) -> Match:
    (match,) = matches(from_text(algebra), history(events), **options)
    return match


def test_next_orders_stamps_from_the_end() -> None:
    assert stable((2, 6, 8)) < stable((3, 6, 8))
    assert stable((1, 2, 4, 6, 8)) < stable((4, 6, 8))
    channel = [(1, 2), (3, 5), (4, 5), (4, 6), (4, 6)]
    assert channel == sorted(channel, key=stable)


def test_plan_seq_negations_are_closed_at_both_ends() -> None:
    # SPEC A0.3: at start [l.end - w, q.start], at end [p.end, f.end + w]
    start = (
        "Guard(Seq(Atom([A], x), Atom([B], y), window=4), Atom([N], n), "
        "low=max end([y]) - 1 windows, low_closed=true, high=min start([x]), high_closed=true, "
        "window=4)"
    )
    end = (
        "Guard(Seq(Atom([A], x), Atom([B], y), window=4), Atom([N], n), low=max end([y]), "
        "low_closed=true, high=max end([x]) + 1 windows, high_closed=true, window=4)"
    )
    for time, first, last in (
        (1, True, True),
        (2, False, True),
        (5, False, True),
        (6, True, False),
    ):
        text = f"A1@5 B1@6 N1@{time}"
        assert bool(found(start, text)) is first, text
        assert bool(found(end, text)) is last, text
    assert found(end, "A1@5 B1@6 N1@9") == []
    assert found(end, "A1@5 B1@6 N1@10") == ["A1 B1"]
    assert only(end, "A1@5 B1@6").fin == 9


def test_a_negated_composite_counts_by_its_end() -> None:
    # SPEC E3; the composite starts long before the interval
    algebra = (
        "Guard(Seq(Atom([A], x), Atom([B], y)), Seq(Atom([M], m), Atom([N], n)), low=max end([x]), "
        "low_closed=true, high=min start([y]), high_closed=true)"
    )
    assert found(algebra, "M1@1 A1@2 N1@3 B1@4") == []
    assert found(algebra, "M1@1 N1@2 A1@3 B1@4") == ["A1 B1"]


def test_an_event_inside_a_named_complex_operand_is_no_witness() -> None:
    # SPEC Part F, PLAN
    algebra = (
        "Guard(Seq(Map(Seq(Atom([A], a), Atom([B], b)), type=AB, attributes={}, variable=x), "
        "Atom([C], y)), Atom([B], n), low=max end([x]), low_closed=true, high=min start([y]), "
        "high_closed=true)"
    )
    pattern = from_text(algebra)
    assert len(matches(pattern, history("A1@1 B1@2 C1@3"))) == 1
    assert matches(pattern, history("A1@1 B1@2 B2@3 C1@4"))[0].events[0].parts[1].id == "B2"


def test_conj_shares_primitives_between_complex_operands_but_not_slots() -> None:
    shared = "Conj(Seq(Atom([A], a), Atom([B], b)), Seq(Atom([A], c), Atom([C], d)), window=5)"
    assert found(shared, "A1@1 B1@2 C1@3") == ["A1 B1 A1 C1"]
    same = "Conj(Seq(Atom([A], a), Atom([B], b)), Seq(Atom([A], c), Atom([B], d)), window=5)"
    assert found(same, "A1@1 B1@2") == []


def test_conj_takes_simultaneous_events_and_measures_ends() -> None:
    assert found("Conj(Atom([A], x), Atom([B], y), window=0)", "A1@3 B1@3") == ["A1 B1"]
    conj = "Conj(Atom([A], x), Atom([B], y), window=2)"
    assert found(conj, "A1@[0,10] B1@12") == ["A1 B1"]
    match = only(conj, "A1@[0,10] B1@12")
    assert (match.ts, match.te, match.tv) == (0, 12, (0, 10, 12, 12))


def test_arrival_order_breaks_ties_only_where_asked() -> None:
    # SPEC E19: tie=seqno replaces time by (time, arrival number)
    seq = "Seq(Atom([A], x), Atom([B], y), order=sequence)"
    assert found(seq, "A1@5 B1@5") == ["A1 B1"]
    assert found(seq, "B1@5 A1@5") == []
    assert found("Seq(Atom([A], x), Atom([A], y), order=sequence)", "A1@5") == []
    guard = (
        "Guard(Seq(Atom([A], x), Atom([B], y), order=sequence), Atom([N], n), low=max end([x]), "
        "low_closed=false, high=min start([y]), high_closed=false, order=sequence)"
    )
    assert found(guard, "A1@5 N1@5 B1@5") == []
    assert found(guard, "N1@5 A1@5 B1@5") == ["A1 B1"]
    assert found(guard, "A1@5 B1@5 N1@5") == ["A1 B1"]


def test_within_end_to_end_is_absolute_and_inclusive() -> None:
    algebra = (
        "Within(Conj(Atom([A], x), Atom([B], y), window=99), window=3, inclusive=true, "
        "measure=end_to_end, first=x, second=y)"
    )
    assert found(algebra, "A1@5 B1@8 B2@2 B3@9 B4@1") == ["A1 B1", "A1 B2"]


def test_timer_extends_the_stamps() -> None:
    match = only("Timer(Atom([A], x), delay=5)", "A1@[2,3]")
    assert (match.ts, match.te, match.tv, match.fin) == (2, 8, (2, 3, 8, 8), 8)
    # the delayed event is followed by what comes after its timer
    assert found("Next(Timer(Atom([A], x), delay=5), Atom([B], y))", "A1@1 B1@3 B2@7") == ["A1 B2"]


def test_an_iteration_can_be_capped() -> None:
    text = "T1@1 T2@2 T3@3"
    expected = ["T1", "T1 T2", "T2", "T2 T3", "T3"]
    assert found("Plus(Atom([T], x))", text, cap=2) == expected
    assert found("Plus(Atom([T], x), most=2)", text) == expected


def test_filter_in_an_iteration_skips_also_as_a_start() -> None:
    # SPEC Part F, NEXT
    text = "T1@1(v=1) T2@2(v=0) T3@3(v=1)"
    assert found("Plus(Atom([T], x), skip=x.v = 1)", text) == ["T1", "T1 T3", "T3"]
    assert found("Plus(Atom([T], x), test=x.v = 1)", text) == ["T1", "T3"]


def test_an_exception_after_a_union_counts_from_the_branch_that_occurred() -> None:
    algebra = (
        "Except(Next(Union(Atom([A], x), Next(Atom([B], v), Atom([C], w))), Atom([D], y)), "
        "Atom([N], n), since=x, or_since=[w])"
    )
    assert found(algebra, "B1@1 N1@2 C1@3 D1@4 A1@5 N2@6 D2@7") == ["B1 C1 D1"]


def test_exception_reports_the_failed_detection_when_asked() -> None:
    algebra = (
        "Except(Next(Atom([A], x), Atom([B], y)), Atom([N], n), since=x, report_failures=true)"
    )
    match = only(algebra, "A1@1 N1@2 N2@2 B1@3")
    assert match.fail
    assert (match.te, match.bindings) == (2, ())
    # with a tie the detection wins
    assert found(algebra, "A1@1 N1@3 B1@3") == ["A1 B1"]
    # an exception without a chain before it filters nothing
    assert found("Except(Atom([A], x), Atom([N], n), since=x)", "N1@1 A1@2 N2@3") == ["A1"]


def test_compas_example_2() -> None:
    # SPEC A3.3: e3, e4, e6 in E1; e1, e2, e5, e7 in E2; e5 - e4 > T
    text = "E2:e1@1 E2:e2@2 E1:e3@3 E1:e4@4 E2:e5@10 E1:e6@11 E2:e7@12"
    assert found("Pair(Atom([E1], x), Atom([E2], y), ordered=true, window=5)", text) == ["e6 e7"]


def test_compas_runs_are_cut_by_partners_and_by_the_terminator() -> None:
    first = "Pair(Atom([A], x), Atom([B], y), ordered=true, window=5, select_first=first)"
    assert found(first, "A1@1 A2@2 B1@3 A3@4 B2@5") == ["A1 B1", "A1 B2", "A3 B2"]
    # A3 is 6 after A1, whose terminator has fired: a new run begins
    assert found(first, "A1@1 A2@2 A3@7 B1@8") == ["A3 B1"]
    second = (
        "Pair(Atom([A], x), Atom([B], y), ordered=true, window=9, select_first=nth, nth_first=2)"
    )
    assert found(second, "A1@1 A2@2 A3@3 B1@4 A4@5 B2@6") == ["A2 B1", "A2 B2"]


def test_compas_conjunction_and_consumption() -> None:
    either = "Pair(Atom([A], x), Atom([B], y), ordered=false, window=5{more})"
    text = "B1@1 A1@2 A2@3 B2@4"
    assert found(either.format(more=""), text) == ["A1 B1", "A1 B2", "A2 B1", "A2 B2"]
    assert found(either.format(more=", consume=unique"), text) == ["A1 B1", "A2 B2"]
    assert found(either.format(more=", consume=once"), text) == ["A1 B1"]
    assert found(either.format(more=", consume=reapply"), text) == ["A1 B1", "A2 B2"]
    assert found(either.format(more=", consume=reapply"), "B1@1 B2@2 A1@3 A2@4") == ["A1 B1"]
    same = "Pair(Atom([A], x), Atom([A], y), ordered=false, window=5{more})"
    assert found(same.format(more=""), "A1@1 A2@2") == ["A1 A2", "A2 A1"]
    assert found(same.format(more=", consume=unique"), "A1@1 A2@2 A3@3 A4@4") in (
        ["A1 A2", "A3 A4"],
        ["A2 A1", "A4 A3"],
    )


def test_once_counts_per_binding_key() -> None:
    algebra = (
        "Pair(Atom([A], x), Atom([B], y), ordered=true, window=9, consume=once, key=[(x.k, y.k)])"
    )
    text = "A1@1(k=1) A2@2(k=2) B1@3(k=1) B2@4(k=1) B3@5(k=2)"
    assert found(algebra, text) == ["A1 B1", "A2 B3"]
    assert found(algebra, "A1@1(k=null) B1@2(k=null)") == []


def test_absence_needs_time_to_have_run() -> None:
    silence = "Absence(Atom([N], n), duration=30)"
    assert found(silence, "N1@10 X1@39") == []
    assert only(silence, "N1@10 X1@40").te == 40
    assert only(silence, "N1@10", horizon=40).te == 40
    twice = matches(from_text(silence), history("N1@40"), start=0, horizon=99)
    assert [match.te for match in twice] == [30, 70]
    assert found(silence, "") == []


def test_nth_and_dedup() -> None:
    assert found("Nth(Atom([A], x), position=2)", "A1@5 A2@3 A3@4") == ["A3"]
    assert found("Nth(Atom([A], x), position=4)", "A1@5 A2@3 A3@4") == []
    dedup = "Dedup(Atom([A], x), key=[x.k])"
    assert found(dedup, "A1@5(k=1) A2@3(k=1) A3@4(k=2)") == ["A2", "A3"]
    assert found(dedup, "A1@1(k=null) A2@2(k=null) A3@3 A4@4") == ["A1", "A2", "A3", "A4"]


def test_map_makes_events_with_intervals_and_derived_attributes() -> None:
    algebra = (
        "Map(Seq(Atom([A], x), Atom([B], y)), type=AB, variable=c, attributes={total: x.v + y.v, "
        "n: count{*.*}, most: max{*.v}, mean: avg{*.v}, gone: x.w, nothing: x.v / 0})"
    )
    match = only(algebra, "A1@[1,2](v=3) B1@5(v=4)")
    (event,) = match.events
    assert (event.type, event.ts, event.te, match.tv) == ("AB", 1, 5, (1, 2, 5, 5))
    assert event.attrs == {"total": 7, "n": 2, "most": 4, "mean": 3.5, "nothing": None}


def test_agg_is_edge_triggered() -> None:
    # PLAN's `sum(conns) > C group by cluster`
    algebra = (
        "Agg(Atom([F], x), over=10, function=sum, argument=x.conns, group={cluster: x.c}, "
        "having=g.value > 5, type=BUSY, variable=g)"
    )
    text = """
        F1@1(conns=3) F3@4(conns=3) F4@5(conns=1) F5@30(conns=6) ; c=1
        F2@2(conns=9) ; c=2
    """
    results = matches(from_text(algebra), history(text))
    assert [(m.te, m.events[0].attrs) for m in results] == [
        (2, {"cluster": 2, "value": 9}),
        (4, {"cluster": 1, "value": 6}),
        (30, {"cluster": 1, "value": 6}),
    ]


def test_unseen_negative_vector() -> None:
    # SPEC A4.3: F exponential .1, eps = .1: S^N(10) = .8534
    component = pt.Component("y", True, 0.1, pt.GapModel(pt.Gap.EXPONENTIAL, (0.1,)))
    assert unseen(component, 10) == pytest.approx(0.8534, abs=5e-5)
    certain = pt.Component("y", True, 0.0, pt.GapModel(pt.Gap.EXPONENTIAL, (0.1,)))
    assert unseen(certain, 1e9) == 1


def test_two_missing_positives_tend_to_the_square_of_the_loss() -> None:
    gap = pt.GapModel(pt.Gap.EXPONENTIAL, (0.1,))
    missed = [pt.Component("b", False, 0.1, gap), pt.Component("c", False, 0.1, gap)]
    assert edge_score(missed, 1000, paper=False) == pytest.approx(0.01, rel=1e-3)
    assert edge_score(missed, 1000, paper=True) == pytest.approx(0.005, rel=1e-3)
    # exact: 1 - e^{-aT} (1 + aT)
    assert edge_score(missed, 10, paper=False) == pytest.approx(0.01 * 0.2642411176571153, rel=1e-9)


@pytest.mark.parametrize(
    "gap",
    ["weibull[1.0, 10.0]", "histogram[10.0, 0.6321205588285577]"],
    ids=["weibull", "histogram"],
)
def test_other_gap_densities_agree_where_they_coincide(gap: str) -> None:
    # both have F(10) = 1 - 1/e, as the exponential with rate .1
    algebra = (
        f"Lossy(components=[x(loss=0.1, {gap}), not y(loss=0.1, {gap}), z(loss=0.1, {gap})], "
        "predicate=x.r = 1 and y.r = 2 and z.r = 3, window=10, threshold=0.1)"
    )
    match = only(algebra, "R:a@0(r=1) R:b@10(r=3)")
    assert match.p == pytest.approx(0.8534, abs=5e-5)
