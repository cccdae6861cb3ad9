"""Runs many queries of successors (NEXT) over one stream, as one graph of shared operators.

It is the engine of one query (succession_engine) over the graph that planner.shared_successions
makes of them: an event goes to the atoms it can touch, and from there to the operators it can
reach. What comes out at a root goes to every query that has it, in the query's own form: the same
matches, with the same ids, as the query alone would give. State is the live events, as always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.live_engine import BEGINNING, END_OF_TIME
from cepheid.hosts.live_touches import LiveTouches
from cepheid.hosts.matches import Matches, Piece
from cepheid.hosts.store import View
from cepheid.hosts.succession_engine import LiveSuccessions, column_of_key
from cepheid.kernels.dispatch import lists_of
from cepheid.kernels.handing_out import by_query
from cepheid.kernels.succession import Touches
from cepheid.planner.chains import Chains
from cepheid.planner.match_schema import MatchForm, scalar_type
from cepheid.planner.prepare import Prepared
from cepheid.planner.shared_successions import (
    SharedSuccessions,
    share_successions,
    succession_of,
    union_of,
)
from cepheid.planner.succession_layout import SuccessionLayout


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A query, and the part of the stream it is for.

    It gets the matches whose first event ends at or after `since`, and which end themselves before
    `until`. One that joins a running engine knows earlier events only if others wanted them, too:
    `since` should be later than the engine's `latest` then.
    """

    prepared: Prepared
    since: int = BEGINNING
    until: int = END_OF_TIME

    @property
    def takes_all(self) -> bool:
        """Whether no match is left out."""
        return self.since <= BEGINNING and self.until >= END_OF_TIME


class DispatchedSuccessions(LiveSuccessions):
    """The running state of a graph whose events find their atoms through an index."""

    _atoms: LiveTouches

    def compact(self) -> bool:
        """Drop the events that no instance of their own key needs, if all queries have one key."""
        if not super().compact():
            return False
        self._atoms.rename(self._held)
        return True

    def _keep(self, arrays: dict[str, np.ndarray], rows: int) -> None:
        self._atoms.append(self._live.end, rows, arrays["touching"], arrays["touched"])
        super()._keep(arrays, rows)

    def _replay_restored(self) -> None:
        super()._replay_restored()
        self._atoms.keep_only(self._held)

    def _process(self, first_new: int) -> list[Piece]:
        pieces = super()._process(first_new)
        self._atoms.keep_only(self._held)
        return pieces

    def _touches(self, ordinals: np.ndarray) -> Touches:
        return self._atoms.of(ordinals)


