"""Guaranteed detection: time moves on when every input has moved on (SPEC A1.4, C4).

Each input, an event type or a registered source, delivers its events in order of their ends. No
event before the least of the inputs' last times can come any more, and that is the watermark: what
ends before it is stable. What ends at it is not, because an input may bring another event of the
same time. An input that is silent holds all others up, unless it sends heartbeats. With a time-out
it is waited for no longer than that, in event time, behind the latest event of any input: then
lateness is bounded as without the guarantee, and the log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.pattern import Atom, walk
from cepheid.algebra.query import Query
from cepheid.hosts.stream_front import StreamFront
from cepheid.kernels.relevance import moved_on, select_by_input
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError
from cepheid.model.options import Options

_BEGINNING = -(2**62)
_FOREVER = 2**62 + 2**61
"""A time-out that no time reaches: less this, any time is before the beginning."""

_LOG = logging.getLogger("cepheid")


class InputFront(StreamFront):
    """Keeps the last time of each input; passes on the events that are in time."""

    def __init__(self, options: Options, inputs: Sequence[str]) -> None:
        """No input has brought anything yet; a time-out is set when the unit of time is known."""
        super().__init__(options, _FOREVER)
        self.timeout = _FOREVER
        self.inputs = tuple(inputs)
        self._last = np.full(len(self.inputs), _BEGINNING, np.int64)
        self._silent = np.zeros((len(self.inputs), 2), np.int64)
        self._told = self._silent[:, 1].copy()

    def listen_to(self, inputs: Sequence[str]) -> None:
        """Wait for these inputs from now on; those that stay are as far as they were."""
        names = tuple(inputs)
        if names == self.inputs:
            return
        known = {name: number for number, name in enumerate(self.inputs)}
        last = np.full(len(names), _BEGINNING, np.int64)
        silent = np.zeros((len(names), 2), np.int64)
        for number, name in enumerate(names):
            if name in known:
                last[number] = self._last[known[name]]
                silent[number] = self._silent[known[name]]
        self.inputs, self._last, self._silent = names, last, silent
        self._told = silent[:, 1].copy()

    @property
    def last_times(self) -> dict[str, int | None]:
        """How far each input is; None for one that has brought nothing."""
        return {
            name: None if last <= _BEGINNING else int(last)
            for name, last in zip(self.inputs, self._last, strict=True)
        }

    def heartbeat(self, name: str, time: int) -> None:
        """An input says that it will bring nothing before `time` any more."""
        if name not in self.inputs:
            raise OptionError.of(
                "unknown-input",
                f"there is no input `{name}`",
                help=did_you_mean(name, self.inputs) or f"inputs: {', '.join(self.inputs)}",
            )
        number = self.inputs.index(name)
        self._last[number] = max(self._last[number], time)
        self.latest = max(self.latest, time)
        self._silent[number, 0] &= self._last[number] < self.watermark
        reached = int(moved_on(self._last, self._silent, self.latest - self.timeout))
        self.watermark = max(self.watermark, reached)
        self._tell_of_silence()

    def advance(self, watermark: int) -> None:
        """No input will bring anything before `watermark` any more."""
        np.maximum(self._last, watermark, out=self._last)
        super().advance(watermark)

    def _is_in_order(self, times: np.ndarray) -> bool:
        return False  # each input has a time of its own

    def _choose(
        self, batch: pa.RecordBatch, times: np.ndarray, kept: np.ndarray, late: np.ndarray
    ) -> tuple[int, int]:
        if not self.inputs:  # nobody reads anything: time stands still
            kept[: len(times)] = np.arange(len(times))
            return len(times), 0
        kinds = batch.column(self._options.type)
        if pa.types.is_dictionary(kinds.type):
            kinds = kinds.dictionary_decode()
        found = pc.index_in(kinds.cast(pa.string()), value_set=pa.array(self.inputs, pa.string()))
        numbers = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        count, late_count, self.latest, self.watermark = select_by_input(
            numbers,
            times,
            self._last,
            self._silent,
            self.latest,
            self.watermark,
            self.timeout,
            kept,
            late,
        )
        self._tell_of_silence()
        return count, late_count

    def _tell_of_silence(self) -> None:
        for number in np.flatnonzero(self._silent[:, 1] > self._told).tolist():
            _LOG.warning(
                "the input `%s` has been silent for longer than input_timeout: what it brings "
                "before %d is late",
                self.inputs[number],
                self.watermark,
            )
        self._told[:] = self._silent[:, 1]

    def state(self) -> dict[str, Any]:
        """What a snapshot keeps of the front."""
        return super().state() | {
            "inputs": list(self.inputs),
            "last": [int(last) for last in self._last],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().set_state(state)
        self.listen_to(state.get("inputs", self.inputs))
        self._last = np.array(state["last"], np.int64)


def refuse_heartbeat() -> OptionError:
    """The error for a heartbeat that nobody waits for."""
    return OptionError.of(
        "no-inputs",
        "without inputs there is nobody to send a heartbeat",
        help='give policy="guaranteed", or move time on with advance()',
    )


def inputs_of(stages: Sequence[Query], given: Sequence[str] | None) -> tuple[str, ...]:
    """The inputs of a program: those that were given, or the types of events that it reads."""
    atoms = [node for stage in stages for node in walk(stage.pattern) if isinstance(node, Atom)]
    derived = {stage.event_type for stage in stages[:-1]}
    read = {name for atom in atoms for name in atom.types} - derived
    if given is None:
        if not all(atom.types for atom in atoms):
            raise OptionError.of(
                "unknown-inputs",
                'policy="guaranteed" has to know the inputs: the query reads events of any type',
                help='name them, e.g. inputs=["A", "B"]',
            )
        return tuple(sorted(read))
    missing = sorted(read - set(given))
    if missing:
        raise OptionError.of(
            "missing-input",
            f"the query reads `{missing[0]}`, which is not among the inputs",
            help="name every type or source that the query reads, or leave inputs= out",
        )
    return tuple(given)
