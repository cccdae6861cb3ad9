"""The loop of a worker process: it answers frames on standard input until that is closed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from cepheid.manager.wire import Frame, Gone, error_as_json, read_frame, write_frame
from cepheid.model.errors import CepheidError, EnvironmentProblem, InternalError


def answer_frames(answer: Callable[[Frame], Frame]) -> NoReturn:
    """Answer one frame after the other; what goes wrong is told to the manager.

    It does not return: taking all modules apart first helps nobody. Standard output is for frames
    alone: whatever else is printed goes to standard error. An interrupt from the terminal is the
    manager's affair, which ends its workers itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        try:
            frame = read_frame(requests)
        except Gone:
            break
        try:
            reply = answer(frame)
        except CepheidError as problem:
            reply = Frame({"error": error_as_json(problem)})
        except OSError as problem:
            told = EnvironmentProblem.of("worker", f"{problem.strerror}: {problem.filename}")
            reply = Frame({"error": error_as_json(told)})
        except Exception as problem:  # the manager decides what becomes of it
            ours = InternalError.of("worker", f"{type(problem).__name__}: {problem}")
            reply = Frame({"error": error_as_json(ours)})
        try:
            write_frame(replies, reply)
        except Gone:
            break
    sys.stderr.flush()
    os._exit(0)
