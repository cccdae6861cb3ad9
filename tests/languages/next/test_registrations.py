"""Sources and sinks that a text registers, on the one catalogue."""

from __future__ import annotations

import pytest

import cepheid
from cepheid.languages.next.to_algebra import translate
from cepheid.model.catalogue import AttributeType, Catalogue, Sink, SinkKind, Source
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import QueryError

SOURCE = """register source t
    schema (acc string, amount float, at timestamp, note)
    from (`account no` AS acc, value AS amount)
    time began to ended
    clock error 1.5 ms
"""


def registered(text: str) -> Catalogue:
    return translate(SourceText(text), Catalogue()).catalogue


def test_a_source_with_everything() -> None:
    catalogue = registered(f"{SOURCE} SELECT * FROM t")
    assert catalogue.sources == {
        "t": Source(
            "t",
            (("acc", "account no"), ("amount", "value")),
            ("began", "ended"),
            (1.5, "ms"),
        )
    }
    assert catalogue.attributes("t") == {
        "acc": AttributeType.STRING,
        "amount": AttributeType.FLOAT,
        "at": AttributeType.TIMESTAMP,
        "note": AttributeType.UNKNOWN,
    }


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("", Source("t")),
        ("time at", Source("t", time=("at",))),
        ("clock error 3", Source("t", clock_error=(3, None))),
        ("FROM (a AS v) CLOCK ERROR 1 s;", Source("t", (("v", "a"),), clock_error=(1, "s"))),
    ],
)
def test_the_clauses_of_a_source_are_optional(clauses: str, expected: Source) -> None:
    text = f"REGISTER SOURCE t SCHEMA (v int) {clauses} SELECT * FROM t"
    assert registered(text).sources == {"t": expected}


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("", Sink("q")),
        ("table", Sink("q")),
        ("as console", Sink("q", SinkKind.CONSOLE)),
        ("callback;", Sink("q", SinkKind.CALLBACK)),
        ("file 'out/frauds.parquet'", Sink("q", SinkKind.FILE, "out/frauds.parquet")),
        (
            "schema (k int, v) as file “x”",
            Sink(
                "q",
                SinkKind.FILE,
                "x",
                (("k", AttributeType.INT), ("v", AttributeType.UNKNOWN)),
            ),
        ),
    ],
)
def test_sinks(clauses: str, expected: Sink) -> None:
    text = f"register sink q {clauses} QUERY q SELECT A.k, B.v FROM A; B"
    assert registered(text).sinks == {"q": expected}


def test_a_sink_without_a_query_is_told() -> None:
    told: list[Diagnostic] = []
    text = "register sink frauds console fruads: SELECT * FROM t"
    translate(SourceText(text), Catalogue(), report=told.append)
    assert [each.code for each in told] == ["sink-without-query"]


def test_what_is_registered_elsewhere_is_known_and_not_registered_again() -> None:
    known = registered(f"{SOURCE} SELECT * FROM t")
    translate(SourceText("SELECT * FROM t WHERE t.amount > 1"), known)
    with pytest.raises(QueryError, match="registered in the catalogue"):
        translate(SourceText(f"{SOURCE} SELECT * FROM t"), known)


def test_a_text_without_registrations_reads_any_source() -> None:
    assert registered("SELECT * FROM t WHERE t.x = 1").sources == {}


def test_registered_sources_and_declared_types_are_known_together() -> None:
    declared = Catalogue.from_option({"u": ["k"]})
    translate(SourceText(f"{SOURCE} SELECT * FROM t; u WHERE u.k = 1"), declared)


def test_compiling_keeps_the_catalogue() -> None:
    compiled = cepheid.compile(f"{SOURCE} QUERY q SELECT * FROM t")
    assert compiled.names == ("q",)
    assert set(compiled.program.catalogue.sources) == {"t"}


def test_two_sinks_and_sources_of_one_name_are_refused_apart() -> None:
    text = "register source q schema (k int) register sink q table QUERY p SELECT * FROM q"
    catalogue = registered(text)
    assert set(catalogue.sources) == set(catalogue.sinks) == {"q"}
