"""Queries by name: what is said when there is none of a name, or one already."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from typing import TypeVar

from cepheid.model.errors import OptionError

_Known = TypeVar("_Known")

_TOLD = 20
"""Names that a message lists."""


def known_query(name: str, queries: Mapping[str, _Known]) -> _Known:
    """The query of that name; refused if there is none."""
    if name not in queries:
        raise OptionError.of(
            "unknown-query",
            f"there is no query `{name}`",
            help=f"queries: {', '.join(islice(queries, _TOLD)) or 'none'}",
        )
    return queries[name]


def refuse_taken(name: str, queries: Collection[str], help: str | None = None) -> None:
    """Refuse a name that a query has already."""
    if name in queries:
        raise OptionError.of(
            "query-exists",
            f"there is a query `{name}` already",
            help=help or "give another name=, or remove the old one first",
        )


def free_name(wished: str, queries: Collection[str]) -> str:
    """The name itself if it is free, else with the first number that is.

    >>> free_name("pair", ["pair", "pair_2"])
    'pair_3'
    """
    number, name = 1, wished
    while name in queries:
        number += 1
        name = f"{wished}_{number}"
    return name
