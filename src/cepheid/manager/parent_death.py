"""A worker dies with its manager, whatever it is doing.

A worker that waits for a question sees its input closed. One that is inside a kernel sees nothing,
so the system is asked to kill it when its parent dies; only Linux can do that.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have this process killed when the thread that started it ends; `parent` is its process."""
    if sys.platform != "linux":
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        return  # refused by a sandbox: then as on other systems
    if os.getppid() != parent:  # it died before the system was asked
        os._exit(1)
