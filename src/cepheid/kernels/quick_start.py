"""Loads cached kernels without first loading everything that compiling one would need.

Before numba looks into its cache it imports and registers all it knows of NumPy and of Python's
builtins. For a process that only runs kernels it compiled earlier, that is most of the waiting.
"""

from __future__ import annotations

from typing import Any

from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys


def load_cached_kernels_first() -> None:
    """From now on look for a compiled kernel first, and prepare to compile only when there is none.

    It replaces a method of numba, for the whole process: meant for a process of our own.
    """
    caches: Any = FunctionCache
    runtime: Any = rtsys
    prepare_and_load = caches.load_overload
    look_up = getattr(caches, "_load_overload", None)
    if look_up is None:  # another numba: it does without
        return

    def load_overload(cache: Any, signature: Any, target: Any) -> Any:
        runtime.initialize(target)  # machine code refers to numba's runtime
        found = look_up(cache, signature, target)
        return found if found is not None else prepare_and_load(cache, signature, target)

    caches.load_overload = load_overload
