"""What SASE texts mean: the algebra they become, written in the algebra's own text form."""

from __future__ import annotations

import pytest

from cepheid.algebra.invariants import check
from cepheid.algebra.pattern import Pattern
from cepheid.algebra.query import Query
from cepheid.algebra.text import from_text, to_text
from cepheid.languages.sase.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import OptionError
from tests.languages.sase.verbatim import QUERIES, sequence_of


def queries(text: str, types: object = None, **options: object) -> tuple[Query, ...]:
    program = translate(SourceText(text), Catalogue.from_option(types), **options)  # type: ignore[arg-type]
    for query in program.queries:
        check(query.pattern)
    return program.queries


def pattern(text: str, types: object = None, **options: object) -> Pattern:
    (query,) = queries(text, types, **options)
    return query.pattern


VERBATIM = {
    "filter": """
        Filter(Atom([`SHELF-READING`], SHELF_READING),
          SHELF_READING.category = 'food' and SHELF_READING.manufacturer_id = '1')""",
    "shoplifting": """
        Guard(
          Filter(
            Within(
              Seq(Atom([`SHELF-READING`], x), Atom([`EXIT-READING`], z)),
              window=12 hours, inclusive=false),
            x.id = z.id),
          Atom([`COUNTER-READING`], y),
          low=max end([x]), low_closed=false, high=min start([z]), high_closed=false,
          predicate=x.id = y.id)""",
    "misplacement": """
        Guard(
          Filter(
            Within(
              Seq(Atom([`SHELF-READING`], x), Atom([`SHELF-READING`], y)),
              window=1 hour, inclusive=false, ticks=-1),
            x.id = y.id and x.shelf_id != y.shelf_id),
          Atom([`COUNTER-READING`, `SHELF-READING`], z),
          low=max end([y]), low_closed=false,
          high=min start([x]) + 1 windows - 1 ticks, high_closed=true,
          window=1 hour, predicate=x.id = z.id and y.id = z.id and x.shelf_id = z.shelf_id,
          ends_match=true)""",
    "overdose": """
        Filter(
          Within(
            Seq(Atom([`MEDICINE-TAKEN`], x), Atom([`MEDICINE-TAKEN`], y)),
            window=4 hours, inclusive=false),
          x.name = y.name and x.name = 'John' and y.name = 'John'
          and x.medicine = y.medicine and x.medicine = 'Antibiotics'
          and y.medicine = 'Antibiotics' and x.amount + y.amount > 1000)""",
    "plan example": """
        Guard(
          Filter(
            Within(
              Seq(Atom([A], x1), Atom([B], x2), Atom([D], x4)),
              window=:T ticks, inclusive=false),
            x1.attr1 = x2.attr1 and x1.attr1 = x4.attr1 and x2.attr1 = x4.attr1
            and x1.attr2 = x2.attr2 and x1.attr2 = x4.attr2 and x2.attr2 = x4.attr2
            and x1.attr3 = '1' and x1.attr4 < x4.attr4),
          Atom([C], x3),
          low=max end([x2]), low_closed=false, high=min start([x4]), high_closed=false,
          predicate=x1.attr1 = x3.attr1 and x2.attr1 = x3.attr1 and x4.attr1 = x3.attr1
          and x1.attr2 = x3.attr2 and x2.attr2 = x3.attr2 and x4.attr2 = x3.attr2)""",
    "experiment": """
        Filter(
          Within(
            Seq(Atom([E1], E1), Atom([E2], E2), Atom([E3], E3)),
            window=10000 ticks, inclusive=false),
          E1.attr1 = E2.attr1 and E1.attr1 = E3.attr1 and E2.attr1 = E3.attr1)""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_papers_queries(name: str) -> None:
    assert pattern(QUERIES[name]) == from_text(VERBATIM[name])


@pytest.mark.parametrize("label", ["Q1: ", "Q1 :\n", "QUERY Q1 "])
def test_a_query_may_have_a_name(label: str) -> None:
    (query,) = queries(label + QUERIES["shoplifting"])
    assert query.name == "Q1"
    assert query.language == "sase"
    assert query.columns == ("x", "z")
    assert query.pattern == from_text(VERBATIM["shoplifting"])


@pytest.mark.parametrize("length", [2, 3, 6])
@pytest.mark.parametrize("attributes", ["attr1", "attr1, attr2"])
def test_the_papers_templates(length: int, attributes: str) -> None:
    (query,) = queries(sequence_of(length, attributes, "10000"))
    assert query.columns == tuple(f"E{number}" for number in range(1, length + 1))
    pairs = length * (length - 1) // 2 * len(attributes.split(","))
    assert to_text(query.pattern).count(" = ") == pairs


MIDDLE = "low=max end([x]), low_closed=false, high=min start([z]), high_closed=false"
NEGATIONS = {
    "no window and no condition": ("SEQ(A x, B y)", "Seq(Atom([A], x), Atom([B], y))"),
    "a single component": ("A x", "Atom([A], x)"),
    "a sequence of one": ("SEQ(A x) WITHIN 5", "Atom([A], x)"),
    "middle": (
        "SEQ(A x, !B y, C z)",
        f"Guard(Seq(Atom([A], x), Atom([C], z)), Atom([B], y), {MIDDLE})",
    ),
    "two in the middle share the interval, the first is innermost": (
        "SEQ(A x, !(B y), !(C w), D z)",
        f"Guard(Guard(Seq(Atom([A], x), Atom([D], z)), Atom([B], y), {MIDDLE}), Atom([C], w), "
        f"{MIDDLE})",
    ),
    "start": (
        "SEQ(!N n, A x, B y) WITHIN 10",
        "Guard(Within(Seq(Atom([A], x), Atom([B], y)), window=10 ticks, inclusive=false), "
        "Atom([N], n), low=max end([y]) - 1 windows, low_closed=false, "
        "high=min start([x]), high_closed=false, window=10 ticks)",
    ),
    "end, one positive": (
        "SEQ(A x, !B y) WITHIN 5",
        "Guard(Within(Atom([A], x), window=5 ticks, inclusive=false, ticks=-1), Atom([B], y), "
        "low=max end([x]), low_closed=false, high=min start([x]) + 1 windows - 1 ticks, "
        "high_closed=true, window=5 ticks, ends_match=true)",
    ),
    "both ends: the start is anchored on the last positive event": (
        "SEQ(!N n, A x, !C c) WITHIN 5",
        "Guard(Guard(Within(Atom([A], x), window=5 ticks, inclusive=false, ticks=-1), "
        "Atom([N], n), low=max end([x]) - 1 windows, low_closed=false, "
        "high=min start([x]), high_closed=false, window=5 ticks), "
        "Atom([C], c), low=max end([x]), low_closed=false, "
        "high=min start([x]) + 1 windows - 1 ticks, high_closed=true, window=5 ticks, "
        "ends_match=true)",
    ),
}


@pytest.mark.parametrize("name", NEGATIONS)
def test_negation_by_its_place(name: str) -> None:
    text, expected = NEGATIONS[name]
    assert pattern(f"EVENT {text}") == from_text(expected)


def test_a_negated_end_in_continuous_time() -> None:
    assert pattern("EVENT SEQ(A x, B y, !C c) WITHIN 5 s", discrete=False) == from_text(
        "Guard(Within(Seq(Atom([A], x), Atom([B], y)), window=5 s, inclusive=false), "
        "Atom([C], c), low=max end([y]), low_closed=false, "
        "high=min start([x]) + 1 windows, high_closed=false, window=5 s, ends_match=true)"
    )


def test_arrival_decides_ties_on_demand() -> None:
    assert pattern("EVENT SEQ(A x, !B y, C z)", tie="seqno") == from_text(
        "Guard(Seq(Atom([A], x), Atom([C], z), order=sequence), Atom([B], y), "
        f"{MIDDLE}, order=sequence)"
    )


def test_an_unknown_tie_is_refused() -> None:
    with pytest.raises(OptionError, match="bad-option"):
        queries("EVENT A", tie="loose")


def condition(text: str, **options: object) -> str:
    """The condition of SEQ(A x, B y), in the algebra's text form."""
    found = pattern(f"EVENT SEQ(A x, B y) WHERE {text}", **options)
    return to_text(found).removeprefix("Filter(Seq(Atom([A], x), Atom([B], y)), ")[:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.a = 1 ∧ x.b = 2", "x.a = 1 and x.b = 2"),
        ("x.a = 1 ^ x.b = 2", "x.a = 1 and x.b = 2"),
        ("x.a = 1 And x.b = 2 and x.c = 3", "x.a = 1 and x.b = 2 and x.c = 3"),
        ("x.a = 1 ∨ x.b = 2 AND x.c = 3", "x.a = 1 or x.b = 2 and x.c = 3"),
        ("(x.a = 1 oR x.b = 2) AND x.c = 3", "(x.a = 1 or x.b = 2) and x.c = 3"),
        ("x.a ≠ y.a", "x.a != y.a"),
        ("x.a <> y.a", "x.a != y.a"),
        ("x.a ≥ y.a ∧ x.b >= y.b", "x.a >= y.a and x.b >= y.b"),
        ("x.a ≤ y.a ∧ x.b <= y.b", "x.a <= y.a and x.b <= y.b"),
        ("x.a='1'", "x.a = '1'"),
        ('x.a="it\'s"', r"x.a = 'it\'s'"),
        ("x.a = 'it''s'", r"x.a = 'it\'s'"),
        ("x.a = ‘food’ ∧ y.a = “1”", "x.a = 'food' and y.a = '1'"),
        ("x.a = ’food’", "x.a = 'food'"),
        ("x.a = 'John’s'", "x.a = 'John’s'"),
        ("x.a = ''", "x.a = ''"),
        ("x.a = -1.5e3", "x.a = -1500.0"),
        ("x.a = -9223372036854775806", "x.a = -9223372036854775806"),
        ("x.a = TRUE OR x.b = False", "x.a = true or x.b = false"),
        ("x.a - y.a*2 + -x.b/4 > .5", "x.a - y.a * 2 + -(x.b) / 4 > 0.5"),
        ("x.a--y.a > 0", "x.a - -(y.a) > 0"),
        ("x.a - (y.a - 1) > 0", "x.a - (y.a - 1) > 0"),
        ("x.a --y.a > 0\n > 1", "x.a > 1"),
        ("ABS(x.a - y.a) < least(x.b, 3)", "abs(x.a - y.a) < least(x.b, 3)"),
        ("contains(lower(x.a), 'b') AND x.c = 1", "contains(lower(x.a), 'b') and x.c = 1"),
        ("x.a = :p", "x.a = :p"),
        ("x.`odd name` = `y`.`a-b`", "x.`odd name` = y.`a-b`"),
        ("x.where = y.event", "x.where = y.event"),
        ("[where]", "x.where = y.where"),
        ("[a, `b-c`=2]", "x.a = y.a and x.`b-c` = y.`b-c` and x.`b-c` = 2 and y.`b-c` = 2"),
        ("[a=-1]", "x.a = y.a and x.a = -1 and y.a = -1"),
        ("[a=:p] OR x.b = 1", "x.a = y.a and x.a = :p and y.a = :p or x.b = 1"),
    ],
)
def test_conditions(text: str, expected: str) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 hours", "12 hours"),
        ("10000", "10000 ticks"),
        ("1.5h", "1.5 h"),
        ("T", ":T ticks"),
        (":T", ":T ticks"),
        (":T min", ":T min"),
        ("T days", ":T days"),
    ],
)
def test_windows(text: str, expected: str) -> None:
    found = to_text(pattern(f"EVENT SEQ(A x, B y) within {text}"))
    assert f"window={expected}, inclusive=false" in found


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SEQ(E1, E1, E2, E1)", ("E1", "E1_2", "E2", "E1_3")),
        ("SEQ(ANY(SHELF-READING, B), !B, C)", ("SHELF_READING", "C")),
        ("SEQ(A, B A)", ("A_2", "A")),
        ("SEQ(`1st type` a, B)", ("a", "B")),
        ("SEQ(A `the first`, B)", ("the first", "B")),
        ("ANY(A, B)", ("A",)),
    ],
)
def test_columns(text: str, columns: tuple[str, ...]) -> None:
    assert queries(f"EVENT {text}")[0].columns == columns


