"""The live events of a running query: what can still become part of a match.

Relevant events get ordinals in order of arrival. Their attributes stay in Arrow chunks (needed only
when a match is written out); what kernels read stays in `LiveColumns`. The live events are also the
whole durable state of a query: a snapshot is these events, and restoring replays them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from cepheid.kernels.expand import arrival_numbers, named, places
from cepheid.kernels.memory import room


class Chunk:
    """The relevant rows of one batch; cut down to them only when it is worth it."""

    __slots__ = (
        "_batch",
        "_positions",
        "_rows",
        "_selected",
        "_ties",
        "_times",
        "base",
        "first_time",
        "lacks",
        "lanes",
        "last_time",
        "twins",
    )

    def __init__(
        self,
        base: int,
        batch: pa.RecordBatch,
        selected: np.ndarray | None,
        positions: np.ndarray | int,
        times: np.ndarray | None,
        lacks: Mapping[str, np.ndarray],
        *,
        batch_times: np.ndarray | None = None,
        in_order: bool = False,
    ) -> None:
        """Rows `selected` of the batch (all when None), with their times.

        `positions` are their arrival numbers, or the arrival number of the batch's first row.
        Instead of `times` the whole batch's times will do, when they are in order. `twins` is for
        rows whose numbers among equal ones were counted elsewhere.
        """
        if times is None:
            assert batch_times is not None and selected is not None
            first, last = batch_times[selected[0]], batch_times[selected[-1]]
            self._times: np.ndarray | tuple[np.ndarray, np.ndarray] = (batch_times, selected)
            self._rows = len(selected)
        else:
            first, last = (times[0], times[-1]) if in_order else (times.min(), times.max())
            self._times = times
            self._rows = len(times)
        self.lacks = lacks
        self.lanes: np.ndarray | None = None
        self.twins: np.ndarray | None = None
        self._ties: bool | None = None
        self.base = base
        self.first_time = int(first)
        self.last_time = int(last)
        self._positions: np.ndarray | tuple[int, np.ndarray | None]
        self._positions = (positions, selected) if isinstance(positions, int) else positions
        self._batch = batch
        self._selected = selected

    def __len__(self) -> int:
        """How many relevant rows it holds."""
        return self._rows

    @property
    def positions(self) -> np.ndarray:
        """The arrival number of each row; worked out when first asked for."""
        if isinstance(self._positions, tuple):
            first, selected = self._positions
            if selected is None:
                self._positions = np.arange(first, first + self._rows)
            else:
                self._positions = selected + first
        return self._positions

    @property
    def last_position(self) -> int:
        """The arrival number of its last row."""
        if isinstance(self._positions, tuple):
            first, selected = self._positions
            return first + int(self._rows - 1 if selected is None else selected[-1])
        return int(self._positions[-1])

    def write_positions(self, ordinals: np.ndarray, out: np.ndarray) -> None:
        """The arrival numbers of those events that are in the chunk, where they stand."""
        held = self._positions
        first, selected = held if isinstance(held, tuple) else (0, held)
        if selected is None:
            first, selected = 0, self.positions
        arrival_numbers(ordinals, self.base, first, selected, out)

    @property
    def ties(self) -> bool:
        """Whether rows may share a time (or are out of order, where it cannot be told cheaply)."""
        if self._ties is None:
            times = self.times
            self._ties = not bool(np.all(times[1:] > times[:-1]))
        return self._ties

    @property
    def times(self) -> np.ndarray:
        """The time of each row."""
        held = self._times
        if isinstance(held, tuple):
            times, selected = held
            self._times = held = times[selected]
        return held

    def only(self, rows: np.ndarray, base: int) -> Chunk:
        """Some of its rows, in their order, as a chunk of their own."""
        chosen = rows if self._selected is None else self._selected[rows]
        lacks = {name: flags[rows] for name, flags in self.lacks.items()}
        batch = self._batch.take(pa.array(chosen))
        part = Chunk(base, batch, None, self.positions[rows], self.times[rows], lacks)
        if self.lanes is not None:
            part.lanes = self.lanes[:, rows]
        if self.twins is not None:
            part.twins = self.twins[rows]
        return part

    @property
    def batch(self) -> pa.RecordBatch:
        """The relevant rows with all their columns."""
        self.shrink()
        return self._batch

    def lacking(self, name: str) -> np.ndarray:
        """Which rows do not have the attribute; where nothing was noted, a null says so."""
        known = self.lacks.get(name)
        if known is not None:
            return known
        where = self._batch.schema.get_field_index(name)
        if where < 0:
            return np.ones(len(self), np.bool_)
        flags: np.ndarray = self.batch.column(where).is_null().to_numpy(zero_copy_only=False)
        return flags

    @property
    def is_shrunk(self) -> bool:
        """Whether it holds its own rows alone."""
        return self._selected is None

    def shrink(self) -> None:
        """Let go of the rows that do not matter, once the chunk has to stay for a while."""
        if self._selected is not None:
            self._batch = self._batch.take(pa.array(self._selected))
            # Arrays of their own: places may be part of a much larger one.
            self._positions, self._times = self.positions, self.times
            self._selected = None

    def since(self, ordinal: int) -> Chunk:
        """Its rows from an ordinal on."""
        if self.base >= ordinal:
            return self
        return self.only(np.arange(ordinal - self.base, len(self)), ordinal)


MANY_CHUNKS = 32
_SMALL = (256, 8192)
"""Chunks with fewer rows than that are joined when there are many in a row."""


def tidy(chunks: list[Chunk]) -> None:
    """Cut down chunks that stay, and join small ones: events that come one by one make many.

    The last two chunks are left alone: with large batches they are often gone soon.
    """
    end = len(chunks) - 2
    for place in range(end - 1, -1, -1):
        if chunks[place].is_shrunk:
            break  # and so are those before
        chunks[place].shrink()
    for size in _SMALL:
        begin = end
        while begin > 0 and len(chunks[begin - 1]) < size:
            begin -= 1
        if end - begin >= MANY_CHUNKS:
            chunks[begin:end] = _joined(chunks[begin:end])
            end = len(chunks) - 2


def _joined(chunks: list[Chunk]) -> list[Chunk]:
    """Fewer chunks with the same rows.

    Those whose columns have other types stay apart, and those whose twins were counted elsewhere
    from those whose were not.
    """
    joined: list[Chunk] = []
    run: list[Chunk] = []
    types: dict[str, pa.DataType] = {}
    for chunk in chunks:
        own = {field.name: field.type for field in chunk.batch.schema}
        fits = all(types.get(name, kind) == kind for name, kind in own.items())
        fits = fits and (not run or (run[-1].twins is None) == (chunk.twins is None))
        if run and not (fits and sum(map(len, run)) + len(chunk) <= _SMALL[-1]):
            joined.append(_one_of(run))
            run, types = [], {}
        run.append(chunk)
        types |= own
    joined.append(_one_of(run))
    return joined


def _one_of(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    (batch,) = _combined([chunk.batch for chunk in chunks]).to_batches()
    lacks = {
        name: np.concatenate([chunk.lacking(name) for chunk in chunks])
        for name in {name for chunk in chunks for name in chunk.lacks}
    }
    positions = np.concatenate([chunk.positions for chunk in chunks])
    times = np.concatenate([chunk.times for chunk in chunks])
    one = Chunk(chunks[0].base, batch, None, positions, times, lacks)
    counted = [chunk.twins for chunk in chunks if chunk.twins is not None]
    if counted:
        one.twins = np.concatenate(counted)
    return one


class View:
    """The chunks that were live when some matches were made; matches are written out from it."""

    def __init__(self, chunks: list[Chunk]) -> None:
        """A view of these chunks; ordinals below the first chunk's base are gone."""
        self.chunks = chunks
        self.base = chunks[0].base if chunks else 0
        self._table: pa.Table | None = None
        self._positions: np.ndarray | None = None
        self._places: np.ndarray | None = None

    @property
    def table(self) -> pa.Table:
        """All rows of the view as one table of contiguous columns."""
        if self._table is None:
            batches = [chunk.batch for chunk in self.chunks]
            self._table = _combined(batches)
        return self._table

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(len(chunk) for chunk in self.chunks)

    @property
    def ties(self) -> bool:
        """Whether rows may share a time."""
        return any(chunk.ties for chunk in self.chunks) or any(
            a.last_time >= b.first_time for a, b in zip(self.chunks, self.chunks[1:], strict=False)
        )

    def narrowed(self, rows: np.ndarray) -> tuple[View, np.ndarray]:
        """A view of the given rows alone, and their places in it."""
        used = np.zeros(self.rows, np.bool_)
        used[rows] = True
        chunks, begin, base = [], 0, 0
        for chunk in self.chunks:
            own = np.flatnonzero(used[begin : begin + len(chunk)])
            if len(own):
                chunks.append(chunk.only(own, base))
            begin, base = begin + len(chunk), base + len(own)
        return View(chunks), (np.cumsum(used) - 1)[rows]

    def is_worth_a_table(self, rows: int) -> bool:
        """Whether so many are looked up that it pays to put the chunks' numbers together first."""
        return self._positions is not None or len(self.chunks) * rows > self.rows

    def positions_of(self, ordinals: np.ndarray) -> np.ndarray:
        """The arrival numbers of some rows."""
        out = room(ordinals.size)
        flat = ordinals.reshape(-1)
        if self.is_worth_a_table(len(flat)):
            named(flat, self.base, self.positions, out)
        else:
            for chunk in self.chunks:
                chunk.write_positions(flat, out)
        return out.reshape(ordinals.shape)

    def ordinals_of(self, numbers: np.ndarray) -> np.ndarray:
        """The rows with these arrival numbers, which must have come in this order."""
        positions = self.positions
        first = int(positions[0])
        span = int(positions[-1]) + 1 - first
        if self._places is None and min(8 * numbers.size, 16 * self.rows) < span:
            return np.searchsorted(positions, numbers) + self.base
        if self._places is None:
            self._places = room(span)
            places(positions, first, self.base, self._places)
        out = room(numbers.size)
        named(numbers.reshape(-1), first, self._places, out)
        return out.reshape(numbers.shape)

    def ids_of(self, column: str) -> Callable[[np.ndarray], np.ndarray]:
        """The function from ordinals to the values of an id column."""
        names = self.table.column(column).to_numpy()
        return lambda ordinals: np.asarray(names[ordinals - self.base])

    @property
    def positions(self) -> np.ndarray:
        """The arrival number of each row of the view; put together once."""
        if self._positions is None:
            parts = [c.positions for c in self.chunks]
            self._positions = np.concatenate(parts or [np.zeros(0, np.int64)])
        return self._positions


