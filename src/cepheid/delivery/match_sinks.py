"""Where matches go: a file, a table that the terminal shows at the end, memory, a function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from cepheid.delivery.match_files import MatchFile, open_match_file
from cepheid.delivery.nested_columns import plain_table
from cepheid.hosts.matches import Matches

SHOWN = 20
"""Matches that a console sink shows; it counts them all."""

_ROWS = 1 << 16


class MatchSink(ABC):
    """Takes matches as they come; `with` tells whether they all came."""

    @abstractmethod
    def accept(self, matches: Matches) -> None:
        """Take them; the first ones, even if none, tell the columns."""

    def finish(self) -> None:
        """All have come: do what can fail, before any of several sinks shows what it has."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class FileSink(MatchSink):
    """Writes matches as they come."""

    def __init__(self, path: Path | None, kind: str) -> None:
        """`path` None is standard output."""
        self._path = path
        self._kind = kind
        self._file: MatchFile | None = None

    def accept(self, matches: Matches) -> None:
        """Write them; the first ones, even if none, tell the columns."""
        if self._file is None:
            self._file = open_match_file(self._path, self._kind, matches.form.schema)
        for table in matches.tables(_ROWS):
            self._file.write(table)

    def finish(self) -> None:
        """Write the rest; the file gets its name when the sink is left."""
        if self._file is not None:
            self._file.finish()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.__exit__(kind, error, trace)


class FirstMatches(MatchSink):
    """Keeps the first matches and counts all."""

    def __init__(self, limit: int) -> None:
        """At most `limit` are kept."""
        self.total = 0
        self._limit = limit
        self._tables: list[pa.Table] = []
        self._kept = 0

    def accept(self, matches: Matches) -> None:
        """Count them, keep some."""
        self.total += len(matches)
        if not self._tables:
            self._tables.append(matches.form.empty())
        for table in matches.tables(max(1, self._limit)):
            if self._kept >= self._limit:
                break
            first = table.slice(0, self._limit - self._kept)
            self._tables.append(first)
            self._kept += first.num_rows

    @property
    def table(self) -> pa.Table:
        """The matches kept."""
        tables = [plain_table(table) for table in self._tables]
        return pa.concat_tables(tables, promote_options="permissive")


class Collected(MatchSink):
    """Keeps all matches."""

    def __init__(self) -> None:
        """None so far."""
        self._matches: Matches | None = None

    def accept(self, matches: Matches) -> None:
        """Keep them."""
        self._matches = matches if self._matches is None else self._matches + matches

    @property
    def table(self) -> pa.Table:
        """All matches."""
        assert self._matches is not None
        return self._matches.table()


class CalledBack(MatchSink):
    """Hands matches on to a function, never none."""

    def __init__(self, function: Callable[[Matches], object]) -> None:
        """The function is called with the matches of each batch that has any."""
        self._function = function

    def accept(self, matches: Matches) -> None:
        """Call the function."""
        if len(matches):
            self._function(matches)
