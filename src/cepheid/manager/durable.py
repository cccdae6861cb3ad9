"""Files that survive a kill at any point, and a power cut: whole or not there, never half."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cepheid.model.errors import StateError

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def flush_to_disk(path: Path) -> None:
    """Wait until a file, or a folder's list of names, would survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; it gets its name when it is on the disk."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)
    flush_to_disk(path.parent)


SUM = "sum"
"""The record with which a journal begins anew."""


class Journal:
    """Records in the order in which they happened, one line of JSON each.

    A record counts when its line is on the disk. The last line of a journal whose writer was killed
    may be a piece of one: it never counted, and is cut off. A journal that has grown long begins
    anew with one record that tells the sum of all so far.
    """

    def __init__(self, path: Path) -> None:
        """Open a journal, or begin one; `records` are those it holds now, `count` all that were."""
        self._path = path
        self.records: list[dict[str, Any]] = []
        whole = 0
        if path.exists():
            content = path.read_bytes()
            whole = content.rfind(b"\n") + 1
            for number, line in enumerate(content[:whole].splitlines(), 1):
                try:
                    self.records.append(json.loads(line))
                except ValueError:
                    raise StateError.of(
                        "damaged-journal",
                        f"line {number} of `{path}` is not what was written there",
                        help="start with another --state folder",
                    ) from None
        self.begun_at = self._least = 0
        if self.records and self.records[0].get("op") == SUM:
            self.begun_at = int(self.records[0]["records"])
            self._least = len(_line(self.records[0]))
        self.count = self.begun_at + len(self.records) - (self.begun_at > 0)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
        os.ftruncate(self._descriptor, whole)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        self._size = whole
        flush_to_disk(path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; it counts when this returns."""
        line = _line(record)
        self._size += len(line)
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)
        self.count += 1

    def is_long(self, bound: int) -> bool:
        """Whether it has grown past so many bytes, and is worth the work of beginning anew."""
        return self._size > max(bound, 2 * self._least)

    def begin_anew(self, told: Mapping[str, Any]) -> None:
        """Let one record stand for all so far: the old file is there until the new one is whole."""
        line = _line({"op": SUM, "records": self.count, **told})
        write_whole(self._path, line)
        os.close(self._descriptor)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        self.begun_at = self.count
        self._size = self._least = len(line)

    def forget(self) -> None:
        """Let go of the records that were read: whoever needed them has seen them."""
        self.records = []

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
