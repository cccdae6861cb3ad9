"""One event file of each format as Arrow batches, with times as timestamps in microseconds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from cepheid.hosts.text_formats import (
    BLOCK,
    ISO_TIME,
    UNREADABLE,
    ZONE,
    csv_conversion,
    csv_parsing,
    in_microseconds,
    open_csv,
    sampled_values,
)
from cepheid.model.errors import DataError

_LARGEST_BLOCK = 64 << 20
_CANNOT_READ = (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError)
_ROWS = 1 << 16

# How Arrow tells that a field of JSON holds values of several types.
_TYPE_CHANGED = re.compile(r"Column\(/(?P<column>[^)]+)\) changed from")
_TIME = re.compile(f"{ISO_TIME}(?P<zone>{ZONE})?")


class TypesChanged(Exception):
    """Rows do not fit the types that earlier ones had: they must all be read before choosing."""


class Reader(Protocol):
    """A file that is open: its columns, its rows, and how many bytes of it have been read."""

    schema: pa.Schema

    @property
    def position(self) -> int:
        """Bytes read so far."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order."""
        ...


def open_reader(
    file: Path, kind: str, text_column: str, *, like: pa.Schema | None = None
) -> Reader:
    """Open a file; `like` gives the types that an earlier file of the same path had.

    Raises TypesChanged when the first rows do not fit: reading all of them shows what is wrong.
    """
    reader: Reader
    try:
        match kind:
            case "parquet":
                reader = _ParquetReader(file)
            case "csv":
                reader = _CsvReader(file, text_column, like)
            case _:
                reader = _JsonReader(file, text_column, like)
    except _CANNOT_READ as problem:
        if kind == "parquet":
            raise _unreadable(file, kind, problem) from None
        raise TypesChanged from None
    _refuse_repeated_columns(file, reader.schema)
    return reader


def read_whole(file: Path, kind: str, text_column: str) -> pa.Table:
    """All rows of a file, with types that fit every one of them."""
    try:
        match kind:
            case "parquet":
                reader = _ParquetReader(file)
                table = pa.Table.from_batches(list(reader.batches()), reader.schema)
            case "csv":
                table = _whole_csv(file, text_column)
            case _:
                table = _whole_json(file, text_column)
    except _CANNOT_READ as problem:
        raise _unreadable(file, kind, problem) from None
    _refuse_repeated_columns(file, table.schema)
    return table


