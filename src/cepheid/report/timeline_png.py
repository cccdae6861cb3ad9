"""A timeline of matches as a PNG picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.report.layout import (
    ABSENCE,
    ABSENCE_FILL,
    BAND,
    FAINT,
    INK,
    LABEL_HEIGHT,
    LEFT,
    MARK_SIZE,
    MUTED,
    PLOT_WIDTH,
    SPAN,
    WIDTH,
    Layout,
    PlacedLane,
    PlacedMark,
    colours,
    lay_out,
)
from cepheid.report.timeline import Timeline, TimelineOptions, build_timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEADER = 104
_FOOTER = 44
_PIXELS_PER_INCH = 100
# Type sizes are given in pixels of the layout; matplotlib counts points of 1/72 inch.
_POINTS = 72 / _PIXELS_PER_INCH
_SHARPNESS = 2


def draw_png(
    matches: pa.Table,
    path: Path | str,
    options: TimelineOptions | None = None,
    *,
    context: pa.Table | None = None,
) -> Path:
    """Draw the first matches, a lane each, and return where the picture is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    timeline = build_timeline(matches, options, context)
    layout = lay_out(timeline)
    height = _HEADER + max(layout.height, 40) + _FOOTER
    # A figure of its own, not pyplot's: no global state, no window system.
    figure = Figure(figsize=(WIDTH / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH))
    FigureCanvasAgg(figure)
    figure.set_facecolor("white")
    _draw_heading(figure, timeline, height)
    axes = figure.add_axes(
        (LEFT / WIDTH, _FOOTER / height, PLOT_WIDTH / WIDTH, 1 - (_HEADER + _FOOTER) / height)
    )
    _draw_frame(axes, layout)
    for number, lane in enumerate(layout.lanes):
        _draw_lane(axes, timeline, lane, number)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=_PIXELS_PER_INCH * _SHARPNESS)
    return path


def _draw_heading(figure: Figure, timeline: Timeline, height: float) -> None:
    def text(x: float, y: float, words: str, size: float, **style: Any) -> float:
        """Write at a place in pixels from the upper left; return where the words end."""
        artist = figure.text(
            x / WIDTH,
            1 - y / height,
            words,
            fontsize=size * _POINTS,
            va="center",
            parse_math=False,
            **style,
        )
        return float(artist.get_window_extent().x1) / figure.dpi * _PIXELS_PER_INCH

    text(24, 28, timeline.title, 20, weight="bold", color=INK)
    text(24, 54, timeline.subtitle, 12, color=MUTED)
    x, y = 24.0, 82.0
    for name, colour in colours(timeline).items():
        _chip(figure, x + 6, y, height, marker="o", color=colour)
        x = text(x + 18, y, name, 12, weight="bold", color=colour)
        x = text(x + 6, y, timeline.variables[name], 12, color=INK) + 22
    for label in dict.fromkeys(gap.label for lane in timeline.lanes for gap in lane.gaps):
        _chip(figure, x + 6, y, height, marker="s", color=ABSENCE_FILL, markeredgecolor=ABSENCE)
        x = text(x + 18, y, label, 12, color=ABSENCE) + 22
    if any(lane.context for lane in timeline.lanes):
        _chip(figure, x + 6, y, height, marker="D", color="white", markeredgecolor=MUTED, ms=4.5)
        x = text(x + 18, y, "other events", 12, color=MUTED) + 22
    if timeline.window is not None:
        text(x, y, f"window {timeline.scale.duration(timeline.window)}", 12, color=MUTED)


def _chip(figure: Figure, x: float, y: float, height: float, **style: Any) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    look = {"ms": 7.5, "linestyle": "none", "markeredgewidth": 1.0, **style}
    figure.add_artist(Line2D([x / WIDTH], [1 - y / height], **look))


def _draw_frame(axes: Axes, layout: Layout) -> None:
    axes.set_xlim(layout.low, layout.high)
    axes.set_ylim(max(layout.height, 40), 0)
    axes.set_yticks([])
    axes.set_xticks([position for position, _ in layout.ticks])
    axes.set_xticklabels([label for _, label in layout.ticks])
    axes.tick_params(axis="x", length=0, pad=8, labelsize=11 * _POINTS, labelcolor=MUTED)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(SPAN)


