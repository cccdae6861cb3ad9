"""A manager at work: one thread that does, in turn, what clients ask for and what events bring."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pyarrow as pa

from cepheid.manager.event_folder import EventFolder, FoundFile, Read, ReadAnew, fitting
from cepheid.manager.manager import Manager
from cepheid.manager.tables import list_of, nodes_of, queries_of, submitted
from cepheid.model.errors import CepheidError, DataError, EnvironmentProblem, OptionError

_PAUSE = 0.1
"""Seconds between two looks at the folder."""

Request = Mapping[str, Any]


class Serving:
    """The loop of a manager; `ask` may be called from other threads."""

    def __init__(
        self, manager: Manager, folder: EventFolder, read: Read, tell: Callable[[str], None]
    ) -> None:
        """`tell` shows a line to the person who started the manager."""
        self._manager = manager
        self._folder = folder
        self._read = read
        self._tell = tell
        self._requests: queue.Queue[tuple[Request, Future[Any]]] = queue.Queue(maxsize=1000)
        self._is_ending = False

    def ask(self, request: Request, patience: float) -> Any:
        """Have a request done between two batches; raises what is wrong with it."""
        answer: Future[Any] = Future()
        self._requests.put((request, answer), timeout=patience)
        try:
            return answer.result(timeout=patience)
        except TimeoutError:
            if answer.cancel():  # so that it is not done after all when nobody waits for it
                raise
            return answer.result(timeout=patience)

    def end(self) -> None:
        """Let the loop end after the batch that is under way."""
        self._is_ending = True

    def run(self) -> None:
        """Work until `end`; then keep the state."""
        manager = self._manager
        if manager.has_waiting:
            # It may have been under way when the last manager was killed: it is done again before
            # queries come or go, so that it leaves the same files.
            self._do_batch()
        while not self._is_ending:
            self._answer_all(wait=not manager.has_waiting)
            if manager.has_waiting:
                self._do_batch()
            else:
                self._look_for_file()
        while not self._requests.empty():
            _, answer = self._requests.get_nowait()
            answer.set_exception(EnvironmentProblem.of("manager-ends", "the manager ends"))
        if manager.has_news:
            manager.checkpoint()

    def _answer_all(self, *, wait: bool) -> None:
        with suppress(queue.Empty):
            request, answer = self._requests.get(block=wait, timeout=_PAUSE)
            while True:
                self._answer(request, answer)
                request, answer = self._requests.get_nowait()

    def _answer(self, request: Request, answer: Future[Any]) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(self._done(request))
        except Exception as problem:  # whoever asked is told
            answer.set_exception(problem)

    def _done(self, request: Request) -> Any:
        manager = self._manager
        match request:
            case {"do": "submit", "text": str(text), **rest}:
                options = {name: rest[name] for name in _SUBMIT if rest.get(name) is not None}
                return submitted(*manager.submit(text, **options))
            case {"do": "pause" | "resume" | "stop" as do, "name": str(name), **rest}:
                change = {"pause": manager.pause, "resume": manager.resume, "stop": manager.remove}
                change[do](name, rest.get("at"))
                left = manager.entries.by_name.get(name)
                return {"name": name, "state": "stopped" if left is None else left.state}
            case {"do": "list"}:
                return list_of(manager)
            case {"do": "queries"}:
                return queries_of(manager)
            case {"do": "nodes"}:
                return nodes_of(manager)
            case {"do": "end"}:
                self.end()
                return {"state": "ends", "waiting": manager.waiting}
            case _:
                raise OptionError.of("unknown-request", "the manager does not know this request")

    def _do_batch(self) -> None:
        try:
            self._manager.do_batch()
        except CepheidError as problem:
            if self._manager.trouble is None:
                raise  # matches cannot be delivered: a new start does the batch again
            self._tell(f"{problem}")
            self._tell("note: events wait until a query is stopped or paused")
            return
        if self._manager.wants_checkpoint:
            self._manager.checkpoint()

    def _look_for_file(self) -> None:
        manager = self._manager
        if manager.trouble is not None or not manager.placement.placed_ever:
            return  # without any query so far, events wait for the first one
        found = self._folder.next_file(manager.files)
        if found is None:
            return
        facts = {"size": found.size, "changed": found.changed_ns}
        try:
            try:
                manager.take_file(found.path.name, facts, self._batches(found, whole=False))
            except ReadAnew:
                manager.take_file(found.path.name, facts, self._batches(found, whole=True))
        except CepheidError as problem:
            self._tell(f"note: `{found.path.name}` is left out\n{problem}")
            manager.refuse_file(found.path.name, facts, problem)

    def _batches(self, found: FoundFile, *, whole: bool) -> Iterator[pa.RecordBatch]:
        known = self._manager.schema
        try:
            batches = self._read(found.path, known, whole=whole)
            yield from fitting(self._checked(batches, found), known)
        except OSError as problem:
            raise DataError.of("unreadable-events", f"`{found.path}`: {problem}") from None

    def _checked(
        self, batches: Iterator[pa.RecordBatch], found: FoundFile
    ) -> Iterator[pa.RecordBatch]:
        known = self._manager.schema
        is_first = True
        for batch in batches:
            self._manager.check_columns(batch.schema)
            new = [] if known is None else [n for n in batch.schema.names if n not in known.names]
            if new and is_first:
                columns = ", ".join(new)
                self._tell(f"note: `{found.path.name}` has new columns, left out: {columns}")
            is_first = False
            yield batch


_SUBMIT = ("name", "at", "language", "query", "source", "folder")
