"""A query over event files on Spark, by its scan or its batch host."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from cepheid import CompiledQuery, detect, scan
from cepheid.cli.event_files import EventFiles, format_of
from cepheid.cli.run_request import Outcome, RunRequest
from cepheid.cli.unseen_types import unseen_types
from cepheid.delivery.match_files import open_match_file, refuse_full_folder
from cepheid.hosts.spark_files import as_files
from cepheid.hosts.spark_session import local_session
from cepheid.model.options import make_options

_SORTED_UP_TO = 100_000
"""Matches of Spark's tasks come in any order; so many are put in time order for a reader."""
_MOST_TYPES = 10_000


def run_on_spark(
    request: RunRequest, host: str, files: Mapping[str, EventFiles] | None
) -> list[Outcome]:
    """The matches of each query that is asked for or has a sink."""
    read = [path for each in (files or {}).values() for path in each.files]
    targets = request.targets(read)
    progress = "true" if sys.stderr.isatty() else "false"
    spark = local_session(request.master, **{"spark.ui.showConsoleProgress": progress})
    return [_run(spark, target, host, files) for target in targets]


def _run(
    spark: Any, request: RunRequest, host: str, files: Mapping[str, EventFiles] | None
) -> Outcome:
    """The matches, written by Spark as a folder, or as one file or table made of its parts."""
    compiled = request.compiled()
    if host == "scan":
        matches = scan(spark, request.path, compiled, **request.options)
    else:
        frames = {
            name: _read(spark, path, request, compiled, (files or {}).get(name))
            for name, path in request.events.items()
        }
        matches = detect(frames.get("", frames), compiled, **request.options)
    outcome = _delivered(matches, request, compiled)
    if outcome.matches or request.path is None or files is None:
        return outcome
    events = _read(spark, request.path, request, compiled, files[""])
    return replace(outcome, notes=_unseen(events, request, compiled))


def _delivered(matches: Any, request: RunRequest, compiled: CompiledQuery) -> Outcome:
    if request.out is not None and not request.out.suffix and str(request.out) != "-":
        return _write_folder(matches, request)
    folder = Path(tempfile.mkdtemp(prefix="cepheid-"))
    try:
        parts = folder / "matches"
        matches.write.parquet(parts.as_uri())
        return _from_parts(sorted(parts.glob("*.parquet")), matches, request, compiled)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unseen(events: Any, request: RunRequest, compiled: CompiledQuery) -> tuple[str, ...]:
    """Types that the query names and no event has; Spark finds those that there are."""
    options = make_options(request.options)
    kinds = events.select(events[f"`{options.type}`"]).distinct().limit(_MOST_TYPES).toArrow()
    if len(kinds) == _MOST_TYPES:
        return ()
    return tuple(unseen_types(compiled, options, kinds.to_batches()))


def _read(
    spark: Any, path: str, request: RunRequest, compiled: CompiledQuery, files: EventFiles | None
) -> Any:
    """The files as a DataFrame whose time columns hold timestamps or integers."""
    kind = files.format if files is not None else format_of(Path(path))
    reader = spark.read
    if kind == "csv":
        reader = reader.option("header", True).option("inferSchema", True)
    # The JVM may have been started in another working folder.
    events = reader.format(kind).load(path if files is None else str(files.path.resolve()))
    options = make_options(request.options)
    registered = compiled.program.catalogue.sources.values()
    own = {name for source in registered for name in source.time}
    for name in {options.end_column, *(() if options.start is None else (options.start,)), *own}:
        if dict(events.dtypes).get(name) == "string":
            events = events.withColumn(name, events[f"`{name}`"].cast("timestamp"))
    return events


def _write_folder(matches: Any, request: RunRequest) -> Outcome:
    assert request.out is not None
    refuse_full_folder(request.out)
    frame, kind, options = as_files(matches, request.format)
    frame.write.mode("append").format(kind).options(**options).save(str(request.out))
    written = matches.sparkSession.read.format(kind).options(**options).load(str(request.out))
    return Outcome(request, matches=written.count())


def _from_parts(
    parts: list[Path], matches: Any, request: RunRequest, compiled: CompiledQuery
) -> Outcome:
    files = [ParquetFile(part) for part in parts]
    total = sum(file.metadata.num_rows for file in files)
    schema = files[0].schema_arrow if files else pa.schema([])
    if request.format != "table":
        with open_match_file(request.out, request.format, schema) as out:
            for file in files:
                for batch in file.iter_batches():
                    out.write(pa.Table.from_batches([batch]))
        return Outcome(request, matches=total)
    wanted = total if total <= _SORTED_UP_TO else request.limit
    tables = [schema.empty_table()]
    rows = 0
    for file in files:
        if rows < wanted:
            tables.append(file.read())
            rows += tables[-1].num_rows
    table = pa.concat_tables(tables)
    if total <= _SORTED_UP_TO:
        table = table.take(pc.sort_indices(table, [("end", "ascending"), ("start", "ascending")]))
    request.show_matches(compiled, table.slice(0, request.limit), total)
    return Outcome(request, matches=total)
