"""What a closed pattern means on a finite history: SPEC B3 written down node by node, slowly.

Batch semantics: the watermark is at +infinity, guards close at the end of input (SPEC C4), lag is
ignored. Nothing of the engine is imported: every kernel, rewrite and host is compared with this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from cepheid.algebra import expression as ex
from cepheid.algebra import pattern as pt
from tests.oracle.derived import aggregated, mapped
from tests.oracle.events import Ev, Match, join
from tests.oracle.expressions import Hole, Scope, evaluate, truth
from tests.oracle.lossy import lossy_matches
from tests.oracle.pairing import pair_matches

EMPTY = Match((), (), 0, 0, 0)
"""NEXT's epsilon: what an iteration has bound before its first element."""


def matches(
    pattern: pt.Pattern,
    history: Sequence[Ev],
    *,
    start: int | None = None,
    horizon: int | None = None,
    cap: int | None = None,
) -> list[Match]:
    """The bag of matches of a closed pattern, by (te, ts, arrival).

    `start` and `horizon` are CompAS's profile start and how far time has run (default: the first
    and the last event's time); `cap` bounds the length of NEXT's iterations.
    """
    return sorted(Oracle(history, start, horizon, cap).of(pattern), key=Match.order)


def successors(after: Match, candidates: Iterable[Match]) -> list[Match]:
    """SUCC (SPEC A1.3): the candidates behind `after` that no other such candidate precedes."""
    behind = [c for c in candidates if not after.tv or after.tv[-1] < c.tv[0]]
    least = min((stable(c.tv) for c in behind), default=None)
    return [c for c in behind if stable(c.tv) == least]


def stable(stamps: tuple[int, ...]) -> tuple[float, ...]:
    """A sort key for NEXT's order: compared from the end, and a longer sequence before its suffix.

    >>> stable((2, 6, 8)) < stable((3, 6, 8)), stable((1, 2, 4, 6, 8)) < stable((4, 6, 8))
    (True, True)
    """
    return (*reversed(stamps), float("inf"))


