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


class Journal:
    """Records in the order in which they happened, one line of JSON each.

    A record counts when its line is on the disk. The last line of a journal whose writer was killed
    may be a piece of one: it never counted, and is cut off.
    """

    def __init__(self, path: Path) -> None:
        """Open a journal, or begin one; `records` are those it held then, `count` is kept."""
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
        self.count = len(self.records)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
        os.ftruncate(self._descriptor, whole)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        flush_to_disk(path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; it counts when this returns."""
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)
        self.count += 1

    def forget(self) -> None:
        """Let go of the records that were read: whoever needed them has seen them."""
        self.records = []

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
