"""The machine, the versions and the commit a measurement belongs to."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

PACKAGES = ("cepheid", "numpy", "numba", "pyarrow", "pyspark", "pandas", "duckdb", "polars")
TREE = Path(__file__).resolve().parent.parent


def machine_record() -> dict[str, object]:
    """Return what a reader needs to judge whether two results can be compared."""
    return {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "cpu": _cpu_model(),
        "load_average": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": _java_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "commit": _git("rev-parse", "HEAD"),
        "changed_files": len((_git("status", "--porcelain") or "").splitlines()),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    return _output(["git", "-C", str(TREE), *arguments])


def _java_version() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    text = _output([java, "-version"])
    return text.splitlines()[0] if text else None


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stdout or done.stderr).strip()
