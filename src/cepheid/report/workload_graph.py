"""The graph of a workload as a PNG picture: atoms to the left, queries to the right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cepheid.planner.workload_graph import GraphOfGroup, Node

_COLOURS = {"atom": "#4c78a8", "operator": "#72b7b2", "query": "#e45756"}
_ROW = 0.34
_COLUMN = 3.6
_MOST_NODES = 120
_LONGEST_LABEL = 34


def draw_workload_graph(graphs: Sequence[GraphOfGroup], path: Path | str) -> Path:
    """Draw what runs once and who uses it; the most used nodes where there are too many."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    places: dict[tuple[int, int], tuple[float, float]] = {}
    shown = {g: _most_used(graph) for g, graph in enumerate(graphs)}
    depths = {(g, n): _depth(graphs[g].nodes, n) for g in shown for n in shown[g]}
    deepest = max(depths.values(), default=1)
    height = 0.0
    for g, numbers in shown.items():  # a band for each group
        rows = [height] * (deepest + 1)
        for n in numbers:
            column = deepest if graphs[g].nodes[n].kind == "query" else depths[g, n]
            places[g, n] = (column * _COLUMN, -rows[column] * _ROW)
            rows[column] += 1
        height = max(rows) + 0.7
    figure = Figure(figsize=(_COLUMN * (deepest + 1), 1.2 + _ROW * height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.01, 0.02, 0.98, 0.9))
    for (g, n), (x, y) in places.items():
        node = graphs[g].nodes[n]
        for operand in node.operands:
            start = places.get((g, operand))
            if start is not None:
                axes.plot([start[0] + 2.6, x - 0.08], [start[1], y], color="#c4c8cc", lw=0.7)
    for (g, n), (x, y) in places.items():
        node = graphs[g].nodes[n]
        many = len(node.queries) > 1 and node.kind != "query"
        axes.plot([x], [y], "o", ms=5, color=_COLOURS[node.kind])
        label = (
            node.label if len(node.label) <= _LONGEST_LABEL else node.label[:_LONGEST_LABEL] + "…"
        )
        text = f"{label}  ×{len(node.queries)}" if many else label
        axes.text(x + 0.1, y, text, va="center", fontsize=7, weight="bold" if many else "normal")
    axes.set_xlim(-0.2, _COLUMN * deepest + 3.3)
    axes.set_ylim(-_ROW * height, _ROW)
    axes.set_axis_off()
    runs = sum(graph.shared for graph in graphs)
    alone = sum(graph.alone for graph in graphs)
    figure.suptitle(
        f"{runs} atoms and operators run for all queries; each query by itself: {alone}",
        fontsize=10,
        x=0.02,
        ha="left",
    )
    target = Path(path)
    figure.savefig(target, dpi=130)
    return target


def _most_used(graph: GraphOfGroup) -> list[int]:
    """The nodes to draw, in their order."""
    if len(graph.nodes) <= _MOST_NODES:
        return list(range(len(graph.nodes)))
    ranked = sorted(range(len(graph.nodes)), key=lambda n: -len(graph.nodes[n].queries))
    return sorted(ranked[:_MOST_NODES])


def _depth(nodes: Sequence[Node], number: int) -> int:
    return max((_depth(nodes, each) + 1 for each in nodes[number].operands), default=0)
