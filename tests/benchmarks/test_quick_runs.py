"""The benchmarks themselves run, at small size, and find the right numbers of matches."""

import pytest

from benchmarks import compile_once, in_process
from benchmarks.options import Options

QUICK = Options(quick=True, repeats=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["V=1000", "V=100", "strings"])
def test_in_process(part: str) -> None:
    report = in_process.run(Options(quick=True, repeats=1, only=(part,)))
    assert report.is_sound, report.failures
    assert {runs.matches for runs in report.runs[part]} - {None}
    assert report.claims


@pytest.mark.slow
def test_one_shape_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPHEID_CACHE", "")  # put back after the benchmark has set its own
    report = compile_once.run(QUICK)
    assert [claim.measured.value for claim in report.claims] == [0, 0]
