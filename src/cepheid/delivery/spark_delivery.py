"""Matches that Spark finds go where the text says, written by Spark's tasks where that can be.

A history is delivered by jobs, one for each sink, which end with it. A stream is delivered by
running streaming queries, one for each sink, each with its part of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import pyarrow as pa

from cepheid.delivery.match_files import refuse_full_folder
from cepheid.delivery.match_sinks import SHOWN
from cepheid.delivery.match_table import show_matches_of
from cepheid.hosts.spark_files import as_files, tables
from cepheid.model.catalogue import Sink, SinkKind
from cepheid.model.errors import OptionError
from cepheid.model.options import make_options
from cepheid.session import CompiledQuery, detect

Files: TypeAlias = Mapping[str, tuple[Path, str]]
"""Path and format of each file sink."""

_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Some matches that Spark found: counted, gone through as dicts, or as a table."""

    rows: pa.Table

    def __len__(self) -> int:
        """How many matches."""
        return int(self.rows.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each match as a dict, variables as dicts of their attributes."""
        return iter(self.rows.to_pylist())

    def table(self) -> pa.Table:
        """The matches as a table."""
        return self.rows


@dataclass(frozen=True, slots=True)
class SparkDelivery:
    """The queries that have a sink, and what the sinks are."""

    queries: Mapping[str, CompiledQuery]
    sinks: Mapping[str, Sink]
    files: Files
    callbacks: Mapping[str, Callable[[Any], object]]
    options: Mapping[str, Any]

    def deliver_history(self, events: Any) -> dict[str, Any]:
        """All matches to their sinks; returns the DataFrames of `table` sinks."""
        found = self._found(events)
        for path, _ in self.files.values():
            refuse_full_folder(path)
        return {name: frame for name, frame in found.items() if not self._handed_on(name, frame)}

    def deliver_stream(
        self, events: Any, checkpoint: str | Path | None, trigger: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Start a streaming query for each sink; `checkpoint` is where they note what they did."""
        found = self._found(events)
        for name, frame in found.items():
            self._refuse_endless_table(name)
            self._refuse_calls_elsewhere(name, frame)
        folder = _checkpoint(checkpoint)
        running: dict[str, Any] = {}
        try:
            for name, frame in found.items():
                own = folder / f"sink-{quote(name, safe='')}"  # a name may hold any character
                running[name] = self._started(name, frame, str(own), trigger)
        except BaseException:
            for each in running.values():  # nobody would know of them
                each.stop()
            raise
        return running

    def _found(self, events: Any) -> dict[str, Any]:
        return {name: detect(events, q, **self.options) for name, q in self.queries.items()}

    def _handed_on(self, name: str, matches: Any) -> bool:
        """Whether it has gone to its sink; a table is for the caller."""
        match self.sinks[name].kind:
            case SinkKind.TABLE:
                return False
            case SinkKind.FILE:
                path, kind = self.files[name]
                frame, form, options = as_files(matches, kind)
                frame.write.format(form).options(**options).mode("append").save(path.as_uri())
            case SinkKind.CONSOLE:
                self._show(name, matches)
            case SinkKind.CALLBACK:
                self._call(name, matches)
        return True

    def _started(self, name: str, matches: Any, checkpoint: str, trigger: Mapping[str, Any]) -> Any:
        if self.sinks[name].kind is SinkKind.FILE:
            path, kind = self.files[name]
            frame, form, options = as_files(matches, kind)
            writer = frame.writeStream.format(form).options(**options).option("path", path.as_uri())
        else:
            is_shown = self.sinks[name].kind is SinkKind.CONSOLE
            hand_on = self._show_any if is_shown else self._call
            writer = matches.writeStream.foreachBatch(lambda frame, _: hand_on(name, frame))
        if trigger:
            writer = writer.trigger(**trigger)
        return writer.queryName(name).option("checkpointLocation", checkpoint).start()

    def _show(self, name: str, matches: Any) -> None:
        """The first matches and how many there are, which Spark finds once."""
        matches.persist()
        try:
            first, total = matches.limit(SHOWN).toArrow(), matches.count()
        finally:
            matches.unpersist()
        options = make_options(dict(self.options))
        show_matches_of(self.queries[name], options, first, total, title=name)

    def _show_any(self, name: str, matches: Any) -> None:
        """The same, unless a stream has just brought none."""
        if not matches.isEmpty():
            self._show(name, matches)

    def _call(self, name: str, matches: Any) -> None:
        for table in tables(matches, _ROWS):
            self.callbacks[name](FoundRows(table))

    def _refuse_endless_table(self, name: str) -> None:
        if self.sinks[name].kind is SinkKind.TABLE:
            raise OptionError.of(
                "endless-table",
                f"the sink `{name}` is a table, and a stream has no end",
                help=f"register sink {name} as file, console or callback, "
                "or take the stream of matches from detect",
            )

    def _refuse_calls_elsewhere(self, name: str, matches: Any) -> None:
        """Spark Connect would run the function on the server, where nobody waits for it."""
        kind = self.sinks[name].kind
        is_connect = type(matches).__module__.startswith("pyspark.sql.connect")
        if is_connect and kind is not SinkKind.FILE:
            raise OptionError.of(
                "no-calls-over-connect",
                f"the sink `{name}` is a {kind.value}, out of reach for a stream of Spark Connect",
                help=f"register sink {name} as file, or deliver where the driver runs",
            )


def _checkpoint(folder: str | Path | None) -> Path:
    if folder is None:
        raise OptionError.of(
            "no-checkpoint",
            "a stream is delivered once and only once with a folder to note what was",
            help='give one with checkpoint="folder", which outlives the program',
        )
    return Path(folder).resolve()
