"""What the tasks of a scan do in Python workers: describe files, read slices, detect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from cepheid.hosts.event_files import EventFiles, refuse_changed
from cepheid.hosts.file_facts import Unit, describe_files
from cepheid.hosts.plain_types import fit
from cepheid.hosts.slice_reader import SliceReader
from cepheid.hosts.spark_task import DetectionTask
from cepheid.hosts.time_slices import TimeSlices
from cepheid.model.options import Options


@dataclass(frozen=True, slots=True)
class DescribeTask:
    """Finds out what slicing must know; task i describes every `tasks`-th file from i on."""

    files: EventFiles
    options: Options
    tasks: int

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The facts of the files whose numbers come in."""
        for first in _numbers(batches):
            mine = list(range(first, len(self.files.files), self.tasks))
            if mine:
                yield describe_files(self.files, mine, self.options)


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Detects in slices; only their matches leave the task."""

    detection: DetectionTask
    reader: SliceReader
    slices: TimeSlices
    units: tuple[tuple[Unit, ...], ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches of the slices whose numbers come in."""
        for number in _numbers(batches):
            units = self.units[number]
            refuse_changed(self.reader.files, sorted({unit.file for unit in units}))
            tables = self.reader.read(units, *self.slices.read(number))
            yield from self.detection.matches(tables, self.slices.owned(number))


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Reads text files for another host: the same rows and types as in a scan."""

    reader: SliceReader
    schema: pa.Schema
    tasks: int

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The events of the files whose numbers come in."""
        for first in _numbers(batches):
            mine = list(range(first, len(self.reader.files.files), self.tasks))
            refuse_changed(self.reader.files, mine)
            for table in self.reader.read_all(mine):
                yield from fit(table, self.schema).to_batches()


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
