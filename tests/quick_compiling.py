"""Lets numba remember which operation on which types means what.

Compiling kernels takes more than half of the processor time of all tests, and numba spends a third
of that on one question: it resolves every `+` between two integers by going through all overloads
of `+` there are. The answer depends on the types alone, so it is kept. Nothing else is changed: the
machine code is the same.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

_PLAIN = (types.Number, types.Boolean, types.IntegerLiteral, types.BooleanLiteral, types.Array)
_resolve = types.BaseFunction.get_call_type


def _resolve_once(self: Any, context: Any, args: Any, kws: Any) -> Any:
    if kws or not all(isinstance(arg, _PLAIN) for arg in args):
        return _resolve(self, context, args, kws)
    known = self.__dict__.setdefault("_resolved", {})
    signature = known.get((context, args))
    if signature is None:
        signature = known[context, args] = _resolve(self, context, args, kws)
    return signature


def remember_operations() -> None:
    """For the rest of this process."""
    types.BaseFunction.get_call_type = _resolve_once
