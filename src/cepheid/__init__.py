"""cepheid finds patterns of events: in history, in live streams, and across distributed sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cepheid.session import CompiledQuery, Detector, compile, detect, scan

__version__ = "0.1.0"
__all__ = ["CompiledQuery", "Detector", "compile", "detect", "scan"]


def __getattr__(name: str) -> Any:
    """Public names are loaded on first use: importing cepheid costs nothing."""
    if name in __all__:
        from cepheid import session  # noqa: PLC0415 (loads numba; only when something is used)

        return getattr(session, name)
    message = f"module `cepheid` has no attribute `{name}`"
    raise AttributeError(message)
