"""Event files that appear in a folder: each is taken once, in the order of names, when it is whole.

A file is whole when its size and its time of change have stayed the same for a second. One that is
written elsewhere and renamed into the folder is taken at once if it was last written to a second
ago or earlier. Names that begin with a dot or an underscore are left alone.

What is added to a file after it was taken is not read: such files are found out, to be told of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from cepheid.model.errors import DataError

QUIET = 1.0
"""Seconds for which a file must not have changed."""
LOOK_BACK = 2.0
"""Seconds between two looks at the files that were taken: there may be many."""


class ReadAnew(Exception):
    """Rows do not fit the types that the first ones had: the file must be read as a whole."""


class Read(Protocol):
    """Reads a file: piece by piece, or as a whole, which fits the types to all rows."""

    def __call__(
        self, path: Path, like: pa.Schema | None, *, whole: bool
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a file; `like` has the types of the files before."""
        ...


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that is whole."""

    path: Path
    size: int
    changed_ns: int


@dataclass(slots=True)
class EventFolder:
    """Looks for files in a folder; `is_event_file` tells them by their names.

    `problem` is why the folder cannot be read now, if so; it may come back.
    """

    path: Path
    is_event_file: Callable[[Path], bool]
    problem: str | None = None
    _seen: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    _looked_back: float = 0.0

    def next_file(self, taken: Collection[str]) -> FoundFile | None:
        """The first file by name that was not taken yet; None as long as it may still grow."""
        for path in self._paths():
            name = path.name
            if name in taken or name.startswith((".", "_")) or not self.is_event_file(path):
                continue
            try:
                facts = path.stat()
            except OSError:
                continue  # taken away again
            if not path.is_file():
                continue
            size, changed = facts.st_size, facts.st_mtime_ns
            before = self._seen.get(name)
            now = time.monotonic()
            if before is None or before[:2] != (size, changed):
                before = self._seen[name] = (size, changed, now)
            is_quiet = now - before[2] >= QUIET or time.time() - changed / 1e9 >= QUIET
            if not is_quiet:
                return None
            self._seen.pop(name)
            return FoundFile(path, size, changed)
        return None

    def changed_since(self, taken: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Files that are not as they were when they were taken; looked for every few seconds.

        `taken` tells the `size` of each, and when it was `changed`.
        """
        now = time.monotonic()
        if now - self._looked_back < LOOK_BACK:
            return []
        self._looked_back = now
        return [path.name for path in self._paths() if _has_changed(path, taken.get(path.name))]

    def _paths(self) -> list[Path]:
        try:
            found = sorted(self.path.iterdir())
        except OSError as problem:
            self.problem = problem.strerror or str(problem)
            return []
        self.problem = None
        return found


def _has_changed(path: Path, facts: Mapping[str, Any] | None) -> bool:
    if facts is None or "size" not in facts:
        return False
    try:
        now = path.stat()
    except OSError:
        return False  # a file that was taken may be removed
    return (now.st_size, now.st_mtime_ns) != (facts["size"], facts["changed"])


def fitting(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    """Batches with the columns of the first file: others are left out, missing ones are null."""
    for batch in batches:
        known = batch.schema.remove_metadata() if schema is None else schema
        schema = known
        columns = []
        for column in known:
            where = batch.schema.get_field_index(column.name)
            if where < 0:
                columns.append(pa.nulls(batch.num_rows, column.type))
                continue
            try:
                columns.append(batch.column(where).cast(column.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
                raise DataError.of(
                    "mixed-types",
                    f"column `{column.name}` does not hold {column.type} as before: {problem}",
                    help="give columns of one name the same type in every file",
                ) from None
        yield pa.RecordBatch.from_arrays(columns, schema=known)
