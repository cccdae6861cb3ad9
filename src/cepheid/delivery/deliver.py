"""The results of a program's queries go where the text says: `register sink NAME ...`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import pyarrow as pa

from cepheid.delivery.match_sinks import CalledBack, Collected, FileSink, FirstMatches, MatchSink
from cepheid.delivery.sink_files import refuse_overwriting, sink_file
from cepheid.hosts.in_process import Detector, as_history
from cepheid.hosts.matches import Matches
from cepheid.model.catalogue import Sink, SinkKind
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import DataError, OptionError
from cepheid.model.options import make_options
from cepheid.session import CompiledQuery, compile, is_spark

Callback: TypeAlias = Callable[[Matches], object]

_SHOWN = 20
"""Matches that a console sink shows; it counts them all."""


class Delivery:
    """Detects all queries that have a sink, and hands their matches on as they become final.

    >>> found = []
    >>> text = "register sink pairs as callback QUERY pairs SELECT * FROM A; B"
    >>> with Delivery(text, sinks={"pairs": found.extend}) as delivery:
    ...     delivery.feed([{"type": "A", "ts": 1}])
    ...     delivery.feed([{"type": "B", "ts": 2}])
    >>> [match["end"] for match in found]
    [2]
    """

    def __init__(
        self,
        query: CompiledQuery | str,
        *,
        sinks: Mapping[str, Callback] | None = None,
        **options: Any,
    ) -> None:
        """`sinks` holds the function for each callback; options as for `cepheid.detect`."""
        compiled = compile(query) if isinstance(query, str) else query
        self._queries = {name: compiled[name] for name in _delivered(compiled)}
        self._options = options
        self._sinks = _opened(compiled, self._queries, dict(sinks or {}))
        self._detectors = {name: Detector(each, **options) for name, each in self._queries.items()}
        self._tables: dict[str, pa.Table] | None = None
        self._open = ExitStack()
        for sink in self._sinks.values():
            self._open.enter_context(sink)

    def feed(self, events: Any) -> None:
        """Take events, in any form that `Detector.feed` takes."""
        for name, detector in self._detectors.items():
            self._sinks[name].accept(detector.feed(events))

    def advance(self, watermark: Any) -> None:
        """Say that no event before `watermark` will come."""
        for name, detector in self._detectors.items():
            self._sinks[name].accept(detector.advance(watermark))

    def close(self) -> dict[str, pa.Table]:
        """End of input: what is written is whole now. Returns the results of `table` sinks."""
        if self._tables is not None:
            return self._tables
        for name, detector in self._detectors.items():
            self._sinks[name].accept(detector.close())
        return self._finished()

    def deliver_history(self, events: Any) -> dict[str, pa.Table]:
        """All matches in a finite history; events may come in any order."""
        for name, query in self._queries.items():
            detector, batches = as_history(events, query, make_options(self._options))
            for batch in batches:
                self._sinks[name].accept(detector.feed(batch))
            self._sinks[name].accept(detector.close())
        return self._finished()

    def _finished(self) -> dict[str, pa.Table]:
        self._open.close()
        self._tables = tables = {}
        for name, sink in self._sinks.items():
            if isinstance(sink, Collected):
                tables[name] = sink.table
            elif isinstance(sink, FirstMatches):
                # rich is loaded only for a table.
                from cepheid.delivery.match_table import show_matches_of  # noqa: PLC0415

                options = make_options(self._options)
                query = self._queries[name]
                show_matches_of(query, options, sink.table, sink.total, title=name)
        return tables

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, or leave no file behind if something went wrong."""
        if kind is None:
            self.close()
        else:
            self._open.__exit__(kind, error, trace)


def deliver(
    events: Any,
    query: CompiledQuery | str,
    *,
    sinks: Mapping[str, Callback] | None = None,
    **options: Any,
) -> dict[str, pa.Table]:
    """Detect all queries of a text that have a sink; returns the results of its `table` sinks.

    A `file` is written as its name says (.parquet, .csv, .jsonl), the `console` shows the matches
    as `cepheid run` does, and a `callback` is called with the matches of each batch: give the
    functions by the names of their sinks.

    >>> text = "register sink pairs QUERY pairs SELECT * FROM A; B"
    >>> tables = deliver([{"type": "A", "ts": 1}, {"type": "B", "ts": 2}], text)
    >>> tables["pairs"].num_rows
    1
    """
    if is_spark(events):
        raise DataError.of(
            "no-delivery-on-spark",
            "the matches of a Spark DataFrame are a DataFrame, which Spark writes",
            help="detect(events, query[name]) gives the matches of each query",
        )
    delivery = Delivery(query, sinks=sinks, **options)
    try:
        return delivery.deliver_history(events)
    except BaseException as problem:
        delivery.__exit__(type(problem), problem, problem.__traceback__)
        raise


def _delivered(query: CompiledQuery) -> tuple[str, ...]:
    """The queries that have a sink, in the order written."""
    sinks = query.program.catalogue.sinks
    names = tuple(name for name in query.names if name in sinks)
    if not names:
        raise OptionError.of(
            "no-sinks",
            "no query of the text has a sink",
            help="write e.g. register sink NAME as file 'matches.parquet', or use detect",
        )
    return names


def _opened(
    query: CompiledQuery, names: Mapping[str, CompiledQuery], callbacks: dict[str, Callback]
) -> dict[str, MatchSink]:
    sinks = query.program.catalogue.sinks
    wanted = {name for name in names if sinks[name].kind is SinkKind.CALLBACK}
    for name in callbacks:
        if name not in wanted:
            raise OptionError.of(
                "unknown-sink",
                f"sinks= has a function for `{name}`, and no query has such a callback",
                help=did_you_mean(name, wanted) or f"register sink {name} as callback",
            )
    files = {
        name: sink_file(sinks[name], query.source)
        for name in names
        if sinks[name].kind is SinkKind.FILE
    }
    refuse_overwriting((path for path, _ in files.values()), ())
    return {name: _sink(sinks[name], files, callbacks) for name in names}


def _sink(
    sink: Sink, files: Mapping[str, tuple[Path, str]], callbacks: Mapping[str, Callback]
) -> MatchSink:
    match sink.kind:
        case SinkKind.TABLE:
            return Collected()
        case SinkKind.FILE:
            return FileSink(*files[sink.name])
        case SinkKind.CONSOLE:
            return FirstMatches(_SHOWN)
        case SinkKind.CALLBACK:
            if sink.name not in callbacks:
                raise OptionError.of(
                    "no-callback",
                    f"the sink `{sink.name}` is a callback, and there is no function for it",
                    help=f'give it with sinks={{"{sink.name}": function}}',
                )
            return CalledBack(callbacks[sink.name])
