"""A batch of events on its way through the nodes: all of them have done it, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from cepheid.manager.attending import Interrupted
from cepheid.manager.supervised_node import SupervisedNode
from cepheid.manager.wire import Frame
from cepheid.model.errors import CepheidError


@dataclass(frozen=True, slots=True)
class Fed:
    """What the nodes found: how many matches by query, and tables of them."""

    counts: dict[str, int]
    tables: list[tuple[str, bytes]]


def begin_batch(
    nodes: Sequence[SupervisedNode],
    types: frozenset[str],
    content: Callable[[], bytes],
    watermark: int,
) -> None:
    """Send a batch to the nodes that need one of its types; the others are told the time."""

    def whole() -> Frame:
        return Frame({"do": "feed", "watermark": watermark}, (content(),))

    for node in nodes:
        needs = node.facts.needs
        if needs is None or not needs.isdisjoint(types):
            node.begin(whole)
        else:
            node.begin(partial(Frame, {"do": "advance", "watermark": watermark}))


def finish_batch(nodes: Sequence[SupervisedNode], *, may_interrupt: bool) -> Fed:
    """What the nodes find; if one cannot do it, or is interrupted, all are as before the batch."""
    answers: dict[int, Frame] = {}
    problem: CepheidError | Interrupted | None = None
    for node in nodes:
        try:
            answers[node.number] = node.finish(may_interrupt=may_interrupt)
        except (CepheidError, Interrupted) as found:
            problem = found
    if problem is not None:
        for node in nodes:
            if node.number in answers:
                node.take_back()
        raise problem
    for node in nodes:  # now, since a batch that is begun anew counts once
        node.facts.received += answers[node.number].head["events"]
    return _found(answers.values())


def _found(answers: Iterable[Frame]) -> Fed:
    counts: dict[str, int] = {}
    tables: list[tuple[str, bytes]] = []
    for answer in answers:
        told = answer.head
        for name, count, part in zip(told["names"], told["counts"], answer.parts, strict=True):
            counts[name] = counts.get(name, 0) + count
            tables.append((name, part))
    return Fed(counts, tables)
