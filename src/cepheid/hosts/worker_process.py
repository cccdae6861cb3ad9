"""What a Python worker of Spark does once, as its first task begins."""

from __future__ import annotations

import gc
from functools import cache


@cache
def leave_modules_alone() -> None:
    """Let later collections pass over what is loaded by now: it will not be collected.

    Spark's workers collect after every task. Going through the modules of an engine takes 80
    milliseconds each time, as long as many a task of a stream.
    """
    gc.freeze()


@cache
def prepare_for_engines() -> None:
    """The same, and compile what has to be compiled in less time."""
    from cepheid.kernels.quick_start import compile_quickly  # noqa: PLC0415 (loads numba)

    leave_modules_alone()
    compile_quickly()
