"""Which files a path means: listed once with size and time of change, so that changes show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from cepheid.model.errors import DataError


class FileFormat(Enum):
    """The formats events are read from."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


SUFFIXES = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
    ".json": FileFormat.JSON,
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}

_TABLES = {"_delta_log": "delta", ".hoodie": "hudi"}
_HIVE_FOLDER = re.compile(r"[^/=]+=[^/=]*")


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file as it was when the work was planned; `path` is its file system's."""

    path: str
    size: int
    changed_ns: int | None


@dataclass(frozen=True, slots=True)
class EventFiles:
    """Files of one format, in the order of their names; `root` leads to their file system."""

    root: str
    format: FileFormat
    files: tuple[EventFile, ...]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def urls(self) -> list[str]:
        """The paths as Spark reads them."""
        scheme = self.root.partition("://")[0] + "://" if "://" in self.root else "file://"
        return [scheme + file.path for file in self.files]


@dataclass(frozen=True, slots=True)
class OtherTable:
    """A folder that only its own reader understands: a table format, or folders that are values.

    `format` is what Spark calls its reader.
    """

    path: str
    format: str
    reason: str


def list_event_files(path: Any) -> EventFiles | OtherTable:
    """The event files at a path (or at several): files, or folders and what is below them."""
    paths = [str(p) for p in path] if isinstance(path, list | tuple) else [str(path)]
    if not paths:
        raise DataError.of("no-events", "an empty list of paths holds no events")
    found: list[EventFile] = []
    for each in paths:
        try:
            system, inside = file_system(each)
            info = system.get_file_info(inside)
        except (pa.ArrowException, OSError, ImportError) as problem:
            return OtherTable(each, _told_format(each), f"pyarrow cannot read it ({problem})")
        if info.type == fs.FileType.File:
            found.append(_event_file(info))
        elif info.type == fs.FileType.Directory:
            below = system.get_file_info(fs.FileSelector(inside, recursive=True))
            other = _other_table(each, inside, below)
            if other is not None:
                return other
            found += [_event_file(i) for i in below if _is_event_file(i, inside)]
        else:
            raise DataError.of("no-events", f"there is no file or folder `{each}`")
    return EventFiles(
        _root(paths[0]), _one_format(paths[0], found), tuple(sorted(found, key=_path))
    )


def file_system(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URL, and the path in it."""
    url = path.replace("file:/", "file:///", 1) if re.match(r"file:/[^/]", path) else path
    url = re.sub(r"^s3[an]://", "s3://", url)
    if "://" in url:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(url)
        return found
    # Workers have another working directory.
    return fs.LocalFileSystem(), str(Path(path).expanduser().absolute())


def refuse_changed(files: EventFiles, numbers: Sequence[int]) -> None:
    """Raise when a file is no longer what it was when the slices were chosen."""
    system, _ = file_system(files.root)
    wanted = [files.files[number] for number in numbers]
    for file, now in zip(wanted, system.get_file_info([f.path for f in wanted]), strict=True):
        if now.type != fs.FileType.File or _event_file(now) != file:
            what = "is gone" if now.type != fs.FileType.File else "has changed"
            raise DataError.of(
                "file-changed",
                f"`{file.path}` {what} since the scan was planned",
                help="scan again; the new plan will see the files as they are now",
            )


def codec(path: str) -> str | None:
    """The compression a file's name tells."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def _path(file: EventFile) -> str:
    return file.path


def _root(path: str) -> str:
    return path if "://" in path or path.startswith("file:") else str(Path(path).absolute())


def _event_file(info: Any) -> EventFile:
    return EventFile(info.path, info.size, info.mtime_ns)


def _suffix(path: str) -> str:
    name = PurePosixPath(path).name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return PurePosixPath(name).suffix


def _is_event_file(info: Any, folder: str) -> bool:
    """What begins with `.` or `_` is somebody's bookkeeping (Spark's, ours)."""
    inside = info.path[len(folder) :].strip("/").split("/")
    hidden = any(part.startswith((".", "_")) for part in inside)
    return info.type == fs.FileType.File and not hidden and _suffix(info.path) in SUFFIXES


def _other_table(path: str, folder: str, below: list[Any]) -> OtherTable | None:
    inside = [info.path[len(folder) :].strip("/") for info in below]
    tops = {name.split("/")[0] for name in inside}
    for mark, name in _TABLES.items():
        if mark in tops:
            return OtherTable(path, name, f"the folder is a {name} table: its log says what counts")
    if any(n.startswith("metadata/") and n.endswith(".metadata.json") for n in inside):
        return OtherTable(
            path, "iceberg", "the folder is an Iceberg table: its log says what counts"
        )
    for info, name in zip(below, inside, strict=True):
        if info.type == fs.FileType.File and _suffix(name) in SUFFIXES:
            folders = name.split("/")[:-1]
            if any(_HIVE_FOLDER.fullmatch(part) for part in folders):
                reason = "the names of its folders hold values of columns"
                return OtherTable(path, SUFFIXES[_suffix(name)].value, reason)
    return None


def _told_format(path: str) -> str:
    return SUFFIXES.get(_suffix(path), FileFormat.PARQUET).value


def _one_format(path: str, files: list[EventFile]) -> FileFormat:
    if not files:
        raise DataError.of(
            "no-events",
            f"the folder `{path}` holds no event files",
            help=f"their names end in {', '.join(SUFFIXES)}, perhaps compressed",
        )
    strange = [file.path for file in files if _suffix(file.path) not in SUFFIXES]
    if strange:
        raise DataError.of(
            "unknown-format",
            f"cannot tell the format of `{PurePosixPath(strange[0]).name}` from its name",
            help=f"names end in {', '.join(SUFFIXES)}",
        )
    formats = {SUFFIXES[_suffix(file.path)] for file in files}
    if len(formats) > 1:
        said = ", ".join(sorted(each.value for each in formats))
        raise DataError.of(
            "mixed-formats",
            f"`{path}` holds files of several formats: {said}",
            help="put each format in a folder of its own",
        )
    return formats.pop()
