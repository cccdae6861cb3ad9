"""Which host runs a query over files, and why."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from cepheid.model.errors import OptionError

HOSTS = ("process", "scan", "batch")
LARGEST_FILE_IN_PROCESS = 200 << 20


@dataclass(frozen=True, slots=True)
class HostChoice:
    """A host and the reason for it, as it is told to the user."""

    host: str
    reason: str


def choose_host(wanted: str | None, path: Path | None, size: int) -> HostChoice:
    """The host asked for; else the process for a small file, and Spark's scan for all else.

    `path` None are events by source, which a scan can't bring together: the batch host does.
    """
    if wanted is not None:
        if wanted not in HOSTS:
            raise OptionError.of(
                "unknown-host", f"there is no host `{wanted}`", help=f"hosts: {', '.join(HOSTS)}"
            )
        return HostChoice(wanted, "asked for")
    if path is None:
        what = f"sources of {size_text(size)}"
        if size < LARGEST_FILE_IN_PROCESS or importlib.util.find_spec("pyspark") is None:
            return HostChoice("process", what)
        return HostChoice("batch", what)
    if path.is_file() and size < LARGEST_FILE_IN_PROCESS:
        return HostChoice("process", f"one file of {size_text(size)}")
    what = f"a folder of {size_text(size)}" if path.is_dir() else f"a file of {size_text(size)}"
    if importlib.util.find_spec("pyspark") is None:
        return HostChoice("process", f"{what}, and pyspark is not installed")
    return HostChoice("scan", what)


def size_text(size: int) -> str:
    """Bytes in the unit that fits.

    >>> size_text(28), size_text(4_300_000)
    ('28 B', '4.3 MB')
    """
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"
