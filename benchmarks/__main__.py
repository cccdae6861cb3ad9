"""`python -m benchmarks NAME`: run one benchmark, or all, print its table and write its JSON."""

import importlib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.figures import FIGURES
from benchmarks.figures.claims import write_claims
from benchmarks.figures.figure import HERE
from benchmarks.options import Options
from benchmarks.report import QUICK_RESULTS, Report

BENCHMARKS = (
    "in_process",
    "successors",
    "many_queries",
    "first_result",
    "compile_once",
    "spark_hosts",
    "placement",
    *FIGURES,
)
CLAIMS = "claims"
KNOWN = ", ".join((*BENCHMARKS, CLAIMS))

application = typer.Typer(add_completion=False)


@application.command()
def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {KNOWN}; default: all.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes: shows that it works, no figures.")] = (
        False
    ),
    repeats: Annotated[int | None, typer.Option(min=1, help="Timed runs of each.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Part of a benchmark; repeatable.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder for generated events.")] = None,
) -> None:
    """Measure cepheid beside limits and baselines; a wrong number of matches writes no time.

    Examples:

      python -m benchmarks in_process

      python -m benchmarks spark_hosts --only scan --data /mnt/fast/cepheid --repeats 5

      python -m benchmarks fig8 fig9 claims

    `claims` draws the figures of the paper anew from their results and writes the table of what
    the paper claims.
    """
    unknown = [name for name in names or () if name not in (*BENCHMARKS, CLAIMS)]
    if unknown:
        raise typer.BadParameter(f"no benchmark named {unknown[0]}; known: {KNOWN}")
    chosen = {"data": data} if data else {}
    options = Options(quick=quick, repeats=repeats, only=tuple(only or ()), **chosen)
    console = Console(width=None if Console().is_terminal else 180)
    sound = True
    for name in names or (*BENCHMARKS, CLAIMS):
        if name == CLAIMS:
            console.print(
                f"claims: {write_claims(QUICK_RESULTS if quick else HERE)}", highlight=False
            )
            continue
        report: Report = importlib.import_module(module_of(name)).run(options)
        if options.only:  # a part must not overwrite the whole
            report.name += "-" + "-".join(options.only)
        report.show(console)
        if any(report.runs.values()) or report.claims:
            console.print(f"raw runs: {report.write()}", highlight=False)
        sound = sound and report.is_sound
    raise typer.Exit(0 if sound else 1)


def module_of(name: str) -> str:
    """The module that measures a benchmark."""
    return f"benchmarks.figures.{FIGURES[name]}.run" if name in FIGURES else f"benchmarks.{name}"


if __name__ == "__main__":
    application()
