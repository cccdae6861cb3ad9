"""How a failure is told: the user's errors with a caret, ours with a way to report them."""

from __future__ import annotations

import os
import platform
import re
import sys
import traceback
from typing import TextIO

from cepheid import __version__
from cepheid.cli.option_names import on_the_command_line, with_option_names
from cepheid.model.errors import CepheidError, InternalError

USERS_ERROR = 1
OUR_ERROR = 2

_BOLD, _RED, _YELLOW, _BLUE, _CYAN, _PLAIN = (
    f"\x1b[{code}m" for code in ("1", "1;31", "1;33", "1;34", "36", "0")
)
_PAINTED = (
    (re.compile(r"^error\[[^\]]*\]", re.MULTILINE), _RED),
    (re.compile(r"^warning\[[^\]]*\]", re.MULTILINE), _YELLOW),
    (re.compile(r"(?<=\| )( *)(\^+.*)$", re.MULTILINE), _RED),
    (re.compile(r"^ *-->", re.MULTILINE), _BLUE),
    (re.compile(r"^ *\d* \|", re.MULTILINE), _BLUE),
    (re.compile(r"^  = (?:help|note):", re.MULTILINE), _CYAN),
)


# An error that a Spark worker raised reaches the driver as text, within a traceback.
_FROM_WORKER = re.compile(
    r"^cepheid\.model\.errors\.(?P<kind>\w+): (?P<told>error\[.*?)(?=\n *SQLSTATE|\n\s+at |\Z)",
    re.MULTILINE | re.DOTALL,
)


def exit_code_of(problem: BaseException) -> int:
    """1 for what the user can mend: query, events, options, files, machine; 2 for our bugs."""
    if isinstance(problem, CepheidError | OSError | UnicodeError):
        return OUR_ERROR if isinstance(problem, InternalError) else USERS_ERROR
    told = _told_by_worker(problem)
    return OUR_ERROR if told is None or told["kind"] == InternalError.__name__ else USERS_ERROR


def report(problem: BaseException, *, debug: bool = False) -> None:
    """Write the failure to stderr, in colour on a terminal only."""
    if debug:
        traceback.print_exception(problem)
    if isinstance(problem, CepheidError):
        text = "\n\n".join(on_the_command_line(each).render() for each in problem.diagnostics)
    elif isinstance(problem, OSError):
        text = f"error[file]: {problem.strerror or problem}"
        text += f": {problem.filename}" if problem.filename else ""
    elif isinstance(problem, UnicodeError):
        text = f"error[not-utf-8]: events, names and values must be UTF-8: {problem}"
    elif (told := _told_by_worker(problem)) is not None:
        text = with_option_names(told["told"].rstrip())
    else:
        text = _our_fault(problem, debug)
    sys.stderr.write(painted(text, sys.stderr) + "\n")


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a person reads it, without the place in our source that gave it."""
    text = with_option_names(f"warning[{_code(category)}]: {message}")
    sys.stderr.write(painted(text, sys.stderr) + "\n")


def _code(category: type[Warning]) -> str:
    """`PerformanceWarning` is told as `performance`."""
    return category.__name__.removesuffix("Warning").lower() or "general"


def painted(text: str, stream: TextIO) -> str:
    """A rendered diagnostic in colours, if the stream shows them."""
    if not has_colours(stream):
        return text
    for pattern, colour in _PAINTED:
        text = pattern.sub(rf"{colour}\g<0>{_PLAIN}", text)
    return text


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user did not ask for no colours (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _told_by_worker(problem: BaseException) -> re.Match[str] | None:
    is_spark = type(problem).__module__.startswith("pyspark.")
    return _FROM_WORKER.search(str(problem)) if is_spark else None


def _our_fault(problem: BaseException, debug: bool) -> str:
    lines = [
        f"error[internal]: {type(problem).__name__}: {problem}".rstrip(": "),
        "  = note: this is a mistake in cepheid, not in your query or your events",
        f"  = note: cepheid {__version__}, Python {platform.python_version()}, {sys.platform}",
    ]
    if debug:
        lines.append("  = help: please report it with the traceback above")
    else:
        lines.append("  = help: run it again with --debug and please report what it prints")
    return "\n".join(lines)
