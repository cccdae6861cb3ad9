"""A timeline of matches as one HTML page that needs nothing else: hover tells all attributes."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

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
    RIGHT,
    SPAN,
    WIDTH,
    Layout,
    PlacedLane,
    PlacedMark,
    colours,
    lay_out,
)
from cepheid.report.timeline import Mark, Timeline, TimelineOptions, build_timeline

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_AXIS_HEIGHT = 44
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0; background: #fff; color: {ink}; font-family: {font}; }}
main {{ max-width: 1500px; min-width: {width}px; margin: 0 auto; }}
h1 {{ font-size: 22px; margin: 24px 24px 4px; }}
p {{ margin: 0 24px; color: {muted}; font-size: 14px; }}
ul {{ list-style: none; display: flex; flex-wrap: wrap; gap: 6px 24px; margin: 14px 24px 12px;
     padding: 0; font-size: 14px; }}
i {{ display: inline-block; width: 11px; height: 11px; margin-right: 7px; border-radius: 50%; }}
i.absence {{ border-radius: 2px; background: {absence_fill}; outline: 1px solid {absence}; }}
i.context {{ width: 7px; height: 7px; border-radius: 0; border: 1px solid {muted};
             transform: rotate(45deg); }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{subtitle}</p>
<ul>
{legend}
</ul>
{figure}
</main>
</body>
</html>
"""


