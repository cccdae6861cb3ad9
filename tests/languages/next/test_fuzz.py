"""Whatever the text, the front end answers with a program or with a declared error, in time."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cepheid.algebra.invariants import check
from cepheid.algebra.text import from_text, to_text
from cepheid.languages.next.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from tests.languages.fuzzing import CATALOGUES, PRINTABLE, check_answer, mutations, soups
from tests.languages.next.verbatim import QUERIES

LEXEMES = st.sampled_from(
    [
        *("SELECT", "FROM", "WHERE", "QUERY", "AND", "OR", "NOT", "AS", "OCCURS", "WITHIN"),
        *("register", "source", "sink", "schema", "time", "to", "clock error", "console", "file"),
        *("FILTER(", "PREV(", "ALL(", "CONTAINS", "count(", "sum(x.a)", "abs(", "TRUE", "hours"),
        *("A", "B", "T-1", "q:", "x", "y", "a", "id", "x.a", "y.id", "A.a", "`odd`", "`", "(x, y)"),
        *("(", ")", ",", ";", ".", ":", ":p", "|", "\\", "+", "-", "*", "/", "!", "@", "..."),
        *("!=", "=", "==", "<", "<=", "<>", "≠", "≥", "∧", "∨", "^"),
        *("--", "/*", "*/", "'s'", "'", "‘s’", "“", '"', '"s"', "é", "中", "\n", "\t"),
        *("1", "0", "-1", "2.5", "1e9", "99999999999999999999"),
    ]
)
RICH = r"""register source A schema (a, id string) from (own AS a) time at clock error 2 ms
register sink q schema (k) as file 'x' -- comment
QUERY q SELECT x.id AS k, count(y), sum(a) / 2 AS half FROM A x; (T-1 y+ \ (A n; B m)) | B z
WHERE FILTER(x.id = y.id AND PREV(y.a) < y.a), NOT x.a CONTAINS ‘s’ /* more */,
  n.a = m.a AND m.id = x.id, (x, y) OCCURS WITHIN 1.5 hours;
q2: SELECT * FROM q i WHERE k = :p"""
BEGINNINGS = ["SELECT * FROM ", "SELECT * FROM A x; B y+ WHERE ", "register "]


@given(soups(LEXEMES, BEGINNINGS), CATALOGUES)
@settings(max_examples=400)
def test_lexemes_in_any_order(text: str, catalogue: Catalogue) -> None:
    check_answer(translate, text, catalogue)


@given(mutations(LEXEMES, [*QUERIES.values(), RICH]), CATALOGUES)
@settings(max_examples=400)
def test_valid_texts_with_changes(text: str, catalogue: Catalogue) -> None:
    check_answer(translate, text, catalogue)


@given(PRINTABLE)
@example("\ud800")
@example("SELECT \x00")
@example("AND")
@example("within")
@settings(max_examples=200)
def test_any_characters(text: str) -> None:
    check_answer(translate, text, Catalogue())


# Texts that are right by construction


@st.composite
def patterns(draw: st.DrawFn, names: list[str], depth: int = 3) -> tuple[str, list[str]]:
    """A pattern and the variables it detects; `names` grows by all its variables."""
    if depth == 0 or draw(st.booleans()):
        names.append(f"v{len(names)}")
        type = draw(st.sampled_from(["A", "B", "T-1", "`q t`"]))
        sign = draw(st.sampled_from(["", "", "", "+"]))
        return f"{type} {names[-1]}{sign}", [names[-1]]
    first, bound = draw(patterns(names, depth - 1))
    second, more = draw(patterns(names, depth - 1))
    sign = draw(st.sampled_from([";", ";", "|", "\\"]))
    text = f"({first} {sign} {second})"
    return text, bound if sign == "\\" else bound + more


@st.composite
def valid_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A query that is right by construction, and its columns."""
    pattern, columns = draw(patterns([]))
    variables = st.sampled_from(columns)
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        left, right = draw(variables), draw(variables)
        form = draw(
            st.sampled_from(
                [
                    "{0}.a = {1}.a",
                    "FILTER({0}.id <> {1}.id)",
                    "{0}.a < 3 AND NOT {1}.a / 2 > :p",
                    "({0}, {1}) OCCURS WITHIN 5 min",
                    "{0}.a = 1 OR {1}.`odd name` CONTAINS 's'",
                ]
            )
        )
        parts.append(form.format(left, right))
    items = draw(st.sampled_from(["*", f"{columns[0]}.a, count({columns[-1]}) AS n"]))
    where = f" WHERE {', '.join(parts)}" if parts else ""
    return f"SELECT {items} FROM {pattern}{where}", columns


@given(valid_texts())
@settings(max_examples=200)
def test_right_texts_are_translated(case: tuple[str, list[str]]) -> None:
    text, columns = case
    (query,) = translate(SourceText(text), Catalogue()).queries
    check(query.pattern)
    assert list(query.columns) == columns
    assert from_text(to_text(query.pattern)) == query.pattern


def test_the_rich_text_is_right() -> None:
    catalogue = Catalogue.from_option({"B": ["a", "id"], "T-1": ["a", "id"]})
    names = [query.name for query in translate(SourceText(RICH), catalogue).queries]
    assert names == ["q", "q2"]
