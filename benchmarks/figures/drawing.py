"""How all figures look: quiet axes, one marker and colour per plan wherever it appears."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figures.figure import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#0b5fa5", "#c2410c", "#15803d", "#7e22ce", "#525252", "#b45309")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", "-", "-", "--", "-", "--")  # a line that hides another one lets it be seen

PointRecord = dict[str, Any]


def axes_for(
    panels: Sequence[str], *, height: float = 3.4, columns: int | None = None
) -> tuple[Any, list[Axes]]:
    """A picture with one axes per panel, side by side or in rows of `columns`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    width = columns or len(panels)
    rows = -(-len(panels) // width)
    size = (4.6 * width, height * rows)
    picture, found = pyplot.subplots(rows, width, figsize=size, squeeze=False, layout="constrained")
    axes = list(found.flat)
    for each, title in zip(axes, panels, strict=True):
        each.set_title(title, fontsize=10)
        each.grid(visible=True, which="major", color="#e5e5e5", linewidth=0.8)
        each.set_axisbelow(True)
        for side in ("top", "right"):
            each.spines[side].set_visible(False)
    return picture, axes


def log_scale(*every: Axes, x: bool = False, y: bool = False) -> None:
    """Logarithmic axes, labelled at powers of ten only."""
    from matplotlib.ticker import NullFormatter

    for axes in every:
        if x:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        if y:
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter(NullFormatter())


def log_labels(axes: Axes) -> None:
    """A logarithmic y axis over a decade or two, labelled at 1, 2 and 5 as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def save(picture: Any, path: Path) -> None:
    """Write the PNG and let go of it."""
    from matplotlib import pyplot

    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def series_of(record: Record, panel: str | None = None) -> list[str]:
    """The names of the series in the order they were measured."""
    return list(
        dict.fromkeys(p["series"] for p in record["points"] if panel is None or p["panel"] == panel)
    )


def points_of(record: Record, panel: str, series: str) -> list[PointRecord]:
    """The points of one line, by x."""
    found = [p for p in record["points"] if (p["panel"], p["series"]) == (panel, series)]
    return sorted(found, key=lambda p: p["x"])


def draw_lines(
    axes: Axes,
    record: Record,
    panel: str,
    value: Callable[[PointRecord], float | None],
    names: Iterable[str] | None = None,
) -> None:
    """A line per series; a point without a value is left out of it."""
    every = series_of(record)
    for name in names or series_of(record, panel):
        number = every.index(name)
        drawn = [(p["x"], v) for p in points_of(record, panel, name) if (v := value(p)) is not None]
        if not drawn:
            continue
        axes.plot(
            [x for x, _ in drawn],
            [v for _, v in drawn],
            label=name,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            linestyle=_LINES[number % len(_LINES)],
            markersize=4.5,
            linewidth=1.6,
        )


def throughput(point: PointRecord) -> float | None:
    """Millions of events per second."""
    found = point["events_per_second"]
    return None if found is None else found / 1e6


def counted_per(events: int, counter: str) -> Callable[[PointRecord], float | None]:
    """A counter per so many events; nothing for zero, which has no place on a log axis."""

    def value(point: PointRecord) -> float | None:
        if counter not in point["counters"]:
            return None
        return point["counters"][counter] / point["events"] * events or None

    return value
