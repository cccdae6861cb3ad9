"""A manager at work: one thread that does, in turn, what clients ask for and what events bring.

Nodes may be busy with a batch for long. Clients who only look are answered meanwhile, from what the
manager knows; those who change something wait until the batch is done. If they pause or stop a
query the batch is broken off for it, and begun anew afterwards. Whoever waits too long is told why.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cepheid.manager.attending import Ending, Interrupted
from cepheid.manager.event_folder import EventFolder, FoundFile, Read, ReadAnew, fitting
from cepheid.manager.manager import Manager
from cepheid.manager.tables import busy_of, list_of, nodes_of, queries_of, submitted
from cepheid.model.errors import CepheidError, DataError, EnvironmentProblem, OptionError

_PAUSE = 0.1
"""Seconds between two looks at the folder."""

_GRACE = 2.0
"""Seconds that a batch under way is given before it is broken off for an order."""
_PATIENCE = 10.0
"""Seconds that an order waits for nodes that are busy."""

_CHANGES = ("pause", "resume", "stop")
_SUBMIT = ("name", "at", "language", "query", "source", "folder")

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Order:
    """A request, who waits for its answer, and since when."""

    request: Request
    answer: Future[Any]
    since: float = field(default_factory=time.monotonic)

    def waits_long(self, now: float) -> bool:
        """Whether it is better to tell who waits than to let them wait on."""
        return now - self.since > _PATIENCE

    def refuse(self, problem: CepheidError) -> None:
        """Tell why it is not done, unless nobody waits any more."""
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(problem)


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
        self._requests: queue.Queue[_Order] = queue.Queue(maxsize=1000)
        self._orders: deque[_Order] = deque()
        self._ending_since: float | None = None
        self._has_ended = False
        self._is_attending = False
        self._is_interrupted = False
        self._folders_problem: str | None = None
        manager.attend = self._attend

    def ask(self, request: Request, patience: float) -> Any:
        """Have a request done; raises what is wrong with it."""
        answer: Future[Any] = Future()
        self._requests.put(_Order(request, answer), timeout=patience)
        if self._has_ended:
            raise _ends()
        try:
            return answer.result(timeout=patience)
        except TimeoutError:
            if answer.cancel():  # so that it is not done after all when nobody waits for it
                raise
            return answer.result(timeout=patience)

    def end(self) -> None:
        """Let the loop end; a batch under way is given a little time."""
        self._ending_since = time.monotonic()

    def run(self) -> None:
        """Work until `end`; then keep the state."""
        try:
            # What was under way when it ended is done by the next manager, as after a kill.
            with suppress(Ending):
                self._work()
        finally:
            self._has_ended = True
            self._refuse_all()

    def _work(self) -> None:
        manager = self._manager
        manager.recover()
        if manager.has_waiting:
            # It may have been under way when the last manager was killed: it is done again before
            # queries come or go, so that it leaves the same files.
            self._do_batch()
        while self._ending_since is None:
            self._answer_all(wait=not manager.has_waiting)
            if manager.has_waiting:
                self._do_batch()
            else:
                self._look_for_file()
        if manager.has_news:
            self.end()  # a checkpoint is given its own time
            manager.checkpoint()

    # -- requests ---------------------------------------------------------------------------------

    def _answer_all(self, *, wait: bool) -> None:
        if wait and not self._orders:
            with suppress(queue.Empty):
                self._sort(self._requests.get(timeout=_PAUSE))
        self._sort_requests()
        while self._orders and self._ending_since is None:
            self._answer(self._orders.popleft())

    def _attend(self, *, may_interrupt: bool) -> None:
        """While nodes are busy: answer those who look, and see whether somebody waits too long."""
        before, self._is_attending = self._is_attending, True
        try:
            self._sort_requests()
        finally:
            self._is_attending = before
        now = time.monotonic()
        if self._ending_since is not None and now - self._ending_since > _GRACE:
            raise Ending
        if may_interrupt and any(self._interrupts(each, now) for each in self._orders):
            self._is_interrupted = True
            raise Interrupted
        while not self._is_interrupted and self._orders and self._orders[0].waits_long(now):
            self._orders.popleft().refuse(self._busy())

    def _interrupts(self, order: _Order, now: float) -> bool:
        """Whether a batch is broken off for an order: it takes work from a node."""
        states = {"pause": ("running",), "stop": ("running", "paused", "ending")}
        is_less_work = self._state_of(order.request) in states.get(order.request["do"], ())
        return is_less_work and not order.answer.cancelled() and now - order.since > _GRACE

    def _state_of(self, request: Request) -> str | None:
        """The state of the query that an order names, if there is one."""
        name, entries = request.get("name"), self._manager.entries
        if not isinstance(name, str):
            return None
        entry = entries.by_name.get(name)
        if entry is not None:
            return entry.state
        return "ending" if entries.is_ending(name) else None

    def _sort_requests(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._sort(self._requests.get_nowait())

    def _sort(self, order: _Order) -> None:
        """Answer at once what needs no node; the rest waits until the nodes are free."""
        do = order.request.get("do")
        if do == "submit" or (do in _CHANGES and self._state_of(order.request) is not None):
            self._orders.append(order)
        else:
            self._answer(order)

    def _answer(self, order: _Order) -> None:
        if not order.answer.set_running_or_notify_cancel():
            return
        try:
            order.answer.set_result(self._done(order.request))
        except Ending:
            order.answer.set_exception(_ends())
            raise
        except Exception as problem:  # whoever asked is told
            order.answer.set_exception(problem)

    def _refuse_all(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._orders.append(self._requests.get_nowait())
        while self._orders:
            self._orders.popleft().refuse(_ends())

    def _busy(self) -> EnvironmentProblem:
        busy = busy_of(self._manager)
        told = [f"node {each['node']} has been busy for {each['seconds']:,.0f} s" for each in busy]
        names = [name for each in busy for name in each["queries"]]
        return EnvironmentProblem.of(
            "nodes-busy",
            f"{', '.join(told) or 'the nodes are busy'}: nothing has been changed",
            help="ask again; or pause or stop one of its queries: " + ", ".join(names)
            if names and not self._manager.to_do_again
            else "ask again later",
        )

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
                if not self._is_attending:
                    manager.learn_sharing()
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

    # -- events -----------------------------------------------------------------------------------

    def _do_batch(self) -> None:
        try:
            self._manager.do_batch()
        except Interrupted:
            self._is_interrupted = False  # the nodes are as before the batch: orders come now
            self._tell(
                "note: the batch under way is begun anew, after a query is paused or stopped"
            )
            return
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
        self._look_back()
        if found is None:
            return
        facts = {"size": found.size, "changed": found.changed_ns}
        try:
            try:
                manager.take_file(found.path.name, facts, self._batches(found, whole=False))
            except ReadAnew:
                manager.take_file(found.path.name, facts, self._batches(found, whole=True))
        except CepheidError as problem:
            if not found.path.exists():
                return  # taken away again, alone or with its folder
            self._tell(f"note: `{found.path.name}` is left out\n{problem}")
            manager.refuse_file(found.path.name, facts, problem)

    def _look_back(self) -> None:
        """Tell, once each, of files that have changed since, and of a folder that is not there."""
        manager, folder = self._manager, self._folder
        for name in folder.changed_since(manager.files):
            if manager.files[name]["op"] == "file" and name not in manager.changed_files:
                manager.changed_files.add(name)
                self._tell(
                    f"note: `{name}` has changed since it was taken, and is not read again; "
                    "new events belong in a new file"
                )
        if folder.problem != self._folders_problem:
            self._folders_problem = folder.problem
            why = "can be read again" if folder.problem is None else f"is away: {folder.problem}"
            self._tell(f"note: the folder of events, `{folder.path}`, {why}")

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
            self._attend(may_interrupt=False)  # a file may be long
            yield batch


def _ends() -> EnvironmentProblem:
    return EnvironmentProblem.of("manager-ends", "the manager ends")
