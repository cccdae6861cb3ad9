"""`cepheid demo`: shoplifters in a generated store, found on Spark, checked against the truth."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table

import cepheid
from cepheid.cli.hosts import size_text
from cepheid.delivery.nested_columns import plain_table
from cepheid.generate import Store, StoreParameters, generate_store, write_events
from cepheid.model.errors import InternalError, OptionError
from cepheid.report import Absence, TimelineOptions, draw_png, write_html

app = typer.Typer(rich_markup_mode="rich", add_completion=False)

QUERY = """\
EVENT SEQ(SHELF-READING x, !(COUNTER-READING y), EXIT-READING z)
WHERE [id]
WITHIN 12 hours"""

_FILES = 8
_LANES = 6


@app.command()
def demo(
    events: Annotated[int, typer.Option(help="Readings to generate.")] = 1_000_000,
    thieves: Annotated[int, typer.Option(help="Items that are stolen.")] = 25,
    seed: Annotated[int, typer.Option(help="Another seed, another day.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for readings and pictures; else a temporary one."),
    ] = None,
    host: Annotated[str, typer.Option(help="scan (on Spark) or process.")] = "scan",
    master: Annotated[str, typer.Option(help="Spark's master.")] = "local[*]",
    limit: Annotated[int, typer.Option(min=1, help="Items shown in the table.")] = 12,
) -> None:
    """
    Find shoplifters in a generated store.

    A day of RFID readings is made and written as Parquet files. Spark looks for
    items that went from a shelf to an exit without passing a counter; the answer
    is compared with the thefts that were made up.

    [bold]Examples[/bold]

      cepheid demo
      cepheid demo --events 5000000 --thieves 100 --out demo/
      cepheid demo --host process
    """
    if host not in ("scan", "process"):
        message = f"the demo has no host `{host}`"
        raise OptionError.of("unknown-host", message, help="give scan or process")
    console = Console(highlight=False)
    console.print("\n[bold]Who leaves without paying?[/bold]\n")
    console.print(Padding(Syntax(QUERY, "sql", background_color="default"), (0, 0, 1, 2)))
    steps = _Steps(console)
    parameters = StoreParameters(events=events, thieves=thieves, seed=seed)
    with steps.step("making a day of readings") as step:
        store = generate_store(parameters)
        step.done(f"{events:,} RFID readings of {parameters.items:,} items, {thieves} thefts")
    folder = out or Path(tempfile.mkdtemp(prefix="cepheid-demo-"))
    with steps.step("writing Parquet files") as step:
        readings = folder / "readings"
        rows = max(1, -(-events // _FILES))
        write_events(store.readings, readings, rows_per_file=rows, overwrite=True)
        files = sorted(readings.glob("*.parquet"))
        size = size_text(sum(file.stat().st_size for file in files))
        step.done(f"{len(files)} Parquet files, {size}")
    query = cepheid.compile(QUERY)
    matches = _find(query, readings, host, master, steps)
    _check(matches, store)
    console.print(_thefts_table(matches, limit))
    found = len(_stolen(matches))
    if found > limit:
        console.print(f"  [dim]... and {found - limit:,} more items[/dim]")
    console.print(
        f"  [green]✔[/green] exactly the {found} stolen items "
        f"[dim](in {matches.num_rows} matches, one for each shelf reading)[/dim]\n"
    )
    with steps.step("drawing timelines") as step:
        png, page = _draw(matches, store, folder)
        step.done("timelines of a few thefts")
    console.print()
    for what, where in (("picture", png), ("page", page), ("readings", readings)):
        console.print(f"  [dim]{what:<9}[/dim]{where}", soft_wrap=True)
    console.print(f"\n  [bold]{steps.total:.1f} s[/bold] in all\n")


class _Step:
    """One step of the demo; `text` is what is told of it when it is over."""

    def __init__(self) -> None:
        self.text = ""

    def done(self, text: str) -> None:
        """Say what was done."""
        self.text = text


class _Steps:
    """Tells each step and how long it took; on a terminal also that it is under way."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.total = 0.0

    @contextmanager
    def step(self, doing: str) -> Iterator[_Step]:
        """Time what is done inside."""
        step = _Step()
        begin = monotonic()
        with self._console.status(f"{doing} …"):
            yield step
        seconds = monotonic() - begin
        self.total += seconds
        self._console.print(f"  [dim]{seconds:6.1f} s[/dim]  {step.text}")


def _find(
    query: cepheid.CompiledQuery, readings: Path, host: str, master: str, steps: _Steps
) -> pa.Table:
    if host == "process":
        from pyarrow.parquet import read_table  # noqa: PLC0415 (Spark's workers read otherwise)

        with steps.step("looking for thieves") as step:
            matches: Any = cepheid.detect(read_table(readings), query)
            step.done("looked for thieves in this process")
        return _by_time(matches)
    from cepheid.hosts.spark_session import local_session  # noqa: PLC0415 (loads pyspark)

    with steps.step("starting Spark") as step:
        spark = local_session(master)
        step.done(f"Spark {spark.version} started, {master}")
    with steps.step("looking for thieves on Spark") as step:
        matches = cepheid.scan(spark, str(readings), query).toArrow()
        step.done("looked for thieves on Spark")
    return _by_time(matches)


def _by_time(matches: pa.Table) -> pa.Table:
    plain = plain_table(matches)
    return plain.take(pc.sort_indices(plain, [("end", "ascending"), ("start", "ascending")]))


def _stolen(matches: pa.Table) -> set[str]:
    return set(pc.struct_field(matches["z"], "id").to_pylist())


def _check(matches: pa.Table, store: Store) -> None:
    """The demo is worth nothing if its answer is wrong."""
    found = _stolen(matches)
    if found != store.stolen or matches.num_rows != store.theft_matches:
        missed, invented = sorted(store.stolen - found), sorted(found - store.stolen)
        raise InternalError.of(
            "wrong-answer",
            f"{matches.num_rows} matches were found where there are {store.theft_matches}",
            notes=[f"missed: {missed[:5]}", f"invented: {invented[:5]}"],
            help="please report it with the seed and the number of events",
        )


def _thefts_table(matches: pa.Table, limit: int) -> Table:
    """One row for each stolen item: where it was last seen, where it left."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for name in ("item", "product", "price", "last on a shelf", "out by"):
        table.add_column(name, justify="right" if name == "price" else "left", no_wrap=True)
    items: dict[str, list[dict[str, Any]]] = {}
    for row in matches.to_pylist():
        items.setdefault(row["z"]["id"], []).append(row)
    for item, rows in list(items.items())[:limit]:
        last = max(rows, key=lambda row: row["start"])
        x, z = last["x"], last["z"]
        seen, out = (f"{last[name]:%H:%M}" for name in ("start", "end"))
        table.add_row(
            f"[bold]{item}[/bold]",
            x["product"],
            f"{x['price']:.2f} €",
            f"[cyan]{x['reader']}[/cyan] {seen}",
            f"[red]{z['reader']}[/red] {out}",
        )
    return table


def _draw(matches: pa.Table, store: Store, folder: Path) -> tuple[Path, Path]:
    options = TimelineOptions(
        title="Items that left without being paid",
        limit=_LANES,
        name="id",
        one_per_name=True,
        description=("product",),
        detail=("reader",),
        window=timedelta(hours=12),
        absences=(Absence("COUNTER-READING", "x", "z"),),
    )
    png = draw_png(matches, folder / "timeline.png", options)
    page = write_html(matches, folder / "timeline.html", options)
    return png, page
