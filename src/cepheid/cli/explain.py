"""`cepheid explain`: what a query means, how it will run, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cepheid import CompiledQuery, compile
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
from cepheid.cli.quick_parameters import QuickCommand
from cepheid.cli.schema_text import read_schema
from cepheid.model.errors import OptionError

app = typer.Typer(rich_markup_mode="rich", add_completion=False)


@app.command(no_args_is_help=True, cls=QuickCommand)
@takes_options
def explain(
    query_file: QueryFile = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events",
            "-e",
            metavar="[SOURCE=]PATH",
            help="Event files whose columns decide the plan.",
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="The columns instead: type:string,ts:timestamp,id:int."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="scan: also ask Spark how it would read the events, and why."),
    ] = None,
    master: Annotated[str, typer.Option(help="Spark's master, for --host scan.")] = "local[*]",
    input_format: Annotated[
        str | None, typer.Option(help="parquet, csv or json; else told by the files' names.")
    ] = None,
    query_text: QueryText = None,
    query: QueryName = None,
    language: Language = None,
    *,
    given: GivenOptions,
) -> None:
    """
    Show what a query means, how it will run, and why.

    Told are the algebra, the key, where each condition runs, the form of the
    output, how long events are kept, and what to be careful about; with
    --statistics also how much to expect.

    [bold]Examples[/bold]

      cepheid explain query.sase
      cepheid explain query.sase --events events.parquet --statistics stats.json
      cepheid explain query.sase --schema type:string,ts:timestamp,id:int
      cepheid explain query.sase --events events/ --host scan
      cepheid explain query.sase --plan partition=none
    """
    text, name = read_query(query_file, query_text)
    compiled = compile(text, language, name=name)
    if query is not None:
        compiled = compiled[query]
    paths = read_paths(events or ())
    if paths and schema is not None:
        message = "both --events and --schema tell the columns"
        raise OptionError.of("two-schemas", message, help="give one of the two")
    columns: Any = None
    if paths:
        schemas = {
            source: EventFiles.find(
                Path(path), input_format, text_column=given.type_column
            ).schema()
            for source, path in paths.items()
        }
        columns = schemas.get("", schemas)
    elif schema is not None:
        columns = read_schema(schema)
    options = given.as_keywords()
    typer.echo(compiled.explain(columns, **options), nl=False)
    if host is not None:
        typer.echo(_on_spark(host, master, paths.get(""), compiled, options))


def _on_spark(
    host: str, master: str, events: str | None, compiled: CompiledQuery, options: dict[str, Any]
) -> str:
    if host != "scan" or events is None:
        message = "only the scan of event files is planned by Spark"
        raise OptionError.of("unknown-host", message, help="give --host scan and --events PATH")
    from cepheid.hosts.spark import explain_spark  # noqa: PLC0415 (loads pyspark)
    from cepheid.hosts.spark_session import local_session  # noqa: PLC0415

    told = explain_spark(events, compiled, spark=local_session(master), **options)
    return "\n".join(("", "On Spark", *(f"  {line}".rstrip() for line in told.split("\n"))))
