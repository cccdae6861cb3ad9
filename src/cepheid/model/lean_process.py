"""Libraries that others look for, but that a process of our own does not use, stay out of it.

pyarrow looks for pandas at its first conversion of an array, and numba for SciPy's BLAS at its
first load of a kernel, and for a configuration in YAML. Where they are installed, each of the first
two takes longer than the whole run of a small file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_UNUSED = ("pandas", "scipy", "yaml")


class _Absent:
    """A finder for which some libraries do not exist."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in _UNUSED:
            message = f"`{name}` is left out of this process"
            raise ModuleNotFoundError(message, name=name)
        return None


def is_lean() -> bool:
    """Whether the libraries are left out."""
    return any(isinstance(each, _Absent) for each in sys.meta_path)


def leave_out_libraries() -> None:
    """Do without pandas, SciPy and YAML from now on; only in a process that is ours alone."""
    if not is_lean():
        sys.meta_path.insert(0, _Absent())
