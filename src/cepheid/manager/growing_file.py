"""A file to which matches are added, exactly once over any kill.

The journal tells how long the file is. Only the manager that holds the lock writes to it, beginning
at that length: what a killed one wrote beyond it, and did not write down, is written over.
"""

from __future__ import annotations

import os
from pathlib import Path

from cepheid.manager.durable import flush_to_disk


def length_of(path: str) -> int:
    """How long the file is; one that is not there has no length."""
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


def add_to_file(path: str, end: int, content: bytes) -> int:
    """Let the file be what it was up to `end`, and `content`; returns its length."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.ftruncate(descriptor, end)
        rest = memoryview(content)
        while rest:
            written = os.pwrite(descriptor, rest, end)
            rest, end = rest[written:], end + written
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    flush_to_disk(Path(path).parent)
    return end
