"""Whatever the text, the front end answers with a program or with a declared error, in time."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cepheid.algebra.invariants import check
from cepheid.algebra.text import from_text, to_text
from cepheid.languages.sase.to_algebra import translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import SourceText
from tests.languages.fuzzing import CATALOGUES, PRINTABLE, check_answer, mutations, soups
from tests.languages.sase.verbatim import QUERIES

LEXEMES = st.sampled_from(
    [
        *("EVENT", "SEQ", "ANY", "QUERY", "WHERE", "WITHIN", "RETURN", "AND", "OR", "NOT", "AS"),
        *(
            "TRUE",
            "false",
            "event",
            "hours",
            "s",
            "count",
            "sum(a)",
            "count(*)",
            "abs",
            "contains(",
        ),
        *(
            "A",
            "B",
            "T-1",
            "Q1:",
            "x",
            "y",
            "z",
            "a",
            "id",
            "x.a",
            "y.id",
            "A.a",
            "`odd`",
            "`",
            "x,y",
        ),
        *("(", ")", "[", "]", ",", ";", ".", ":", ":p", "!", "¬", "[a]", "[a='1']", "..."),
        *("!=", "=", "==", "<", "<=", "<>", "≠", "≥", "≤", "∧", "∨", "^", "+", "-", "*", "/"),
        *("--", "/*", "*/", "'s'", "'", "‘s’", "“", '"', '"s"', "é", "中", "\n", "\t"),
        *("1", "0", "-1", "2.5", "1e9", "99999999999999999999"),
    ]
)
RICH = """QUERY q EVENT SEQ(A x, !(B y), ANY(A, T-1) z, !C) -- comment
WHERE [id, a='1'] AND (x.a + -z.a / 2 >= :p OR contains(x.b, ‘s’)) /* more */
WITHIN 1.5 hours RETURN ITEM-X(x.id AS k, count(*), sum(a) / 2 AS half);
Q2: EVENT ITEM-X i WHERE k = 1"""


@given(soups(LEXEMES, ["EVENT ", "EVENT SEQ(A x, B y) WHERE "]), CATALOGUES)
@settings(max_examples=400)
def test_lexemes_in_any_order(text: str, catalogue: Catalogue) -> None:
    check_answer(translate, text, catalogue)


@given(mutations(LEXEMES, [*QUERIES.values(), RICH]), CATALOGUES)
@settings(max_examples=400)
def test_valid_texts_with_changes(text: str, catalogue: Catalogue) -> None:
    check_answer(translate, text, catalogue)


@given(PRINTABLE)
@example("\ud800")
@example("EVENT \x00")
@example("\u2028EVENT A")
@example("EVENT A x WHERE x.a = 1\x85")
@settings(max_examples=200)
def test_any_characters(text: str) -> None:
    check_answer(translate, text, Catalogue())


# Texts that are right by construction

NAMES = st.sampled_from(["a", "id", "price", "`odd name`", "where"])


def references(variables: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.builds("{}.{}".format, st.sampled_from(variables), NAMES)


@st.composite
def values(draw: st.DrawFn, variables: tuple[str, ...], depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.one_of(references(variables), st.sampled_from(["1", "2.5", "-3", ":p"])))
    inner = values(variables, depth - 1)
    form = draw(st.sampled_from(["{} + {}", "{}-{}", "({} * {})", "least({}, {})", "-({1})"]))
    return form.format(draw(inner), draw(inner))


@st.composite
def conditions(draw: st.DrawFn, variables: tuple[str, ...], depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        sign = draw(st.sampled_from(["=", "!=", "≠", "<>", "<", "≤", "<=", ">", ">=", "≥"]))
        other = draw(st.one_of(values(variables), st.sampled_from(["'s'", "“t”", '""'])))
        # An attribute on the left: the condition belongs to its component, and fits any type.
        return f"{draw(references(variables))} {sign} {other}"
    joint = draw(st.sampled_from(["{} AND {}", "({}) ∧ ({})", "({} ∨ {})", "({}) or ({})"]))
    inner = conditions(variables, depth - 1)
    return joint.format(draw(inner), draw(inner))


@st.composite
def valid_texts(draw: st.DrawFn) -> tuple[str, tuple[str, ...]]:
    """A query that is right by construction, and its columns."""
    negated = draw(st.lists(st.booleans(), min_size=1, max_size=5).filter(lambda n: not all(n)))
    columns = tuple(f"v{i}" for i, missing in enumerate(negated) if not missing)
    types = [draw(st.sampled_from(["A", "T-1", "ANY(A, B)", "`q t`"])) for _ in negated]
    components = ", ".join(
        f"!({type} v{i})" if missing else f"{type} v{i}"
        for i, (type, missing) in enumerate(zip(types, negated, strict=True))
    )
    parts = [draw(conditions(columns)) for _ in range(draw(st.integers(0, 2)))]
    parts += [
        draw(conditions((f"v{i}",), depth=0))
        for i, missing in enumerate(negated)
        if missing and draw(st.booleans())
    ]
    parts += draw(st.lists(st.sampled_from(["[id]", "[a, price='1']"]), max_size=1))
    text = f"EVENT SEQ({components})"
    if parts:
        text += " WHERE " + " AND ".join(f"({part})" for part in parts)
    if negated[0] or negated[-1] or draw(st.booleans()):
        text += " WITHIN " + draw(st.sampled_from(["10", "2.5 hours", ":w s", "T", "1 day"]))
    if draw(st.booleans()):
        text += f" RETURN Out(count(*), {draw(values(columns))} AS value)"
    return text, columns


@given(valid_texts())
@settings(max_examples=200)
def test_right_texts_are_translated(case: tuple[str, tuple[str, ...]]) -> None:
    text, columns = case
    found = translate(SourceText(text), Catalogue())
    (query,) = found.queries
    check(query.pattern)
    assert query.columns == columns
    assert from_text(to_text(query.pattern)) == query.pattern


def test_the_rich_text_is_right() -> None:
    names = [query.name for query in translate(SourceText(RICH), Catalogue()).queries]
    assert names == ["q", "Q2"]
