"""CPU time and memory of this process and of all it started (Spark's JVM and Python workers)."""

import re
import time
from pathlib import Path

import psutil

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def process_cpu_seconds() -> float:
    """Return the CPU seconds this process has used, in all its threads."""
    return time.process_time()


def tree_cpu_seconds() -> float:
    """Return the CPU seconds used by this process and all its descendants.

    Children that ended are counted through the parent that waited for them, so that a Spark Python
    worker which was replaced between two readings is not lost.
    """
    total = time.process_time()
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:  # ended between listing and reading
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class PeakMemory:
    """Growth of this process's resident memory while the `with` block runs, in bytes.

    Linux keeps the high-water mark exactly and lets a process reset it, so no sampling is needed.
    """

    __slots__ = ("_before", "growth")

    def __enter__(self) -> "PeakMemory":
        """Reset the high-water mark."""
        _CLEAR_REFS.write_text("5")
        self._before = _status_bytes("VmRSS")
        self.growth = 0
        return self

    def __exit__(self, *_: object) -> None:
        """Read how far the mark has risen."""
        self.growth = max(0, _status_bytes("VmHWM") - self._before)


def _status_bytes(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        msg = f"/proc/self/status has no {field}: peak memory can be measured on Linux only"
        raise OSError(msg)
    return int(found.group(1)) * 1024
