"""The negation operator on top of construction: which candidates have a witness against them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cepheid.hosts.event_columns import EventColumns
from cepheid.hosts.match_columns import holds_for
from cepheid.hosts.store import LiveColumns, View
from cepheid.kernels.compiled import function
from cepheid.kernels.witness_source import probe_source
from cepheid.kernels.witnesses import Witnesses
from cepheid.planner.sequence_layout import Layout, Probe
from cepheid.planner.sequence_plan import Negation, Place

_FAR = 2**62
_PAIRS = 1 << 16


class NegationProbes:
    """Witnesses of all probed negations of a query, and the verdicts over candidates."""

    def __init__(self, layout: Layout, columns: EventColumns, live: LiveColumns) -> None:
        """Nothing seen yet; `live` holds the events' kernel columns."""
        self._layout = layout
        self._columns = columns
        self._live = live
        self._witnesses = [Witnesses(keyed=p.key_group is not None) for p in layout.probes]
        self._functions = [function(probe_source(p.shape), "probe") for p in layout.probes]
        self.at_end = [p for p in layout.probes if p.negation.place is Place.END]

    def note_witnesses(self, inputs: dict[str, Any]) -> None:
        """Remember the negated components' events of a run, in processing order."""
        for probe, witnesses in zip(self._layout.probes, self._witnesses, strict=True):
            mine = np.flatnonzero((inputs["mask"] >> probe.bit) & 1)
            if len(mine):
                group = probe.key_group
                codes = None if group is None else inputs[f"k{group}"][mine]
                witnesses.append(inputs["t"][mine], inputs["row"][mine], codes)

    def drop_until(self, time: int) -> None:
        """Forget witnesses that no candidate can reach any more."""
        for witnesses in self._witnesses:
            witnesses.drop_until(time)

    def survivors(self, rows: np.ndarray, view: View) -> np.ndarray:
        """Candidates without a witness in the middle or at the start."""
        return self._without_witness(rows, view, at_end=False)

    def survivors_at_end(self, rows: np.ndarray, view: View) -> np.ndarray:
        """Candidates whose deadline has passed without a witness."""
        return self._without_witness(rows, view, at_end=True)

    def is_due(self, rows: np.ndarray, watermark: int) -> np.ndarray:
        """Which candidates no event can revoke any more."""
        due: np.ndarray = self.due_times(rows) <= watermark
        return due

    def due_times(self, rows: np.ndarray) -> np.ndarray:
        """The watermark from which on no event can revoke a candidate."""
        start = self._live.take("t", rows[:, 0])
        due = np.full(len(rows), -_FAR, np.int64)
        for probe in self.at_end:
            edge = probe.negation.reach + (1 if probe.negation.closed else 0)
            due = np.maximum(due, start + edge)
        return due

    def _without_witness(self, rows: np.ndarray, view: View, *, at_end: bool) -> np.ndarray:
        for i, probe in enumerate(self._layout.probes):
            if (probe.negation.place is Place.END) is not at_end or not len(rows):
                continue
            dead = np.zeros(len(rows), np.uint8)
            self._judge(i, probe, rows, view, dead)
            rows = rows[dead == 0]
        return rows

    def _judge(self, i: int, probe: Probe, rows: np.ndarray, view: View, dead: np.ndarray) -> None:
        witnesses, live = self._witnesses[i], self._live
        values: dict[str, Any] = dict(
            zip(
                ("low_t", "low_r", "high_t", "high_r"),
                self._interval(probe.negation, rows),
                strict=True,
            )
        )
        # A kernel is compiled for arrays that lie in one piece, or for others; so do these always.
        values["low_r"], values["high_r"] = map(
            np.ascontiguousarray, (values["low_r"], values["high_r"])
        )
        values |= {"dead": dead, "count": len(rows), "base": live.base, "size": witnesses.size}
        values |= {"wt": witnesses.times, "wrow": witnesses.rows, "prev": witnesses.prev}
        values |= {"heads": witnesses.heads, "ci": self._columns.ints, "cf": self._columns.floats}
        group = probe.key_group
        values["codes"] = np.zeros(0, np.int64) if group is None else self._codes(probe, rows)
        for v, c in probe.shape.candidate_columns:
            values[f"x{v}_{c}"] = live.take(f"c{c}", rows[:, v])
        for c in probe.shape.witness_columns:
            values[f"c{c}"] = live.slice(f"c{c}", live.base, live.end)
        if not probe.shape.listing:
            values["begin"] = 0
            self._functions[i](*[values[name] for name in probe.shape.arguments()])
            return
        self._judge_pairs(i, probe, rows, view, dead, values)

    def _judge_pairs(
        self,
        i: int,
        probe: Probe,
        rows: np.ndarray,
        view: View,
        dead: np.ndarray,
        values: dict[str, Any],
    ) -> None:
        begin, room = 0, _PAIRS
        while begin < len(rows):
            values["begin"] = begin
            values["pair_candidate"] = np.empty(room, np.int64)
            values["pair_witness"] = np.empty(room, np.int64)
            done, pairs = self._functions[i](*[values[n] for n in probe.shape.arguments()])
            if done == begin:
                room *= 2
                continue
            begin = done
            candidate = values["pair_candidate"][:pairs]
            witness = values["pair_witness"][:pairs]
            holds = holds_for(
                probe.pair_tests,
                self._layout.plan,
                view,
                self._columns.options,
                partial(self._bound_rows, probe.negation.variable, rows, candidate, witness),
                pairs,
            )
            dead[candidate[holds]] = 1

    def _bound_rows(
        self,
        negated: str,
        rows: np.ndarray,
        candidate: np.ndarray,
        witness: np.ndarray,
        variable: str,
    ) -> np.ndarray:
        if variable == negated:
            return witness
        bound: np.ndarray = rows[candidate, self._layout.plan.index(variable)]
        return bound

    def _codes(self, probe: Probe, rows: np.ndarray) -> np.ndarray:
        """Key codes of candidates: all their events share the key, so the first one's will do."""
        group = self._layout.shape.key_groups[0]
        return self._live.take(f"k{group}", rows[:, 0])

    def _interval(
        self, negation: Negation, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The guarded interval as (time, row) pairs; a row at infinity compares times only."""
        by_arrival = self._layout.plan.arrival_order
        count = len(rows)

        def far(value: int) -> np.ndarray:
            return np.full(count, value, np.int64)

        first_t = self._live.take("t", rows[:, 0])
        last_t = self._live.take("t", rows[:, -1])
        match negation.place:
            case Place.MIDDLE:
                before, after = rows[:, negation.after], rows[:, negation.after + 1]
                return (
                    self._live.take("t", before),
                    before if by_arrival else far(_FAR),
                    self._live.take("t", after),
                    after if by_arrival else far(-1),
                )
            case Place.START:
                first = rows[:, 0] if by_arrival else far(-1)
                return last_t - negation.reach, far(_FAR), first_t, first
            case Place.END:
                last = rows[:, -1] if by_arrival else far(_FAR)
                edge = far(_FAR if negation.closed else -1)
                return last_t, last, first_t + negation.reach, edge
