"""The trap list of SPEC Part D, as algebra written by hand."""

from __future__ import annotations

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.text import from_text
from tests.oracle.denotation import matches
from tests.oracle.histories import history

PLAN_BETWEEN = "low=max end([{p}]), low_closed=true, high=min start([{q}]), high_closed=true"
SASE_BETWEEN = "low=max end([{p}]), low_closed=false, high=min start([{q}]), high_closed=false"
SASE_END = (
    "low=max end([{last}]), low_closed=false, "
    "high=min start([{first}]) + 1 windows - 1 ticks, high_closed=true, ends_match=true"
)
SASE_START = (
    "low=max end([{last}]) - 1 windows, low_closed=false, "
    "high=min start([{first}]), high_closed=false"
)
PLAN_AND = (
    "low=max end([x], [y]) - 1 windows, low_closed=true, "
    "high=min end([x], [y]) + 1 windows, high_closed=true"
)
PLAN_AND_WITHOUT = (
    f"Guard(Conj(Atom([A], x), Atom([B], y), window=5), Atom([N], n), {PLAN_AND}, window=5)"
)
NEGATED_END = (
    "Guard(Within(Seq(Atom([A], x)), window=5, inclusive=false, ticks=-1), Atom([B], n), "
    + SASE_END.format(first="x", last="x")
    + ", window=5)"
)
MISPLACED = (
    "Guard(Filter(Within(Seq(Atom([S], x), Atom([S], y)), window=60, inclusive=false, ticks=-1), "
    "x.id = y.id and x.shelf_id != y.shelf_id), Atom([K, S], z), "
    + SASE_END.format(first="x", last="y")
    + ", window=60, predicate=z.id = x.id and x.shelf_id = z.shelf_id)"
)
SHOPLIFTING = (
    "Guard(Filter(Within(Seq(Atom([S], x), Atom([E], z)), window=12, inclusive=false), "
    "x.id = z.id), Atom([K], y), " + SASE_BETWEEN.format(p="x", q="z") + ", predicate=x.id = y.id)"
)
PAIR = "Pair(Atom([A], x), Atom([B], y), ordered=true, window=10{more})"

