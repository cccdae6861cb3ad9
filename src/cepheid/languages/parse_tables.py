"""Parsers from prepared tables: reading a grammar takes a parser longer than reading a query.

A language's grammar is its own `grammar.lark` and what all share, `shared.lark`. Beside it stands
`grammar.tables.json`, written by `python -m cepheid.languages.parse_tables`. It names the grammar
and the version of Lark that it was made from; when either is another, the parser is built from the
grammar, as if there were no tables.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

TABLES = "grammar.tables.json"
WITH_GRAMMAR = ("cepheid.languages.next", "cepheid.languages.sase")


def load_parser(package: str, builder: lark.Transformer[Any, Any]) -> lark.Lark:
    """The LALR parser of a language's package; `builder` makes its syntax tree."""
    grammar = _grammar(package)
    tables = files(package).joinpath(TABLES)
    if tables.is_file():
        kept = json.loads(tables.read_text("utf-8"), object_pairs_hook=_with_numbers)
        if kept["made_from"] == _fingerprint(grammar):
            parser = lark.Lark.__new__(lark.Lark)
            parser._load(kept["tables"], transformer=builder)
            return parser
    return _build(grammar, builder)


def write_tables(package: str) -> Path:
    """Write the tables of a language's grammar; returns where they are."""
    grammar = _grammar(package)
    data, memo = _build(grammar, None).memo_serialize([TerminalDef, Rule])
    kept = {"made_from": _fingerprint(grammar), "tables": {"data": data, "memo": memo}}
    path = Path(str(files(package).joinpath(TABLES)))
    path.write_text(json.dumps(kept, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    return path


def is_current(package: str) -> bool:
    """Whether the tables were made from the grammar as it is, by the Lark that is installed."""
    kept = json.loads(files(package).joinpath(TABLES).read_text("utf-8"))
    return bool(kept["made_from"] == _fingerprint(_grammar(package)))


def _build(grammar: str, builder: lark.Transformer[Any, Any] | None) -> lark.Lark:
    return lark.Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        transformer=builder,
        maybe_placeholders=True,
    )


def _grammar(package: str) -> str:
    own = files(package).joinpath("grammar.lark").read_text("utf-8")
    return own + files("cepheid.languages").joinpath("shared.lark").read_text("utf-8")


def _fingerprint(grammar: str) -> str:
    return hashlib.blake2b(f"{lark.__version__}|{grammar}".encode(), digest_size=12).hexdigest()


def _with_numbers(pairs: list[tuple[str, Any]]) -> dict[str | int, Any]:
    """JSON's keys are texts; Lark numbers its states, tokens and rules."""
    return {int(key) if key.isdecimal() else key: value for key, value in pairs}


if __name__ == "__main__":
    for name in WITH_GRAMMAR:
        print(write_tables(name))
