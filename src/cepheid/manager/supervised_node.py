"""A node that the manager looks after: when its process dies, another takes its place.

The new one starts from the snapshot of the last checkpoint and is told again what its forerunner
was told since, in the same order, so that it knows the same. Answers to what was told again are
thrown away; only the question at which the process died is answered anew.

The manager may also have had enough of waiting for it: then its process is killed, and another one
knows all that was told before the question.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cepheid.manager.attending import Attend, Interrupted, attend_nobody
from cepheid.manager.wire import Frame, Gone
from cepheid.manager.worker import Worker
from cepheid.model.errors import CepheidError, InternalError

_ATTEMPTS = 3
"""How often in a row a node may die of the same question."""

_RECENT = 32
"""Batches over which the speed of a node is measured."""

Question = Callable[[], Frame]
"""Makes a frame when it is needed: batches of events are read from the disk again."""


@dataclass(slots=True)
class NodeFacts:
    """What is known of a node from its answers."""

    needs: frozenset[str] | None = frozenset()
    live_events: int = 0
    received: int = 0
    restarts: int = 0
    sharing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    recent: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))

    @property
    def events_per_second(self) -> float | None:
        """Measured over the last batches, in the node's own time."""
        seconds = sum(spent for _, spent in self.recent)
        return sum(events for events, _ in self.recent) / seconds if seconds else None


@dataclass(slots=True)
class SupervisedNode:
    """One node; `begin` and `finish` let several work at the same time."""

    number: int
    options: Mapping[str, Any]
    attend: Attend = attend_nobody
    facts: NodeFacts = field(default_factory=NodeFacts)
    _snapshot: Callable[[], bytes] | None = None
    _told: list[Question] = field(default_factory=list)
    _worker: Worker | None = None
    _asked: Question | None = None
    _asked_at: datetime | None = None
    _plan: object = None
    _plan_of_sharing: object = None

    def start(self, snapshot: Callable[[], bytes] | None) -> None:
        """Start the process; it gets ready while the manager does other things."""
        self._snapshot = snapshot
        self._told.clear()
        self._spawn()

    @property
    def process_id(self) -> int | None:
        """The process that runs the node now."""
        return None if self._worker is None else self._worker.process_id

    @property
    def busy_since(self) -> datetime | None:
        """When it was asked what it has not answered yet."""
        is_idle = self._asked_at is None or self._worker is None or self._worker.has_answered()
        return None if is_idle else self._asked_at

    def begin(self, question: Question) -> None:
        """Ask; the answer is fetched by `finish`."""
        assert self._asked is None and self._worker is not None
        self._asked = question
        self._asked_at = datetime.now(UTC)
        with suppress(Gone):  # `finish` sees it, too, and mends it
            self._worker.send(question())

    def finish(self, *, may_interrupt: bool = False) -> Frame:
        """The answer to what was asked; an error that the node tells leaves it as it was before.

        So does an interruption, where it may be interrupted.
        """
        question = self._asked
        assert question is not None and self._worker is not None
        self._asked = None
        for attempt in range(_ATTEMPTS):
            try:
                if attempt:
                    self._revive()
                    self._worker.send(question())
                answer = self._worker.receive(may_interrupt=may_interrupt)
            except Gone:
                continue
            except (CepheidError, Interrupted):
                self.go_back()
                raise
            self._told.append(question)
            self._learn(answer)
            return answer
        raise self._dies()

    def take_back(self) -> None:
        """Let the node be as it was before the last question that it answered."""
        self._told.pop()
        self.go_back()

    def go_back(self) -> None:
        """Begin anew with what the node was told and answered."""
        for _ in range(_ATTEMPTS):
            try:
                return self._revive()
            except Gone:
                continue
        raise self._dies()

    def _dies(self) -> InternalError:
        return InternalError.of(
            "node-dies",
            f"node {self.number} died {_ATTEMPTS} times at the same work",
            help="see what it wrote to standard error; the state is kept",
        )

    def ask(self, question: Question) -> Frame:
        """Ask and wait."""
        self.begin(question)
        return self.finish()

    def take_snapshot(self) -> bytes:
        """The node's whole state."""
        return self._look("snapshot").parts[0]

    def learn_sharing(self) -> None:
        """See in `facts` what its queries share; it is asked only when that may have changed."""
        if self._plan_of_sharing != self._plan:
            self.facts.sharing = self._look("sharing").head["shares"]
            self._plan_of_sharing = self._plan

    def _look(self, what: str) -> Frame:
        """Ask for something that changes nothing, and need not be asked again."""
        answer = self.ask(partial(Frame, {"do": what}))
        self._told.pop()
        return answer

    def kept(self, snapshot: Callable[[], bytes]) -> None:
        """A snapshot taken now is on the disk: what was told before need not be told again."""
        self._snapshot = snapshot
        self._told.clear()

    def end(self) -> None:
        """End the process; one that is busy is not waited for."""
        if self._worker is not None:
            if self.busy_since is None:
                self._worker.end()
            else:
                self._worker.kill()
            self._worker = None

    def _spawn(self) -> None:
        self._asked_at = datetime.now(UTC)
        self._plan_of_sharing = None  # the new process counts its plans from the beginning
        self._worker = Worker("cepheid.manager.node_process", self.attend)
        snapshot = () if self._snapshot is None else (self._snapshot(),)
        with suppress(Gone):  # seen when it does not answer
            self._worker.send(Frame({"do": "start", "options": self.options}, snapshot))

    def started(self) -> None:
        """Wait until the process is ready."""
        assert self._worker is not None
        try:
            self._learn(self._worker.receive())
        except Gone:
            raise self._dies() from None

    def _revive(self) -> None:
        """Another process in the place of the one that died, or that stumbled half-way."""
        self.end()
        self.facts.restarts += 1
        self._spawn()
        assert self._worker is not None
        self._learn(self._worker.receive())
        for question in self._told:
            self._asked_at = datetime.now(UTC)
            self._worker.send(question())
            self._learn(self._worker.receive())

    def _learn(self, answer: Frame) -> None:
        self._asked_at = None
        head = answer.head
        if "needs" in head:
            self.facts.needs = None if head["needs"] is None else frozenset(head["needs"])
            self.facts.live_events = head["live"]
            self._plan = head["plan"]
            if head["events"]:
                self.facts.recent.append((head["events"], head["seconds"]))
