"""What a benchmark found: claims, every raw run and the machine, as a table and as JSON."""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness import Clock, Ratio, Runs
from benchmarks.machine import machine_record

RESULTS = Path(__file__).resolve().parent / "results"
QUICK_RESULTS = Path(tempfile.gettempdir()) / "cepheid-benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Claim:
    """One figure asked for, and what was measured."""

    text: str
    asked: float
    measured: Ratio
    at_most: bool = False

    @property
    def holds(self) -> bool:
        """Whether the measured median satisfies what is asked."""
        if self.at_most:
            return self.measured.value <= self.asked
        return self.measured.value >= self.asked


@dataclass(slots=True)
class Report:
    """Everything one benchmark found."""

    name: str
    what: str
    is_quick: bool
    parameters: dict[str, object] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    runs: dict[str, list[Runs]] = field(default_factory=dict)
    notes: dict[str, object] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def keep(self, group: str, runs: dict[str, Runs]) -> dict[str, Runs]:
        """Keep the raw runs of one comparison and give them back."""
        self.runs[group] = list(runs.values())
        return runs

    def claim(self, text: str, asked: float, measured: Ratio, *, at_most: bool = False) -> None:
        """State a figure."""
        self.claims.append(Claim(text, asked, measured, at_most))

    def failed(self, group: str, error: Exception) -> None:
        """Record a comparison that gave no times, and why."""
        self.failures[group] = f"{type(error).__name__}: {error}"

    @property
    def is_sound(self) -> bool:
        """Whether nothing failed and, at full size, every claim holds."""
        return not self.failures and (self.is_quick or all(claim.holds for claim in self.claims))

    def write(self, folder: Path | None = None) -> Path:
        """Write the JSON; a quick run never overwrites a full one."""
        folder = folder or (QUICK_RESULTS if self.is_quick else RESULTS)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(self._record(), indent=1) + "\n", encoding="utf-8")
        return path

    def show(self, console: Console) -> None:
        """Print the runs, the claims and what failed."""
        console.print(f"\n[bold]{self.name}[/]: {self.what}")
        if self.is_quick:
            console.print("[yellow]quick run: sizes too small for its figures to mean anything[/]")
        if self.runs:
            console.print(self._table_of_runs())
        if self.claims:
            console.print(self._table_of_claims())
        for name, note in self.notes.items():
            console.print(f"{name}: {note}", highlight=False, markup=False)
        for group, error in self.failures.items():
            console.print(f"failed: {group}: {error}", style="red", markup=False)

    def _table_of_runs(self) -> Table:
        table = Table("comparison", "contender", title="runs: median (fastest - slowest)")
        for heading in ("events", "matches", "wall s", "CPU s", "M ev/s wall", "M ev/s CPU"):
            table.add_column(heading, justify="right")
        for group, members in self.runs.items():
            for runs in members:
                table.add_row(
                    group,
                    runs.name,
                    f"{runs.events:,}",
                    "" if runs.matches is None else f"{runs.matches:,}",
                    _seconds(runs, Clock.WALL),
                    _seconds(runs, Clock.CPU),
                    f"{runs.events_per_second(Clock.WALL) / 1e6:.2f}",
                    f"{_per_cpu_second(runs) / 1e6:.2f}",
                )
        return table

    def _table_of_claims(self) -> Table:
        table = Table("claim", title="claims")
        for heading in ("asked", "measured", "lowest - highest", "holds"):
            table.add_column(heading, justify="right")
        for claim in self.claims:
            relation = "<=" if claim.at_most else ">="
            table.add_row(
                claim.text,
                f"{relation} {_figure(claim.asked)}",
                _figure(claim.measured.value),
                f"{_figure(claim.measured.lowest)} - {_figure(claim.measured.highest)}",
                "[green]yes[/]" if claim.holds else "[red]no[/]",
            )
        return table

    def _record(self) -> dict[str, object]:
        return {
            "name": self.name,
            "what": self.what,
            "quick": self.is_quick,
            "parameters": self.parameters,
            "claims": [
                {
                    "claim": claim.text,
                    "relation": "at most" if claim.at_most else "at least",
                    "asked": claim.asked,
                    "measured": claim.measured.value,
                    "lowest": claim.measured.lowest,
                    "highest": claim.measured.highest,
                    "holds": claim.holds,
                }
                for claim in self.claims
            ],
            "runs": {group: [_raw(each) for each in runs] for group, runs in self.runs.items()},
            "notes": self.notes,
            "failures": self.failures,
            "machine": machine_record(),
        }


def _raw(runs: Runs) -> dict[str, object]:
    return {
        "name": runs.name,
        "events": runs.events,
        "matches": runs.matches,
        "warmups": runs.warmups,
        "median_wall_seconds": runs.median(Clock.WALL),
        "median_cpu_seconds": runs.median(Clock.CPU),
        "wall_seconds": runs.wall_seconds,
        "cpu_seconds": runs.cpu_seconds,
    }


def _seconds(runs: Runs, clock: Clock) -> str:
    fastest, slowest = runs.spread(clock)
    return f"{runs.median(clock):.3f} ({fastest:.3f} - {slowest:.3f})"


def _per_cpu_second(runs: Runs) -> float:
    seconds = runs.median(Clock.CPU)
    return runs.events / seconds if seconds else float("nan")


def _figure(value: float) -> str:
    """Write 0.2 as 1/5: the issue's figures below one half are fractions of a limit."""
    if 0 < value < 0.5:
        return f"1/{1 / value:.3g}"
    return f"{value:.3g}"
