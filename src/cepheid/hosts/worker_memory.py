"""What a Python worker of Spark has loaded is not collected, so it need not be looked at."""

from __future__ import annotations

import gc
from functools import cache


@cache
def leave_modules_alone() -> None:
    """Once per process, as a task begins: later collections pass over what is there by now.

    Spark's workers collect after every task. Going through the modules of an engine takes 80
    milliseconds each time, as long as many a task of a stream.
    """
    gc.freeze()
