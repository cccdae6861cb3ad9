"""Arguments that several commands share, and what they become: a query and its options."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import OptionError
from cepheid.model.options import Options, PlanOptions, Value, make_options

_QUERY, _EVENTS, _MEANING = "Query", "Events", "Meaning"

QueryFile = Annotated[
    Path | None,
    typer.Argument(metavar="QUERY_FILE", help="The query's file; - reads it from standard input."),
]
QueryText = Annotated[
    str | None,
    typer.Option("-q", "--query-text", help="The query itself.", rich_help_panel=_QUERY),
]
QueryName = Annotated[
    str | None,
    typer.Option(
        "--query", metavar="NAME", help="Which query of a program; else the last.",
        rich_help_panel=_QUERY,
    ),
]  # fmt: skip
Language = Annotated[
    str | None,
    typer.Option(help="The query's language; else told by its words.", rich_help_panel=_QUERY),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", rich_help_panel=_QUERY,
        help="A value for :NAME in the query: a number, true, false, or text (quote '7' to force).",
    ),
]  # fmt: skip
TypeColumn = Annotated[
    str, typer.Option("--type-column", help="Column of the event type.", rich_help_panel=_EVENTS)
]
TimeColumn = Annotated[
    str,
    typer.Option("--time", help="Column of time: timestamps or ticks.", rich_help_panel=_EVENTS),
]
StartColumn = Annotated[
    str | None,
    typer.Option(
        "--start", help="Column of the start, for events that last.", rich_help_panel=_EVENTS
    ),
]
EndColumn = Annotated[
    str | None,
    typer.Option("--end", help="Column of the end, for events that last.", rich_help_panel=_EVENTS),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="Column that identifies an event.", rich_help_panel=_EVENTS),
]
TypesFile = Annotated[
    Path | None,
    typer.Option(
        "--types", metavar="FILE", rich_help_panel=_EVENTS,
        help='JSON with the attributes of each type, {"Shelf": ["id"]}: else null means absent.',
    ),
]  # fmt: skip
Lateness = Annotated[
    str,
    typer.Option(
        help='How late events may come, "10 s" or ticks.', rich_help_panel=_EVENTS
    ),
]  # fmt: skip
Tick = Annotated[
    str | None,
    typer.Option(help='Length of one tick, "1 s", for windows in units.', rich_help_panel=_EVENTS),
]
Continuous = Annotated[
    bool,
    typer.Option("--continuous", help="Time is dense, not discrete.", rich_help_panel=_MEANING),
]
Tie = Annotated[
    str,
    typer.Option(
        help="Events of one time: strict (unordered) or seqno (as they came).",
        rich_help_panel=_MEANING,
    ),
]
Cap = Annotated[
    int | None,
    typer.Option(
        "--cap", metavar="N", min=1, rich_help_panel=_MEANING,
        help="The most elements of a run, in queries of NEXT.",
    ),
]  # fmt: skip
Failures = Annotated[
    bool,
    typer.Option(
        "--failures", help="Report failed detections, too (NEXT).", rich_help_panel=_MEANING
    ),
]
Statistics = Annotated[
    Path | None,
    typer.Option(
        "--statistics", "--stats", metavar="FILE", rich_help_panel=_MEANING,
        help="Statistics of the events, made by cepheid analyze: the optimiser's costs.",
    ),
]  # fmt: skip
Plan = Annotated[
    list[str] | None,
    typer.Option(
        "--plan", metavar="NAME=VALUE", rich_help_panel=_MEANING,
        help="Force a plan option, e.g. partition=none.",
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """What was given on the command line, before it is checked: each field is an option."""

    params: Params = None
    type_column: TypeColumn = "type"
    time: TimeColumn = "ts"
    start: StartColumn = None
    end: EndColumn = None
    id: IdColumn = None
    types: TypesFile = None
    lateness: Lateness = "0"
    tick: Tick = None
    continuous: Continuous = False
    tie: Tie = "strict"
    cap: Cap = None
    failures: Failures = False
    statistics: Statistics = None
    plan: Plan = None

    def as_keywords(self) -> dict[str, Any]:
        """The keyword arguments of `detect` and its kin, at their defaults left out."""
        given: dict[str, Any] = {
            "type": self.type_column,
            "time": self.time,
            "start": self.start,
            "end": self.end,
            "id": self.id,
            "lateness": _duration(self.lateness),
            "tick": None if self.tick is None else _duration(self.tick),
            "types": None if self.types is None else read_types(self.types),
            "params": dict(_parameter(each) for each in self.params or ()),
            "discrete": not self.continuous,
            "tie": self.tie,
            "cap": self.cap,
            "failures": self.failures,
            "statistics": None if self.statistics is None else str(self.statistics),
            "plan": dict(_plan_option(each) for each in self.plan or ()),
        }
        return {name: value for name, value in given.items() if value not in (None, {})}

    def as_options(self) -> Options:
        """The checked options."""
        return make_options(self.as_keywords())


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command have all options of events and meaning; it gets them as `given`."""
    hints = get_type_hints(command, include_extras=True)
    own = [each for each in signature(command).parameters.values() if each.name != "given"]
    own = [each.replace(annotation=hints[each.name]) for each in own]
    of_options = get_type_hints(GivenOptions, include_extras=True)
    shared = [
        Parameter(
            each.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=each.default,
            annotation=of_options[each.name],
        )
        for each in fields(GivenOptions)
    ]

    @wraps(command)
    def called(**values: Any) -> None:
        given = GivenOptions(**{each.name: values.pop(each.name) for each in shared})
        command(given=given, **values)

    parameters = [*own, *shared]
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def read_query(file: Path | None, text: str | None) -> tuple[str, str]:
    """The query's text and the name it goes by in messages."""
    if (file is None) == (text is None):
        raise OptionError.of(
            "which-query",
            "give the query either as a file or with --query-text",
            help="cepheid run query.sase --events events.csv",
        )
    if text is not None:
        return text, "query"
    assert file is not None
    is_piped = str(file) == "-"
    content = sys.stdin.buffer.read() if is_piped else file.read_bytes()
    name = "standard input" if is_piped else str(file)
    try:
        # Windows' editors begin a file with a mark of its byte order, and end lines with two signs.
        return content.decode("utf-8-sig").replace("\r\n", "\n"), name
    except UnicodeDecodeError:
        raise OptionError.of(
            "query-not-text",
            f"`{name}` is not a text in UTF-8",
            help="the query's file comes first, the events go with --events",
        ) from None