def test_unnamed_components_are_referred_to_by_their_columns() -> None:
    assert pattern("EVENT SEQ(E1, E1) WHERE E1.a < E1_2.a") == from_text(
        "Filter(Seq(Atom([E1], E1), Atom([E1], E1_2)), E1.a < E1_2.a)"
    )


def test_a_type_named_twice_in_any_counts_once() -> None:
    assert pattern("EVENT ANY(A, B, A) x") == from_text("Atom([A, B], x)")


def test_comments_and_case_do_not_matter() -> None:
    text = """-- thefts -----
    /* all * of ** them: 'unbalanced ( */ event Seq(A x, -- the first
    any(B-1, C) y) /**/ Where x.a--x.b = y.a -- done"""
    assert pattern(text) == from_text(
        "Filter(Seq(Atom([A], x), Atom([`B-1`, C], y)), x.a - -(x.b) = y.a)"
    )


# What the catalogue changes


def test_an_equivalence_test_skips_components_without_the_attribute() -> None:
    types = {"A": ["id"], "B": ["other"], "C": ["id"], "N": ["id"], "M": ["other"]}
    text = "EVENT SEQ(A a, B b, !N n, !M m, C c) WHERE [id]"
    bounds = "low=max end([b]), low_closed=false, high=min start([c]), high_closed=false"
    assert pattern(text, types) == from_text(
        "Guard(Guard(Filter(Seq(Atom([A], a), Atom([B], b), Atom([C], c)), a.id = c.id), "
        f"Atom([N], n), {bounds}, predicate=a.id = n.id and c.id = n.id), "
        f"Atom([M], m), {bounds})"
    )


