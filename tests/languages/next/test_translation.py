"""What NEXT texts mean: the algebra they become, written in the algebra's own text form."""

from __future__ import annotations

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Pattern
from cepheid.algebra.query import Query
from cepheid.algebra.text import from_text, to_text
from cepheid.languages.next.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import OptionError
from tests.languages.next.verbatim import QUERIES


def queries(text: str, types: object = None, **options: object) -> tuple[Query, ...]:
    program = translate(SourceText(text), Catalogue.from_option(types), **options)  # type: ignore[arg-type]
    for query in program.queries:
        check(query.pattern)
    return program.queries


def pattern(text: str, types: object = None, **options: object) -> Pattern:
    (query,) = queries(text, types, **options)
    return query.pattern


def told(text: str, **options: object) -> list[str]:
    """The codes of the warnings about a text."""
    found: list[Diagnostic] = []
    queries(text, report=found.append, **options)
    assert all(each.severity == "warning" for each in found)
    return [each.code for each in found]


VERBATIM = {
    "small then large": """
        Within(
          Next(
            Next(
              Filter(Atom([t], S1), S1.amount < 100, absent=false),
              Atom([t], S2),
              skip=S1.acc = S2.acc, test=S2.amount < 100),
            Atom([t], L),
            skip=S2.acc = L.acc, test=L.amount > 250),
          window=12 hours, inclusive=true, measure=end_to_end, first=S1, second=L)""",
    "three large": """
        Next(
          Next(
            Filter(Atom([t], T1), T1.amount > 1000, absent=false),
            Atom([t], T2),
            skip=T1.acc = T2.acc, test=T2.amount > 1000),
          Atom([t], T3),
          skip=T2.acc = T3.acc, test=T3.amount > 1000)""",
    "other currency": """
        Next(Plus(Atom([t], T1)), Atom([t], T2), test=all(T1.currency) != T2.currency)""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_papers_queries(name: str) -> None:
    assert pattern(QUERIES[name]) == from_text(VERBATIM[name])


OPERATORS = {
    "one source": ("A", "Atom([A], A)"),
    "an alias": ("A x", "Atom([A], x)"),
    "left-deep": ("A; B; C", "Next(Next(Atom([A], A), Atom([B], B)), Atom([C], C))"),
    "the same with brackets": (
        "((A; B); C)",
        "Next(Next(Atom([A], A), Atom([B], B)), Atom([C], C))",
    ),
    "right-deep": ("A; (B; C)", "Next(Atom([A], A), Next(Atom([B], B), Atom([C], C)))"),
    "union of three": ("A | B | C", "Union(Atom([A], A), Atom([B], B), Atom([C], C))"),
    "nested union": ("A | (B | C)", "Union(Atom([A], A), Union(Atom([B], B), Atom([C], C)))"),
    "iteration binds closest": ("A; B+", "Next(Atom([A], A), Plus(Atom([B], B)))"),
    "iteration of a chain": ("(A; B)+", "Plus(Next(Atom([A], A), Atom([B], B)))"),
    "iteration twice": ("A++", "Plus(Plus(Atom([A], A)))"),
    "union binds weakest": (
        "A; B | C \\ N",
        "Union(Next(Atom([A], A), Atom([B], B)), Except(Atom([C], C), Atom([N], N), since=C))",
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_and_their_precedence(name: str) -> None:
    text, expected = OPERATORS[name]
    assert pattern(f"SELECT * FROM {text}") == from_text(expected)


A_B = "Next(Atom([A], A), Atom([B], B))"
A_B_C = f"Next({A_B}, Atom([C], C))"
N = "Atom([N], N)"
EXCEPTIONS = {
    "while the second is awaited": (r"A; (B \ N)", f"Except({A_B}, {N}, since=A)"),
    "over a chain, since its first": (r"A; B \ N", f"Except({A_B}, {N}, since=A)"),
    "over a chain of three": (r"(A; B; C) \ N", f"Except({A_B_C}, {N}, since=A)"),
    "in the middle": (
        r"A; (B \ N); C",
        f"Next(Except({A_B}, {N}, since=A), Atom([C], C))",
    ),
    "while the third is awaited": (r"A; B; (C \ N)", f"Except({A_B_C}, {N}, since=B)"),
    "nested to the right, D26": (
        r"A; (B; (C \ N))",
        f"Next(Atom([A], A), Except(Next(Atom([B], B), Atom([C], C)), {N}, since=B))",
    ),
    "over a chain that is awaited": (
        r"A; ((B; C) \ N)",
        f"Except(Next(Atom([A], A), Next(Atom([B], B), Atom([C], C))), {N}, since=A)",
    ),
    "two exceptions": (
        r"A; (B \ N \ M)",
        f"Except(Except({A_B}, {N}, since=A), Atom([M], M), since=A)",
    ),
    "an exception over an exception counts from the first of the chain": (
        r"(A; (B \ N); C) \ M",
        f"Except(Next(Except({A_B}, {N}, since=A), Atom([C], C)), Atom([M], M), since=A)",
    ),
    "an operand in brackets is one operand": (
        r"(((A; B) \ N); C) \ M",
        f"Except(Next(Except({A_B}, {N}, since=A), Atom([C], C)), Atom([M], M), since=B)",
    ),
    "a composite exception": (
        r"A; (B \ (N; M))",
        f"Except({A_B}, Next({N}, Atom([M], M)), since=A)",
    ),
    "after an iteration, since its last element": (
        r"A+; (B \ N)",
        f"Except(Next(Plus(Atom([A], A)), Atom([B], B)), {N}, since=A)",
    ),
    "after a union, since the branch that occurred": (
        r"(A | (B; C)); (D \ N)",
        "Except(Next(Union(Atom([A], A), Next(Atom([B], B), Atom([C], C))), Atom([D], D)), "
        f"{N}, since=A, or_since=[C])",
    ),
    "over a union, since the first of each branch": (
        r"(A; B | C; D) \ N",
        f"Except(Union({A_B}, Next(Atom([C], C), Atom([D], D))), {N}, since=A, or_since=[C])",
    ),
    "over a single source": (r"A \ N", f"Except(Atom([A], A), {N}, since=A)"),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_count_since_what_precedes(name: str) -> None:
    text, expected = EXCEPTIONS[name]
    assert pattern(f"SELECT * FROM {text}") == from_text(expected)


def within(inner: str, first: str, second: str, window: str = "5 ticks") -> str:
    return (
        f"Within({inner}, window={window}, inclusive=true, measure=end_to_end, "
        f"first={first}, second={second})"
    )


PLACES = {
    "one source": ("A", "A.v = 1", "Filter(Atom([A], A), A.v = 1, absent=false)"),
    "one source, FILTER": ("A", "FILTER(A.v = 1)", "Filter(Atom([A], A), A.v = 1, absent=false)"),
    "the first alone": (
        "A; B",
        "FILTER(A.v = 1), A.w = 2",
        "Next(Filter(Atom([A], A), A.v = 1 and A.w = 2, absent=false), Atom([B], B))",
    ),
    "the second alone kills": (
        "A; B",
        "B.v = 1",
        "Next(Atom([A], A), Atom([B], B), test=B.v = 1)",
    ),
    "the second alone in FILTER skips": (
        "A; B",
        "FILTER(B.v = 1)",
        "Next(Atom([A], A), Atom([B], B), skip=B.v = 1)",
    ),
    "FILTER is divided at AND, too": (
        "A; B",
        "FILTER(A.v = 1 AND A.k = B.k)",
        "Next(Filter(Atom([A], A), A.v = 1, absent=false), Atom([B], B), skip=A.k = B.k)",
    ),
    "OR stays whole": (
        "A; B",
        "A.v = 1 OR B.v = 1",
        "Next(Atom([A], A), Atom([B], B), test=A.v = 1 or B.v = 1)",
    ),
    "NOT stays whole": (
        "A; B",
        "NOT (A.v = 1 AND B.v = 1)",
        "Next(Atom([A], A), Atom([B], B), test=not (A.v = 1 and B.v = 1))",
    ),
    "brackets around AND do not matter": (
        "A; B",
        "(A.v = 1 AND B.v = 1)",
        "Next(Filter(Atom([A], A), A.v = 1, absent=false), Atom([B], B), test=B.v = 1)",
    ),
    "the operator that binds the last variable": (
        "A; B; C",
        "A.k = C.k",
        f"Next({A_B}, Atom([C], C), test=A.k = C.k)",
    ),
    "inside a second operand": (
        "A; (B; C)",
        "B.v = 1 AND C.v = 1 AND B.k = C.k",
        "Next(Atom([A], A), Next(Filter(Atom([B], B), B.v = 1, absent=false), Atom([C], C), "
        "test=C.v = 1 and B.k = C.k))",
    ),
    "every element": (
        "t T+",
        "T.v = 1, FILTER(T.w = 2)",
        "Plus(Atom([t], T), skip=T.w = 2, test=T.v = 1)",
    ),
    "PREV belongs to the iteration": (
        "A; t T+",
        "PREV(T.v) < T.v, FILTER(ALL(T.k) = T.k)",
        "Next(Atom([A], A), Plus(Atom([t], T), skip=all(T.k) = T.k, test=prev(T.v) < T.v))",
    ),
    "PREV of an iterated chain": (
        "(A; B)+",
        "A.k = B.k AND PREV(A.v) < A.v",
        "Plus(Next(Atom([A], A), Atom([B], B), test=A.k = B.k), test=prev(A.v) < A.v)",
    ),
    "PREV of the inner iteration": (
        "(A+; B)+",
        "PREV(A.v) < B.v",
        "Plus(Next(Plus(Atom([A], A)), Atom([B], B), test=prev(A.v) < B.v))",
    ),
    "ALL with a later event": (
        "t T+; B",
        "ALL(T.v) < B.v",
        "Next(Plus(Atom([t], T)), Atom([B], B), test=all(T.v) < B.v)",
    ),
    "a later reference to an iteration": (
        "t T+; B",
        "T.v < B.v",
        "Next(Plus(Atom([t], T)), Atom([B], B), test=T.v < B.v)",
    ),
    "one branch of a union": (
        "A | B",
        "B.v = 1",
        "Union(Atom([A], A), Filter(Atom([B], B), B.v = 1, absent=false))",
    ),
    "both branches of a union": (
        "A | B",
        "A.v = 1 OR B.v = 1",
        "Filter(Union(Atom([A], A), Atom([B], B)), A.v = 1 or B.v = 1, absent=false)",
    ),
    "no variable holds for all branches": (
        "A | B",
        ":on = 1",
        "Filter(Union(Atom([A], A), Atom([B], B)), :on = 1, absent=false)",
    ),
    "no variable and an exception": (
        r"A \ N",
        ":on = 1",
        f"Except(Filter(Atom([A], A), :on = 1, absent=false), {N}, since=A)",
    ),
    "an exception's own": (
        r"A; (B \ N)",
        "N.v = 1, FILTER(N.k = A.k)",
        f"Except({A_B}, {N}, since=A, predicate=N.v = 1 and N.k = A.k)",
    ),
    "an exception and all that is detected": (
        r"(A; B) \ N",
        "N.k = A.k + B.k AND B.v = 1 AND A.v = 2",
        "Except(Next(Filter(Atom([A], A), A.v = 2, absent=false), Atom([B], B), test=B.v = 1), "
        f"{N}, since=A, predicate=N.k = A.k + B.k)",
    ),
    "inside a composite exception": (
        r"A; (B \ (N; M))",
        "N.k = M.k AND N.v = 1 AND M.v = A.v",
        f"Except({A_B}, Next(Filter({N}, N.v = 1, absent=false), Atom([M], M), test=N.k = M.k), "
        "since=A, predicate=M.v = A.v)",
    ),
    "a time limit on the whole": (
        "A; B; C",
        "(A, C) OCCURS WITHIN 5",
        within(A_B_C, "A", "C"),
    ),
    "a time limit inside": (
        "A; B; C",
        "(A, B) OCCURS WITHIN 5",
        f"Next({within(A_B, 'A', 'B')}, Atom([C], C))",
    ),
    "a time limit below an exception": (
        r"A; (B \ N)",
        "(A, B) OCCURS WITHIN 5",
        f"Except({within(A_B, 'A', 'B')}, {N}, since=A)",
    ),
    "a time limit in FILTER": (
        "A; B",
        "FILTER(A.k = B.k AND (A, B) OCCURS WITHIN 5)",
        within("Next(Atom([A], A), Atom([B], B), skip=A.k = B.k)", "A", "B"),
    ),
    "a time limit in FILTER up to the last of an operand": (
        "A; (B; C)",
        "FILTER((A, C) OCCURS WITHIN 5)",
        within("Next(Atom([A], A), Next(Atom([B], B), Atom([C], C)))", "A", "C"),
    ),
    "two time limits": (
        "A; B",
        "(A, B) OCCURS WITHIN 5 AND (B, A) OCCURS WITHIN 5",
        within(within(A_B, "A", "B"), "B", "A"),
    ),
    "a time limit over branches": (
        "A | B",
        "(A, B) OCCURS WITHIN 5",
        within("Union(Atom([A], A), Atom([B], B))", "A", "B"),
    ),
    "a time limit inside an exception": (
        r"A; (B \ (N; M))",
        "(N, M) OCCURS WITHIN 5",
        f"Except({A_B}, {within(f'Next({N}, Atom([M], M))', 'N', 'M')}, since=A)",
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_qualifications_go_to_the_lowest_operator(name: str) -> None:
    source, where, expected = PLACES[name]
    assert pattern(f"SELECT * FROM {source} WHERE {where}") == from_text(expected)


def condition(text: str) -> str:
    """The condition on `A; B` that becomes theta, in the algebra's text form."""
    found = to_text(pattern(f"SELECT * FROM A; B WHERE A.z = B.z AND ({text})"))
    return found.removeprefix("Next(Atom([A], A), Atom([B], B), test=A.z = B.z and ")[:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A.a <> B.a", "A.a != B.a"),
        ("A.a ≠ B.a ∧ A.b ≥ B.b", "A.a != B.a and A.b >= B.b"),
        ("A.a = 1 ∨ B.b = 2 AND B.c = 3", "(A.a = 1 or B.b = 2 and B.c = 3)"),
        ("not B.a = 1", "not B.a = 1"),
        ("NOT NOT B.a = 1", "not not B.a = 1"),
        ("B.a CONTAINS 'x'", "contains(B.a, 'x')"),
        ("B.a contains A.a", "contains(B.a, A.a)"),
        ("B.a CONTAINS “x” AND contains(B.b, ‘y’)", "contains(B.a, 'x') and contains(B.b, 'y')"),
        ("A.a - B.a*2 + -A.b/4 > .5", "A.a - B.a * 2 + -(A.b) / 4 > 0.5"),
        ("A.a--B.a > 0", "A.a - -(B.a) > 0"),
        ("B.a = TRUE", "B.a = true"),
        ("B.a = :p", "B.a = :p"),
        ("ABS(A.a - B.a) < least(B.b, 3)", "abs(A.a - B.a) < least(B.b, 3)"),
        ("B.from = 1 AND B.`odd name` = 2", "B.from = 1 and B.`odd name` = 2"),
        ("B.filter = B.prev", "B.filter = B.`prev`"),
    ],
)
def test_conditions(text: str, expected: str) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 hours", "12 hours"),
        ("10 msec", "10 msec"),
        ("1 min", "1 min"),
        ("1.5h", "1.5 h"),
        ("10", "10 ticks"),
        (":w", ":w ticks"),
        (":w days", ":w days"),
    ],
)
def test_time_limits(text: str, expected: str) -> None:
    found = pattern(f"SELECT * FROM A; B WHERE (A, B) occurs within {text}")
    assert found == from_text(within(A_B, "A", "B", expected))


