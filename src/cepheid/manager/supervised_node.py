"""A node that the manager looks after: when its process dies, another takes its place.

The new one starts from the snapshot of the last checkpoint and is told again what its forerunner
was told since, in the same order, so that it knows the same. Answers to what was told again are
thrown away; only the question at which the process died is answered anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

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
    facts: NodeFacts = field(default_factory=NodeFacts)
    _snapshot: Callable[[], bytes] | None = None
    _told: list[Question] = field(default_factory=list)
    _worker: Worker | None = None
    _asked: Question | None = None

    def start(self, snapshot: Callable[[], bytes] | None) -> None:
        """Start the process; it gets ready while the manager does other things."""
        self._snapshot = snapshot
        self._told.clear()
        self._spawn()

    @property
    def process_id(self) -> int | None:
        """The process that runs the node now."""
        return None if self._worker is None else self._worker.process_id

    def begin(self, question: Question) -> None:
        """Ask; the answer is fetched by `finish`."""
        assert self._asked is None and self._worker is not None
        self._asked = question
        with suppress(Gone):  # `finish` sees it, too, and mends it
            self._worker.send(question())

    def finish(self) -> Frame:
        """The answer to what was asked; an error that the node tells leaves it as it was before."""
        question = self._asked
        assert question is not None and self._worker is not None
        self._asked = None
        for attempt in range(_ATTEMPTS):
            try:
                if attempt:
                    self._revive()
                    self._worker.send(question())
                answer = self._worker.receive()
            except Gone:
                continue
            except CepheidError:
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
        self.begin(lambda: Frame({"do": "snapshot"}))
        answer = self.finish()
        self._told.pop()  # it changes nothing
        return answer.parts[0]

    def kept(self, snapshot: Callable[[], bytes]) -> None:
        """A snapshot taken now is on the disk: what was told before need not be told again."""
        self._snapshot = snapshot
        self._told.clear()

    def end(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _spawn(self) -> None:
        self._worker = Worker("cepheid.manager.node_process")
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
            self._worker.send(question())
            self._learn(self._worker.receive())

    def _learn(self, answer: Frame) -> None:
        head = answer.head
        if "needs" in head:
            self.facts.needs = None if head["needs"] is None else frozenset(head["needs"])
            self.facts.live_events = head["live"]
            if head["events"]:
                self.facts.recent.append((head["events"], head["seconds"]))