@dataclass
class Oracle:
    history: Sequence[Ev]
    start: int | None
    horizon: int | None
    cap: int | None

    def of(self, node: pt.Pattern) -> list[Match]:
        return list(self._denote(node))

    def _found(self, node: pt.Pattern) -> list[Match]:
        """The matches of an operand, without its failed detections."""
        return [match for match in self._own(node) if not match.fail]

    def _denote(self, node: pt.Pattern) -> Iterator[Match]:
        """What a node finds, and the failures that it reads in place of matches and hands on."""
        yield from self._own(node)
        match node:
            case pt.Next(first):
                heads: tuple[pt.Pattern, ...] = (first,)
            case pt.Union(patterns):
                heads = patterns
            case pt.Filter() | pt.Within() | pt.Plus() | pt.Timer() | pt.Except():
                heads = (node.pattern,)
            case _:
                heads = ()
        for each in heads:
            yield from (match for match in self._denote(each) if match.fail)

    def _own(self, node: pt.Pattern) -> Iterable[Match]:
        match node:
            case pt.Atom():
                return self._atom(node)
            case pt.Filter():
                return [m for m in self._found(node.pattern) if _holds(node, node.predicate, m)]
            case pt.Union():
                return [m for pattern in node.patterns for m in self._found(pattern)]
            case pt.Dedup():
                return self._dedup(node)
            case pt.Map():
                return [mapped(node, match) for match in self._found(node.pattern)]
            case pt.Within():
                return [m for m in self._found(node.pattern) if _is_within(node, m)]
            case pt.Conj():
                return self._conj(node)
            case pt.Seq():
                return self._seq(node)
            case pt.Guard():
                return self._guard(node)
            case pt.Next():
                return self._next(node)
            case pt.Plus():
                return self._plus(node)
            case pt.Timer():
                return [_delayed(m, _closed(node.delay)) for m in self._found(node.pattern)]
            case pt.Except():
                return self._except(node)
            case pt.Absence():
                return self._absence(node)
            case pt.Nth():
                ordered = sorted(self._found(node.pattern), key=Match.order)
                return ordered[node.position - 1 : node.position]
            case pt.Pair():
                return pair_matches(node, self._found(node.first), self._found(node.second))
            case pt.Lossy():
                return lossy_matches(node, self.history)
            case pt.Agg():
                return aggregated(node, self._found(node.pattern))
            case _:
                assert_never(node)

    def _atom(self, node: pt.Atom) -> Iterator[Match]:
        for event in self.history:
            if not node.types or event.type in node.types:
                found = Match(
                    ((node.variable, event),), (event.ts, event.te), event.ts, event.te, event.te
                )
                if _holds(node, node.predicate, found):
                    yield found

    def _dedup(self, node: pt.Dedup) -> Iterator[Match]:
        seen = set()
        for match in sorted(self._found(node.pattern), key=Match.order):
            values = [evaluate(key, Scope(match), ex.Absent.TRUE) for key in node.key]
            if any(isinstance(value, Hole) for value in values):
                yield match  # a null never equals anything, also not in a key (Part F)
            elif (key := tuple((isinstance(v, bool), v) for v in values)) not in seen:
                seen.add(key)
                yield match

    def _combinations(
        self, patterns: tuple[pt.Pattern, ...], fits: Callable[[list[Match], Match], bool]
    ) -> Iterator[list[Match]]:
        found = [self._found(pattern) for pattern in patterns]

        def extend(chosen: list[Match]) -> Iterator[list[Match]]:
            if len(chosen) == len(found):
                yield chosen
                return
            for match in found[len(chosen)]:
                if fits(chosen, match):
                    yield from extend([*chosen, match])

        return extend([])

    def _conj(self, node: pt.Conj) -> Iterator[Match]:
        # One instance fills one slot; shared parts of different instances are fine (SPEC A0.3).
        apart = self._combinations(node.patterns, lambda c, m: all(m.ids != o.ids for o in c))
        for chosen in apart:
            ends = [match.te for match in chosen]
            if _fits(max(ends) - min(ends), _closed(node.window), node.inclusive):
                yield join(*chosen, ordered=False)

    def _seq(self, node: pt.Seq) -> Iterator[Match]:
        def follows(chosen: list[Match], match: Match) -> bool:
            return not chosen or _precedes(node.order, chosen[-1], match)

        for chosen in self._combinations(node.patterns, follows):
            span = chosen[-1].te - chosen[0].te
            if node.window is None or _fits(span, _closed(node.window), node.inclusive):
                yield join(*chosen)

    def _guard(self, node: pt.Guard) -> Iterator[Match]:
        negated = self._found(node.negated)
        for match in self._found(node.pattern):
            high, _ = _bound(node.high, node.window, match)
            if not any(_is_witness(node, match, n) for n in negated):
                end = high if node.ends_match else match.te
                yield replace(match, te=end, fin=max(match.fin, high))

    def _next(self, node: pt.Next) -> Iterator[Match]:
        second = self._found(node.second)
        for m in self._found(node.first):
            for q in successors(m, [q for q in second if _holds(node, node.skip, join(m, q))]):
                if _holds(node, node.test, join(m, q)):
                    yield join(m, q)

    def _plus(self, node: pt.Plus) -> Iterator[Match]:
        elements = self._found(node.pattern)

        def holds(predicate: ex.Expression, run: Match, element: Match) -> bool:
            return truth(predicate, Scope(run, element), node.absent)

        def extend(run: Match, length: int) -> Iterator[Match]:
            yield run
            if length in (self.cap, node.most):
                return
            candidates = [q for q in elements if holds(node.skip, run, q)]
            for q in successors(run, candidates):
                if holds(node.test, run, q):
                    yield from extend(join(run, q), length + 1)

        found = {}  # a set: runs of runs are the same however their events are divided
        for element in elements:
            if holds(node.skip, EMPTY, element) and holds(node.test, EMPTY, element):
                runs = extend(element, 1)
                found.update(
                    {(tuple(name for name, _ in run.bindings), run.ids): run for run in runs}
                )
        yield from found.values()

    def _except(self, node: pt.Except) -> Iterator[Match]:
        negated = self._found(node.negated)
        for m in self._found(node.pattern):
            since = max(e.te for name in (node.since, *node.or_since) for e in m.of(name))
            fatal = [
                n
                for n in negated
                if n.ts > since
                and n.tv[:-3:-1] < m.tv[:-3:-1]
                and _holds(node, node.predicate, join(m, n))
            ]
            if not fatal:
                yield m
            elif node.report_failures:
                n = min(fatal, key=lambda n: stable(n.tv))
                yield Match((), n.tv, n.te, n.te, n.te, fail=True)

    def _absence(self, node: pt.Absence) -> Iterator[Match]:
        times = [event.te for event in self.history]
        start = next(
            (t for t in (node.start, self.start) if t is not None), min(times, default=None)
        )
        horizon = max(times, default=None) if self.horizon is None else self.horizon
        if start is None or horizon is None:
            return
        ends = {match.te for match in self._found(node.pattern)}
        length = _closed(node.duration)
        for s in sorted({start} | {end for end in ends if end >= start}):
            until = s + length
            if until <= horizon and not any(s < end <= until for end in ends):
                yield Match((), (s, until), s, until, until)