def read_paths(given: Sequence[str]) -> dict[str, str]:
    """Where the events are: by the names of their sources, or one path under no name.

    >>> read_paths(["t=cards.csv", "u=logins.csv"]), read_paths(["s3://store/day=1/"])
    ({'t': 'cards.csv', 'u': 'logins.csv'}, {'': 's3://store/day=1/'})
    """
    found: dict[str, str] = {}
    for each in given:
        name, equals, path = each.partition("=")
        # A folder may be called `day=1`; a source is a name before a path of its own.
        is_named = equals and path and not {"/", "\\", "."} & set(name) and not Path(each).exists()
        source, place = (name.strip(), path) if is_named else ("", each)
        if source in found or (found and "" in (source, *found)):
            raise OptionError.of(
                "which-events",
                f"--events {each}: several are given, and not each for another source",
                help="name the source of each: --events t=cards.csv --events u=logins.csv",
            )
        found[source] = place
    return found


def read_types(path: Path) -> Mapping[str, Any]:
    """The attributes of each event type, from a JSON file."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as problem:
        raise OptionError.of(
            "bad-types-file",
            f"`{path}` is not JSON: {problem}",
            help='write e.g. {"Shelf": ["id"], "Exit": {"id": "int"}}',
        ) from None
    if not isinstance(found, dict):
        raise OptionError.of(
            "bad-types-file",
            f"`{path}` does not hold an object with a type for each name",
            help='write e.g. {"Shelf": ["id"], "Exit": {"id": "int"}}',
        )
    return found


def _duration(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d+", text.strip()) else text


def _assignment(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise OptionError.of(
            "bad-assignment",
            f"{option} {text}: a name and a value are wanted",
            help=f"write {option} NAME=VALUE",
        )
    return name.strip().removeprefix(":"), value


def _parameter(text: str) -> tuple[str, Value]:
    name, value = _assignment(text, "--param")
    return name, as_value(value)


def as_value(text: str) -> Value:
    """A number or truth value if it reads as one, else the text; quotes make it a text.

    >>> as_value("12"), as_value("1.5"), as_value("true"), as_value("John"), as_value("'12'")
    (12, 1.5, True, 'John', '12')
    """
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _plan_option(text: str) -> tuple[str, Value | tuple[str, ...]]:
    name, value = _assignment(text, "--plan")
    known = {field.name: field.type for field in fields(PlanOptions)}
    if name not in known:
        raise OptionError.of(
            "unknown-option",
            f"there is no plan option `{name}`",
            help=did_you_mean(name, known) or f"options: {', '.join(sorted(known))}",
        )
    if str(known[name]).startswith("tuple"):
        return name, tuple(each.strip() for each in value.split(","))
    read = as_value(value)
    wanted = "true or false" if known[name] == "bool" else "a word"
    if (known[name] == "bool") != isinstance(read, bool):
        raise OptionError.of("bad-plan-option", f"plan option {name}={value} is not {wanted}")
    return name, read