def write_html(
    matches: pa.Table,
    path: Path | str,
    options: TimelineOptions | None = None,
    *,
    context: pa.Table | None = None,
) -> Path:
    """Write the first matches, a lane each, and return where the page is."""
    timeline = build_timeline(matches, options, context)
    figure = _figure(timeline, lay_out(timeline))
    plot = figure.to_html(
        full_html=False,
        include_plotlyjs=True,
        config={"displaylogo": False, "responsive": True, "modeBarButtons": [["toImage"]]},
        div_id="timeline",  # the same page for the same matches
    )
    page = _PAGE.format(
        title=escape(timeline.title),
        subtitle=escape(timeline.subtitle),
        legend="\n".join(f"<li>{entry}</li>" for entry in _legend(timeline)),
        figure=plot,
        font=_FONT,
        ink=INK,
        muted=MUTED,
        absence=ABSENCE,
        absence_fill=ABSENCE_FILL,
        width=WIDTH,
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _legend(timeline: Timeline) -> list[str]:
    entries = [
        f'<i style="background:{colour}"></i><b style="color:{colour}">{escape(name)}</b> '
        f"{escape(timeline.variables[name])}"
        for name, colour in colours(timeline).items()
    ]
    for label in dict.fromkeys(gap.label for lane in timeline.lanes for gap in lane.gaps):
        entries.append(
            f'<i class="absence"></i><span style="color:{ABSENCE}">{escape(label)}</span>'
        )
    if any(lane.context for lane in timeline.lanes):
        entries.append('<i class="context"></i>other events')
    if timeline.window is not None:
        entries.append(f"window {escape(timeline.scale.duration(timeline.window))}")
    return entries


def _figure(timeline: Timeline, layout: Layout) -> Figure:
    from plotly.graph_objects import Figure  # noqa: PLC0415

    height = max(layout.height, 40)
    figure = Figure()
    figure.update_layout(
        height=height + _AXIS_HEIGHT,
        margin={"l": LEFT, "r": RIGHT, "t": 0, "b": _AXIS_HEIGHT},
        plot_bgcolor="rgba(0,0,0,0)",
        paper_bgcolor="white",
        font={"family": _FONT, "color": INK},
        showlegend=False,
        modebar={"bgcolor": "rgba(0,0,0,0)"},
        hovermode="closest",
        hoverlabel={"bgcolor": "white", "bordercolor": SPAN, "font": {"color": INK, "size": 12}},
        xaxis={
            "range": [layout.low, layout.high],
            "tickvals": [position for position, _ in layout.ticks],
            "ticktext": [label for _, label in layout.ticks],
            "tickfont": {"color": MUTED, "size": 12},
            "gridcolor": FAINT,
            "linecolor": SPAN,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={"range": [height, 0], "visible": False, "fixedrange": True},
    )
    for number, lane in enumerate(layout.lanes):
        _add_lane(figure, timeline, lane, number)
    _add_marks(figure, timeline, layout)
    return figure


def _add_lane(figure: Figure, timeline: Timeline, lane: PlacedLane, number: int) -> None:
    if number % 2 == 0:
        figure.add_shape(
            type="rect",
            xref="paper",
            x0=-1,
            x1=2,
            y0=lane.top,
            y1=lane.bottom,
            fillcolor=BAND,
            line_width=0,
            layer="below",
        )
    _write(figure, lane.y - 7, f"<b>{escape(lane.name)}</b>", 14, INK, left=True)
    for row, note in enumerate(lane.notes):
        _write(figure, lane.y + 11 + row * LABEL_HEIGHT, escape(note), 12, MUTED, left=True)
    _line(figure, lane.begin, lane.end, lane.y, color=SPAN, width=7)
    for gap in lane.gaps:
        _line(figure, gap.begin, gap.end, lane.y, color=ABSENCE_FILL, width=12)
        _line(figure, gap.begin, gap.end, lane.y, color=ABSENCE, width=1.2, dash="4px,4px")
        if gap.has_label:
            middle = (gap.begin + gap.end) / 2
            _label(figure, middle, gap.label_y, escape(gap.gap.label), ABSENCE)
    _add_window(figure, lane)
    colour_of = colours(timeline)
    for mark in lane.marks:
        colour = colour_of[mark.mark.variable or ""]
        if mark.y < lane.y:
            figure.add_shape(
                type="line",
                x0=mark.x,
                x1=mark.x,
                y0=mark.y,
                y1=lane.y,
                line={"color": colour, "width": 1.2},
                layer="between",
            )
        for row, text in enumerate(mark.lines):
            y = mark.label_y + (row + 0.5) * LABEL_HEIGHT
            _label(figure, mark.label_x, y, escape(text), colour if row == 0 else MUTED)


def _add_window(figure: Figure, lane: PlacedLane) -> None:
    if lane.lane.window_end is None:
        return
    stop = figure.layout.xaxis.range[1] if lane.window_end is None else lane.window_end
    begin = max([lane.end, *(gap.end for gap in lane.gaps)])
    if begin < stop:
        _line(figure, begin, stop, lane.y, color=MUTED, width=1.2, dash="1px,4px")
    if lane.window_end is not None:
        figure.add_shape(
            type="line",
            x0=stop,
            x1=stop,
            y0=lane.y - 9,
            y1=lane.y + 9,
            line={"color": MUTED, "width": 1.6},
        )
    arrow = "▸ " if lane.window_end is None else ""
    _write(figure, lane.y, arrow + escape(lane.window_note), 11, MUTED, left=False)


def _add_marks(figure: Figure, timeline: Timeline, layout: Layout) -> None:
    """One trace for all context events and one for each variable, for hover and for the eye."""
    context = [mark for lane in layout.lanes for mark in lane.context]
    if context:
        look = {"symbol": "diamond", "size": 8, "color": "white"}
        _trace(figure, context, "", marker=look | {"line": {"color": MUTED, "width": 1.2}})
    for name, colour in colours(timeline).items():
        marks = [m for lane in layout.lanes for m in lane.marks if m.mark.variable == name]
        look = {"size": MARK_SIZE + 2, "color": colour, "line": {"color": "white", "width": 2}}
        round_marks = [mark for mark in marks if not mark.is_pill]
        if round_marks:
            _trace(
                figure,
                round_marks,
                name,
                mode="markers+text",
                marker=look,
                text=[f"<b>{escape(mark.mark.text)}</b>" for mark in round_marks],
                textfont={"color": "white", "size": 12},
            )
        # Pills are annotations, which have a background; the marker below them answers the mouse.
        pills = [mark for mark in marks if mark.is_pill]
        if pills:
            _trace(figure, pills, name, marker=look | {"size": MARK_SIZE / 2})
        for pill in pills:
            figure.add_annotation(
                x=pill.x,
                y=pill.y,
                text=f"<b>{escape(pill.mark.text)}</b>",
                showarrow=False,
                font={"size": 11, "color": "white"},
                bgcolor=colour,
                bordercolor="white",
                borderpad=4,
                hovertext=_hover_text(name, pill.mark),
            )


def _trace(figure: Figure, marks: list[PlacedMark], name: str, **style: object) -> None:
    figure.add_scatter(
        x=[mark.x for mark in marks],
        y=[mark.y for mark in marks],
        hovertext=[_hover_text(name, mark.mark) for mark in marks],
        hovertemplate="%{hovertext}<extra></extra>",
        cliponaxis=False,
        **{"mode": "markers", **style},
    )


def _hover_text(name: str, mark: Mark) -> str:
    heading = [f"<b>{escape(name or mark.text)}</b>"]
    rows = [f"{escape(key)}: {escape(value)}" for key, value in mark.attributes.items()]
    return "<br>".join(heading + rows)


def _line(figure: Figure, begin: float, end: float, y: float, **line: object) -> None:
    figure.add_shape(type="line", x0=begin, x1=end, y0=y, y1=y, line=line, layer="between")


def _label(figure: Figure, x: float, y: float, words: str, colour: str) -> None:
    font = {"size": 12, "color": colour}
    figure.add_annotation(x=x, y=y, text=words, showarrow=False, font=font)


def _write(figure: Figure, y: float, words: str, size: float, colour: str, *, left: bool) -> None:
    """Write in the left or right margin at the height of a lane."""
    figure.add_annotation(
        xref="paper",
        x=0 if left else 1,
        xanchor="left",
        xshift=24 - LEFT if left else 10,
        y=y,
        yanchor="middle",
        text=words,
        showarrow=False,
        align="left",
        font={"size": size, "color": colour},
    )
