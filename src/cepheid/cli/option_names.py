"""Messages that name a keyword argument of Python, told with the option of the command line."""

from __future__ import annotations

import re
from dataclasses import replace

from cepheid.model.diagnostics import Diagnostic

OPTIONS = {
    "params": "--param",
    "type": "--type-column",
    "time": "--time",
    "start": "--start",
    "end": "--end",
    "id": "--id",
    "types": "--types",
    "lateness": "--lateness",
    "tick": "--tick",
    "tie": "--tie",
    "cap": "--cap",
    "statistics": "--statistics",
    "plan": "--plan",
}
_MAPPINGS = {"params", "plan"}
"""Of these each entry is given by itself: `--param NAME=VALUE`."""

# What stands in backticks is the user's own text, and stays as it is.
_KEYWORD = re.compile(
    rf"""
      `[^`]*`
    | (?<![\w.-]) (?P<name>{"|".join(OPTIONS)}) =
      (?: \{{ ['"] (?P<key>\w+) ['"] :\s* (?P<item>[^}}]*) \}} | (?P<value>"[^"]*"|'[^']*'|\w+) )?
    """,
    re.VERBOSE,
)


def with_option_names(text: str) -> str:
    """A sentence about keyword arguments as one about the options of the command.

    >>> with_option_names('give tick="1 s", or name the column with time=; not `time=1`')
    'give --tick "1 s", or name the column with --time; not `time=1`'
    >>> with_option_names('give it with params={"w": ...}, or tie="strict"')
    'give it with --param w=..., or --tie strict'
    """
    return _KEYWORD.sub(_as_option, text)


def on_the_command_line(found: Diagnostic) -> Diagnostic:
    """The same diagnostic in the words of the command; what it shows of a text stays as it is."""
    return replace(
        found,
        message=with_option_names(found.message),
        notes=tuple(map(with_option_names, found.notes)),
        help=found.help and with_option_names(found.help),
    )


def _as_option(found: re.Match[str]) -> str:
    name = found["name"]
    is_mapping = found["key"] is not None
    if name is None or (is_mapping and name not in _MAPPINGS):
        return found.group()
    if is_mapping:
        return f"{OPTIONS[name]} {found['key']}={_bare(found['item'].strip('[]'))}"
    return OPTIONS[name] if found["value"] is None else f"{OPTIONS[name]} {_bare(found['value'])}"


def _bare(value: str) -> str:
    """A value as it is typed in a shell: quotes are for spaces."""
    return value if " " in value else value.strip("'\"")
