"""A report keeps every raw run, says honestly which claims hold, and never mixes quick and full."""

import json
from pathlib import Path

import pytest

from benchmarks.harness import Clock, Ratio, Runs, measure, speed_ratio, time_ratio
from benchmarks.report import Report


def runs(name: str, *seconds: float, events: int = 1_000) -> Runs:
    return Runs(name, events, 5, 1, wall_seconds=seconds, cpu_seconds=seconds)


def test_ratio_is_of_medians_and_its_spread_of_rounds() -> None:
    fast, slow = runs("fast", 1.0, 2.0, 9.0), runs("slow", 4.0, 8.0, 9.0)
    assert speed_ratio(fast, slow, Clock.WALL) == Ratio(4.0, 1.0, 4.0)
    assert time_ratio(slow, fast, Clock.CPU) == Ratio(4.0, 1.0, 4.0)


def test_speeds_over_different_numbers_of_events_compare() -> None:
    whole, part = runs("whole", 2.0, events=1_000), runs("part", 1.0, events=100)
    assert speed_ratio(whole, part, Clock.WALL).value == pytest.approx(5.0)


def test_measure_keeps_all_runs() -> None:
    measured = measure("three", lambda: 7, repeats=3, warmups=2, events=10)
    assert measured.matches == 7
    assert len(measured.wall_seconds) == len(measured.cpu_seconds) == 3


@pytest.mark.parametrize(
    ("asked", "measured", "at_most", "holds"),
    [
        (3, 3.0, False, True),
        (3, 2.9, False, False),
        (1.5, 1.5, True, True),
        (1.5, 1.6, True, False),
    ],
)
def test_claim_holds(asked: float, measured: float, at_most: bool, holds: bool) -> None:
    report = Report("name", "what", is_quick=False)
    report.claim("text", asked, Ratio(measured, measured, measured), at_most=at_most)
    assert report.claims[0].holds is holds
    assert report.is_sound is holds


def test_failure_makes_a_report_unsound_even_when_quick() -> None:
    report = Report("name", "what", is_quick=True)
    assert report.is_sound
    report.failed("part", ValueError("why"))
    assert not report.is_sound


def test_json_has_raw_runs_claims_and_machine(tmp_path: Path) -> None:
    report = Report("name", "what", is_quick=True)
    report.keep("group", {"a": runs("a", 1.0, 2.0)})
    report.claim("text", 1, Ratio(2.0, 1.5, 2.5))
    record = json.loads(report.write(tmp_path).read_text())
    assert record["runs"]["group"][0]["wall_seconds"] == [1.0, 2.0]
    assert record["runs"]["group"][0]["matches"] == 5
    assert record["claims"][0]["holds"] is True
    assert {"cores", "memory_bytes", "cpu", "commit", "versions"} <= record["machine"].keys()
