"""The results of a program's queries go where the text says: `register sink NAME ...`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from cepheid.delivery.match_sinks import (
    SHOWN,
    CalledBack,
    Collected,
    FileSink,
    FirstMatches,
    MatchSink,
)
from cepheid.delivery.sink_files import refuse_overwriting, sink_file
from cepheid.hosts.in_process import Detector, as_history
from cepheid.hosts.matches import Matches
from cepheid.model.catalogue import Sink, SinkKind
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError, StateError
from cepheid.model.options import make_options
from cepheid.session import CompiledQuery, compile, is_spark, is_stream

if TYPE_CHECKING:
    from cepheid.delivery.spark_delivery import SparkDelivery

Callback: TypeAlias = Callable[[Matches], object]


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
        self._sinks = _OpenSinks(query, sinks, options)
        self._detectors = {
            name: Detector(each, **options) for name, each in self._sinks.queries.items()
        }

    def feed(self, events: Any) -> None:
        """Take events, in any form that `Detector.feed` takes."""
        self._sinks.refuse_ended()
        for name, detector in self._detectors.items():
            self._sinks.accept(name, detector.feed(events))

    def advance(self, watermark: Any) -> None:
        """Say that no event before `watermark` will come."""
        self._sinks.refuse_ended()
        for name, detector in self._detectors.items():
            self._sinks.accept(name, detector.advance(watermark))

    def close(self) -> dict[str, pa.Table]:
        """End of input: what is written is whole now. Returns the results of `table` sinks."""
        if self._sinks.tables is not None:
            return self._sinks.tables
        self._sinks.refuse_ended()
        with self._sinks:
            for name, detector in self._detectors.items():
                self._sinks.accept(name, detector.close())
        return self._sinks.delivered()

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
            self._sinks.__exit__(kind, error, trace)


class _OpenSinks:
    """The sinks of a text while matches come; `with` decides whether the files get their names."""

    def __init__(
        self,
        query: CompiledQuery | str,
        callbacks: Mapping[str, Callback] | None,
        options: Mapping[str, Any],
    ) -> None:
        compiled = compile(query) if isinstance(query, str) else query
        self.queries = {name: compiled[name] for name in _delivered(compiled)}
        self.tables: dict[str, pa.Table] | None = None
        self._options = make_options(dict(options))
        self._sinks = _opened(compiled, self.queries, dict(callbacks or {}))
        self._has_ended = False

    def accept(self, name: str, matches: Matches) -> None:
        self._sinks[name].accept(matches)

    def refuse_ended(self) -> None:
        if self._has_ended:
            raise StateError.of(
                "delivery-ended",
                "the delivery has ended, and takes nothing more",
                help="make a new cepheid.Delivery",
            )

    def delivered(self) -> dict[str, pa.Table]:
        """The tables of `table` sinks, once; the console is shown what it shows."""
        self.tables = {}
        for name, sink in self._sinks.items():
            if isinstance(sink, Collected):
                self.tables[name] = sink.table
            elif isinstance(sink, FirstMatches):
                # rich is loaded only for a table.
                from cepheid.delivery.match_table import show_matches_of  # noqa: PLC0415

                query = self.queries[name]
                show_matches_of(query, self._options, sink.table, sink.total, title=name)
        return self.tables

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        leaving = ExitStack()
        for sink in self._sinks.values():
            leaving.push(sink)
        if kind is not None:
            leaving.__exit__(kind, error, trace)
            return
        with leaving:
            # Every file is written before the first one gets its name.
            for sink in self._sinks.values():
                sink.finish()


def deliver(
    events: Any,
    query: CompiledQuery | str,
    *,
    sinks: Mapping[str, Callback] | None = None,
    checkpoint: str | Path | None = None,
    trigger: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Detect all queries of a text that have a sink; returns the results of its `table` sinks.

    A `file` is written as its name says (.parquet, .csv, .jsonl), the `console` shows the matches
    as `cepheid run` does, and a `callback` is called with the matches of each batch: give the
    functions by the names of their sinks.

    Of Spark DataFrames a table is a DataFrame, and a file is a folder that Spark writes. A stream
    has no tables: what is returned are the running streaming queries, which note in the folder
    `checkpoint` what they have delivered; `trigger` is Spark's, e.g. {"availableNow": True}.

    >>> text = "register sink pairs QUERY pairs SELECT * FROM A; B"
    >>> tables = deliver([{"type": "A", "ts": 1}, {"type": "B", "ts": 2}], text)
    >>> tables["pairs"].num_rows
    1
    """
    is_endless = is_stream(events)
    if not is_endless and (checkpoint is not None or trigger is not None):
        raise OptionError.of(
            "stream-options",
            "checkpoint= and trigger= are for streams of Spark",
            help="leave them out; cepheid.Delivery takes events batch by batch",
        )
    if is_spark(events):
        on_spark = _spark_delivery(query, sinks, options)
        if is_endless:
            return on_spark.deliver_stream(events, checkpoint, trigger or {})
        return on_spark.deliver_history(events)
    opened = _OpenSinks(query, sinks, options)
    with opened:
        for name, each in opened.queries.items():
            detector, batches = as_history(events, each, make_options(options))
            for batch in batches:
                opened.accept(name, detector.feed(batch))
            opened.accept(name, detector.close())
    return opened.delivered()


def _spark_delivery(
    query: CompiledQuery | str,
    sinks: Mapping[str, Callback] | None,
    options: Mapping[str, Any],
) -> SparkDelivery:
    from cepheid.delivery.spark_delivery import SparkDelivery  # noqa: PLC0415 (loads pyspark)

    compiled = compile(query) if isinstance(query, str) else query
    queries = {name: compiled[name] for name in _delivered(compiled)}
    callbacks = dict(sinks or {})
    files = {
        name: (path.resolve(), kind)
        for name, (path, kind) in _checked(compiled, queries, callbacks).items()
    }
    registered = compiled.program.catalogue.sinks
    return SparkDelivery(queries, registered, files, callbacks, options)


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
    files = _checked(query, names, callbacks)
    sinks = query.program.catalogue.sinks
    return {name: _sink(sinks[name], files, callbacks) for name in names}


def _checked(
    query: CompiledQuery, names: Mapping[str, CompiledQuery], callbacks: Mapping[str, Callback]
) -> dict[str, tuple[Path, str]]:
    """Where file sinks write; refuses functions without a callback, and the other way round."""
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
    for name in wanted - callbacks.keys():
        raise OptionError.of(
            "no-callback",
            f"the sink `{name}` is a callback, and there is no function for it",
            help=f'give it with sinks={{"{name}": function}}',
        )
    return files


def _sink(
    sink: Sink, files: Mapping[str, tuple[Path, str]], callbacks: Mapping[str, Callback]
) -> MatchSink:
    match sink.kind:
        case SinkKind.TABLE:
            return Collected()
        case SinkKind.FILE:
            return FileSink(*files[sink.name])
        case SinkKind.CONSOLE:
            return FirstMatches(SHOWN)
        case SinkKind.CALLBACK:
            return CalledBack(callbacks[sink.name])
