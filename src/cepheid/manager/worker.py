"""A worker process as the manager sees it: asked by frames, and seen to die."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import wait

from cepheid.manager.attending import Attend, attend_nobody
from cepheid.manager.wire import Frame, error_from_json, read_frame, write_frame

_PATIENCE = 5.0
"""Seconds in which a worker whose input is closed should end."""
_GLANCE = 0.05
"""Seconds between two looks at what else there is to do while a worker is busy."""


class Worker:
    """A process `python -m <module>` that answers frames, one at a time."""

    def __init__(self, module: str, attend: Attend = attend_nobody) -> None:
        """Start it; it is ready when it answers. `attend` is called while it is waited for."""
        self._attend = attend
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            bufsize=1 << 16,
        )

    @property
    def process_id(self) -> int:
        """The process, as the system numbers it."""
        return self._process.pid

    def send(self, frame: Frame) -> None:
        """Ask without waiting; `Gone` if the process has died."""
        assert self._process.stdin is not None
        write_frame(self._process.stdin, frame)

    def has_answered(self, patience: float = 0.0) -> bool:
        """Whether an answer has come, or the process has died: `receive` would not wait."""
        # Nothing is left over in the buffer: the next question is sent after the answer was read.
        assert self._process.stdout is not None
        return bool(wait([self._process.stdout.fileno()], patience))

    def receive(self, *, may_interrupt: bool = False) -> Frame:
        """The answer to the question; errors that the worker tells are raised.

        `may_interrupt` is handed on to `attend`, and what that raises comes out here.
        """
        while not self.has_answered(_GLANCE):
            self._attend(may_interrupt=may_interrupt)
        assert self._process.stdout is not None
        reply = read_frame(self._process.stdout)
        if "error" in reply.head:
            raise error_from_json(reply.head["error"])
        return reply

    def end(self) -> None:
        """Close its input and wait; a worker that does not go is killed."""
        self._close_pipes()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it without waiting for what it is at."""
        self._process.kill()
        self._close_pipes()
        self._process.wait()

    def _close_pipes(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what it was still to be told does not matter any more
                    stream.close()
