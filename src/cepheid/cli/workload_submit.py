"""`cepheid workload submit`: give a query to a running manager."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.arguments import Language, QueryFile, QueryName, QueryText, read_query
from cepheid.cli.failures import painted
from cepheid.cli.workload_arguments import USUAL_STATE, At, State
from cepheid.manager.client import ask_manager
from cepheid.manager.wire import diagnostic_from_json
from cepheid.model.diagnostics import Diagnostic
from cepheid.model.errors import OptionError, QueryError


def submit(
    query_file: QueryFile = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Its name in the workload; else that of the text.")
    ] = None,
    at: At = None,
    query_text: QueryText = None,
    query: QueryName = None,
    language: Language = None,
    state: State = USUAL_STATE,
) -> None:
    """
    Give a query to the manager; it runs from now on, beside the others.

    It sees the events that come after all those seen so far, or those from
    --at on. Mistakes in the text are shown as `cepheid check` shows them. If
    the text registers a sink for it, its matches go there.

    [bold]Examples[/bold]

      cepheid workload submit thefts.sase
      cepheid workload submit - --name pairs < pairs.next
      cepheid workload submit -q "EVENT SEQ(A x, B y) WITHIN 10 s" --name pairs
    """
    if (query_file is None) == (query_text is None):
        message = "give the query either as a file or with --query-text"
        raise OptionError.of("which-query", message, help="cepheid workload submit QUERY_FILE")
    text, source = read_query(query_file, query_text)
    request = {
        "do": "submit",
        "text": text,
        "source": source,
        "name": name,
        "at": at,
        "language": language,
        "query": query,
        "folder": str(Path.cwd()),
    }
    try:
        answer = ask_manager(state, request)
    except QueryError as problem:
        raise QueryError([_with_own_help(each) for each in problem.diagnostics]) from None
    for told in answer["warnings"]:
        warning = diagnostic_from_json(told)
        sys.stderr.write(painted(warning.render(), sys.stderr) + "\n")
    typer.echo(f"{answer['name']} runs on node {answer['node']}")


def _with_own_help(found: Diagnostic) -> Diagnostic:
    """Parameters have the same values for all queries of a manager."""
    if found.code != "missing-parameter":
        return found
    return replace(
        found, help="values are given to the manager: cepheid workload start --param NAME=VALUE"
    )