def test_comments_and_case_do_not_matter() -> None:
    text = """-- frauds -----
    /* all * of ** them: 'unbalanced ( */ select * From A -- the first
    ; B /**/ where filter (A.k--A.j = B.k) -- done"""
    assert pattern(text) == from_text("Next(Atom([A], A), Atom([B], B), skip=A.k - -(A.j) = B.k)")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("E1; E1; E2; E1", ("E1", "E1_2", "E2", "E1_3")),
        ("A; B A", ("A_2", "A")),
        ("SHELF-READING; `order placed` o", ("SHELF_READING", "o")),
        (r"A; (B \ N)", ("A", "B")),
        ("A; (B | C)", ("A", "B", "C")),
        ("filter; time; source", ("filter", "time", "source")),
    ],
)
def test_columns(text: str, columns: tuple[str, ...]) -> None:
    assert queries(f"SELECT * FROM {text}")[0].columns == columns


# SELECT


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("A.v", "Output(q, attributes={v: A.v})"),
        ("A.v AS w, B.v", "Output(q, attributes={w: A.v, v: B.v})"),
        ("A.v, B.v, B.k", "Output(q, attributes={A_v: A.v, B_v: B.v, k: B.k})"),
        ("count(A), count(*)", "Output(q, attributes={count_A: count{A.*}, count: count{*.*}})"),
        ("sum(A.v) / count(A) AS mean", "Output(q, attributes={mean: sum{A.v} / count{A.*}})"),
        ("avg(v), max(B.v)", "Output(q, attributes={avg_v: avg{*.v}, max_v: max{B.v}})"),
        ("B.v - A.v AS gain", "Output(q, attributes={gain: B.v - A.v})"),
    ],
)
def test_select(items: str, expected: str) -> None:
    (query,) = queries(f"QUERY q SELECT {items} FROM A+; B")
    assert query.output is not None
    assert to_text(query.output) == expected


