"""`cepheid workload`: a manager that runs many queries, and the commands that talk to it."""

from __future__ import annotations

import typer

from cepheid.cli.quick_parameters import QuickCommand, QuickGroup
from cepheid.cli.workload_change import pause, resume, stop
from cepheid.cli.workload_explain import explain
from cepheid.cli.workload_list import list_queries
from cepheid.cli.workload_nodes import nodes
from cepheid.cli.workload_start import start
from cepheid.cli.workload_submit import submit

app = typer.Typer(
    cls=QuickGroup,
    rich_markup_mode="rich",
    add_completion=False,
    no_args_is_help=True,
    help="""
    Run many queries together, on several nodes, over events that keep coming.

    [bold]Examples[/bold]

      cepheid workload start --events incoming/ --detach
      cepheid workload submit thefts.sase
      cepheid workload list
      cepheid workload stop --all
    """,
    epilog="docs/manager.md tells what survives a kill, and where a query goes.",
)
app.command("start", cls=QuickCommand)(start)
app.command("submit", cls=QuickCommand, no_args_is_help=True)(submit)
app.command("list", cls=QuickCommand)(list_queries)
app.command("nodes", cls=QuickCommand)(nodes)
app.command("explain", cls=QuickCommand)(explain)
app.command("pause", cls=QuickCommand, no_args_is_help=True)(pause)
app.command("resume", cls=QuickCommand, no_args_is_help=True)(resume)
app.command("stop", cls=QuickCommand, no_args_is_help=True)(stop)
