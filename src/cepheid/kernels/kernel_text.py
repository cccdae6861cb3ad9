"""Builds the text of a generated kernel line by line, keeping track of its indentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cepheid.kernels.machine_code import OPTIONS

DECORATOR = f"@numba.njit({', '.join(f'{name}={value}' for name, value in OPTIONS.items())})"
"""How a generated kernel is compiled: as `machine_code.compiled` functions are."""


class KernelText:
    """The body of one kernel function under construction."""

    def __init__(self) -> None:
        """An empty body."""
        self._lines: list[str] = []
        self._depth = 1

    def __call__(self, line: str) -> None:
        """Add a line at the present depth."""
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def under(self, line: str) -> Iterator[None]:
        """Add a line that opens a block; what is added inside belongs to it."""
        self(line)
        self._depth += 1
        yield
        self._depth -= 1

    def open(self, line: str) -> None:
        """Add a line that opens a block which lasts until `close_to`."""
        self(line)
        self._depth += 1

    @property
    def depth(self) -> int:
        """How deep the next line lies."""
        return self._depth

    def close_to(self, depth: int) -> None:
        """Leave all blocks opened since the depth was this."""
        self._depth = depth

    def function(self, name: str, arguments: Sequence[str]) -> str:
        """The module's text: the body as one compiled function."""
        head = f"{DECORATOR}\ndef {name}({', '.join(arguments)}):\n"
        return head + "\n".join(self._lines) + "\n"