def test_everything_is_no_output() -> None:
    (query,) = queries("SELECT * FROM A; B")
    assert query.output is None
    assert query.lasting


def test_a_single_source_needs_no_variable() -> None:
    (query,) = queries("SELECT v, count(v) FROM A WHERE w = 1")
    assert query.pattern == from_text("Filter(Atom([A], A), A.w = 1, absent=false)")


# Several queries


def names(text: str) -> list[str]:
    return [query.name for query in queries(text)]


def test_names_of_queries() -> None:
    assert names("SELECT * FROM A") == ["query"]
    assert names("SELECT * FROM A SELECT * FROM B") == ["query_1", "query_2"]
    assert names("one: SELECT * FROM A QUERY my-two SELECT * FROM B three: SELECT * FROM C") == [
        "one",
        "my-two",
        "three",
    ]


def test_a_statement_after_where_may_be_closed() -> None:
    assert names("SELECT * FROM A WHERE A.v = 1; SELECT * FROM B WHERE B.v = 1;") == [
        "query_1",
        "query_2",
    ]


def test_a_query_reads_the_results_of_an_earlier_one() -> None:
    _, second = queries(
        "pair: SELECT A.k, B.v - A.v AS gain FROM A; B\n"
        "SELECT * FROM pair P; C WHERE FILTER(P.k = C.k), P.gain > 1"
    )
    assert second.pattern == from_text(
        "Next(Filter(Atom([pair], P), P.gain > 1, absent=false), Atom([C], C), skip=P.k = C.k)"
    )


