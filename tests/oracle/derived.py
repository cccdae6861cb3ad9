"""Map and Agg: the nodes that make new events, as plain functions over a node's matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cepheid.algebra import expression as ex
from cepheid.algebra import pattern as pt
from tests.oracle.events import Ev, Match
from tests.oracle.expressions import (
    AbsentAttributeError,
    Hole,
    Scope,
    aggregate,
    evaluate,
    truth,
)


def mapped(node: pt.Map, match: Match) -> Match:
    """The match as one event; what is undefined becomes null, what is absent stays absent."""
    attrs: dict[str, Any] = {}
    for name, expression in node.attributes:
        value = evaluate(expression, Scope(match), node.absent)
        if value is Hole.ABSENT and node.absent is ex.Absent.ERROR:
            raise AbsentAttributeError(expression)
        if value is Hole.UNDEFINED:
            attrs[name] = None
        elif not isinstance(value, Hole):
            attrs[name] = value
    event = _derived(node.type, match.ids, match.ts, match.te, attrs, match.events)
    return replace(match, bindings=((node.variable, event),))


def aggregated(node: pt.Agg, found: list[Match]) -> Iterator[Match]:
    """Per group, an event where `having` becomes true: decided by (tau - d, tau] alone."""
    groups: dict[tuple[Any, ...], list[Match]] = {}
    for match in found:
        key = tuple(evaluate(key, Scope(match), ex.Absent.TRUE) for _, key in node.group)
        if not any(isinstance(value, Hole) for value in key):
            groups.setdefault(key, []).append(match)
    over = node.over
    assert isinstance(over, int)
    for key, group in groups.items():
        for now in sorted({match.te for match in group}):
            current = _value(node, key, [m for m in group if now - over < m.te <= now], now)
            before = _value(node, key, [m for m in group if now - over <= m.te < now], now)
            if _has(node, current) and not _has(node, before):
                yield current


def _has(node: pt.Agg, result: Match) -> bool:
    return truth(node.having, Scope(result), ex.Absent.FALSE)


def _value(node: pt.Agg, key: tuple[Any, ...], group: list[Match], now: int) -> Match:
    value: Any = len(group)
    if node.argument is not None:
        found = [evaluate(node.argument, Scope(match), ex.Absent.TRUE) for match in group]
        value = aggregate(node.function, [v for v in found if not isinstance(v, Hole)])
    attrs = dict(zip((name for name, _ in node.group), key, strict=True))
    attrs["value"] = None if isinstance(value, Hole) else value
    parts = tuple(event for match in group for event in match.events)
    event = _derived(node.type, (now, key), now, now, attrs, parts)
    return Match(((node.variable, event),), (now, now), now, now, now)


def _derived(
    type: str, key: Any, ts: int, te: int, attrs: dict[str, Any], parts: tuple[Ev, ...]
) -> Ev:
    seq = max((part.seq for part in parts), default=0)
    return Ev((type, key), type, ts, te, attrs, seq, parts)
