"""The shared truth: cases in YAML files, each a query and a stream with the matches worked by hand.

Fields: `case` (its name), `from` (the source of the expectation), `query` (language and text),
`stream` (as in cepheid.testing; sorted by time here), `options`, and `matches`: names in pattern
order, with ` @TIME` for the result time, or a mapping for a RETURN clause. `wide` are the matches
where all events stand in one table, which can not tell an absent attribute from a null.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from cepheid.testing import Event, Expected, stream

FOLDER = Path(__file__).parent
NAME = "event"
"""The column of the events' names; `id` is left to the queries, as in the paper's examples."""

_FIELDS = {"case", "from", "query", "stream", "options", "matches", "wide"}


@dataclass(frozen=True)
class Case:
    """One case, ready to run."""

    file: str
    name: str
    origin: str
    language: str
    text: str
    rows: list[Event]
    matches: list[Expected]
    wide: list[Expected]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"

    def table(self) -> pa.Table:
        """All events in one wide table, where what an event lacks is null."""
        names = dict.fromkeys(name for row in self.rows for name in row)
        return pa.table({name: [row.get(name) for row in self.rows] for name in names})


def load_cases(only: str | None = None) -> list[Case]:
    """The cases of one file, or of all files.

    A misspelt field or a name used twice is refused.
    """
    paths = sorted(FOLDER.glob("*.yaml"))
    cases = [
        _case(path.stem, entry)
        for path in (paths if only is None else [FOLDER / f"{only}.yaml"])
        for entry in yaml.safe_load(path.read_text("utf-8"))
    ]
    names = [str(case) for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"cases of the same name: {sorted(repeated)}")
    return cases


def _case(file: str, entry: dict[str, Any]) -> Case:
    unknown = entry.keys() - _FIELDS
    missing = {"case", "from", "query", "stream", "matches"} - entry.keys()
    if unknown or missing:
        raise ValueError(f"{file}: {entry.get('case')}: unknown {unknown}, missing {missing}")
    ((language, text),) = entry["query"].items()
    rows = stream(entry["stream"], NAME)
    has_intervals = any("start" in row and "end" in row for row in rows)
    rows.sort(key=lambda row: (row["end"], row["start"]) if has_intervals else row["ts"])
    columns = {"start": "start", "end": "end"} if has_intervals else {}
    return Case(
        file,
        entry["case"],
        entry["from"],
        language,
        text,
        rows,
        entry["matches"],
        entry.get("wide", entry["matches"]),
        columns | entry.get("options", {}),
    )
