"""Generated events as Parquet in several layouts, with the numbers of matches NumPy finds in them.

Files are made once in a scratch folder and found again by their parameters.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.micro.baselines import NumpySequence
from benchmarks.workload import BATCH_ROWS, SEED, columns
from cepheid.generate import StreamParameters, generate_batches, generate_stream, write_events

# Real dates: Spark's first micro-batch drops every row at or before 1970 (docs/decisions).
EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
MICROSECONDS_PER_TICK = 1_000


@dataclass(frozen=True, slots=True)
class EventFiles:
    """One generated stream; layouts and answers are made when first asked for."""

    parameters: StreamParameters
    scratch: Path

    @property
    def folder(self) -> Path:
        """Where all layouts of this stream lie; named by its first rows too.

        A changed generator then finds none of the files and answers of the one before.
        """
        chosen = self.parameters
        domains = "-".join(str(size) for size in chosen.domains)
        sample = generate_stream(replace(chosen, events=min(chosen.events, 1_000)))
        content = hashlib.blake2b(repr(sample.to_pydict()).encode(), digest_size=6).hexdigest()
        return self.scratch / f"{chosen.events}-{chosen.types}-{domains}-{chosen.seed}-{content}"

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The events in time order."""
        return generate_batches(self.parameters, rows)

    def ordered(self, files: int) -> Path:
        """Files in time order, equally large."""
        rows = -(-self.parameters.events // files)
        return self._layout(
            f"ordered-{files}", lambda to: write_events(self.batches(), to, rows_per_file=rows)
        )

    def shuffled(self, files: int) -> Path:
        """The same rows in an order that has nothing to do with time."""
        rows = -(-self.parameters.events // files)

        def write(to: Path) -> None:
            order = np.random.default_rng(SEED).permutation(self.parameters.events)
            table = pa.Table.from_batches(self.batches()).take(order)
            write_events(table.combine_chunks(), to, rows_per_file=rows)

        return self._layout(f"shuffled-{files}", write)

    def micro_batches(self, sizes: list[int]) -> Path:
        """One file per micro-batch, `ts` a timestamp with one tick per millisecond.

        Spark's file source takes files by modification time, so it is set in order.
        """

        def write(to: Path) -> None:
            to.mkdir(parents=True)
            table = with_timestamps(pa.Table.from_batches(self.batches()))
            start = 0
            for number, rows in enumerate(sizes):
                path = to / f"part-{number:05}.parquet"
                write_events(table.slice(start, rows), path)
                os.utime(path, times=(number + 1, number + 1))
                start += rows

        return self._layout(f"micro-batches-{len(sizes)}-{min(sizes)}-{max(sizes)}", write)

    def matches(self, window: int, key: str = "attr1") -> int:
        """The number of matches of SEQ(E1, E2, E3) by NumPy, remembered in the folder."""
        path = self.folder / f"matches-{key}-{window}.json"
        if not path.exists():
            sequence = NumpySequence(window)
            found = sum(
                len(block[0])
                for batch in self.batches(max(BATCH_ROWS, window))
                for block in sequence.feed(columns([batch], key))
            )
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"matches": found}), encoding="utf-8")
        return int(json.loads(path.read_text(encoding="utf-8"))["matches"])

    def _layout(self, name: str, write: Callable[[Path], object]) -> Path:
        final = self.folder / name
        if not final.exists():
            unfinished = self.folder / f".{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            write(unfinished)
            unfinished.rename(final)
        return final


def with_timestamps(events: pa.Table) -> pa.Table:
    """The events with their ticks as milliseconds since an epoch after Unix's."""
    start = int(EPOCH.timestamp() * 1_000_000)
    micros = events["ts"].to_numpy() * MICROSECONDS_PER_TICK + start
    at = events.schema.get_field_index("ts")
    stamps = pa.array(micros, pa.timestamp("us", tz="UTC"))
    return events.set_column(at, pa.field("ts", stamps.type), stamps)
