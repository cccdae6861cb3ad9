"""A quick start: libraries that others look for, but that a run in process does not use, stay out.

pyarrow looks for pandas at its first conversion of an array, and numba for SciPy's BLAS at its
first load of a kernel, and for a configuration in YAML. Where they are installed, each of the first
two takes longer than the whole run of a small file.
"""

from __future__ import annotations

import os
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


_is_own_process = False


def start_own_process() -> None:
    """Say that this process runs one command and nothing else."""
    global _is_own_process
    _is_own_process = True


def leave_out_unused_libraries() -> None:
    """Do without pandas, SciPy and numba's compiler; only in a process that is ours alone."""
    if not _is_own_process or any(isinstance(each, _Absent) for each in sys.meta_path):
        return
    sys.meta_path.insert(0, _Absent())
    from cepheid.kernels.quick_start import load_cached_kernels_first  # noqa: PLC0415 (numba)

    load_cached_kernels_first()


def leave_own_process(code: object) -> None:
    """End at once, if the lean way was taken: taking all modules apart first helps nobody.

    All files are closed by then; what stands in the standard streams is written.
    """
    if any(isinstance(each, _Absent) for each in sys.meta_path):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