def _combined(batches: list[pa.RecordBatch]) -> pa.Table:
    if len({batch.schema for batch in batches}) <= 1:
        table = pa.Table.from_batches(batches)
    else:
        # Batches of dicts may bring new columns as they come: take what each one has.
        table = pa.concat_tables(
            [pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive"
        )
    return table.unify_dictionaries().combine_chunks()


class LiveColumns:
    """Arrays indexed by ordinal that grow at the end and are dropped from the front."""

    def __init__(self) -> None:
        """No rows yet; columns appear with the first append."""
        self.base = 0
        self.end = 0
        self._arrays: dict[str, np.ndarray] = {}

    def append(self, columns: Mapping[str, np.ndarray], rows: int) -> None:
        """Add `rows` rows; every append must bring the same columns."""
        start = self.end - self.base
        for name, values in columns.items():
            old = self._arrays.get(name)
            if old is None or start + rows > len(old) or old.dtype != values.dtype:
                room = np.empty(max(1024, 2 * (start + rows)), values.dtype)
                if old is not None:
                    room[:start] = old[:start]
                self._arrays[name] = old = room
            old[start : start + rows] = values
        self.end += rows

    def drop_before(self, ordinal: int) -> None:
        """Forget rows below `ordinal`; space is given back once half of it is dead."""
        dead = ordinal - self.base
        if dead <= 0 or (dead < 65536 and 2 * dead < self.end - self.base):
            return
        live = self.end - ordinal
        for name, values in self._arrays.items():
            room = np.empty(max(1024, 2 * live), values.dtype)
            room[:live] = values[dead : dead + live]
            self._arrays[name] = room
        self.base = ordinal

    def slice(self, name: str, begin: int, end: int) -> np.ndarray:
        """The values of ordinals begin..end, without a copy."""
        return self._arrays[name][begin - self.base : end - self.base]

    def take(self, name: str, ordinals: np.ndarray) -> np.ndarray:
        """The values at some ordinals."""
        taken: np.ndarray = self._arrays[name][ordinals - self.base]
        return taken

    def names(self) -> tuple[str, ...]:
        """The columns known so far."""
        return tuple(self._arrays)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(a.nbytes for a in self._arrays.values())
