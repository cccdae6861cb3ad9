"""`explain` of a workload: which queries run together, what they share, and what that saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cepheid.planner.workload_graph import GraphOfGroup, graph_of
from cepheid.planner.workload_plan import Group, Sharing
from cepheid.statistics.event_statistics import EventStatistics

_MOST_SHOWN = 12
_TITLES = {
    Sharing.SEQUENCES: "Events shared by atom and key",
    Sharing.SUCCESSIONS: "One graph of operators",
    Sharing.ALONE: "On its own",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU seconds and matches of all queries together, and of each by itself, over some events."""

    events: int
    together: float
    apart: float
    matches: int
    matches_apart: int

    def __str__(self) -> str:
        """For people."""
        found = f"{self.matches:,} matches both ways"
        if self.matches != self.matches_apart:  # it would be a mistake of ours
            found = f"{self.matches:,} matches together, but {self.matches_apart:,} apart"
        share = 1 - self.together / self.apart if self.apart else 0.0
        return (
            f"measured on {self.events:,} events: {1e3 * self.together:,.3g} ms of CPU time "
            f"together, {1e3 * self.apart:,.3g} ms apart "
            f"({abs(share):.0%} {'saved' if share >= 0 else 'lost'}); {found}"
        )


def explain_groups(
    groups: Sequence[Group],
    rates: Mapping[str, float] | EventStatistics | None = None,
    counted: Mapping[int, Mapping[str, int]] | None = None,
    measured: Measured | None = None,
) -> str:
    """The groups as text; `counted` has what the engines of a running workload counted."""
    graphs = [graph_of(group) for group in groups]
    lines = [*_head(graphs, rates)]
    if measured is not None:
        lines.append(f"  {measured}")
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
    yield f"Workload of {_counted(queries, 'query', 'queries')} in {_counted(len(graphs), 'group')}"
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


def _counted(number: int, one: str, more: str | None = None) -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def _some(names: Sequence[str]) -> str:
    few = ", ".join(names[:5])
    return few if len(names) <= 5 else f"{few} and {len(names) - 5} more"
