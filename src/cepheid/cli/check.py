"""`cepheid check`: parse and lint a query without running it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.arguments import (
    Cap,
    Failures,
    Language,
    QueryText,
    TypesFile,
    read_query,
    read_types,
)
from cepheid.cli.failures import USERS_ERROR, painted
from cepheid.cli.quick_parameters import QuickCommand
from cepheid.languages.registry import detect_language, meaning_options, translate
from cepheid.model.catalogue import Catalogue
from cepheid.model.diagnostics import Diagnostic, SourceText
from cepheid.model.errors import CepheidError
from cepheid.model.options import Options

app = typer.Typer(rich_markup_mode="rich", add_completion=False)


@app.command(no_args_is_help=True, cls=QuickCommand)
def check(
    query_files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="QUERY_FILE", help="The queries' files; - for standard input."),
    ] = None,
    query_text: QueryText = None,
    language: Language = None,
    types: TypesFile = None,
    cap: Cap = None,
    failures: Failures = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the findings as a JSON array on standard output.")
    ] = False,
) -> None:
    """
    Parse and lint queries without running them.

    Errors and warnings go to standard error with their place; the exit code is
    1 if there is an error. With --types the names and types of attributes are
    checked, too.

    [bold]Examples[/bold]

      cepheid check query.sase
      cepheid check queries/*.sase --json
      cepheid check -q "EVENT SEQ(A x, B y) WHERE x.id = y.id" --types types.json
    """
    texts = [read_query(file, None) for file in query_files or ()]
    if query_text is not None or not texts:
        texts.append(read_query(None, query_text))
    catalogue = Catalogue.from_option(None if types is None else read_types(types))
    options = Options(cap=cap, failures=failures)
    findings: list[Diagnostic] = []
    for text, name in texts:
        findings += _findings(SourceText(text, name), language, catalogue, options)
    if json_output:
        typer.echo(json.dumps([each.as_dict() for each in findings], ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            sys.stderr.write(painted(finding.render(), sys.stderr) + "\n\n")
        _summarise(findings, len(texts))
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(USERS_ERROR)


def _findings(
    source: SourceText, language: str | None, catalogue: Catalogue, options: Options
) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    try:
        chosen = language or detect_language(source)
        meaning = dict(meaning_options(chosen.casefold(), options))
        translate(source, chosen, catalogue, report=found.append, **meaning)
    except CepheidError as problem:
        found += problem.diagnostics
    return sorted(found, key=lambda each: each.span.start if each.span else 0)


def _summarise(findings: list[Diagnostic], texts: int) -> None:
    errors = sum(each.severity == "error" for each in findings)
    warnings = len(findings) - errors
    if not findings:
        typer.echo("no problems found" if texts == 1 else f"{texts} texts, no problems found")
        return
    counts = [_counted(errors, "error"), _counted(warnings, "warning")]
    typer.echo(" and ".join(each for each in counts if each), err=bool(errors))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}" if count else ""