class SharedSuccessionEngine(DispatchedSuccessions):
    """The running state of several queries; matches come as a list, in the order of the queries."""

    graph: SharedSuccessions

    def __init__(self, queries: Sequence[RunningQuery], *, lateness: int = 0) -> None:
        """Queries with the same options over the same events, at least one."""
        self.queries = tuple(queries)
        self._pieces: dict[int, list[Piece]] = {}
        self._forms: list[MatchForm] = []
        self._nothing: list[Matches] | None = None
        self._told: pa.Schema | None = None
        super().__init__(prepared_together([q.prepared for q in queries]), lateness=lateness)

    # -- what hosts call ------------------------------------------------------------------------

    def feed(self, events: EventBatch) -> list[Matches]:
        """Take a batch; for each query the matches that became final."""
        self._take_in(events)
        return self._delivered()

    def advance(self, watermark: int) -> list[Matches]:
        """No event before `watermark` will come any more; the matches this makes final."""
        self._move_on(watermark)
        return self._delivered()

    def close(self) -> list[Matches]:
        """End of input: time runs on for ever, so every deadline passes."""
        return self.advance(END_OF_TIME) if self.options.close_at_end else self._delivered()

    def catch_up(self, events: EventBatch | None, watermark: int) -> None:
        """See events, and time pass, whose matches left long ago."""
        if events is not None:
            self.feed(events)
        self.advance(watermark)

    def with_queries(self, queries: Sequence[RunningQuery]) -> SharedSuccessionEngine:
        """An engine for other queries that goes on where this one stands, which must not go on.

        Those that stay have their state: the live events are replayed, and nothing comes twice.
        """
        other = SharedSuccessionEngine(queries, lateness=self._lateness)
        other.watermark, other.latest, other.position = self.watermark, self.latest, self.position
        other.set_aside = self.set_aside
        other._processed_to, other._dead_until = self._processed_to, self._dead_until
        other._chunks, other._ordinal = list(self._chunks), self._ordinal
        other._live_rows = self._live_rows
        if self._schema is not None:
            other._schema = self._schema
            other.form = other.form.with_events(self._schema)
            kinds = {field.name: scalar_type(field.type) for field in self._schema}
            names = other.prepared.needed_columns
            other._column_types |= {name: kinds[name] for name in names if name in kinds}
        other._rebuild()
        other._succession.counters[:] = self._succession.counters
        return other

    # -- building up ----------------------------------------------------------------------------

    def _graph(self) -> SharedSuccessions:
        """The operators of all queries."""
        return share_successions([q.prepared for q in self.queries], self._column_types)

    def _laid_out(self) -> SuccessionLayout:
        self.graph = self._graph()
        self._atoms = LiveTouches()
        places = self.graph.queries
        users: list[list[int]] = [[] for _ in self.graph.operators]
        for number, place in enumerate(places):
            users[place.root].append(number)
        queries, names = lists_of(users), lists_of([place.names for place in places])
        self._queries_of = queries.starts, queries.members
        self._names = names.starts, names.members
        return self.graph.layout

    def _key_column(self, layout: SuccessionLayout) -> tuple[int, bool] | None:
        columns = {column_of_key(layout, query.key) for query in self.graph.queries}
        return columns.pop() if len(columns) == 1 else None

    # -- one batch ------------------------------------------------------------------------------

    def _found(self, chains: Chains, roots: np.ndarray, view: View) -> list[Piece]:
        """Hand each query the matches of its root; `feed` and `advance` deliver them."""
        given = np.zeros(len(chains), np.int64) if chains.delays is None else chains.delays
        matches, events, ends, rows, delays = by_query(
            chains.ends, chains.rows, roots, given, *self._queries_of, *self._names
        )
        for number in np.flatnonzero(np.diff(matches)).tolist():
            some = slice(matches[number], matches[number + 1])
            own = Chains(
                ends[some],
                rows[events[number] : events[number + 1]],
                None if chains.delays is None else delays[some],
            )
            query = self.queries[number]
            if not query.takes_all:
                own = self._within(query, own)
            self._pieces.setdefault(number, []).append(Piece(own, view))
        return []

    def _within(self, query: RunningQuery, chains: Chains) -> Chains:
        """The matches that lie in the query's part of the stream."""
        first, last = chains.rows[chains.begins, 1], chains.rows[chains.ends - 1, 1]
        ends = self._live.ends(last)
        if chains.delays is not None:
            ends = ends + chains.delays
        fits = (self._live.ends(first) >= query.since) & (ends < query.until)
        return chains.chosen(np.flatnonzero(fits))

    def _delivered(self) -> list[Matches]:
        if self._nothing is None or self._told is not self.form.events:
            self._told = self.form.events
            forms = [query.prepared.form.with_events(self._told) for query in self.queries]
            self._nothing = [Matches(form) for form in forms]
            self._forms = forms
        found = list(self._nothing)
        for number, pieces in self._pieces.items():
            found[number] = Matches(self._forms[number], pieces)
        self._pieces = {}
        return found


def prepared_together(queries: Sequence[Prepared]) -> Prepared:
    """What the engine has to know of all queries at once: columns, their types, the windows."""
    names = {name for each in queries for name in each.needed_columns}
    types = {name: kind for each in queries for name, kind in each.column_types.items()}
    return replace(
        queries[0],
        plan=union_of([succession_of(each) for each in queries]),
        needed_columns=tuple(sorted(names)),
        column_types=types,
        layouts={},
        successions={},
    )
