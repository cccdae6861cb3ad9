"""One figure: its points with counters and times, what the paper says of it, its JSON and PNG."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.harness import Clock, Runs
from benchmarks.report import QUICK_RESULTS, Report

HERE = Path(__file__).resolve().parent

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """One plan at one place of the x-axis: what it counted and how fast it was.

    `counters` are those of the whole run over `events` events. `stopped` says why there is no time,
    or only the time of a part.
    """

    panel: str
    x: float
    series: str
    events: int
    matches: int | None
    counters: Mapping[str, int] = field(default_factory=dict)
    events_per_second: float | None = None
    stopped: str | None = None

    @property
    def sequences(self) -> int:
        """Sequences built, before a selection on top looked at them."""
        return self.counters["sequences"]

    @property
    def work(self) -> float:
        """Steps per event of the stream: looked at, entries pushed, edges followed."""
        return 1 + (self.counters["pushed"] + self.counters["edges"]) / self.events

    def per_event(self, counter: str) -> float:
        """A counter per event of the stream."""
        return self.counters[counter] / self.events


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """What the paper says, what that would mean here, and what was measured."""

    name: str
    claim: str
    expected: str
    measured: str
    holds: bool


@dataclass(slots=True)
class Figure(Report):
    """The report of a figure; it also keeps points and the paper's claims."""

    folder: str = ""
    points: list[Point] = field(default_factory=list)
    paper_claims: list[PaperClaim] = field(default_factory=list)

    def point(self, panel: str, x: float, series: str) -> Point:
        """The point of a series at one place."""
        for each in self.points:
            if (each.panel, each.x, each.series) == (panel, x, series):
                return each
        msg = f"{self.name} has no point {panel} {x} {series}"
        raise KeyError(msg)

    def speed(self, panel: str, x: float, series: str) -> float:
        """Events per second of a point that was timed."""
        found = self.point(panel, x, series).events_per_second
        assert found is not None
        return found

    def says(self, name: str, claim: str, expected: str, measured: str, *, holds: bool) -> None:
        """State one of the paper's claims and whether it holds here."""
        self.paper_claims.append(PaperClaim(name, claim, expected, measured, bool(holds)))

    @property
    def is_sound(self) -> bool:
        """Whether nothing failed; a paper's claim that does not hold here is a finding."""
        return not self.failures

    def write(self, folder: Path | None = None) -> Path:
        """Write the JSON, and the picture beside it; a quick run never overwrites a full one."""
        if folder is None:
            folder = QUICK_RESULTS / self.folder if self.is_quick else HERE / self.folder
        (folder / "results").mkdir(parents=True, exist_ok=True)
        path = folder / "results" / f"{self.name}.json"
        path.write_text(json.dumps(self._record(), indent=1) + "\n", encoding="utf-8")
        draw(self.folder, json.loads(path.read_text(encoding="utf-8")), folder)
        return path

    def show(self, console: Console) -> None:
        """Print runs, counters and the paper's claims."""
        Report.show(self, console)
        console.print(self._table_of_points())
        table = Table("claim", "the paper says", "expected", "measured", title="paper's claims")
        table.add_column("holds")
        for each in self.paper_claims:
            holds = "[green]yes[/]" if each.holds else "[red]no[/]"
            table.add_row(each.name, each.claim, each.expected, each.measured, holds)
        console.print(table)

    def _table_of_points(self) -> Table:
        table = Table("panel", "x", "series", title="points")
        counted = list(dict.fromkeys(name for each in self.points for name in each.counters))
        for heading in ("events", "matches", *counted, "M ev/s"):
            table.add_column(heading, justify="right")
        for each in self.points:
            counters = [f"{each.counters[c]:,}" if c in each.counters else "" for c in counted]
            speed = each.events_per_second
            table.add_row(
                each.panel,
                f"{each.x:g}",
                each.series,
                f"{each.events:,}",
                "" if each.matches is None else f"{each.matches:,}",
                *counters,
                each.stopped or (f"{speed / 1e6:.3f}" if speed is not None else ""),
            )
        return table

    def _record(self) -> dict[str, object]:
        record = Report._record(self)
        del record["claims"]
        record["points"] = [
            {
                "panel": each.panel,
                "x": each.x,
                "series": each.series,
                "events": each.events,
                "matches": each.matches,
                "counters": dict(each.counters),
                "events_per_second": each.events_per_second,
                "stopped": each.stopped,
            }
            for each in self.points
        ]
        record["paper_claims"] = [
            {
                "name": each.name,
                "claim": each.claim,
                "expected": each.expected,
                "measured": each.measured,
                "holds": each.holds,
            }
            for each in self.paper_claims
        ]
        return record


def speed(runs: Runs, clock: Clock = Clock.CPU) -> float:
    """Events per second of the median run."""
    return runs.events_per_second(clock)


def draw(folder: str, record: Record, target: Path) -> Path:
    """Draw a figure from its record; the module of the figure knows how."""
    module = importlib.import_module(f"benchmarks.figures.{folder}.run")
    path = target / f"{record['name']}.png"
    module.draw(record, path)
    return path
