"""Runs a query of successors whose iterations are kept as running totals (docs/decisions/0015).

It is the engine of successors with two differences. A run is one node with totals, which names its
last event and no other. And an event is let go as soon as no node names it, so live events do not
tell the instances any more: these are kept beside them, as rows (`instance_rows`), when the state
is written down or the query is laid out anew.
"""

from __future__ import annotations

import numpy as np

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.event_identity import event_contents, event_lanes
from cepheid.hosts.instance_rows import InstanceRows, plan_digest
from cepheid.hosts.live_engine import LiveEngine
from cepheid.hosts.live_facts import LiveFacts
from cepheid.hosts.matches import Piece
from cepheid.hosts.store import View
from cepheid.hosts.succession_engine import LiveSuccessions
from cepheid.kernels.match_nodes import FACTS
from cepheid.planner.chains import Chains
from cepheid.planner.run_totals import RunTotals, as_floats
from cepheid.planner.running_totals import RunningTotals
from cepheid.planner.succession_layout import SuccessionLayout

_VERSION = 1
"""Of the numbers in instances: of operators, and of the columns of nodes."""

_SPARE_ROWS = 512
_LANES = 2


class TotalsEngine(LiveSuccessions, LiveEngine):
    """The running state of one query with running totals; see the module's text."""

    _restored: InstanceRows | None = None

    def expires_at(self) -> int | None:
        """Time alone lets no events go: they are let go one by one."""
        return None

    def compact(self) -> bool:
        """Let go of the events that no instance names, once there are enough of them."""
        if self._live_rows < 2 * self._looked_at + _SPARE_ROWS:
            return False
        self._succession.upkeep(self._events(), self._processed_to)
        self._keep_rows(self._needed())
        self._looked_at = self._live_rows
        return True

    # -- building up ----------------------------------------------------------------------------

    def _start_over(self) -> None:
        super()._start_over()
        kinds = [kind is ScalarType.FLOAT for _, kind in self._layout.columns]
        base, end = self._live.base, self._live.end
        self._whole_columns = kinds.count(False)
        self._live = LiveFacts(self._whole_columns + _LANES, kinds.count(True))
        self._live.base, self._live.end = base, end

    def _key_column(self, layout: SuccessionLayout) -> tuple[int, bool] | None:
        return None  # events are let go one by one, whatever their keys

    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        whole = self._whole_columns
        moved = {name: arrays[name] for name in ("mask", "t", "s")}
        for number in range(len(self._layout.columns)):
            place = number if number < whole else number + _LANES
            moved[f"c{place}"] = arrays[f"c{number}"]
        for lane in range(_LANES):
            moved[f"c{whole + lane}"] = np.zeros(rows, np.int64)
        super()._keep(moved, rows)

    def _rebuild(self) -> None:
        if self._restored is not None:  # the events it is about are still to come
            self._start_over()
            return
        self._restored = self.instance_rows()
        super()._rebuild()

    def _replay_restored(self) -> None:
        rows, self._restored = self._restored, None
        if rows is None:
            super()._replay_restored()
            return
        everything = np.arange(self._live.base, self._live.end)
        self._held = everything[self._live.ends(everything) >= self._processed_to]
        nodes = rows.instances.nodes
        nodes[:, 2] = rows.events + self._first_ordinal
        for (number, name), measure in self._layout.measures.items():
            was = rows.kinds[number, name]
            if measure.kind is ScalarType.FLOAT and was is not ScalarType.FLOAT:
                own = nodes[:, 1] == number
                part = nodes[own]
                as_floats(part, measure.slot)
                nodes[own] = part
        self._succession.go_on_with(rows.instances, self._events(), self._constants)

    # -- state beside the events ----------------------------------------------------------------

    @property
    def _first_ordinal(self) -> int:
        return self._chunks[0].base if self._chunks else self._ordinal

    def instance_rows(self) -> InstanceRows:
        """All instances, with events by their places among the live ones."""
        instances = self._succession.instances_now(self._events(), self._processed_to)
        measures = self._layout.measures.items()
        return InstanceRows(
            self._plan_text,
            self._schema or self.form.events,
            instances,
            instances.nodes[:, 2] - self._first_ordinal,
            {of: measure.kind for of, measure in measures},
        )

    @property
    def is_told_by_events(self) -> bool:
        """Events of its instances are gone."""
        return False

    def state_beside_events(self) -> list[bytes]:
        """The instances; see instance_rows."""
        return self.instance_rows().parts()

    def expect_beside_events(self, parts: list[bytes]) -> None:
        """Go on with these instances, once the live events they name are restored."""
        rows = InstanceRows.read(parts)
        rows.check(self._plan_text)
        for (_, name), kind in rows.kinds.items():
            self._column_types[name] = kind
        self._restored = rows
        self._start_over()

    def _end_restore(self) -> None:
        self._restored = None  # without events there are no instances either

    @property
    def _plan_text(self) -> str:
        totals = self.prepared.totals
        assert isinstance(totals, RunningTotals)
        return plan_digest(f"{_VERSION} {self.prepared.optimised.pattern!r} {totals.runs!r}")

    # -- one batch ------------------------------------------------------------------------------

    def _run_ordinals(self, ordinals: np.ndarray, *, emit: bool = True) -> list[Piece]:
        """Tell the kernel who the events are, before they are lost in totals.

        All events of one end come together, so equal ones are numbered as they always will be.
        """
        if len(ordinals):
            view = View(list(self._chunks))
            begin = view.base - self._live.base
            lanes = event_lanes(view, self.options).view(np.int64)
            first = FACTS + self._whole_columns
            self._live.facts[first : first + _LANES, begin : begin + view.rows] = lanes
        return super()._run_ordinals(ordinals, emit=emit)

    def _found(self, chains: Chains, roots: np.ndarray, view: View) -> list[Piece]:
        layout = self._layout
        totals = RunTotals(chains.rows[:, 2:], layout.kept_runs, layout.measures)
        rows = np.ascontiguousarray(chains.rows[:, :2])
        return [Piece(Chains(chains.ends, rows, chains.delays, totals), view)]

    def _prune(self) -> None:
        """Hosts say when: what comes after it must tell what was there."""

    def _needed(self) -> np.ndarray:
        """Which live events are named, or still to be seen.

        Without ids an event is known by its content and its number among equal ones, which stay
        as long as it does.
        """
        ends = self._live.ends(np.arange(self._live.base, self._live.end))
        needed = ends >= self._processed_to
        needed[self._succession.named_events - self._live.base] = True
        gone = self._first_ordinal - self._live.base
        needed[:gone] = False
        if self.options.id is None:
            contents, _ = event_contents(View(list(self._chunks)), self.options)
            needed[gone:] |= np.isin(contents, contents[needed[gone:]])
        return needed
