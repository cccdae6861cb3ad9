"""How the functions of this folder are compiled: once, kept on disk, running without Python's lock.

numba would also compile an entry for C and, in every function, code that counts references to its
arrays. Nothing here is called from C, and functions that make no array need no counts: without
both, compiling takes a fifth less time, and a call less work.

Arrays are copied cell by cell: for `a[:n] = b` numba compiles the message about shapes that do not
fit, which takes seconds.
"""

from __future__ import annotations

from typing import Any

import numba

_njit: Any = numba.njit  # its type hints do not know these options

OPTIONS = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "_nrt": False}
"""Of `compiled` functions, and of kernels that are generated."""

compiled = _njit(**OPTIONS)
"""For a function that makes no array; numba refuses one that does."""


def compiled_for(signature: Any) -> Any:
    """The same for a function whose types are known, of which one may be a function's."""
    return _njit(signature, **OPTIONS)


allocating = _njit(cache=True, nogil=True, no_cfunc_wrapper=True)
"""For a function that makes arrays, or calls one that does."""

inlined_early = _njit(cache=True, nogil=True, inline="always")
"""For a few lines that numba puts into their callers before it looks at types."""

inlined_late = _njit(forceinline=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)
"""For steps of generated kernels, which LLVM puts into them; they divide as NumPy does."""
