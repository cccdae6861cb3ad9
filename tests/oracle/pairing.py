"""CompAS's Pair: Choose on each side, then consumption (SPEC A3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cepheid.algebra import pattern as pt
from tests.oracle.events import Match, join
from tests.oracle.expressions import Hole, Scope, evaluate, truth


@dataclass(frozen=True)
class Instance:
    """A match of one side, and when it is sure that its run keeps it."""

    is_first: bool
    match: Match
    settled: int


def pair_matches(node: pt.Pair, first: list[Match], second: list[Match]) -> Iterator[Match]:
    """Equality bindings partition; then runs, selection, and consumption per key."""
    keys: dict[tuple[Any, ...], list[Instance]] = {}
    for is_first, side in ((True, first), (False, second)):
        for match in side:
            key = tuple(
                evaluate(pair[0 if is_first else 1], Scope(match), node.absent) for pair in node.key
            )
            if not any(isinstance(value, Hole) for value in key):
                keys.setdefault(key, []).append(Instance(is_first, match, match.te))
    for instances in keys.values():
        ordered = sorted(instances, key=lambda i: (i.match.order(), not i.is_first))
        kept = [*_choose(node, ordered, True), *_choose(node, ordered, False)]
        kept.sort(key=lambda i: (i.match.order(), not i.is_first))
        yield from _consume(node, kept)


def _choose(node: pt.Pair, ordered: list[Instance], is_first: bool) -> Iterator[Instance]:
    """The selected member of each run: no partner in between, none later than the terminator."""
    selection = node.select_first if is_first else node.select_second
    position = node.nth_first if is_first else node.nth_second
    window = node.window
    assert isinstance(window, int)
    runs: list[tuple[list[Instance], int]] = []
    run: list[Instance] = []
    for instance in ordered:
        own = instance.is_first == is_first
        fired = bool(run) and instance.match.te - run[0].match.te > window
        if run and (fired or not own):
            runs.append((run, min(instance.match.te, run[0].match.te + window)))
            run = []
        if own:
            run.append(instance)
    if run:
        runs.append((run, run[0].match.te + window))
    for members, closed in runs:
        match selection:
            case pt.Selection.ALL:
                yield from members
            case pt.Selection.FIRST:
                yield members[0]
            case pt.Selection.LAST:
                yield replace(members[-1], settled=max(members[-1].match.te, closed))
            case pt.Selection.NTH:
                yield from members[position - 1 : position]


def _consume(node: pt.Pair, ordered: list[Instance]) -> Iterator[Match]:
    """Pairs in completion order; partners from the oldest, or the newest if the first is `last`."""
    waiting: list[Instance] = []
    used: set[tuple[Any, ...]] = set()
    for completing in ordered:
        if completing.match.ids in used:
            continue  # the same event in its other role
        partners = [p for p in waiting if p.match.ids not in used and _fits(node, p, completing)]
        if node.select_first is pt.Selection.LAST:
            partners.reverse()
        waiting.append(completing)
        for partner in partners:
            yield _paired(node, partner, completing)
            match node.consume:
                case pt.Consumption.ALL:
                    continue
                case pt.Consumption.UNIQUE:
                    used |= {partner.match.ids, completing.match.ids}
                    break
                case pt.Consumption.ONCE:
                    return
                case pt.Consumption.REAPPLY:
                    used.add(completing.match.ids)
                    waiting.clear()
                    break


def _sides(earlier: Instance, later: Instance) -> tuple[Instance, Instance]:
    return (earlier, later) if earlier.is_first else (later, earlier)


def _fits(node: pt.Pair, earlier: Instance, later: Instance) -> bool:
    if earlier.is_first == later.is_first or earlier.match.ids == later.match.ids:
        return False
    if node.ordered and not (earlier.is_first and earlier.match.te < later.match.ts):
        return False
    assert isinstance(node.window, int)
    if later.match.te - earlier.match.te > node.window:
        return False
    first, second = _sides(earlier, later)
    joined = join(first.match, second.match)
    return truth(node.predicate, Scope(joined), node.absent)


def _paired(node: pt.Pair, earlier: Instance, later: Instance) -> Match:
    first, second = _sides(earlier, later)
    joined = join(first.match, second.match, ordered=node.ordered)
    return replace(joined, fin=max(joined.fin, first.settled, second.settled))
