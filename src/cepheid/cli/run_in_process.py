"""A query over event files in this process: batch by batch, in memory that the window bounds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from cepheid import CompiledQuery, Detector
from cepheid.cli.event_files import EventFiles
from cepheid.cli.event_readers import TypesChanged
from cepheid.cli.match_sinks import FileSink, FirstMatches
from cepheid.cli.progress import ProgressBar
from cepheid.cli.run_request import Outcome, RunRequest
from cepheid.hosts.set_aside import event_times
from cepheid.model.options import Options, make_options

_ROWS = 1 << 16


class _Unordered(Exception):
    """Rows are further out of order than the allowed lateness: they must be sorted first."""


def run_in_process(request: RunRequest, files: EventFiles) -> Outcome:
    """All matches of the files' events, whatever their order, as in batch mode.

    The files are read once, as a stream. When they turn out not to be in time order, or when later
    rows do not fit the types of the first ones, they are read whole and the work begins anew.
    """
    compiled = request.compiled()
    try:
        return _run(request, compiled, files.batches(), files)
    except TypesChanged:
        request.note("the types of columns change within the events: reading them as a whole")
    except _Unordered:
        request.note("the events are not in time order: reading and sorting them as a whole")
    table = _in_time_order(files.table(), make_options(request.options))
    return _run(request, compiled, table.to_batches(max_chunksize=_ROWS), files)


def _run(
    request: RunRequest,
    compiled: CompiledQuery,
    batches: Iterable[pa.RecordBatch],
    files: EventFiles,
) -> Outcome:
    detector = Detector(compiled, **request.options)
    events = found = 0
    sink: FirstMatches | FileSink
    if request.format == "table":
        sink = FirstMatches(request.limit)
    else:
        sink = FileSink(request.out, request.format)
    with sink, ProgressBar("reading events", files.size) as bar:
        for batch in batches:
            events += batch.num_rows
            matches = detector.feed(batch)
            if detector.late.count:
                raise _Unordered
            found += len(matches)
            sink.accept(matches)
            bar.update(files.position, f"{found:,} matches")
        matches = detector.close()
        found += len(matches)
        sink.accept(matches)
    if isinstance(sink, FirstMatches):
        # rich is loaded only for a table.
        from cepheid.cli.match_table import show_matches_of  # noqa: PLC0415

        show_matches_of(request, compiled, sink.table, found)
    return Outcome(
        matches=found,
        events=events,
        late=detector.late.count,
        quarantined=detector.quarantined.count,
        undefined_keys=detector.undefined_keys,
    )


def _in_time_order(table: pa.Table, options: Options) -> pa.Table:
    if options.end_column not in table.column_names:
        return table  # the detector says what is missing
    times = [event_times(batch, options)[0] for batch in table.to_batches()]
    if not times:
        return table
    order = np.argsort(np.concatenate(times), kind="stable")
    return table.unify_dictionaries().take(order)