# Time limits as atoms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "A; B WHERE B.v = 1 OR (A, B) OCCURS WITHIN 5 s",
            "Next(Atom([A], A), Atom([B], B), test=B.v = 1 or apart(A, B, 5 s))",
        ),
        (
            "A; B WHERE FILTER(NOT (B, A) OCCURS WITHIN :w min)",
            "Next(Atom([A], A), Atom([B], B), skip=not apart(B, A, :w min))",
        ),
        (
            "A; (B; C) WHERE FILTER((A, B) OCCURS WITHIN 5)",
            "Next(Atom([A], A), Next(Atom([B], B), Atom([C], C)), skip=apart(A, B, 5 ticks))",
        ),
        (
            r"A; (B \ N) WHERE (A, N) OCCURS WITHIN 5",
            "Except(Next(Atom([A], A), Atom([B], B)), Atom([N], N), since=A, "
            "predicate=apart(A, N, 5 ticks))",
        ),
    ],
)
def test_a_time_limit_that_is_no_window_is_an_atom(text: str, expected: str) -> None:
    assert pattern(f"SELECT * FROM {text}") == from_text(expected)


# Options and warnings


def test_the_cap_stands_in_every_iteration() -> None:
    assert pattern("SELECT * FROM (A+; B)+", cap=7) == from_text(
        "Plus(Next(Plus(Atom([A], A), most=7), Atom([B], B)), most=7)"
    )


