"""The state of a workload: the live events of its engines, and where time stands in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cepheid.hosts.live_engine import BEGINNING, LiveEvents
from cepheid.hosts.snapshot import read_events, write_events


def state_of(engines: Sequence[LiveEvents]) -> tuple[list[dict[str, Any]], list[bytes]]:
    """What a snapshot keeps of engines: a header, the live events, and what these do not tell."""
    headers: list[dict[str, Any]] = []
    parts = []
    for engine in engines:
        if not engine.is_told_by_events:
            engine.compact()
        table, positions = engine.live_table()
        beside = engine.state_beside_events()
        parts += [write_events(table, positions, engine.absent_flags()), *beside]
        headers.append(
            {
                "watermark": engine.watermark,
                "latest": engine.latest,
                "position": engine.position,
                "dead": engine.dead_until,
            }
        )
        if beside:  # else as it was, so that older versions can read it
            headers[-1]["beside"] = len(beside)
    return headers, parts


def restore_state(
    engines: Sequence[LiveEvents], headers: Sequence[dict[str, Any]], parts: Sequence[bytes]
) -> None:
    """The other way round, into engines that have seen nothing."""
    rest = iter(parts)
    for engine, header in zip(engines, headers, strict=True):
        events, positions = read_events(next(rest))
        beside = [next(rest) for _ in range(header.get("beside", 0))]
        if beside:
            engine.expect_beside_events(beside)
        engine.restore(
            events,
            positions,
            watermark=header["watermark"],
            latest=header["latest"],
            position=header["position"],
            horizon=header.get("dead", BEGINNING),
        )
