"""A progress bar for a person who waits; nothing for a script."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Any, Self

_PATIENCE = 0.8  # seconds until a bar appears


class ProgressBar:
    """Shows how far work has come, on a terminal and only when it takes a while."""

    def __init__(self, title: str, total: int) -> None:
        """`total` in the unit of `update`, usually bytes."""
        self._title = title
        self._total = total
        self._begin = monotonic()
        self._is_wanted = sys.stderr.isatty() and total > 0
        self._bar: Any = None
        self._task: Any = None

    def update(self, done: int, note: str = "") -> None:
        """Say how much is done."""
        if not self._is_wanted or monotonic() - self._begin < _PATIENCE:
            return
        if self._bar is None:
            self._start()
        self._bar.update(self._task, completed=min(done, self._total), note=note)

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415 (a run that is quick never shows it)
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._title, total=self._total, note="")
        self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