def _holds(node: Any, predicate: ex.Expression, match: Match) -> bool:
    return truth(predicate, Scope(match), getattr(node, "absent", ex.Absent.FALSE))


def _closed(window: pt.Window) -> int:
    assert isinstance(window, int), "the oracle runs closed patterns"
    return window


def _fits(length: int, window: int, inclusive: bool) -> bool:
    return length <= window if inclusive else length < window


def _precedes(order: pt.Order, first: Match, second: Match) -> bool:
    if order is pt.Order.SEQUENCE:
        return first.last() < second.first()
    return first.te < second.ts


def _is_within(node: pt.Within, match: Match) -> bool:
    length = match.te - match.ts
    if node.measure is pt.Measure.END_TO_END:
        first, second = match.of(node.first or ""), match.of(node.second or "")
        if not first or not second:
            return False  # a variable of the other branch of a union is undefined
        length = abs(max(e.te for e in second) - max(e.te for e in first))
    return _fits(length, _closed(node.window) + node.ticks, node.inclusive)


def _bound(bound: pt.TimeBound, window: pt.Window | None, match: Match) -> tuple[int, int]:
    """A bound's time and the arrival number of the event it stands at."""
    groups = [[e for name in group for e in match.of(name)] for group in bound.groups]
    if bound.side is pt.Side.START:
        stamps = [min((e.ts, e.seq) for e in group) for group in groups if group]
    else:
        stamps = [max((e.te, e.seq) for e in group) for group in groups if group]
    time, seq = min(stamps) if bound.extreme is pt.Extreme.MIN else max(stamps)
    width = 0 if window is None else _closed(window)
    return time + bound.windows * width + bound.ticks, seq


def _is_witness(node: pt.Guard, match: Match, n: Match) -> bool:
    low = _bound(node.low, node.window, match)
    high = _bound(node.high, node.window, match)
    end = (n.te, n.last()[1])
    after = n.te >= low[0] if node.low_closed else _is_after(node, node.low, end, low)
    before = n.te <= high[0] if node.high_closed else _is_after(node, node.high, high, end)
    return (
        after
        and before
        and not match.all_ids() & n.all_ids()
        and _holds(node, node.predicate, join(match, n))
    )


def _is_after(
    node: pt.Guard, bound: pt.TimeBound, later: tuple[int, int], earlier: tuple[int, int]
) -> bool:
    """Whether one stamp is strictly after another; arrival counts only where an event stands."""
    if node.order is pt.Order.SEQUENCE and not bound.windows and not bound.ticks:
        return later > earlier
    return later[0] > earlier[0]


def _delayed(match: Match, delay: int) -> Match:
    end = match.te + delay
    return replace(match, te=end, tv=(*match.tv, end, end), fin=end)
