"""`cepheid run`: the matches of a query in event files."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from cepheid.cli.arguments import (
    GivenOptions,
    Language,
    QueryFile,
    QueryName,
    QueryText,
    read_paths,
    read_query,
    takes_options,
)
from cepheid.cli.event_files import EventFiles
from cepheid.cli.hosts import HostChoice, choose_host
from cepheid.cli.lean_imports import leave_out_unused_libraries
from cepheid.cli.quick_parameters import QuickCommand
from cepheid.cli.run_request import RunRequest, tell
from cepheid.delivery.match_files import output_format
from cepheid.model.errors import OptionError

app = typer.Typer(rich_markup_mode="rich", add_completion=False)


@app.command(no_args_is_help=True, cls=QuickCommand)
@takes_options
def run(
    query_file: QueryFile = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events",
            "-e",
            metavar="[SOURCE=]PATH",
            help="A file or folder of Parquet, CSV or JSON lines; or several, each of a source.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write: .parquet, .csv, .jsonl, a folder, -."),
    ] = None,
    format: Annotated[  # noqa: A002 (the option's name)
        str | None, typer.Option(help="parquet, csv, jsonl or table; else told by --out.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Rows shown in the terminal.")] = 20,
    show: Annotated[str | None, typer.Option(help="Attributes shown of each event: a,b,c.")] = None,
    host: Annotated[
        str | None, typer.Option(help="process, scan or batch; else chosen by the files' size.")
    ] = None,
    master: Annotated[str, typer.Option(help="Spark's master, for scan and batch.")] = "local[*]",
    input_format: Annotated[
        str | None, typer.Option(help="parquet, csv or json; else told by the files' names.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell what is done, also without a terminal.")
    ] = False,
    query_text: QueryText = None,
    query: QueryName = None,
    language: Language = None,
    *,
    given: GivenOptions,
) -> None:
    """
    Find the matches of a query in event files.

    A small file is read in this process; a folder, or a large file, by Spark.
    The answer is the same. Matches are shown as a table, or written with --out,
    or go where the text registers a sink for its query.

    [bold]Examples[/bold]

      cepheid run query.sase --events events.csv
      cepheid run query.sase -e events/ -o matches.parquet
      cepheid run -q "EVENT SEQ(A x, B y) WITHIN 10 s" -e events.jsonl
      cepheid run overdose.sase -e doses.csv --param name=John --format csv
      cepheid run frauds.next -e t=transactions.csv -e login=logins.parquet
    """
    begin = monotonic()
    if not events:
        message = "which events? --events is missing"
        raise OptionError.of("no-events", message, help="cepheid run query.sase --events FILE")
    text, name = read_query(query_file, query_text)
    paths = read_paths(events)
    request = RunRequest(
        text=text,
        name=name,
        language=language,
        query=query,
        options=given.as_keywords(),
        events=paths,
        out=out,
        format=output_format(out, format),
        limit=limit,
        show=None if show is None else tuple(each.strip() for each in show.split(",")),
        master=master,
        verbose=verbose,
        inputs=tuple(
            each for each in (query_file, given.types, given.statistics) if each is not None
        ),
    )
    files = None
    if any("://" in path for path in paths.values()):
        usual = "scan" if request.path is not None else "batch"
        choice = HostChoice(host or usual, "the events lie on another machine")
    else:
        files = {
            source: EventFiles.find(Path(path), input_format, text_column=given.type_column)
            for source, path in paths.items()
        }
        size = sum(each.size for each in files.values())
        choice = choose_host(host, None if request.path is None else Path(request.path), size)
    if choice.host == "scan" and request.path is None:
        message = "a scan reads one folder, and the events come by source"
        raise OptionError.of("unknown-host", message, help="give --host process or --host batch")
    request.note(f"host: {choice.host} ({choice.reason})")
    if choice.host == "process" and files is not None:
        leave_out_unused_libraries()
        # Imported now, so that what is left out stays out, and Spark is loaded when it is used.
        from cepheid.cli.run_in_process import run_in_process  # noqa: PLC0415

        outcomes = run_in_process(request, files)
    else:
        from cepheid.cli.run_on_spark import run_on_spark  # noqa: PLC0415

        outcomes = run_on_spark(request, choice.host, files)
    tell(outcomes, monotonic() - begin)
