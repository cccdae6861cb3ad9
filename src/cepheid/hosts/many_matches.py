"""Matches of many queries that one call delivered; told apart when somebody asks for one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.hosts.matches import Flat, Matches, Piece
from cepheid.planner.chains import Chains
from cepheid.planner.match_schema import MatchForm


class ManyMatches:
    """Pieces whose rows say which query found them, and then its events."""

    def __init__(
        self,
        forms: Sequence[MatchForm],
        lengths: Sequence[int],
        pieces: Sequence[Piece],
        events: pa.Schema | None,
        apart: Sequence[Matches] = (),
    ) -> None:
        """`forms` of the queries by number, and how many events a match of each has.

        `events` is the schema if it has changed since.
        `apart` are matches of queries, by number, that were found one by one.
        """
        self._apart = apart
        self._lengths = lengths
        self._forms = forms
        self._pieces = [piece for piece in pieces if not piece.part.is_empty]
        self._events = events
        self._sorted: list[tuple[np.ndarray, np.ndarray, Piece]] | None = None

    def __len__(self) -> int:
        """How many matches all queries have."""
        return sum(len(piece.part) for piece in self._pieces) + sum(map(len, self._apart))

    def counts(self) -> np.ndarray:
        """How many matches each query has."""
        counts = np.zeros(len(self._forms), np.int64)
        for piece in self._pieces:
            counts += np.bincount(piece.rows[:, 0], minlength=len(self._forms))
        for query, matches in enumerate(self._apart):
            counts[query] += len(matches)
        return counts

    def of(self, query: int) -> Matches:
        """The matches of one query."""
        form = self._forms[query]
        if self._events is not None:
            form = form.with_events(self._events)
        length = self._lengths[query]
        pieces = []
        for rows, bounds, piece in self._by_query():
            begin, end = bounds[query], bounds[query + 1]
            if begin < end:
                own = np.ascontiguousarray(rows[begin:end, 1 : length + 1])
                part = chains_of(own) if form.numbers else Flat(own)
                pieces.append(Piece(part, piece.view))
        found = Matches(form, pieces)
        return found + self._apart[query] if self._apart else found

    def _by_query(self) -> list[tuple[np.ndarray, np.ndarray, Piece]]:
        if self._sorted is None:
            self._sorted = []
            for piece in self._pieces:
                rows = piece.rows[np.argsort(piece.rows[:, 0], kind="stable")]
                bounds = np.searchsorted(rows[:, 0], np.arange(len(self._forms) + 1))
                self._sorted.append((rows, bounds, piece))
        return self._sorted


def chains_of(rows: np.ndarray) -> Chains:
    """Matches of one length as chains, whose variables are numbered by their places."""
    matches, length = rows.shape
    numbers = np.tile(np.arange(length), matches)
    return Chains(length * np.arange(1, matches + 1), np.column_stack([numbers, rows.ravel()]))
