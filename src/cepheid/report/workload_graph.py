"""The graph of a workload as a PNG picture: what is read to the left, queries to the right.

A band for each group of queries that run together; what several queries use has a bold frame and
says how many they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

from cepheid.planner.workload_graph import GraphOfGroup, Node

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"atom": "#dbe7f3", "operator": "#d9efec", "query": "#f9dcdc"}
_FRAME, _SHARED_FRAME, _LINE = "#8a9299", "#1f2d3a", "#b4bac0"
_MOST_NODES = 120
_LONGEST_LABEL = 48
# In inches, as the axes are.
_ROW, _BOX, _GAP, _MARGIN = 0.36, 0.26, 0.75, 0.25
_CHARACTER, _PADDING, _FONT = 0.072, 0.1, 8
_HEADINGS = {"atom": "events", "operator": "operators", "query": "queries"}


class _Box(NamedTuple):
    """Where a node is drawn: its left edge, its middle line, its width."""

    x: float
    y: float
    width: float
    text: str


def draw_workload_graph(graphs: Sequence[GraphOfGroup], path: Path | str) -> Path:
    """Draw what runs once and who uses it; the most used nodes where there are too many."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    shown = {(g, n): graph.nodes[n] for g, graph in enumerate(graphs) for n in _most_used(graph)}
    columns = _columns(graphs, shown)
    boxes = _boxes(shown, columns)
    width = max((box.x + box.width for box in boxes.values()), default=2.0) + _MARGIN
    height = max((-box.y for box in boxes.values()), default=0.0) + _ROW + _MARGIN
    title = _title(graphs)
    width = max(width, len(title) * 0.085)
    figure = Figure(figsize=(width, height + 0.8))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(-height, 0.8)
    axes.set_axis_off()
    axes.text(_MARGIN, 0.6, title, fontsize=10, va="center")
    _draw_headings(axes, shown, boxes)
    for key, node in shown.items():
        _draw_node(axes, node, boxes[key])
        for operand in node.operands:
            if (key[0], operand) in boxes:
                _draw_edge(axes, boxes[key[0], operand], boxes[key])
    target = Path(path)
    figure.savefig(target, dpi=130)
    return target


def _title(graphs: Sequence[GraphOfGroup]) -> str:
    runs, alone = (sum(getattr(g, name) for g in graphs) for name in ("shared", "alone"))
    return f"{runs} atoms and operators run for all queries; each query by itself: {alone}"


def _most_used(graph: GraphOfGroup) -> list[int]:
    """The nodes to draw, in their order."""
    if len(graph.nodes) <= _MOST_NODES:
        return list(range(len(graph.nodes)))
    ranked = sorted(range(len(graph.nodes)), key=lambda n: -len(graph.nodes[n].queries))
    return sorted(ranked[:_MOST_NODES])


def _columns(
    graphs: Sequence[GraphOfGroup], shown: dict[tuple[int, int], Node]
) -> dict[tuple[int, int], int]:
    """Operators stand behind all their operands, queries behind everything."""
    depths = {
        (g, n): _depth(graphs[g].nodes, n) for (g, n), node in shown.items() if node.kind != "query"
    }
    last = max(depths.values(), default=0) + 1
    return {key: depths.get(key, last) for key in shown}


def _depth(nodes: Sequence[Node], number: int) -> int:
    return max((_depth(nodes, each) + 1 for each in nodes[number].operands), default=0)


def _boxes(
    shown: dict[tuple[int, int], Node], columns: dict[tuple[int, int], int]
) -> dict[tuple[int, int], _Box]:
    texts = {key: _text(node) for key, node in shown.items()}
    widths = {key: len(text) * _CHARACTER + 2 * _PADDING for key, text in texts.items()}
    lefts, left = {}, _MARGIN
    for column in sorted(set(columns.values())):
        lefts[column] = left
        left += max(widths[key] for key in shown if columns[key] == column) + _GAP
    boxes = {}
    top = 0.0
    for group in sorted({g for g, _ in shown}):  # a band for each
        # Every other column stands half a row lower, so that lines pass between its boxes.
        rows = {column: top + column % 2 * _ROW / 2 for column in lefts}
        for key in (key for key in shown if key[0] == group):
            column = columns[key]
            boxes[key] = _Box(lefts[column], -rows[column] - _ROW / 2, widths[key], texts[key])
            rows[column] += _ROW
        top = max(rows.values()) + _ROW / 2
    return boxes


def _text(node: Node) -> str:
    label = shorten(node.label, _LONGEST_LABEL, placeholder=" …")
    return f"{label}  ×{len(node.queries)}" if _is_shared(node) else label


def _is_shared(node: Node) -> bool:
    return len(node.queries) > 1 and node.kind != "query"


def _draw_headings(
    axes: Axes, shown: dict[tuple[int, int], Node], boxes: dict[tuple[int, int], _Box]
) -> None:
    for kind, heading in _HEADINGS.items():
        lefts = [boxes[key].x for key, node in shown.items() if node.kind == kind]
        if lefts:
            axes.text(min(lefts), 0.2, heading, fontsize=_FONT, color=_FRAME, va="center")


def _draw_node(axes: Axes, node: Node, box: _Box) -> None:
    from matplotlib.patches import FancyBboxPatch  # noqa: PLC0415

    is_shared = _is_shared(node)
    frame: dict[str, Any] = {
        "facecolor": _COLOURS[node.kind],
        "edgecolor": _SHARED_FRAME if is_shared else _FRAME,
        "linewidth": 1.6 if is_shared else 0.7,
    }
    corner = (box.x, box.y - _BOX / 2)
    style = "round,pad=0,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch(corner, box.width, _BOX, boxstyle=style, zorder=2, **frame))
    axes.text(box.x + _PADDING, box.y, box.text, fontsize=_FONT, va="center", zorder=3)


def _draw_edge(axes: Axes, start: _Box, end: _Box) -> None:
    """A curve from the right edge of one to the left edge of the other, below all boxes."""
    from matplotlib.patches import PathPatch  # noqa: PLC0415
    from matplotlib.path import Path as Curve  # noqa: PLC0415

    begin = start.x + start.width
    middle = max(end.x - _GAP / 2, begin)
    points = [(begin, start.y), (middle, start.y), (middle, end.y), (end.x, end.y)]
    codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    axes.add_patch(PathPatch(Curve(points, codes), fill=False, edgecolor=_LINE, lw=0.8, zorder=1))
