"""The events of a slice of time, read from files in order of time.

Row groups that do not overlap are read one after the other; where they do, or where one is not in
order itself, rows wait until no earlier one can come. At the edges of a slice only the rows it
needs are read, if the row group is in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from cepheid.hosts.event_files import EventFiles, FileFormat, file_system
from cepheid.hosts.file_facts import Unit, open_parquet
from cepheid.hosts.plain_types import fit
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.text_events import read_text
from cepheid.model.options import Options

_ROWS_AT_AN_EDGE = 1 << 14
_ROWS_PER_TABLE = 1 << 17
_OPEN_FILES = 16
_NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SliceReader:
    """How to read the events of one query from files.

    `schema` has the columns that are wanted, in the types that all files together have; `condition`
    holds for every row that matters, and lets row groups be passed over by their statistics.
    """

    files: EventFiles
    schema: pa.Schema
    options: Options
    types: tuple[str, ...] | None = None
    condition: Any = None

    def read(self, units: Sequence[Unit], low: int, high: int) -> Iterator[pa.Table]:
        """The events in [low, high), in order of time; units come in order of their first times."""
        pieces = self._in_order(self._kept(units), low, high)
        yield from _in_pieces(pieces, _ROWS_PER_TABLE)

    def read_all(self, numbers: Sequence[int]) -> Iterator[pa.Table]:
        """All events of some text files, in no order."""
        system, _ = file_system(self.files.root)
        for number in numbers:
            for batch in self._text(system, number):
                yield self._wanted(pa.Table.from_batches([batch]))

    def _in_order(self, units: Sequence[Unit], low: int, high: int) -> Iterator[pa.Table]:
        """Rows leave as soon as no later unit can hold an earlier one."""
        system, _ = file_system(self.files.root)
        opened = _OpenFiles(system, self)
        pending = _Pending(self)
        for number, unit in enumerate(units):
            following = units[number + 1].low if number + 1 < len(units) else _NEVER
            rows = self._rows(system, opened, unit, low, high)
            alone = not pending and unit.high < following
            if alone and unit.is_ordered and self.options.tie != "seqno":
                yield from rows  # a text file, perhaps larger than memory
                continue
            for table in rows:
                pending.add(table if alone else self._wanted(table))
            yield from pending.before(following)

    def _rows(
        self, system: fs.FileSystem, opened: _OpenFiles, unit: Unit, low: int, high: int
    ) -> Iterator[pa.Table]:
        """The rows of a unit within [low, high), in the order they are stored."""
        if self.files.format is not FileFormat.PARQUET:
            for batch in self._text(system, unit.file):
                table, beyond = self._within(pa.Table.from_batches([batch]), low, high)
                yield table
                if beyond and unit.is_ordered:
                    return
            return
        file = opened.file(unit.file)
        columns = opened.columns(unit.file)
        if low <= unit.low and unit.high < high:
            yield self._fitted(file.read_row_group(unit.group, columns, use_threads=False))
            return
        times = _times(
            file.read_row_group(unit.group, [self.options.end_column], use_threads=False),
            self.options,
        )
        if bool((times[1:] >= times[:-1]).all()):
            last = int(np.searchsorted(times, high, side="left"))
            yield from self._first_rows(file, unit, columns, last, low, high)
            return
        whole = self._fitted(file.read_row_group(unit.group, columns, use_threads=False))
        yield self._within(whole, low, high)[0]

    def _first_rows(
        self,
        file: pq.ParquetFile,
        unit: Unit,
        columns: list[str],
        rows: int,
        low: int,
        high: int,
    ) -> Iterator[pa.Table]:
        """The first rows of a row group that is in order, without decoding the others."""
        batches = file.iter_batches(
            batch_size=_ROWS_AT_AN_EDGE,
            row_groups=[unit.group],
            columns=columns,
            use_threads=False,
        )
        for batch in batches:
            if rows <= 0:
                return
            table = self._fitted(pa.Table.from_batches([batch.slice(0, rows)]))
            rows -= batch.num_rows
            yield self._within(table, low, high)[0]

    def _text(self, system: fs.FileSystem, number: int) -> Iterator[pa.RecordBatch]:
        file, kind = self.files.files[number], self.files.format
        plain = pa.schema([f.with_type(_undictionaried(f.type)) for f in self.schema])
        yield from read_text(system, file, kind, plain, self.schema.names, self.options.type)

    def _fitted(self, table: pa.Table) -> pa.Table:
        return fit(table, self.schema)

    def _wanted(self, table: pa.Table) -> pa.Table:
        """The rows of the types that matter: what has to be held and sorted is less then."""
        if self.types is None:
            return table
        column = table.column(self.options.type)
        names = pa.array(self.types, pa.string())
        if pa.types.is_dictionary(column.type):
            chunks = [_is_in(chunk, names) for chunk in column.chunks]
            return table.filter(pa.chunked_array(chunks, pa.bool_()))
        return table.filter(pc.is_in(column.cast(pa.string()), value_set=names))

    def _within(self, table: pa.Table, low: int, high: int) -> tuple[pa.Table, bool]:
        """The rows in [low, high), and whether some lie beyond."""
        times = _times(table, self.options)
        inside = (times >= low) & (times < high)
        beyond = bool((times >= high).any())
        if inside.all():
            return table, beyond
        return table.filter(pa.array(inside)), beyond

    def _kept(self, units: Sequence[Unit]) -> list[Unit]:
        """Without the row groups whose statistics say that no row of theirs matters."""
        if self.condition is None or self.files.format is not FileFormat.PARQUET:
            return list(units)
        system, _ = file_system(self.files.root)
        kept: set[tuple[int, int]] = set()
        for number in {unit.file for unit in units}:
            groups = [unit.group for unit in units if unit.file == number]
            path = self.files.files[number].path
            whole = ds.ParquetFileFormat().make_fragment(path, system, row_groups=groups)
            part = whole.subset(filter=self.condition)
            kept |= {(number, group.id) for group in part.row_groups}
        return [unit for unit in units if (unit.file, unit.group) in kept]


class _Pending:
    """Rows that wait for those of later units with earlier times."""

    def __init__(self, reader: SliceReader) -> None:
        self._options = reader.options
        self._tables: list[pa.Table] = []
        self._times: list[np.ndarray] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._tables)

    def add(self, table: pa.Table) -> None:
        """More rows, in any order."""
        if len(table):
            self._tables.append(table)
            self._times.append(_times(table, self._options))

    def before(self, bound: int) -> Iterator[pa.Table]:
        """The rows with times before a bound, in order; few of many stay until it is worth it."""
        rows = sum(map(len, self._tables))
        ready = sum(int((times < bound).sum()) for times in self._times)
        if not rows or 4 * ready < rows:
            return
        table, times = self._sorted()
        yield table.slice(0, ready)
        rest = table.slice(ready)
        self._tables, self._times = ([rest], [times[ready:]]) if len(rest) else ([], [])

    def _sorted(self) -> tuple[pa.Table, np.ndarray]:
        table, options = pa.concat_tables(self._tables).unify_dictionaries(), self._options
        times = np.concatenate(self._times)
        if options.tie == "seqno" and options.id is not None:
            keys = [(options.end_column, "ascending"), (options.id, "ascending")]
            order = pc.sort_indices(table, sort_keys=keys).to_numpy()
        elif bool((times[1:] >= times[:-1]).all()):
            return table, times
        else:
            order = np.argsort(times, kind="stable")
        return table.take(pa.array(order)), times[order]


class _OpenFiles:
    """The Parquet files a slice reads from; the last few stay open."""

    def __init__(self, system: fs.FileSystem, reader: SliceReader) -> None:
        self._system = system
        self._reader = reader
        self._files: dict[int, pq.ParquetFile] = {}

    def file(self, number: int) -> pq.ParquetFile:
        """The file of that number."""
        if number not in self._files:
            while len(self._files) >= _OPEN_FILES:
                self._files.pop(next(iter(self._files))).close()
            names = [f.name for f in self._reader.schema if pa.types.is_dictionary(f.type)]
            self._files[number] = open_parquet(
                self._system,
                self._reader.files.files[number],
                read_dictionary=names,
                pre_buffer=not isinstance(self._system, fs.LocalFileSystem),
            )
        return self._files[number]

    def columns(self, number: int) -> list[str]:
        """The wanted columns that the file has."""
        has = set(self.file(number).schema_arrow.names)
        return [name for name in self._reader.schema.names if name in has]


def _is_in(chunk: Any, names: Any) -> Any:
    wanted = pc.is_in(chunk.dictionary.cast(pa.string()), value_set=names)
    return pc.fill_null(wanted.take(chunk.indices), False)


def _undictionaried(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _times(table: pa.Table, options: Options) -> np.ndarray:
    """The times of a table; rows without a usable one count as those before them."""
    found = []
    before = -(2**62)
    for batch in table.to_batches():
        times, bad = event_times(batch, options)
        if bad is not None and bad.any():
            where = np.where(bad, -1, np.arange(len(times)))
            last = np.maximum.accumulate(where)
            times = np.where(last < 0, before, times[np.maximum(last, 0)])
        if len(times):
            before = int(times[-1])
            found.append(times)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _in_pieces(tables: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in order, small tables put together: a feed has its price."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        if len(table):
            held.append(table)
            count += len(table)
        if count >= rows:
            yield pa.concat_tables(held)
            held, count = [], 0
    if held:
        yield pa.concat_tables(held)
