"""A quick start: libraries that others look for, but that a run in process does not use, stay out.

pyarrow looks for pandas at its first conversion of an array, and numba for SciPy's BLAS at its
first load of a kernel. Where they are installed, each of the two takes longer than the whole run of
a small file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_UNUSED = ("pandas", "scipy")


class _Absent:
    """A finder for which some libraries do not exist."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in _UNUSED:
            message = f"`{name}` is left out of this process"
            raise ModuleNotFoundError(message, name=name)
        return None


_is_own_process = False


def start_own_process() -> None:
    """Say that this process runs one command and nothing else."""
    global _is_own_process
    _is_own_process = True


def leave_out_unused_libraries() -> None:
    """Do without pandas and SciPy; nothing happens in a process that others use, too."""
    if _is_own_process and not any(isinstance(each, _Absent) for each in sys.meta_path):
        sys.meta_path.insert(0, _Absent())
