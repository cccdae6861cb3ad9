"""Write generated events as Parquet, CSV or JSON lines, a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cepheid.model.errors import OptionError

# Small enough for a scan to skip what its time slice does not need, large enough to compress well.
ROWS_PER_GROUP = 1 << 17

BAD_OUTPUT_PATH = "bad-output-path"
OUTPUT_EXISTS = "output-exists"
UNKNOWN_FORMAT = "unknown-format"


class _Writer(Protocol):
    """What the writers of all formats have in common."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def write_events(
    events: pa.Table | Iterable[pa.RecordBatch],
    path: Path | str,
    *,
    rows_per_file: int | None = None,
    overwrite: bool = False,
) -> int:
    """
    Write the events in the order given, in the format that the suffix names; return their number.

    `.parquet`, `.csv`, and `.jsonl`, `.ndjson` or `.json` give one file. A path without suffix
    is a folder of Parquet files `part-00000.parquet`, ... of `rows_per_file` rows each (one
    million unless told). A file gets its name only when it is whole.
    """
    path = Path(path)
    batches = iter(events.to_batches(ROWS_PER_GROUP) if isinstance(events, pa.Table) else events)
    first = next(batches, None)
    if first is None:
        schema = events.schema if isinstance(events, pa.Table) else pa.schema([])
    else:
        schema = first.schema
        batches = chain([first], batches)
    if path.suffix:
        if rows_per_file is not None:
            message = f"`rows_per_file` splits a folder, but `{path.name}` names one file"
            raise OptionError.of(BAD_OUTPUT_PATH, message, help="give a path without a suffix")
        _refuse_to_replace(path, overwrite)
        path.parent.mkdir(parents=True, exist_ok=True)
        return _write_file(batches, schema, path)
    return _write_folder(batches, schema, path, rows_per_file or 1_000_000, overwrite)


def _refuse_to_replace(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        message = f"`{path}` exists already"
        raise OptionError.of(OUTPUT_EXISTS, message, help="choose another path or overwrite it")


def _write_folder(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    folder: Path,
    rows_per_file: int,
    overwrite: bool,
) -> int:
    if rows_per_file < 1:
        message = "`rows_per_file` must be at least 1"
        raise OptionError.of(BAD_OUTPUT_PATH, message)
    folder.mkdir(parents=True, exist_ok=True)
    # Parts left by an earlier, longer stream would mix with this one.
    earlier = sorted(folder.glob("part-*.parquet"))
    if earlier:
        _refuse_to_replace(folder, overwrite)
    for part in earlier:
        part.unlink()
    number, total, rest = 0, 0, next(batches, None)
    while rest is not None or number == 0:
        rows, taken = 0, []
        while rest is not None and rows < rows_per_file:
            taken.append(rest.slice(0, rows_per_file - rows))
            rows += taken[-1].num_rows
            rest = rest.slice(taken[-1].num_rows)
            if rest.num_rows == 0:
                rest = next(batches, None)
        _write_file(iter(taken), schema, folder / f"part-{number:05d}.parquet")
        number, total = number + 1, total + rows
    return total


def _write_file(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: Path) -> int:
    unfinished = path.with_name(f".{path.name}.unfinished")
    rows = 0
    try:
        with _open(unfinished, path, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return rows


def _open(unfinished: Path, path: Path, schema: pa.Schema) -> _Writer:
    match path.suffix:
        case ".parquet":
            return _ParquetWriter(unfinished, schema)
        case ".csv":
            writer: _Writer = pa.csv.CSVWriter(unfinished, schema)
            return writer
        case ".jsonl" | ".ndjson" | ".json":
            return _JsonLinesWriter(unfinished)
    message = f"cannot tell the format of `{path.name}` from its suffix"
    raise OptionError.of(
        UNKNOWN_FORMAT, message, help="use .parquet, .csv, .jsonl, or no suffix for a folder"
    )


class _ParquetWriter:
    """Parquet with row groups of even size, whatever the size of the batches."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pa.parquet.ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._rows_waiting = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Keep the rows until they fill a row group."""
        while self._rows_waiting + batch.num_rows >= ROWS_PER_GROUP:
            head = batch.slice(0, ROWS_PER_GROUP - self._rows_waiting)
            self._keep(head)
            self._flush()
            batch = batch.slice(head.num_rows)
        self._keep(batch)

    def _keep(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._waiting.append(batch)
            self._rows_waiting += batch.num_rows

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting), ROWS_PER_GROUP)
        self._waiting, self._rows_waiting = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()


class _JsonLinesWriter:
    """One object per event; times in ISO 8601, a null as null."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write one line per row."""
        for row in batch.to_pylist():
            self._file.write(json.dumps(row, ensure_ascii=False, default=_iso_8601) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def _iso_8601(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    message = f"a value of type {type(value).__name__} has no form in JSON lines"
    raise OptionError.of(UNKNOWN_FORMAT, message, help="write Parquet instead")
