"""Events in files: which files a path means, and their rows in order as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cepheid.cli.event_readers import TypesChanged, open_reader, read_whole
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import DataError, OptionError

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
COMPRESSIONS = (".gz", ".bz2", ".zst")


@dataclass(slots=True)
class EventFiles:
    """The files of one path in the order of their names; `position` says how far reading came.

    `text_column` holds names even where they look like numbers: the column of the event type.
    """

    path: Path
    files: tuple[Path, ...]
    format: str
    sizes: tuple[int, ...]
    text_column: str = "type"
    position: int = 0

    @classmethod
    def find(cls, path: Path, kind: str | None = None, *, text_column: str) -> EventFiles:
        """The event files at a path: itself, or those in the folder and below."""
        if not path.exists():
            folder = path.parent
            beside = [each.name for each in folder.iterdir()] if folder.is_dir() else []
            message = f"there is no file or folder `{path}`"
            raise DataError.of("no-events", message, help=did_you_mean(path.name, beside))
        if not (path.is_file() or path.is_dir()):
            message = f"`{path}` is neither a file nor a folder"
            raise DataError.of("no-events", message, help="write the events to a file first")
        files = (path,) if path.is_file() else _files_below(path)
        formats = {kind or format_of(each) for each in files}
        if len(formats) > 1:
            raise DataError.of(
                "mixed-formats",
                f"the folder `{path}` holds files of several formats: {', '.join(sorted(formats))}",
                help="put each format in a folder of its own, or name one with --input-format",
            )
        sizes = tuple(each.stat().st_size for each in files)
        return cls(path, files, formats.pop(), sizes, text_column)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(self.sizes)

    def schema(self) -> pa.Schema:
        """The columns, from the first file."""
        try:
            return open_reader(self.files[0], self.format, self.text_column).schema
        except TypesChanged:
            return read_whole(self.files[0], self.format, self.text_column).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in order, in batches of bounded size; `position` follows.

        Raises TypesChanged when the rows do not fit the types that the first ones had.
        """
        done = 0
        first: pa.Schema | None = None
        for file, size in zip(self.files, self.sizes, strict=True):
            reader = open_reader(file, self.format, self.text_column, like=first)
            if first is None:
                first = reader.schema
            elif not reader.schema.equals(first):
                raise TypesChanged
            for batch in reader.batches():
                self.position = done + reader.position
                yield batch
            done += size
        self.position = done

    def table(self) -> pa.Table:
        """All rows at once; types are chosen from all of them."""
        tables = [read_whole(file, self.format, self.text_column) for file in self.files]
        self.position = self.size
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            raise DataError.of(
                "mixed-types",
                f"the files of `{self.path}` do not agree on a column's type: {problem}",
                help="give columns of one name the same type in every file",
            ) from None


def format_of(path: Path) -> str:
    """The format that a file's name tells, a compression left aside."""
    suffix = _suffix(path)
    if suffix in FORMATS:
        return FORMATS[suffix]
    raise OptionError.of(
        "unknown-format",
        f"cannot tell the format of `{path.name}` from its name",
        help=f"names end in {', '.join(FORMATS)}; else give --input-format parquet, csv or json",
    )


def _suffix(path: Path) -> str:
    name = path.name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return Path(name).suffix


def _files_below(folder: Path) -> tuple[Path, ...]:
    """Data files by name; what begins with `.` or `_` is somebody's bookkeeping (Spark's, ours)."""
    found = [
        each
        for each in folder.rglob("*")
        if each.is_file()
        and _suffix(each) in FORMATS
        and not any(part.startswith((".", "_")) for part in each.relative_to(folder).parts)
    ]
    if not found:
        raise DataError.of(
            "no-events",
            f"the folder `{folder}` holds no event files",
            help=f"their names end in {', '.join(FORMATS)}, and perhaps {', '.join(COMPRESSIONS)}",
        )
    return tuple(sorted(found))
