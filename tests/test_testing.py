"""What users write in their tests: streams in one line, matches by name, readable differences."""

from __future__ import annotations

from datetime import datetime

import pytest

from cepheid.testing import assert_matches, match_difference, stream


def test_values_of_every_kind() -> None:
    (row,) = stream("""A1@1(i=-3, d=1.5, e=1e3, t=true, n=null, w=word, s='it\\'s', q="a, (b)")""")
    assert row == {
        "id": "A1", "type": "A", "ts": 1, "i": -3, "d": 1.5, "e": 1000.0, "t": True, "n": None,
        "w": "word", "s": "it's", "q": "a, (b)",
    }  # fmt: skip
    assert isinstance(row["e"], float)


def test_types_and_times() -> None:
    rows = stream("AB12@3 SHELF-READING:x1@-4 E1:a@2026-01-31T10:00:00.5")
    assert [(row["id"], row["type"], row["ts"]) for row in rows] == [
        ("AB12", "AB", 3),
        ("x1", "SHELF-READING", -4),
        ("a", "E1", datetime(2026, 1, 31, 10, 0, 0, 500_000)),
    ]


def test_instants_among_intervals() -> None:
    rows = stream("A1@1 B1@[2,9]")
    assert [(row["start"], row["end"]) for row in rows] == [(1, 1), (2, 9)]


def test_attributes_shared_by_a_line() -> None:
    rows = stream("""
        A1@1 B1@2(k=9) ; k=1, room=7
        C1@3 ; k=2
    """)
    assert [row["k"] for row in rows] == [1, 9, 2]
    assert "room" not in rows[2]


def test_no_events() -> None:
    assert stream("") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A1", "expected `@`"),
        ("A1@", "expected a time"),
        ("A1@soon", "`soon` is not a time"),
        ("12@3", "`12` has no type"),
        ("A1@1(v)", "expected `=`"),
        ("A1@1(v=1", "expected `)`"),
        ("A1@1(v='x)", "an open quote"),
        ("A1@[1]", "expected `,`"),
        ("A1@1 ; k", "expected `=`"),
        ("A1@1 ; k=1 B1@2", "expected `,` or the end of the line"),
        ("A1@1(type=3)", "`type` is taken"),
    ],
)
def test_what_is_no_stream_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refusal:
        stream(text)
    assert message in str(refusal.value)


def test_an_attribute_id_does_not_hide_the_names() -> None:
    assert_matches("A1@1(id=7) B1@2(id=8) B2@3(id=7)", "EVENT SEQ(A x, B y) WHERE [id]", ["A1 B2"])


def test_rows_with_ids_of_their_own() -> None:
    rows = [{"key": 1, "kind": "A", "at": 5}, {"key": 2, "kind": "B", "at": 6}]
    assert_matches(rows, "EVENT SEQ(A x, B y)", ["1 2 @6"], id="key", type="kind", time="at")


def test_returned_columns() -> None:
    query = "EVENT SEQ(A x, B y) RETURN x.v + y.v AS total"
    assert_matches("A1@1(v=1) B1@2(v=2)", query, [{"total": 3}])
    with pytest.raises(AssertionError) as failure:
        assert_matches("A1@1(v=1) B1@2(v=2)", query, [{"total": 4}])
    assert str(failure.value) == (
        "the matches differ\n  missing:    {'total': 4}\n  unexpected: {'total': 3}"
    )


def test_matches_are_compared_as_bags() -> None:
    row = {"end": 3, "x": {"id": "A1"}, "y": [{"id": "B1"}, {"id": "B2"}], "z": {"id": None}}
    assert match_difference(["A1 B1 B2 -"], [row]) == ""
    assert match_difference(["A1 B1 B2 - @3"], [row]) == ""
    assert match_difference(["A1 B1 B2 - @4"], [row]) == (
        "  missing:    A1 B1 B2 - @4\n  unexpected: A1 B1 B2 - @3"
    )
    assert match_difference(["A1 B1 B2 -"], [row, row]) == "  unexpected: A1 B1 B2 -"
