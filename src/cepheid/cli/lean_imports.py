"""A quick start for a process that runs one command: what the command does not use stays out."""

from __future__ import annotations

import os
import sys

from cepheid.model.lean_process import is_lean, leave_out_libraries

_is_own_process = False


def start_own_process() -> None:
    """Say that this process runs one command and nothing else."""
    global _is_own_process
    _is_own_process = True


def leave_out_unused_libraries() -> None:
    """Do without pandas, SciPy and numba's compiler; only in a process that is ours alone."""
    if not _is_own_process or is_lean():
        return
    leave_out_libraries()
    from cepheid.kernels.quick_start import start_quickly  # noqa: PLC0415 (numba)

    start_quickly()


def leave_own_process(code: object) -> None:
    """End at once, if the lean way was taken: taking all modules apart first helps nobody.

    All files are closed by then; what stands in the standard streams is written.
    """
    if is_lean():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
