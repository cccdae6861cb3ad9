"""Prepared parse tables: up to date, equal to the grammar, and not needed."""

from __future__ import annotations

import json

import pytest
from lark.exceptions import UnexpectedInput

from cepheid.languages import parse_tables
from cepheid.languages.next.parser import _Builder as NextBuilder
from cepheid.languages.parse_tables import WITH_GRAMMAR, is_current, load_parser
from cepheid.languages.sase.parser import _Builder

NEXT = "cepheid.languages.next"
SASE = "cepheid.languages.sase"
NEXT_TEXTS = [
    "SELECT * FROM t T1+; (t T2 \\ u) | v WHERE FILTER(T1.a = T2.a), (T1, T2) OCCURS WITHIN :w s",
    "register source t schema (a int, b) time x to y clock error 3 ms q: SELECT t.a FROM t",
    "SELECT * FROM A; B;",
    "SELECT * FROM (A",
]
TEXTS = [
    "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10",
    "EVENT SEQ(SHELF-READING x, !(ANY(A, B) n), C y) WHERE x.a + 2 * y.b >= :p ∧ [a='1'] WITHIN 2",
    "Q1: EVENT A x RETURN x.a AS b, count(*); QUERY Two EVENT Q1 q",
    "EVENT SEQ(A x,",
    "EVENT SEQ(A x B y)",
]


@pytest.mark.parametrize("package", WITH_GRAMMAR)
def test_tables_are_those_of_the_grammar(package):
    assert is_current(package), "run: python -m cepheid.languages.parse_tables"


def outcome(parser, text):
    try:
        return parser.parse(text)
    except UnexpectedInput as problem:
        return type(problem), problem.pos_in_stream


@pytest.mark.parametrize("text", TEXTS)
def test_tables_and_grammar_read_alike(text):
    prepared = load_parser(SASE, _Builder())
    built = parse_tables._build(parse_tables._grammar(SASE), _Builder())
    assert outcome(prepared, text) == outcome(built, text)


@pytest.mark.parametrize("text", NEXT_TEXTS)
def test_tables_and_grammar_read_next_alike(text):
    prepared = load_parser(NEXT, NextBuilder())
    built = parse_tables._build(parse_tables._grammar(NEXT), NextBuilder())
    assert outcome(prepared, text) == outcome(built, text)


def test_tables_of_another_grammar_are_not_used(monkeypatch):
    monkeypatch.setattr(parse_tables, "_fingerprint", lambda grammar: "another")
    built = []
    monkeypatch.setattr(parse_tables, "_build", lambda *given: built.append(given))
    load_parser(SASE, _Builder())
    assert len(built) == 1


def test_tables_hold_data_and_no_code():
    text = parse_tables.files(SASE).joinpath(parse_tables.TABLES).read_text("utf-8")
    assert set(json.loads(text)) == {"made_from", "tables"}
