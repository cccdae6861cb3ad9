"""The command `cepheid`: its sub-commands, its exit codes, and how errors are shown."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from cepheid import __version__
from cepheid.cli.failures import USERS_ERROR, exit_code_of, report, show_warning
from cepheid.cli.lean_imports import leave_own_process, start_own_process
from cepheid.cli.quick_parameters import quickly

COMMANDS = {
    "run": "Find the matches of a query in event files.",
    "explain": "Show what a query means, how it will run, and why.",
    "check": "Parse and lint a query without running it.",
    "workload": "Run many queries at once, on several nodes.",
    "analyze": "Measure rates, gaps and values of events.",
    "generate": "Make event streams and query sets.",
    "demo": "Find shoplifters in a generated store.",
}
_DEBUG = "--debug"
_USAGE_ERROR = 2  # what the parser of arguments exits with


class Commands(TyperGroup):
    """Commands that are imported when they are called, so that `cepheid --help` is quick."""

    def __init__(self, **settings: Any) -> None:
        """All commands by name and sentence; their arguments are not known yet."""
        super().__init__(**settings)
        for name, sentence in COMMANDS.items():
            self.commands[name] = TyperCommand(name=name, help=sentence)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters before the command's name."""
        return [quickly(each) for each in super().get_params(ctx)]

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order a user meets them, not by the alphabet."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, now with its arguments."""
        name = args[0]
        if name in COMMANDS:
            self.commands[name] = get_command(import_module(f"cepheid.cli.{name}").app)
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and exit: 0 fine, 1 the user's error, 2 ours."""
        given = list(sys.argv[1:] if args is None else args)
        debug = _DEBUG in given
        given = [each for each in given if each != _DEBUG]
        try:
            return super().main(
                given, prog_name, complete_var, standalone_mode, windows_expand_args, **extra
            )
        except SystemExit as leaving:
            # A wrong argument is the user's error as much as a wrong query.
            sys.exit(USERS_ERROR if leaving.code == _USAGE_ERROR else leaving.code)
        except Exception as problem:
            report(problem, debug=debug)
            sys.exit(exit_code_of(problem))


app = typer.Typer(
    name="cepheid",
    cls=Commands,
    help="Find patterns of events in files, with one answer in process and on Spark.",
    epilog="Each command has examples: cepheid run --help",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cepheid {__version__}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option(_DEBUG, help="Show the traceback of an error that is ours.")
    ] = False,
) -> None:
    """What all commands share; `--debug` may also stand behind the command."""


def main() -> None:
    """The console script."""
    # What a start-up builds is not garbage; looking through it again and again costs a tenth of it.
    gc.disable()
    warnings.showwarning = show_warning
    start_own_process()
    try:
        app(prog_name="cepheid")
    except SystemExit as leaving:
        leave_own_process(leaving.code)
        raise