def _draw_lane(axes: Axes, timeline: Timeline, lane: PlacedLane, number: int) -> None:
    across = axes.get_yaxis_transform()  # x as a share of the plot, y in pixels
    begin, end = -LEFT / PLOT_WIDTH, (WIDTH - LEFT) / PLOT_WIDTH
    if number % 2 == 0:
        axes.fill_between(
            [begin, end],
            lane.top,
            lane.bottom,
            transform=across,
            color=BAND,
            linewidth=0,
            clip_on=False,
            zorder=-2,
        )
    _write(axes, 24 / PLOT_WIDTH + begin, lane.y - 7, lane.name, 13, INK, bold=True)
    for row, note in enumerate(lane.notes):
        y = lane.y + 11 + row * LABEL_HEIGHT
        _write(axes, 24 / PLOT_WIDTH + begin, y, note, 11, MUTED)

    axes.plot([lane.begin, lane.end], [lane.y] * 2, color=SPAN, lw=5, solid_capstyle="round")
    for gap in lane.gaps:
        axes.plot(
            [gap.begin, gap.end], [lane.y] * 2, color=ABSENCE_FILL, lw=9, solid_capstyle="butt"
        )
        axes.plot([gap.begin, gap.end], [lane.y] * 2, color=ABSENCE, lw=1, ls=(0, (4, 3)))
        if gap.has_label:
            middle = (gap.begin + gap.end) / 2
            _label(axes, middle, gap.label_y, gap.gap.label, ABSENCE, va="center")
    _draw_window(axes, lane)
    for other in lane.context:
        axes.plot(other.x, other.y, "D", ms=5, mfc="white", mec=MUTED, mew=1, zorder=3)
    colour_of = colours(timeline)
    for mark in lane.marks:
        _draw_mark(axes, lane, mark, colour_of[mark.mark.variable or ""])


def _draw_window(axes: Axes, lane: PlacedLane) -> None:
    if lane.lane.window_end is None:
        return
    right = axes.get_xlim()[1]
    stop = right if lane.window_end is None else lane.window_end
    begin = max([lane.end, *(gap.end for gap in lane.gaps)])
    if begin < stop:
        axes.plot([begin, stop], [lane.y] * 2, color=MUTED, lw=1, ls=(0, (1, 2.5)), zorder=1)
    if lane.window_end is None:
        axes.plot(right, lane.y, ">", ms=5, color=MUTED, clip_on=False)
    else:
        axes.plot([stop] * 2, [lane.y - 9, lane.y + 9], color=MUTED, lw=1.4)
    _write(axes, 1 + 12 / PLOT_WIDTH, lane.y, lane.window_note, 10.5, MUTED)


def _draw_mark(axes: Axes, lane: PlacedLane, mark: PlacedMark, colour: str) -> None:
    if mark.y < lane.y:  # lifted above a neighbour: a thread leads back to its moment
        axes.plot([mark.x] * 2, [mark.y, lane.y], color=colour, lw=1, zorder=2)
    if mark.lines and mark.label_y > lane.y + MARK_SIZE:
        axes.plot([mark.x] * 2, [lane.y, mark.label_y], color=FAINT, lw=1, zorder=1)
    if not mark.is_pill:
        size = MARK_SIZE * _POINTS
        axes.plot(mark.x, mark.y, "o", ms=size, mfc=colour, mec="white", mew=1.5, zorder=4)
    pill = {"boxstyle": "round,pad=0.45,rounding_size=1.1", "fc": colour, "ec": "white", "lw": 1.5}
    axes.text(
        mark.x,
        mark.y,
        mark.mark.text,
        fontsize=(10.5 if mark.is_pill else 11.5) * _POINTS,
        weight="bold",
        color="white",
        ha="center",
        va="center_baseline",
        zorder=5,
        bbox=pill if mark.is_pill else None,
        parse_math=False,
    )
    for row, line in enumerate(mark.lines):
        y = mark.label_y + row * LABEL_HEIGHT
        _label(axes, mark.label_x, y, line, colour if row == 0 else MUTED, va="top")


def _label(axes: Axes, x: float, y: float, words: str, colour: str, *, va: str) -> None:
    axes.text(
        x, y, words, fontsize=11 * _POINTS, color=colour, ha="center", va=va, parse_math=False
    )


def _write(
    axes: Axes, x: float, y: float, words: str, size: float, colour: str, *, bold: bool = False
) -> None:
    axes.text(
        x,
        y,
        words,
        transform=axes.get_yaxis_transform(),
        fontsize=size * _POINTS,
        weight="bold" if bold else "normal",
        color=colour,
        va="center",
        parse_math=False,
    )
