"""`explain` of a workload: which queries run together, what they share, and what that saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cepheid.planner.workload_graph import GraphOfGroup, graph_of
from cepheid.planner.workload_plan import Group, Sharing
from cepheid.statistics.event_statistics import EventStatistics

_MOST_SHOWN = 12
_TITLES = {
    Sharing.SEQUENCES: "Events shared by atom and key",
    Sharing.SUCCESSIONS: "One graph of operators",
    Sharing.ALONE: "On its own",
}


def explain_groups(
    groups: Sequence[Group],
    rates: Mapping[str, float] | EventStatistics | None = None,
    counted: Mapping[int, Mapping[str, int]] | None = None,
) -> str:
    """The groups as text; `counted` has what the engines of a running workload counted."""
    graphs = [graph_of(group) for group in groups]
    lines = [*_head(graphs, rates)]
    for number, graph in enumerate(graphs):
        lines += ["", *_group(graph)]
        known = (counted or {}).get(number)
        if known:
            said = ", ".join(f"{name} {count:,}" for name, count in known.items())
            lines.append(f"  counted so far: {said}")
    return "\n".join(lines) + "\n"


def _head(
    graphs: Sequence[GraphOfGroup], rates: Mapping[str, float] | EventStatistics | None
) -> Iterator[str]:
    queries = sum(len(graph.group.members) for graph in graphs)
    yield f"Workload of {queries} queries in {len(graphs)} groups"
    shared, alone = sum(g.shared for g in graphs), sum(g.alone for g in graphs)
    if alone:
        saved = f"{1 - shared / alone:.0%} saved"
        yield f"  {shared} atoms and operators run; each query by itself: {alone} ({saved})"
    reads = [graph.reads(rates) for graph in graphs]
    together, apart = sum(one for one, _ in reads), sum(other for _, other in reads)
    if apart:
        unit = "per unit of time" if rates is not None else "if all types were equally frequent"
        yield (
            f"  estimated: events handed to atoms {unit}: {together:,.6g} together, "
            f"{apart:,.6g} apart"
        )


def _group(graph: GraphOfGroup) -> Iterator[str]:
    group = graph.group
    names = [member.name for member in group.members]
    yield f"{_TITLES[group.sharing]}: {_some(names)}"
    if group.reason is not None:
        yield f"  because {group.reason}"
    nodes = [node for node in graph.nodes if node.kind != "query"]
    for node in sorted(nodes, key=lambda n: -len(n.queries))[:_MOST_SHOWN]:
        users = f"used by {_some(node.queries)}" if len(names) > 1 else ""
        yield f"  {node.kind} {node.label}  {users}".rstrip()
    if len(nodes) > _MOST_SHOWN:
        yield f"  and {len(nodes) - _MOST_SHOWN} more"


def _some(names: Sequence[str]) -> str:
    few = ", ".join(names[:5])
    return few if len(names) <= 5 else f"{few} and {len(names) - 5} more"
