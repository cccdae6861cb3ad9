"""The formats of matches in files, told by the files' names."""

from __future__ import annotations

from pathlib import PurePath

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def format_of_name(path: str) -> str | None:
    """The format of a file of matches; None if the path is not that of one.

    >>> format_of_name("found/m.CSV"), format_of_name("folder"), format_of_name("m.xlsx")
    ('csv', 'parquet', None)
    """
    name = PurePath(path).name
    if not name or name == "-" or "\0" in path:
        return None
    suffix = PurePath(name).suffix
    return SUFFIXES.get(suffix.lower()) if suffix else "parquet"