TRAPS = [
    ("D1", "A1@1 B1@7", "Within(Seq(Atom([A], x), Atom([B], y)), window=6, inclusive=false)", []),
    ("D2", "A1@1 B1@7", "Seq(Atom([A], x), Atom([B], y), window=6)", ["A1 B1"]),
    ("D3", "A1@1 B1@5 C1@8",
     "Seq(Seq(Atom([A], x), Atom([B], y), window=10), Atom([C], z), window=3)", ["A1 B1 C1"]),
    ("D4", "B1@1 A1@2 C1@3",
     "Seq(Atom([A], x), Seq(Atom([B], y), Atom([C], z), window=10), window=10)", []),
    ("D5 PLAN", "A1@1 N1@5 C1@5",
     f"Guard(Seq(Atom([A], x), Atom([C], y)), Atom([N], n), {PLAN_BETWEEN.format(p='x', q='y')})",
     []),
    ("D5 SASE", "A1@1 N1@5 C1@5",
     f"Guard(Seq(Atom([A], x), Atom([C], y)), Atom([N], n), {SASE_BETWEEN.format(p='x', q='y')})",
     ["A1 C1"]),
    ("D6", "A1@10 B1@12 N1@15", PLAN_AND_WITHOUT, []),
    ("D6 outside", "N2@6 A1@10 B1@12 N1@16", PLAN_AND_WITHOUT, ["A1 B1"]),
    ("D7", "A1@1 A2@3 C1@5",
     "Guard(Seq(Atom([A], x), Atom([C], y), window=10), Atom([A], n), "
     f"{PLAN_BETWEEN.format(p='x', q='y')})", ["A2 C1"]),
    ("D8", "PD:p1@1 PD:p2@2", "Conj(Atom([PD], x), Atom([PD], y), window=3)", ["p1 p2", "p2 p1"]),
    ("D9", "A1@10 B1@15", NEGATED_END, ["A1"]),
    ("D9 at 14", "A1@10 B1@14", NEGATED_END, []),
    ("D10", "A1@1 B1@5",
     "Guard(Within(Seq(Atom([A], x), Atom([B], y)), window=5, inclusive=false, ticks=-1), "
     f"Atom([C], n), {SASE_END.format(first='x', last='y')}, window=5)", []),
    ("D11", "N1@1 A1@5 B1@12",
     "Guard(Within(Seq(Atom([A], x), Atom([B], y)), window=10, inclusive=false), Atom([N], n), "
     f"{SASE_START.format(first='x', last='y')}, window=10)", ["A1 B1"]),
    ("D12", "S1@1(shelf_id=1) S2@2(shelf_id=2) K3@3 ; id=7", MISPLACED, []),
    ("D12 null is not absent", "S1@1(shelf_id=1) S2@2(shelf_id=2) K3@3(shelf_id=null) ; id=7",
     MISPLACED, ["S1 S2"]),
    ("D13", "S1@1(id=1) K1@2(id=2) E1@3(id=1)", SHOPLIFTING, ["S1 E1"]),
    ("D14", "A1@5 B1@5", "Seq(Atom([A], x), Atom([B], y))", []),
    ("D15", "N1@8 A1@10",
     "Guard(Guard(Within(Seq(Atom([A], x)), window=5, inclusive=false, ticks=-1), Atom([N], n), "
     f"{SASE_START.format(first='x', last='x')}, window=5), Atom([C], c), "
     f"{SASE_END.format(first='x', last='x')}, window=5)", []),
    ("D16", "A1@1 B1@2 B2@3", "Next(Atom([A], x), Atom([B], y))", ["A1 B1"]),
    ("D17", "T1@1(v=2000) T2@2(v=50) T3@3(v=3000) T4@4(v=4000)",
     "Next(Atom([T], x, x.v > 1000), Atom([T], y), test=y.v > 1000)", ["T3 T4"]),
    ("D18", "A1@1 B1@[2,9] B2@[5,6]", "Next(Atom([A], x), Atom([B], y))", ["A1 B2"]),
    ("D19", "A1@[1,4] B1@[4,5] B2@[5,8]", "Next(Atom([A], x), Atom([B], y))", ["A1 B2"]),
    ("D20", "A1@1 B1@2 B2@2 B3@3", "Next(Atom([A], x), Atom([B], y))", ["A1 B1", "A1 B2"]),
    ("D21", "A1@1 B1@2 C1@3(v=0) B2@4 C2@5(v=1)",
     "Next(Next(Atom([A], x), Atom([B], y)), Atom([C], z), test=z.v = 1)", []),
    ("D22", "A1@1 B1@2(k=1) B2@3(k=2) C2@4(k=2) C1@5(k=1)",
     "Next(Next(Atom([A], x), Atom([B], y)), Atom([C], z), skip=y.k = z.k)", ["A1 B1 C1"]),
    ("D23", "T1@1(cur=USD) T2@2(cur=USD) T3@3(cur=EUR)",
     "Next(Plus(Atom([T], x)), Atom([T], y), test=all(x.cur) != y.cur)", ["T1 T2 T3", "T2 T3"]),
    ("D24", "T1@1(v=1) T3@2(v=3) T2@3(v=2)", "Plus(Atom([T], x), test=prev(x.v) < x.v)",
     ["T1", "T1 T3", "T3", "T2"]),
    ("D25", "A1@1 N1@2 B1@3",
     "Except(Next(Atom([A], x), Atom([B], y)), Atom([N], n), since=x)", []),
    ("D26", "A1@1 N1@2 B1@3 C1@4",
     "Next(Atom([A], x), Except(Next(Atom([B], y), Atom([C], z)), Atom([N], n), since=y))",
     ["A1 B1 C1"]),
    ("D26 rewritten", "A1@1 N1@2 B1@3 C1@4",
     "Except(Next(Atom([A], x), Next(Atom([B], y), Atom([C], z))), Atom([N], n), since=x)", []),
    ("D27", "A1@0 B1@10", PAIR.format(more=""), ["A1 B1"]),
    ("D28", "A1@0 A2@8 B1@12", PAIR.format(more=", select_first=first"), []),
    ("D29 all", "A1@1 A2@2 B1@3 B2@4", PAIR.format(more=""),
     ["A1 B1", "A1 B2", "A2 B1", "A2 B2"]),
    ("D29 unique", "A1@1 A2@2 B1@3 B2@4", PAIR.format(more=", consume=unique"),
     ["A1 B1", "A2 B2"]),
    ("D29 once", "A1@1 A2@2 B1@3 B2@4", PAIR.format(more=", consume=once"), ["A1 B1"]),
    ("D29 last unique", "A1@1 A2@2 B1@3 B2@4",
     PAIR.format(more=", select_first=last, consume=unique"), ["A2 B1"]),
    ("D30", "A1@1(r=1) A2@2(r=2) B1@3(r=2)",
     PAIR.format(more=", select_first=first, key=[(x.r, y.r)]"), ["A2 B1"]),
    ("D35", "N1@3 A1@5 B1@6",
     "Guard(Seq(Atom([A], x), Atom([B], y), window=4), Atom([N], n), "
     "low=max end([y]) - 1 windows, low_closed=true, high=min start([x]), high_closed=true, "
     "window=4)", []),
    ("D36", "A1@0 B1@9", "Next(Atom([A], x), Atom([B], y))", ["A1 B1"]),
    ("D37", "A1@2(k=1) B1@6(k=0) B2@9(k=1)",
     "Next(Atom([A], x), Atom([B], y), test=x.k = y.k)", []),
    ("D37 as FILTER", "A1@2(k=1) B1@6(k=0) B2@9(k=1)",
     "Next(Atom([A], x), Atom([B], y), skip=x.k = y.k)", ["A1 B2"]),
    ("D38", "A1@4 B1@8 C1@11", "Conj(Atom([A], x), Atom([B], y), Atom([C], z), window=4)", []),
    ("D38 nested", "A1@4 B1@8 C1@11",
     "Conj(Conj(Atom([A], x), Atom([B], y), window=4), Atom([C], z), window=4)", ["A1 B1 C1"]),
    ("D42", "A1@1", "Seq(Atom([A], x), Atom([A], y))", []),
    ("D43", "A1@0 B1@[1,5] B2@[2,4] C1@7",
     "Next(Atom([A], x), Next(Atom([B], y), Atom([C], z)))", ["A1 B2 C1"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "algebra", "expected"), [trap[1:] for trap in TRAPS], ids=[t[0] for t in TRAPS]
)
def test_trap(events: str, algebra: str, expected: list[str]) -> None:
    pattern = from_text(algebra)
    check(pattern, closed=True)
    found = [" ".join(match.ids) for match in matches(pattern, history(events))]
    assert sorted(found) == sorted(expected)


def test_d6_and_with_negation_is_final_at_min_end_plus_w() -> None:
    (match,) = matches(from_text(PLAN_AND_WITHOUT), history("A1@10 B1@12"))
    assert (match.te, match.fin) == (12, 15)


def test_d9_a_negated_end_is_stamped_first_plus_t_minus_1() -> None:
    (match,) = matches(from_text(NEGATED_END), history("A1@10 B1@15"))
    assert (match.ts, match.te, match.fin) == (10, 14, 14)


@pytest.mark.parametrize(("events", "fires"), [("N1@10", 40), ("N1@10 N2@40", 70)])
def test_d31_absence_restarts_and_its_deadline_is_closed(events: str, fires: int) -> None:
    pattern = from_text("Absence(Atom([N], n), duration=30, start=0)")
    (match,) = matches(pattern, history(events), horizon=99)
    assert match.te == fires


GAP = "(loss=0.1, exponential[0.1])"
READERS = "x.reader = 'A' and y.reader = 'B' and z.reader = 'C'"


def shoplifting(window: int, paper: bool = False) -> str:
    """AYAC's query with the recommended default: x.id[z.id] in both atoms."""
    return (
        f"Lossy(components=[x{GAP}, not y{GAP}, z{GAP}], "
        f"predicate={READERS} and x.id = y.id and x.id = z.id, window={window}, threshold=0.01, "
        f"paper_scores={'true' if paper else 'false'}, defaults=[x.id: z.id])"
    )


def test_d32_the_window_is_inclusive_and_an_unseen_negative_is_scored() -> None:
    events = history("X:x@0(reader=A) Z:z@10(reader=C) ; id=1")
    found = matches(from_text(shoplifting(10)), events)
    both = [match for match in found if match.ids == ("x", "z")]
    assert [round(match.p, 4) for match in both] == [0.8534]


@pytest.mark.parametrize(("paper", "score"), [(False, 0.0669), (True, 0.0528)])
def test_d33_another_items_counter_reading_does_not_cancel(paper: bool, score: float) -> None:
    events = history("K:k@4(reader=B, id=2) E:e@10(reader=C, id=1)")
    (match,) = matches(from_text(shoplifting(20, paper)), events)
    assert match.bindings[0] == ("x", None)
    assert match.ids == (None, "e")
    assert round(match.p, 4) == score


def test_d33_the_same_items_counter_reading_cancels() -> None:
    events = history("K:k@4(reader=B, id=1) E:e@10(reader=C, id=1)")
    assert matches(from_text(shoplifting(20)), events) == []


@pytest.mark.parametrize(("paper", "score"), [(False, 0.0100), (True, 0.0050)])
def test_d34_two_missing_positives_are_a_convolution(paper: bool, score: float) -> None:
    pattern = from_text(
        f"Lossy(components=[a{GAP}, b{GAP}, c{GAP}, d{GAP}], predicate=a.r = 1 and b.r = 2 and "
        "c.r = 3 and d.r = 4, window=200, threshold=0.004, "
        f"paper_scores={'true' if paper else 'false'})"
    )
    found = matches(pattern, history("R:a@0(r=1) R:d@200(r=4)"))
    assert [(match.ids, round(match.p, 4)) for match in found if match.ids[0]] == [
        (("a", None, None, "d"), score)
    ]