@pytest.mark.parametrize("cap", [0, -1, True])
def test_a_cap_is_a_number_from_1(cap: object) -> None:
    with pytest.raises(OptionError, match="bad-option"):
        queries("SELECT * FROM A+", cap=cap)


def test_failures_are_reported_on_demand() -> None:
    assert pattern(r"SELECT * FROM A; (B \ N)", failures=True) == from_text(
        f"Except({A_B}, {N}, since=A, report_failures=true)"
    )


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("A+", True),
        ("A+; B WHERE (A, B) OCCURS WITHIN 5", True),  # measured from the last A
        ("A; B+ WHERE (A, B) OCCURS WITHIN 5", False),
        ("A; B+; C WHERE (C, A) OCCURS WITHIN 5", False),
        ("A; B+; C WHERE (B, C) OCCURS WITHIN 5", True),
        ("A; (B; C+) WHERE (A, C) OCCURS WITHIN 5", False),
        (r"A; (B \ N+) WHERE (A, B) OCCURS WITHIN 5", True),
        ("A; (B+ | C) WHERE (A, B) OCCURS WITHIN 5", False),
    ],
)
def test_an_iteration_without_bound_is_told(text: str, is_told: bool) -> None:
    assert told(f"SELECT * FROM {text}") == ["unbounded-iteration"] * is_told
    assert told(f"SELECT * FROM {text}", cap=3) == []


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        (r"A \ N", True),
        (r"(A \ N); B", True),
        (r"A; (B \ N)", False),
        (r"A; ((B \ N) | C)", True),
        (r"(A; B) \ N", False),
        (r"(A; B | C) \ N", False),
    ],
)
def test_an_exception_that_can_not_be_raised_is_told(text: str, is_told: bool) -> None:
    assert told(f"SELECT * FROM {text}") == ["exception-without-effect"] * is_told


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("A a | B b WHERE a.x = b.x", True),
        ("C c; (A a | B b) WHERE NOT (a.x = b.x OR c.x = 1)", True),
        ("A a | (B b; C c) WHERE (a, c) OCCURS WITHIN 5", True),
        ("C c; (A a | B b) WHERE a.x = c.x OR b.x = c.x", False),
        ("A a; B b WHERE a.x = b.x", False),
    ],
)
def test_a_comparison_between_branches_is_told(text: str, is_told: bool) -> None:
    assert told(f"SELECT * FROM {text}") == ["never-together"] * is_told


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("A a; B b+ WHERE ALL(b.v) > a.v", True),
        ("A a; B b+ WHERE FILTER(PREV(b.v) > a.v)", True),
        ("A a; B b+ WHERE PREV(b.v) < b.v", False),
        ("B b+; A a WHERE ALL(b.v) > a.v", False),
        ("B b+; C c; A a WHERE ALL(b.v) > a.v", False),
    ],
)
def test_a_look_back_at_nothing_is_told(text: str, is_told: bool) -> None:
    found = told(f"SELECT * FROM {text}")
    assert [each for each in found if each != "unbounded-iteration"] == [
        "nothing-to-look-back-at"
    ] * is_told


def test_a_time_limit_of_one_event_is_told() -> None:
    assert told("SELECT * FROM A; B WHERE (A, A) OCCURS WITHIN 5") == ["window-without-effect"]


def test_spans_lead_back_to_the_text() -> None:
    text = "SELECT * FROM A; t T+ WHERE (A, T) OCCURS WITHIN 5"
    found = pattern(text)
    assert found.span is not None
    assert text[found.span.start : found.span.end] == "(A, T) OCCURS WITHIN 5"
