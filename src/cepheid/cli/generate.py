"""`cepheid generate`: event streams and query sets of the papers, and the examples' stories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from cepheid.cli.progress import ProgressBar
from cepheid.generate import (
    MedicineParameters,
    QueryParameters,
    StoreParameters,
    StreamParameters,
    generate_batches,
    generate_medicine,
    generate_queries,
    generate_store,
    write_events,
)
from cepheid.generate.streams import Gaps
from cepheid.model.errors import OptionError

app = typer.Typer(
    rich_markup_mode="rich",
    add_completion=False,
    no_args_is_help=True,
    help="Make event streams and query sets.",
)

_STREAM, _FAULTS = "The stream (Table 1 of the SASE paper)", "Faults of real data"
_QUERY = "The queries (Table 2 of the SASE paper)"

Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT", help="A file .parquet, .csv or .jsonl; without suffix a folder of Parquet."
    ),
]
RowsPerFile = Annotated[
    int | None, typer.Option(min=1, help="Rows of each file in a folder; else a million.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Truth = Annotated[Path | None, typer.Option(help="Also write what really happened, as JSON.")]
Seed = Annotated[int, typer.Option(help="Another seed, another stream; the same one, the same.")]
Types = Annotated[
    int, typer.Option(help="Number of event types E1, E2, ... (T).", rich_help_panel=_STREAM)
]
Attributes = Annotated[
    int, typer.Option(help="Number of attributes attr1, ... (A).", rich_help_panel=_STREAM)
]
DomainSizes = Annotated[
    str,
    typer.Option(
        help="Values of each attribute (V): one number, or one for each, 10,100,1000.",
        rich_help_panel=_STREAM,
    ),
]


@app.command(no_args_is_help=True)
def stream(
    out: Out,
    events: Annotated[int, typer.Option(help="Number of events.")] = 100_000,
    types: Types = 20,
    type_theta: Annotated[
        float,
        typer.Option(help="Zipf skew of the types (theta 1).", rich_help_panel=_STREAM),
    ] = 0.0,
    attributes: Attributes = 5,
    domain_sizes: DomainSizes = "100",
    value_theta: Annotated[
        float, typer.Option(help="Zipf skew of the values.", rich_help_panel=_STREAM)
    ] = 0.0,
    time_step: Annotated[
        int, typer.Option(help="Ticks between events.", rich_help_panel=_STREAM)
    ] = 1,
    gaps: Annotated[
        Gaps, typer.Option(help="How times differ.", rich_help_panel=_STREAM)
    ] = "fixed",
    tie_fraction: Annotated[
        float, typer.Option(help="Share of events at another's time.", rich_help_panel=_FAULTS)
    ] = 0.0,
    null_fraction: Annotated[
        float, typer.Option(help="Share of values that are null.", rich_help_panel=_FAULTS)
    ] = 0.0,
    disorder: Annotated[
        int, typer.Option(help="Ticks by which an event may come late.", rich_help_panel=_FAULTS)
    ] = 0,
    seed: Seed = 0,
    rows_per_file: RowsPerFile = None,
    overwrite: Overwrite = False,
) -> None:
    """
    Make an event stream as the SASE paper does.

    [bold]Examples[/bold]

      cepheid generate stream events.parquet --events 1000000
      cepheid generate stream events/ --types 20 --domain-sizes 1000 --seed 7
      cepheid generate stream events.csv --gaps exponential --disorder 50
    """
    parameters = StreamParameters(
        events=events,
        types=types,
        type_theta=type_theta,
        attributes=attributes,
        domain_sizes=_sizes(domain_sizes),
        value_theta=value_theta,
        seed=seed,
        time_step=time_step,
        gaps=gaps,
        tie_fraction=tie_fraction,
        null_fraction=null_fraction,
        disorder=disorder,
    )
    with ProgressBar("making events", events) as bar:
        batches = _watched(generate_batches(parameters, 1 << 17), bar)
        written = write_events(batches, out, rows_per_file=rows_per_file, overwrite=overwrite)
    typer.echo(f"{written:,} events written to {out}")


@app.command()
def queries(
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="A file for all, or a folder with a file for each; else the screen."
        ),
    ] = None,
    number: Annotated[int, typer.Option("--queries", "-n", help="How many.")] = 1,
    length: Annotated[int, typer.Option(help="Events of a match (L).", rich_help_panel=_QUERY)] = 3,
    type_theta: Annotated[
        float,
        typer.Option(help="Zipf skew in choosing types (theta 2).", rich_help_panel=_QUERY),
    ] = 0.0,
    equivalence_tests: Annotated[
        int, typer.Option(help="Equivalence tests (EP).", rich_help_panel=_QUERY)
    ] = 1,
    inequality_predicates: Annotated[
        int, typer.Option(help="Comparisons of two events (IP).", rich_help_panel=_QUERY)
    ] = 0,
    simple_predicates: Annotated[
        int, typer.Option(help="Comparisons with constants (SP).", rich_help_panel=_QUERY)
    ] = 0,
    negations: Annotated[
        int, typer.Option(help="Negated components (N).", rich_help_panel=_QUERY)
    ] = 0,
    negated_ends: Annotated[
        bool,
        typer.Option(
            "--negated-ends", help="Negations also first and last.", rich_help_panel=_QUERY
        ),
    ] = False,
    repeated_types: Annotated[
        bool,
        typer.Option(
            "--repeated-types", help="One type in several components.", rich_help_panel=_QUERY
        ),
    ] = False,
    window: Annotated[
        int, typer.Option(help="Window in ticks (W); 0 for none.", rich_help_panel=_QUERY)
    ] = 10_000,
    types: Types = 20,
    attributes: Attributes = 5,
    domain_sizes: DomainSizes = "100",
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """
    Make queries over generated streams as the SASE paper does.

    [bold]Examples[/bold]

      cepheid generate queries --length 4 --simple-predicates 2
      cepheid generate queries queries/ -n 100 --negations 1 --window 500
    """
    wanted = QueryParameters(
        queries=number,
        length=length,
        type_theta=type_theta,
        equivalence_tests=equivalence_tests,
        inequality_predicates=inequality_predicates,
        simple_predicates=simple_predicates,
        negations=negations,
        window=window or None,
        repeated_types=repeated_types,
        negated_ends=negated_ends,
        seed=seed,
    )
    over = StreamParameters(
        types=types, attributes=attributes, domain_sizes=_sizes(domain_sizes), seed=seed
    )
    texts = generate_queries(wanted, over)
    if out is None:
        typer.echo(_program(texts), nl=False)
    elif out.suffix:
        _write_text(out, _program(texts), overwrite)
    else:
        out.mkdir(parents=True, exist_ok=True)
        digits = len(str(len(texts)))
        for position, text in enumerate(texts, start=1):
            _write_text(out / f"q{position:0{digits}d}.sase", f"{text}\n", overwrite)
    if out is not None:
        typer.echo(f"{len(texts):,} queries written to {out}")


@app.command(no_args_is_help=True)
def store(
    out: Out,
    events: Annotated[int, typer.Option(help="Number of readings.")] = 1_000_000,
    thieves: Annotated[int, typer.Option(help="Items that are stolen.")] = 25,
    shelves: Annotated[int, typer.Option(help="Shelves with a reader.")] = 120,
    counters: Annotated[int, typer.Option(help="Counters with a reader.")] = 12,
    exits: Annotated[int, typer.Option(help="Exits with a reader.")] = 4,
    opening: Annotated[datetime, typer.Option(help="When the store opens, UTC.")] = datetime(
        2006, 6, 27, 8
    ),
    seed: Seed = 0,
    truth: Truth = None,
    rows_per_file: RowsPerFile = None,
    overwrite: Overwrite = False,
) -> None:
    """
    Make a day of RFID readings in a store, with thieves and misplaced items.

    [bold]Examples[/bold]

      cepheid generate store readings.parquet --thieves 10
      cepheid generate store readings/ --events 20000000 --truth truth.json
    """
    made = generate_store(
        StoreParameters(
            events=events,
            thieves=thieves,
            shelves=shelves,
            counters=counters,
            exits=exits,
            opening=opening.replace(tzinfo=UTC),
            seed=seed,
        )
    )
    _write_story(made.readings, out, rows_per_file, overwrite)
    if truth is not None:
        facts = {"stolen": sorted(made.stolen), "misplaced": sorted(made.misplaced)}
        _write_text(truth, _json({**facts, "theft_matches": made.theft_matches}), overwrite)


@app.command(no_args_is_help=True)
def medicine(
    out: Out,
    patients: Annotated[int, typer.Option(help="Number of patients.")] = 8,
    days: Annotated[int, typer.Option(help="Number of days.")] = 3,
    overdoses: Annotated[int, typer.Option(help="Patients who take too much once.")] = 4,
    seed: Seed = 0,
    truth: Truth = None,
    overwrite: Overwrite = False,
) -> None:
    """
    Make a record of doses that patients took, with some overdoses.

    [bold]Examples[/bold]

      cepheid generate medicine doses.csv
      cepheid generate medicine doses.jsonl --patients 1000 --days 30 --overdoses 12
    """
    record = generate_medicine(
        MedicineParameters(patients=patients, days=days, overdoses=overdoses, seed=seed)
    )
    _write_story(record.readings, out, None, overwrite)
    if truth is not None:
        facts = {"overdosed": sorted(list(each) for each in record.overdosed)}
        _write_text(truth, _json(facts), overwrite)


def _write_story(readings: pa.Table, out: Path, rows_per_file: int | None, overwrite: bool) -> None:
    written = write_events(readings, out, rows_per_file=rows_per_file, overwrite=overwrite)
    typer.echo(f"{written:,} events written to {out}")


def _watched(batches: Iterable[pa.RecordBatch], bar: ProgressBar) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        yield batch
        rows += batch.num_rows
        bar.update(rows)


def _sizes(text: str) -> int | tuple[int, ...]:
    try:
        sizes = tuple(int(each) for each in text.split(","))
    except ValueError:
        message = f"`--domain-sizes {text}` is not a number, nor numbers with commas"
        raise OptionError.of("bad-generator-parameter", message) from None
    return sizes[0] if len(sizes) == 1 else sizes


def _program(texts: list[str]) -> str:
    """Several queries in one text need names."""
    if len(texts) == 1:
        return f"{texts[0]}\n"
    named = (f"Q{position}: {text};\n" for position, text in enumerate(texts, start=1))
    return "\n".join(named)


def _write_text(path: Path, text: str, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        message = f"`{path}` exists already"
        raise OptionError.of("output-exists", message, help="choose another path, or --overwrite")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, indent=2) + "\n"
