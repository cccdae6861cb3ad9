"""`cepheid analyze`: rates, gaps and values of events, kept in a statistics file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.arguments import TimeColumn, TypeColumn
from cepheid.cli.event_files import EventFiles
from cepheid.cli.event_readers import TypesChanged
from cepheid.cli.progress import ProgressBar
from cepheid.cli.quick_parameters import QuickCommand
from cepheid.cli.statistics_table import show_statistics
from cepheid.model.options import Options
from cepheid.statistics.collect import StatisticsCollector
from cepheid.statistics.event_statistics import save_statistics

app = typer.Typer(rich_markup_mode="rich", add_completion=False)


@app.command(no_args_is_help=True, cls=QuickCommand)
def analyze(
    events: Annotated[
        Path,
        typer.Argument(metavar="EVENTS", help="A file or folder of Parquet, CSV or JSON lines."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the statistics, as JSON.")
    ] = None,
    input_format: Annotated[
        str | None, typer.Option(help="parquet, csv or json; else told by the files' names.")
    ] = None,
    type_column: TypeColumn = "type",
    time: TimeColumn = "ts",
) -> None:
    """
    Measure rates, gaps and values of events.

    The statistics tell cepheid explain how much a query will find and keep.
    Events are read once, in memory that does not grow with them.

    [bold]Examples[/bold]

      cepheid analyze events.csv
      cepheid analyze events/ -o stats.json
      cepheid explain query.sase --events events/ --stats stats.json
    """
    files = EventFiles.find(events, input_format, text_column=type_column)
    options = Options(type=type_column, time=time)
    collector = StatisticsCollector(options)
    with ProgressBar("reading events", files.size) as bar:
        try:
            for batch in files.batches():
                collector.add(batch)
                bar.update(files.position)
        except TypesChanged:
            collector = StatisticsCollector(options)
            for batch in files.table().to_batches():
                collector.add(batch)
    statistics = collector.finish()
    show_statistics(statistics)
    if out is not None:
        save_statistics(statistics, out)
        typer.echo(f"written to {out}")