def test_any_has_an_attribute_if_one_of_its_types_has_it() -> None:
    types = {"A": ["id"], "B": ["other"]}
    assert pattern("EVENT SEQ(ANY(B, A) x, A y) WHERE [id]", types) == from_text(
        "Filter(Seq(Atom([B, A], x), Atom([A], y)), x.id = y.id)"
    )


def test_an_attribute_of_another_type_is_legal_and_told() -> None:
    # The paper: a test of an attribute that the event does not have is true.
    told: list[Diagnostic] = []
    text = "EVENT SEQ(SHELF x, !(COUNTER y)) WHERE x.shelf = y.shelf WITHIN 5"
    types = {"SHELF": ["id", "shelf"], "COUNTER": ["id"]}
    found = to_text(pattern(text, types, report=told.append))
    assert "predicate=x.shelf = y.shelf" in found
    assert [each.code for each in told] == ["absent-attribute"]


def test_an_attribute_that_an_undeclared_type_may_have_is_legal() -> None:
    text = "EVENT SEQ(SHELF x, !(COUNTER y)) WHERE x.shelf = y.shelf WITHIN 5"
    found = to_text(pattern(text, {"COUNTER": ["id"]}))
    assert "predicate=x.shelf = y.shelf" in found


def test_a_window_on_one_component_is_told() -> None:
    told: list[Diagnostic] = []
    assert pattern("EVENT A x WITHIN 5 s", report=told.append) == from_text("Atom([A], x)")
    assert [(each.code, each.severity) for each in told] == [("window-without-effect", "warning")]