class _ParquetReader:
    def __init__(self, file: Path) -> None:
        # Loads much more than the readers of text do, which a small CSV would wait for.
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415

        self._file = ParquetFile(file)
        self._size = file.stat().st_size
        self._read = 0
        self.schema: pa.Schema = self._file.schema_arrow

    @property
    def position(self) -> int:
        return int(self._size * self._read // max(1, self._file.metadata.num_rows))

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._file.iter_batches(batch_size=_ROWS):
            self._read += batch.num_rows
            yield batch


class _TextReader:
    """What CSV and JSON lines share: text in blocks, perhaps compressed."""

    def __init__(self, file: Path) -> None:
        self._raw = pa.OSFile(str(file), "rb")
        self._size = file.stat().st_size
        self._is_compressed = _codec(file) is not None
        self._blocks = 0
        self._reader: Any = None

    @property
    def position(self) -> int:
        # Blocks are read ahead; a batch is one block, so that batches tell what has been used.
        if not self._is_compressed:
            return min(self._size, self._blocks * BLOCK)
        return self._size if self._raw.closed else self._raw.tell()

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._reader:
                self._blocks += 1
                if batch.num_rows:
                    yield batch
        except pa.ArrowInvalid:
            raise TypesChanged from None

    def _stream(self, file: Path) -> Any:
        codec = _codec(file)
        return self._raw if codec is None else pa.CompressedInputStream(self._raw, codec)


class _CsvReader(_TextReader):
    def __init__(self, file: Path, text_column: str, like: pa.Schema | None) -> None:
        super().__init__(file)
        types = like
        if types is None:
            with _open(file) as stream:
                types = _in_microseconds(open_csv(stream, {}, text_column).schema)
        known = {each.name: each.type for each in types if not pa.types.is_null(each.type)}
        self._reader = open_csv(self._stream(file), known, text_column)
        self.schema: pa.Schema = self._reader.schema


def _whole_csv(file: Path, text_column: str) -> pa.Table:
    with _open(file) as stream:
        table = pa.csv.read_csv(
            stream,
            parse_options=csv_parsing(),
            convert_options=csv_conversion({}, text_column),
        )
    return table.cast(_in_microseconds(table.schema))


class _JsonReader(_TextReader):
    def __init__(self, file: Path, text_column: str, like: pa.Schema | None) -> None:
        super().__init__(file)
        types = like or _text_types(file, text_column)
        self._reader = pa.json.open_json(
            self._stream(file),
            read_options=pa.json.ReadOptions(block_size=BLOCK, use_threads=False),
            parse_options=pa.json.ParseOptions(explicit_schema=types),
        )
        self.schema: pa.Schema = self._reader.schema


def _whole_json(file: Path, text_column: str) -> pa.Table:
    """As the reader of blocks, but a column holds times only if all its values are times."""
    types = _text_types(file, text_column)
    texts = pa.schema([(name, pa.string()) for name in types.names])
    size = max(BLOCK, min(file.stat().st_size + 1, _LARGEST_BLOCK))
    with _open(file) as stream:
        table = pa.json.read_json(
            stream,
            read_options=pa.json.ReadOptions(block_size=size),
            parse_options=pa.json.ParseOptions(explicit_schema=texts),
        )
    for column in types:
        if pa.types.is_timestamp(column.type):
            try:
                times = table.column(column.name).cast(column.type)
            except pa.ArrowInvalid:
                continue
            table = table.set_column(table.column_names.index(column.name), column.name, times)
    return table


def _text_types(file: Path, text_column: str) -> pa.Schema:
    """Columns of text: times where all first values are times as ISO 8601 writes them.

    Left to itself the reader takes `2020-01-01` for a time, and `2020-01-01T00:00:00.5Z` for none.
    """
    zoned: dict[str, bool] = {}
    texts: set[str] = {text_column}
    others: set[str] = set()
    with _open(file) as stream:
        for name, value in sampled_values(stream):
            if not isinstance(value, str):
                others.add(name)
            elif (found := _TIME.fullmatch(value)) is None:
                texts.add(name)
            else:
                zoned[name] = zoned.get(name, False) or found["zone"] is not None
    fields: list[tuple[str, pa.DataType]] = [(name, pa.string()) for name in texts - others]
    fields += [
        (name, pa.timestamp("us", "UTC" if has_zone else None))
        for name, has_zone in zoned.items()
        if name not in texts | others
    ]
    return pa.schema(fields)


def _open(file: Path) -> Any:
    return pa.input_stream(str(file), compression=_codec(file))


def _codec(file: Path) -> Any:
    return {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(file.suffix.lower())


def _in_microseconds(schema: pa.Schema) -> pa.Schema:
    return pa.schema([in_microseconds(column) for column in schema])


def _refuse_repeated_columns(file: Path, schema: pa.Schema) -> None:
    """Of two columns with one name nobody could say which is meant."""
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise DataError.of(
            "repeated-column",
            f"`{file}` has several columns `{repeated[0]}`",
            help="give each column a name of its own",
        )


def _unreadable(file: Path, kind: str, problem: Exception) -> DataError:
    help = UNREADABLE.get(kind)
    if changed := _TYPE_CHANGED.search(str(problem)):
        help = f"give all values of `{changed['column']}` one type, e.g. texts in quotes"
    return DataError.of("unreadable-events", f"`{file}` cannot be read: {problem}", help=help)
