"""What queries have in common exists once in their graph, and what they have not does not."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.kernels.succession_shape import Follow
from cepheid.model.errors import OptionError
from cepheid.model.options import make_options
from cepheid.planner.prepare import Prepared, prepare
from cepheid.planner.shared_successions import SharedSuccessions, share_successions

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("k", pa.int64()),
        ("v", pa.int64()),
        ("f", pa.float64()),
    ]
)


def ready(text: str, **options: object) -> Prepared:
    compiled = cepheid.compile(text, "next")
    known = make_options(options)
    (stage,) = compiled.stages(known)
    return prepare(stage, known, SCHEMA)


def graph(*texts: str) -> SharedSuccessions:
    queries = [ready(text) for text in texts]
    return share_successions(queries, queries[0].column_types | queries[-1].column_types)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A x; B y", "A p; B q"),
        (
            "A x; B y WHERE FILTER(x.v = 1), FILTER(y.v > 2)",
            "A b; B a WHERE FILTER(2 < a.v), FILTER(b.v = 1)",
        ),
        ("(A x | B y); C z", "(B y | A x); C z"),
        ("A x; B y WHERE FILTER(x.k = y.k)", "A x; B y WHERE FILTER(y.k = x.k)"),
        (
            "A x; B y WHERE FILTER(x.k < y.k), FILTER(x.v = y.v)",
            "A x; B y WHERE FILTER(y.v = x.v), FILTER(y.k > x.k)",
        ),
        ("A x; B y WHERE (x, y) OCCURS WITHIN 5", "A x; B y WHERE (y, x) OCCURS WITHIN 5"),
    ],
)
def test_queries_that_say_the_same_share_everything(one: str, other: str) -> None:
    shared = graph(f"SELECT * FROM {one}", f"SELECT * FROM {other}")
    first, second = shared.queries
    assert first.root == second.root
    assert {operator.queries for operator in shared.operators} == {(0, 1)}
    assert shared.unshared == 2 * len(shared.operators)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A x; B y", "B x; A y"),
        ("A x; B y WHERE FILTER(x.v = 1)", "A x; B y WHERE FILTER(x.v = 2)"),
        ("A x; B y WHERE FILTER(x.f = 1)", "A x; B y WHERE FILTER(x.f = 1.0)"),
        ("A x; B y WHERE FILTER(x.k = y.k)", "A x; B y WHERE x.k = y.k"),
        ("A x; B y WHERE (x, y) OCCURS WITHIN 5", "A x; B y WHERE (x, y) OCCURS WITHIN 6"),
        ("A x; (B y \\ C n)", "A x; (B y \\ C n) WHERE n.k = x.k"),
        ("A x; A y WHERE FILTER(x.v = y.k)", "A x; A y WHERE FILTER(x.k = y.v)"),
    ],
)
def test_queries_that_say_other_things_have_roots_of_their_own(one: str, other: str) -> None:
    shared = graph(f"SELECT * FROM {one}", f"SELECT * FROM {other}")
    assert shared.queries[0].root != shared.queries[1].root


def test_a_part_is_shared_wherever_it_stands() -> None:
    shared = graph(
        "SELECT * FROM A x; B y",
        "SELECT * FROM (A x; B y); C z",
        "SELECT * FROM A w; (A x; B y)",
    )
    pairs = [each for each in shared.operators if each.text == "Next(Atom([A]), Atom([B]))"]
    assert [each.queries for each in pairs] == [(0, 1, 2)]
    assert len(shared.operators) == 6  # three leaves, the pair, and a chain on either side of it
    assert shared.unshared == 3 + 5 + 5
    # The names of the last one: w is its own 0, and x and y what the pair calls 0 and 1.
    assert shared.queries[2].names == (0, 1, 2)


def test_a_shared_operator_waits_for_the_last_of_its_users() -> None:
    def waits(*texts: str) -> list[object]:
        shape = graph(*texts).layout.shape
        return [each.deadlines for each in shape.operators if isinstance(each, Follow)]

    chain = "SELECT * FROM A x; B y"
    ((five,),) = waits(f"{chain} WHERE (x, y) OCCURS WITHIN 5")  # type: ignore[misc]
    assert [each.window for each in five] == [5]
    windows = [f"{chain} WHERE (x, y) OCCURS WITHIN {n}" for n in (5, 9, 7)]
    ((nine,),) = waits(*windows)  # type: ignore[misc]
    assert [each.window for each in nine] == [9]
    assert waits(*windows, chain) == [()]


def test_the_key_of_each_query_is_told() -> None:
    shared = graph(
        "SELECT * FROM A x; B y WHERE FILTER(x.k = y.k)",
        "SELECT * FROM A x; B y WHERE FILTER(x.v = y.k)",
        "SELECT * FROM A x; B y",
    )
    keys = [query.key for query in shared.queries]
    assert keys == [{"x": "k", "y": "k"}, {"x": "v", "y": "k"}, None]


def test_conditions_that_differ_in_constants_are_written_once() -> None:
    texts = [f"SELECT * FROM A x; B y WHERE x.v < y.v + {n}" for n in range(50)]
    shape = graph(*texts).layout.shape
    tests = {each.test for each in shape.operators if isinstance(each, Follow)}
    assert len(tests) == 50
    assert len({(test.lines, test.answer) for test in tests}) == 1


def test_queries_with_other_options_cannot_run_together() -> None:
    text = "SELECT * FROM A x; B y"
    queries = [ready(text), ready(text, lateness=5)]
    with pytest.raises(OptionError, match="other options"):
        share_successions(queries, {})
