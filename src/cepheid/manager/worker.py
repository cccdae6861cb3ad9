"""A worker process as the manager sees it: asked by frames, and seen to die."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

from cepheid.manager.wire import Frame, error_from_json, read_frame, write_frame

_PATIENCE = 5.0
"""Seconds in which a worker whose input is closed should end."""


class Worker:
    """A process `python -m <module>` that answers frames."""

    def __init__(self, module: str) -> None:
        """Start it; it is ready when it answers."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            bufsize=1 << 16,
        )

    @property
    def process_id(self) -> int:
        """The process, as the system numbers it."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def send(self, frame: Frame) -> None:
        """Ask without waiting; `Gone` if the process has died."""
        assert self._process.stdin is not None
        write_frame(self._process.stdin, frame)

    def receive(self) -> Frame:
        """The answer to the oldest question; errors that the worker tells are raised."""
        assert self._process.stdout is not None
        reply = read_frame(self._process.stdout)
        if "error" in reply.head:
            raise error_from_json(reply.head["error"])
        return reply

    def end(self) -> None:
        """Close its input and wait; a worker that does not go is killed."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what it was still to be told does not matter any more
                    stream.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
