"""A query over event files in this process: batch by batch, in memory that the window bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid import Detector
from cepheid.cli.event_files import EventFiles
from cepheid.cli.event_readers import TypesChanged
from cepheid.cli.progress import ProgressBar
from cepheid.cli.run_request import Outcome, RunRequest
from cepheid.delivery.match_sinks import FileSink, FirstMatches
from cepheid.hosts.in_process import as_history
from cepheid.hosts.matches import Matches
from cepheid.model.options import make_options


class _Unordered(Exception):
    """Rows are further out of order than the allowed lateness: they must be sorted first."""


def run_in_process(request: RunRequest, files: Mapping[str, EventFiles]) -> list[Outcome]:
    """All matches of the files' events, whatever their order, as in batch mode.

    One path is read once, as a stream. When its rows turn out not to be in time order, or when
    later rows do not fit the types of the first ones, it is read whole and the work begins anew.
    Files by source are read whole: which of their events comes first, only all of them tell.
    """
    targets = request.targets([path for each in files.values() for path in each.files])
    only = files.get("")
    if only is None:
        return _run_whole(targets, {name: each.table() for name, each in files.items()})
    whole: pa.Table | None = None
    outcomes: list[Outcome] = []
    try:
        outcomes = _run_stream(targets, only.batches(), only)
    except TypesChanged:
        request.note("the types of columns change within the events: reading them as a whole")
        whole = only.table()
    except _Unordered:
        request.note("the events are not in time order: reading and sorting them as a whole")
        whole = only.table()
    if whole is not None:
        outcomes = _run_whole(targets, whole)
    return [
        each
        if each.matches
        else _explained(each, only.batches() if whole is None else whole.to_batches())
        for each in outcomes
    ]


def _explained(nothing: Outcome, events: Iterable[pa.RecordBatch]) -> Outcome:
    from cepheid.cli.unseen_types import unseen_types  # noqa: PLC0415 (seldom needed)

    request = nothing.request
    notes = unseen_types(request.compiled(), make_options(request.options), events)
    return replace(nothing, notes=tuple(notes))


class _Work:
    """One query with its detector, and where its matches go."""

    def __init__(self, target: RunRequest) -> None:
        self.target = target
        self.compiled = target.compiled()
        self.found = 0
        self.sink: FirstMatches | FileSink
        if target.format == "table":
            self.sink = FirstMatches(target.limit)
        else:
            self.sink = FileSink(target.out, target.format)

    def accept(self, matches: Matches) -> None:
        self.found += len(matches)
        self.sink.accept(matches)

    def outcome(self, detector: Detector, events: int) -> Outcome:
        if isinstance(self.sink, FirstMatches):
            self.target.show_matches(self.compiled, self.sink.table, self.found)
        return Outcome(
            self.target,
            matches=self.found,
            events=events,
            late=detector.late.count,
            quarantined=detector.quarantined.count,
            undefined_keys=detector.undefined_keys,
        )


def _run_stream(
    targets: Sequence[RunRequest], batches: Iterable[pa.RecordBatch], files: EventFiles
) -> list[Outcome]:
    works = [_Work(target) for target in targets]
    detectors = [Detector(work.compiled, **work.target.options) for work in works]
    pairs = list(zip(works, detectors, strict=True))
    events = 0
    with ExitStack() as opened, ProgressBar("reading events", files.size) as bar:
        for work in works:
            opened.enter_context(work.sink)
        for batch in batches:
            events += batch.num_rows
            for work, detector in pairs:
                matches = detector.feed(batch)
                if detector.late.count:
                    raise _Unordered
                work.accept(matches)
            bar.update(files.position, f"{sum(work.found for work in works):,} matches")
        for work, detector in pairs:
            work.accept(detector.close())
        _finish(works)
    return [work.outcome(detector, events) for work, detector in pairs]


def _run_whole(targets: Sequence[RunRequest], events: Any) -> list[Outcome]:
    works = [_Work(target) for target in targets]
    done: list[tuple[_Work, Detector, int]] = []
    with ExitStack() as opened:
        for work in works:
            opened.enter_context(work.sink)
            options = make_options(work.target.options)
            detector, batches = as_history(events, work.compiled, options)
            for batch in batches:
                work.accept(detector.feed(batch))
            work.accept(detector.close())
            done.append((work, detector, sum(each.batch.num_rows for each in batches)))
        _finish(works)
    return [work.outcome(detector, count) for work, detector, count in done]


def _finish(works: Iterable[_Work]) -> None:
    """Every file is written before the first one gets its name."""
    for work in works:
        work.sink.finish()