# Several queries, and RETURN


def names(text: str) -> list[str]:
    return [query.name for query in queries(text)]


def test_names_of_queries() -> None:
    assert names("EVENT A") == ["query"]
    assert names("EVENT A; EVENT B") == ["query_1", "query_2"]
    assert names("QUERY q EVENT A EVENT B WITHIN 5 second: EVENT C;;") == [
        "q",
        "query_2",
        "second",
    ]
    assert names("EVENT A x RETURN T(x.a); EVENT B") == ["T", "query_2"]
    assert names("QUERY my-query EVENT A x RETURN T(x.a)") == ["my-query"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.a", "Output(q, attributes={a: x.a})"),
        ("x.a AS b, y.a", "Output(q, attributes={b: x.a, a: y.a})"),
        ("(x.a, y.b)", "Output(q, attributes={a: x.a, b: y.b})"),
        ("(x.a as b)", "Output(q, attributes={b: x.a})"),
        ("T(x.a, y.a AS `of y`)", "Output(T, attributes={a: x.a, `of y`: y.a})"),
        ("ITEM-LOST(x.a)", "Output(`ITEM-LOST`, attributes={a: x.a})"),
        ("`item lost`(x.a)", "Output(`item lost`, attributes={a: x.a})"),
        ("Alarm()", "Output(Alarm, attributes={})"),
        ("COUNT(*), sum(a), avg(x.a)", None),
        ("y.a - x.a AS gain, (y.a - x.a) / count(*) AS mean", None),
    ],
)
def test_return(text: str, expected: str | None) -> None:
    (query,) = queries(f"QUERY q EVENT SEQ(A x, B y) RETURN {text}")
    assert query.output is not None
    if expected is not None:
        assert to_text(query.output) == expected
    assert query.event_type == query.output.type


def test_aggregates() -> None:
    (query,) = queries(
        "EVENT SEQ(A x, !N n, B y) RETURN T(count(*), sum(v), min(x.v), max(v) - min(v) AS range)"
    )
    assert query.output is not None
    assert [name for name, _ in query.output.attributes] == ["count", "sum_v", "min_v", "range"]
    assert [to_text(value) for _, value in query.output.attributes] == [
        "count{*.*}",
        "sum{*.v}",
        "min{x.v}",
        "max{*.v} - min{*.v}",
    ]


def test_a_query_reads_the_events_of_an_earlier_one() -> None:
    first, second = queries(
        "EVENT SEQ(A x, B y) WHERE [id] RETURN Pair(x.id, y.v - x.v AS gain)\n"
        "EVENT SEQ(Pair p, Pair q) WHERE [id] AND p.gain < q.gain WITHIN 5"
    )
    assert first.event_type == "Pair"
    assert second.pattern == from_text(
        "Filter(Within(Seq(Atom([Pair], p), Atom([Pair], q)), window=5 ticks, inclusive=false), "
        "p.id = q.id and p.gain < q.gain)"
    )


def test_a_query_without_return_can_be_read_by_its_name() -> None:
    _, second = queries("QUERY pair EVENT SEQ(A, B)\nEVENT SEQ(pair p, C c) WHERE c.id = 1")
    assert second.columns == ("p", "c")


def test_spans_lead_back_to_the_text() -> None:
    text = "EVENT SEQ(A x, B y) WHERE [id] AND x.a < y.a + 1"
    found = pattern(text)
    assert found.span is not None
    assert text[found.span.start : found.span.end] == "[id] AND x.a < y.a + 1"
