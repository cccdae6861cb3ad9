"""The running state of NEXT's operators, of one query or of many, and its upkeep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepheid.kernels.compiled import load
from cepheid.kernels.instances import readmit, write_waiting
from cepheid.kernels.match_nodes import (
    END,
    MEASURES,
    NODE_WIDTH,
    close_ranks,
    keep_witnesses,
    wider,
)
from cepheid.kernels.running_totals import MEASURE_WIDTH
from cepheid.kernels.succession_control import (
    ARRAYS,
    COUNTERS,
    COUNTS,
    DONE,
    DUE,
    FAR,
    MATCHES,
    NEEDED,
    NODES,
    OF_ENDS,
    OF_FOUND,
    OF_LISTS,
    OF_NODES,
    OF_OUT,
    OF_WAITING,
    OF_WITNESSES,
    ROOM,
    ROWS,
    UPKEEP,
    WITNESSES,
)
from cepheid.kernels.succession_run import work
from cepheid.kernels.succession_shape import SuccessionShape, table
from cepheid.kernels.succession_source import condition_source
from cepheid.kernels.touches import leaves_by_atom, leaves_by_mask
from cepheid.kernels.waiting_lists import (
    ALIVE,
    FREE,
    WAITING_WIDTH,
    first_events,
    mark_waiting,
    more_lists,
    renumber,
)

_FIRST_ROWS = 256
_FIRST_LISTS = 256
_FIRST_UPKEEP = 1 << 14
_ROWS_AT_ONCE = 1 << 18
_CALLED = ("scalar", "match_nodes")


@dataclass(frozen=True, slots=True)
class Events:
    """Live events by number less `base`: facts (match_nodes) and columns of floats, a row each."""

    base: int
    facts: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True, slots=True)
class Constants:
    """What the conditions compare with, and the longest run of an iteration."""

    ints: np.ndarray
    floats: np.ndarray
    most: int


@dataclass(frozen=True, slots=True)
class Touches:
    """The atoms that events touch: atoms[starts[i] : starts[i + 1]] for the i-th of them."""

    starts: np.ndarray
    atoms: np.ndarray


@dataclass(frozen=True, slots=True)
class Instances:
    """All that waits, as rows of whole numbers (kernels.instances): what replaying cannot tell.

    `nodes` are those of match_nodes, `waiting` has [operator, node, end, deadline, length] in the
    order of their ends; `witnesses` and `heads` are those of exceptions.
    """

    nodes: np.ndarray
    waiting: np.ndarray
    witnesses: np.ndarray
    heads: np.ndarray


Deliver = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
"""Takes `ends` (one past each match's last row), rows [variable, event, totals], and the roots.

Last comes how long after its last event each match ends. They are copies of their own.
"""


class TooManyInstances(Exception):
    """More partial matches than allowed, or than there is memory for, would wait."""

    def __init__(self, instances: int) -> None:
        """So many."""
        super().__init__(f"{instances} partial matches")
        self.instances = instances


class Succession:
    """Instances of all operators of a graph, at most `most` of them."""

    def __init__(self, shape: SuccessionShape, most: int = FAR) -> None:
        """No instances yet; compiles or loads the conditions."""
        self._most = most
        self._table = table(shape)
        source = condition_source(self._table.conditions)
        self._condition: Callable[..., Any] = load(source, _CALLED).condition
        operators = len(shape.operators)
        self._leaves = _leaves_of_atoms(self._table.leaves)
        self._ints = np.zeros(0, np.int64)
        self._known: Constants | None = None
        self.counters = np.zeros(COUNTERS, np.int64)
        self._control = np.zeros(COUNTS + 3, np.int64)
        self._counts = self._control[COUNTS:]
        self._counts[FREE] = -1
        self._control[DUE] = FAR
        self._queues = np.full((len(self._table.timers), 2), -1, np.int64)
        self._spans = np.zeros((operators, 2), np.int64)
        self._heads = np.full(operators, -1, np.int64)
        self._active = np.zeros((operators >> 6) + 1, np.uint64)
        self._groups = np.zeros((operators >> 12) + 1, np.uint64)
        self._visited = np.zeros(operators, np.int64)
        measured = shape.measured
        totals = 0 if measured is None else MEASURES - NODE_WIDTH + MEASURE_WIDTH * measured
        self._nodes, self._found = _rows(NODE_WIDTH + totals), _rows(4)
        self._waiting, self._witnesses = _rows(WAITING_WIDTH), _rows(5)
        self._lists = np.full((_FIRST_LISTS, 2), -1, np.int64)
        self._out, self._out_ends = _rows(2 + totals), _rows(3)
        self._upkeep_at = _FIRST_UPKEEP

    @property
    def instances(self) -> int:
        """How many partial matches wait."""
        return int(self._counts[ALIVE])

    @property
    def next_instant(self) -> int:
        """When the next timer fires, as far as is known; FAR when none is set."""
        return int(self._control[DUE])

    def run(
        self,
        events: Events,
        order: np.ndarray,
        until: int,
        constants: Constants,
        deliver: Deliver,
        touches: Touches | None = None,
    ) -> None:
        """Work on events in the stable order, whole sets of one end; matches go to `deliver`.

        The events are all that end before `until` and are new; timers fire up to there.
        `touches` tell the atoms of each event of `order`; without it bit a of the mask stands for
        atom a.
        """
        if touches is None:
            starts, touched = leaves_by_mask(order, events.base, events.facts, *self._leaves)
        else:
            starts, touched = leaves_by_atom(touches.starts, touches.atoms, *self._leaves)
        ints = self._with_calls(constants)
        begin = 0
        while True:
            begin, status = work(
                self._condition,
                self._table.rows,
                self._table.extra,
                self._table.users,
                self._table.timers,
                order,
                starts,
                touched,
                begin,
                len(order),
                until,
                events.base,
                events.facts,
                events.numbers,
                ints,
                constants.floats,
                constants.most,
                self._upkeep_at,
                _ROWS_AT_ONCE,
                self.counters,
                self._control,
                self._spans,
                self._heads,
                self._queues,
                self._active,
                self._groups,
                self._visited,
                self._nodes,
                self._found,
                self._waiting,
                self._lists,
                self._witnesses,
                self._out,
                self._out_ends,
            )
            if status == ROOM:
                self._make_room()
                continue
            if status == UPKEEP:
                now = self.next_instant
                if begin < len(order):
                    now = min(now, int(events.facts[END, order[begin] - events.base]))
                self.upkeep(events, now)
                self._upkeep_at = max(_FIRST_UPKEEP, 2 * int(self._control[NODES]))
                continue
            matches, rows = int(self._control[MATCHES]), int(self._control[ROWS])
            if matches:
                ends, roots, delays = self._out_ends[:matches].T.copy()
                deliver(ends, self._out[:rows].copy(), roots, delays)
            self._control[MATCHES] = self._control[ROWS] = 0
            if status == DONE:
                return

    def _make_room(self) -> None:
        """Give the kernel what it stopped for.

        Simultaneous events can double the runs that wait with each set: what a set asks for is
        looked at before it is there, so that a limit is met before memory is full.
        """
        needed = self._control[NEEDED : NEEDED + ARRAYS]
        instances = int(max(needed[OF_WAITING], needed[OF_FOUND]))
        if instances > self._most:
            raise TooManyInstances(instances)
        try:
            self._widen(needed)
        except MemoryError:
            raise TooManyInstances(instances) from None
        needed[:] = 0

    def _widen(self, needed: np.ndarray) -> None:
        self._nodes = wider(self._nodes, needed[OF_NODES])
        self._found = wider(self._found, needed[OF_FOUND])
        self._waiting = wider(self._waiting, needed[OF_WAITING])
        self._witnesses = wider(self._witnesses, needed[OF_WITNESSES])
        self._out = wider(self._out, needed[OF_OUT])
        self._out_ends = wider(self._out_ends, needed[OF_ENDS])
        if needed[OF_LISTS] > len(self._lists) or self.instances > 2 * len(self._lists):
            self._lists = more_lists(self._waiting, self._lists)

    def _with_calls(self, constants: Constants) -> np.ndarray:
        """The constants behind what the conditions are told by (succession_source)."""
        if self._known is not constants:
            calls = self._table.calls.copy()
            calls[:, 1] += calls.size
            self._ints = np.append(calls.ravel(), constants.ints)
            self._known = constants
        return self._ints

    def upkeep(self, events: Events, now: int) -> int:
        """Give back what nothing can need after `now`; the earliest end of an event still held."""
        count = int(self._control[NODES])
        marks = np.zeros(count, np.bool_)
        earliest = min(
            int(
                mark_waiting(
                    self._nodes,
                    marks,
                    self._waiting,
                    lists,
                    self._counts,
                    now,
                    events.facts,
                    events.base,
                )
            )
            for lists in self._all_lists
        )
        kept = keep_witnesses(self._nodes, marks, self._witnesses, self._heads, earliest)
        self._control[WITNESSES] = kept
        numbers, self._control[NODES] = close_ranks(self._nodes, count, marks)
        for lists in self._all_lists:
            renumber(self._waiting, lists, numbers)
        self._witnesses[:kept, 0] = numbers[self._witnesses[:kept, 0]]
        return earliest

    def instances_now(self, events: Events, now: int) -> Instances:
        """Copies of all that can still matter after `now`."""
        self.upkeep(events, now)
        waiting = np.concatenate(
            [write_waiting(self._waiting, each, self.instances) for each in self._all_lists]
        )
        return Instances(
            self._nodes[: self._control[NODES]].copy(),
            waiting[np.argsort(waiting[:, 2], kind="stable")],
            self._witnesses[: self._control[WITNESSES]].copy(),
            self._heads.copy(),
        )

    def go_on_with(self, instances: Instances, events: Events, constants: Constants) -> None:
        """Wait for what these instances wait for, where nothing has happened yet."""
        self._nodes = wider(self._nodes, len(instances.nodes))
        self._nodes[: len(instances.nodes)] = instances.nodes
        self._control[NODES] = len(instances.nodes)
        self._witnesses = wider(self._witnesses, len(instances.witnesses))
        self._witnesses[: len(instances.witnesses)] = instances.witnesses
        self._control[WITNESSES] = len(instances.witnesses)
        self._heads[:] = instances.heads
        self._waiting = wider(self._waiting, len(instances.waiting))
        while len(instances.waiting) > 2 * len(self._lists):
            self._lists = more_lists(self._waiting, self._lists)
        self._control[DUE] = readmit(
            self._condition,
            self._table.rows,
            instances.waiting,
            self._nodes,
            events.base,
            events.facts,
            events.numbers,
            self._with_calls(constants),
            constants.floats,
            self._waiting,
            self._lists,
            self._queues,
            self._counts,
        )

    @property
    def nodes(self) -> int:
        """How many nodes all partial matches have; `upkeep` gives back those of the others."""
        return int(self._control[NODES])

    @property
    def _all_lists(self) -> tuple[np.ndarray, np.ndarray]:
        return self._lists, self._queues

    def first_events(self) -> np.ndarray:
        """The first event of every instance."""
        alive = int(self._counts[ALIVE])
        return np.concatenate(
            [first_events(self._nodes, self._waiting, lists, alive) for lists in self._all_lists]
        )

    @property
    def named_events(self) -> np.ndarray:
        """The events of all nodes; what `upkeep` has not given back yet is among them."""
        named: np.ndarray = self._nodes[: self._control[NODES], 2]
        return named

    def rename_events(self, names: np.ndarray, base: int) -> None:
        """Call event e names[e - base] from now on."""
        self.named_events[:] = names[self.named_events - base]


def _leaves_of_atoms(leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and members: the leaves of each atom."""
    last = int(leaves[-1, 0]) if len(leaves) else -1
    return np.searchsorted(leaves[:, 0], np.arange(last + 2)), leaves[:, 1].copy()


def _rows(width: int) -> np.ndarray:
    return np.zeros((_FIRST_ROWS, width), np.int64)
