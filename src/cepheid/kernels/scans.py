"""The ways to scan and construct sequences, behind one face (SASE sections 3.2, 4.1 and 4.2)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from cepheid.kernels.multi_source import MultiShape
from cepheid.kernels.multi_stacks import MultiStacks
from cepheid.kernels.nfa_runs import NfaRuns
from cepheid.kernels.resumable import Deliver
from cepheid.kernels.sequence_shape import SequenceShape
from cepheid.kernels.stacks import Stacks


class SequenceScan(Protocol):
    """The running state of a sequence kernel, as an engine drives it."""

    counters: np.ndarray

    def admit_keys(self, count: int) -> None:
        """Room for key codes below `count`."""

    def run(self, inputs: dict[str, Any], rows: int, deliver: Deliver) -> None:
        """Feed `rows` rows in time order; `deliver(outputs, filled, listed)` gets the matches."""

    def undo(self, since: int) -> None:
        """Take back every event whose time is `since` or later."""


def start_scan(
    scan: str, shape: SequenceShape, families: tuple[tuple[int, ...], ...]
) -> SequenceScan:
    """Empty state for a plan's way to scan: "stacks", "nfa" or "multi"."""
    match scan:
        case "nfa":
            return NfaRuns(shape)
        case "multi":
            return MultiStacks(MultiShape(shape, families))
        case _:
            return Stacks(shape)
