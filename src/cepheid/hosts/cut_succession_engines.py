"""Graphs of successors that are cut: one finds the composites of parts, another goes on with them.

Both are driven like any engine, the second one also with the composites (`take`): each is there
when the last of its events would be, so the operators above it cannot tell that it was found
elsewhere. What becomes of them is never written down: these engines run over finite histories,
whose tasks begin anew instead of being restored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.hosts.composites import Composites, FoundComposites
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.live_touches import LiveTouches
from cepheid.hosts.matches import Piece
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.shared_succession_engine import (
    DispatchedSuccessions,
    RunningQuery,
    SharedSuccessionEngine,
    prepared_together,
)
from cepheid.hosts.store import Chunk, View
from cepheid.kernels.match_nodes import GIVEN_PLACE
from cepheid.planner.chains import Chains
from cepheid.planner.prepare import Prepared
from cepheid.planner.shared_successions import (
    SharedSuccessions,
    parts_graph,
    share_successions,
)
from cepheid.planner.succession_layout import SuccessionLayout


class PartsEngine(DispatchedSuccessions):
    """Finds the composites of some parts, canonical texts, of several queries."""

    def __init__(
        self, queries: Sequence[Prepared], parts: Sequence[str], *, lateness: int = 0
    ) -> None:
        """Queries with the same options over the same events; composites name parts by place."""
        self._queries = tuple(queries)
        self._parts = tuple(parts)
        self._composites: list[FoundComposites] = []
        super().__init__(prepared_together(queries), lateness=lateness)

    def feed(self, events: EventBatch) -> list[FoundComposites]:
        """Take a batch; the composites that became final."""
        self._take_in(events)
        return self._delivered()

    def advance(self, watermark: int) -> list[FoundComposites]:
        """No event before `watermark` will come any more; the composites this makes final."""
        self._move_on(watermark)
        return self._delivered()

    def _delivered(self) -> list[FoundComposites]:
        found, self._composites = self._composites, []
        return found

    def _laid_out(self) -> SuccessionLayout:
        graph = parts_graph(self._queries, self._column_types, self._parts)
        self._atoms = LiveTouches()
        self._part_of = np.full(len(graph.layout.shape.operators), -1, np.int64)
        self._part_of[list(graph.roots)] = np.arange(len(graph.roots))
        return graph.layout

    def _key_column(self, layout: SuccessionLayout) -> tuple[int, bool] | None:
        return None  # parts have no key that all of them share

    def _found(self, chains: Chains, roots: np.ndarray, view: View) -> list[Piece]:
        self._composites.append(FoundComposites(chains, self._part_of[roots], view))
        return []


class FedSuccessionEngine(SharedSuccessionEngine):
    """Runs queries some parts of which, canonical texts, are found elsewhere."""

    def __init__(
        self, queries: Sequence[RunningQuery], given: Sequence[str], *, lateness: int = 0
    ) -> None:
        """Composites name the parts by their place in `given`, all of which must be used."""
        self._given = tuple(given)
        self._took_any = False
        super().__init__(queries, lateness=lateness)

    def take(self, composites: Composites) -> None:
        """Composites whose time has not come; it comes with that of the events around them."""
        if not len(composites):
            return
        self._took_any = True
        batch = composites.events
        self._learn(batch, False)
        times, _ = event_times(batch, self.options)
        arrays = self._arrays(batch, None, {}, False, None, times)
        lasts = np.cumsum(composites.lengths) - 1
        firsts = lasts - composites.lengths + 1
        rows = batch.num_rows
        places = np.arange(rows) - np.repeat(firsts, composites.lengths)
        arrays["mask"] = (places << GIVEN_PLACE) | composites.variables
        atoms = np.array([self.graph.given[text] for text in self._given], np.int64)
        arrays["touching"], arrays["touched"] = lasts, atoms[composites.parts]
        self._keep(arrays, rows)
        nowhere = np.full(rows, -1, np.int64)  # they did not arrive here
        chunk = Chunk(self._ordinal, batch, None, nowhere, arrays["t"], {})
        if self.options.id is None:
            chunk.twins = composites.twins
        self._chunks.append(chunk)
        self._held = np.concatenate([self._held, self._ordinal + lasts])
        self._count_new(rows)

    def _graph(self) -> SharedSuccessions:
        queries = [each.prepared for each in self.queries]
        graph = share_successions(queries, self._column_types, self._given)
        missing = [text for text in self._given if text not in graph.given]
        assert not missing, f"no query has the part {missing[0]}"
        return graph

    def _rebuild(self) -> None:
        # Events of one schema never change the types that the plan knows.
        assert not self._took_any, "composites cannot be fed again"
        super()._rebuild()
