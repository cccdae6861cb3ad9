"""The figures run at small size, their plans agree, and their counters have the paper's shape."""

import importlib
import json
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.__main__ import module_of
from benchmarks.figures import FIGURES
from benchmarks.figures.claims import write_claims
from benchmarks.figures.figure import HERE, Figure
from benchmarks.figures.joins import MOST_PAIRS, Join
from benchmarks.figures.measuring import selectivity
from benchmarks.figures.plans import AIS, BASIC, COMBINED, DYNAMIC, MULTI_PAIS, PAIS_SELECTION
from benchmarks.figures.sase_fig08.run import measured_selectivity, simulated_types
from benchmarks.options import Options

pytestmark = pytest.mark.slow


def run_quick(name: str, only: tuple[str, ...] = ()) -> Figure:
    figure: Figure = importlib.import_module(module_of(name)).run(
        Options(quick=True, repeats=1, only=only)
    )
    assert figure.is_sound, figure.failures
    return figure


def claims_of(figure: Figure, name: str) -> list[bool]:
    return [each.holds for each in figure.paper_claims if each.name == name]


def test_formula_1_gives_the_papers_numbers() -> None:
    assert selectivity(10_000, 3, 20, 100) == pytest.approx(0.208, rel=0.01)
    assert selectivity(10_000, 3, 20, 10_000) == pytest.approx(0.208e-4, rel=0.01)
    assert selectivity(100_000, 3, 20, 10_000) == pytest.approx(0.208e-2, rel=0.01)


def test_more_types_simulate_an_equivalence_test() -> None:
    for domain in (100, 1_000, 10_000):
        simulated = selectivity(10_000, 3, simulated_types(domain))
        assert simulated == pytest.approx(selectivity(10_000, 3, 20, domain), rel=0.01)


def test_formula_1_predicts_the_matches_in_a_batch() -> None:
    separate, sliding = measured_selectivity(window=300, domain=5, count=60)
    assert separate == pytest.approx(selectivity(300, 3, 20, 5), rel=0.15)
    assert sliding == pytest.approx(selectivity(300, 3, 20, 5, sliding=True), rel=0.15)


def test_fig8_the_advantage_of_ais_grows_as_the_domain_shrinks() -> None:
    figure = run_quick("fig8")
    domains = sorted({point.x for point in figure.points})
    ratios = [figure.point("V1", v, BASIC).work / figure.point("V1", v, AIS).work for v in domains]
    assert all(before > after for before, after in pairwise(ratios)), ratios
    assert ratios[0] > 5
    edges = [figure.point("V1", v, BASIC).per_event("edges") for v in domains]
    assert all(before > after for before, after in pairwise(edges)), edges
    for v in domains:
        assert figure.point("V1", v, BASIC).sequences == figure.point("V1", v, AIS).sequences
    assert claims_of(figure, "S0") == [True, True]


def test_fig9_basic_grows_with_the_window() -> None:
    figure = run_quick("fig9")
    windows = sorted({point.x for point in figure.points})
    growth = {
        name: figure.point("W", windows[-1], name).work / figure.point("W", windows[0], name).work
        for name in (BASIC, AIS)
    }
    assert growth[BASIC] > 2 * growth[AIS]


def test_fig10_sequences_built_by_each_strategy() -> None:
    figure = run_quick("fig10")
    for panel in ("V2=20", "V2=5"):
        for first in sorted({point.x for point in figure.points})[:2]:
            built = {
                name: figure.point(panel, first, name).sequences
                for name in (PAIS_SELECTION, MULTI_PAIS, DYNAMIC, COMBINED)
            }
            assert built[PAIS_SELECTION] > built[MULTI_PAIS] > built[DYNAMIC] == built[COMBINED]
            pushed = {name: figure.point(panel, first, name).counters["pushed"] for name in built}
            assert pushed[MULTI_PAIS] == pushed[COMBINED] <= pushed[DYNAMIC]


def test_windows_reduce_what_is_built() -> None:
    figure = run_quick("windows")
    assert claims_of(figure, "windows")[0]


def test_negation_pushed_down_builds_fewer_sequences() -> None:
    figure = run_quick("negation")
    for count in (1, 2):
        on_top, pushed = (p for p in figure.points if p.panel == "V1=3" and p.x == count)
        assert pushed.sequences == pushed.matches < on_top.sequences


def test_predicates_pushed_down_build_fewer_sequences() -> None:
    figure = run_quick("predicates")
    stopped = next(point for point in figure.points if point.stopped)
    assert stopped.series == "nothing pushed down"
    assert stopped.sequences >= 10**6
    selective = [p for p in figure.points if p.panel == "simple" and p.x < 1]
    assert len({p.sequences for p in selective}) == 2


@pytest.mark.parametrize("name", ["fig11", "fig12"])
def test_figures_with_joins_measure_cepheid_without_them(name: str) -> None:
    figure = run_quick(name, only=("cepheid",))
    assert figure.points
    assert all(point.events_per_second for point in figure.points)


def test_the_join_is_written_with_order_and_window() -> None:
    text = Join(3, 50, ("attr1",), ("attr2",)).sql("events")
    assert "e1.attr1 = e2.attr1 AND e1.attr2 - e2.attr2 = 0 AND e1.ts < e2.ts" in text
    assert text.count("< 50") == 1
    assert "bucket" not in text
    assert "e2.bucket = e3.bucket" in Join(3, 50, ("attr1",), bucketed=True).sql("events")


def test_the_work_of_a_join_is_known_before_it_runs() -> None:
    """SEQ(E1, E2) looks at all pairs of equal keys; longer ones also at those of their prefixes."""
    domains = {"attr1": 100, "attr2": 20}
    assert Join(2, 10_000, ("attr1",)).pairs(100_000, domains) == pytest.approx(5_000 * 50)
    longer = Join(5, 10_000, ("attr1",))
    assert 1e9 < longer.pairs(100_000, domains) < MOST_PAIRS
    assert Join(6, 10_000, ("attr1",)).pairs(100_000, domains) > MOST_PAIRS
    assert Join(5, 10_000, ("attr1",), bucketed=True).pairs(100_000, domains) < 1e8
    filtered = Join(3, 10_000, ("attr1",), ("attr2",)).pairs(100_000, domains)
    assert filtered < Join(3, 10_000, ("attr1",)).pairs(100_000, domains)


def test_results_become_pictures_and_a_table_of_claims(tmp_path: Path) -> None:
    figure = run_quick("windows")
    written = figure.write(tmp_path / "sase_windows")
    record = json.loads(written.read_text())
    assert {point["matches"] for point in record["points"]} - {0}
    assert record["runs"]
    picture = tmp_path / "sase_windows" / "sase_windows.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
    table = write_claims(tmp_path).read_text()
    assert picture.exists()
    assert table.count("[windows](sase_windows/README.md)") == 2


def test_every_figure_explains_itself() -> None:
    for name, folder in FIGURES.items():
        text = (HERE / folder / "README.md").read_text()
        assert f"({folder}.png)" in text, name
        assert "Data." in text
