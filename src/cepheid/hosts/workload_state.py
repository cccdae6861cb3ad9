"""The state of a workload: the live events of its engines, and where time stands in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cepheid.hosts.live_engine import BEGINNING, LiveEvents
from cepheid.hosts.snapshot import read_events, write_events


def state_of(engines: Sequence[LiveEvents]) -> tuple[list[dict[str, Any]], list[bytes]]:
    """What a snapshot keeps of engines: a header and the live events of each."""
    headers, parts = [], []
    for engine in engines:
        table, positions = engine.live_table()
        parts.append(write_events(table, positions, engine.absent_flags()))
        headers.append(
            {
                "watermark": engine.watermark,
                "latest": engine.latest,
                "position": engine.position,
                "dead": engine.dead_until,
            }
        )
    return headers, parts


def restore_state(
    engines: Sequence[LiveEvents], headers: Sequence[dict[str, Any]], parts: Sequence[bytes]
) -> None:
    """The other way round, into engines that have seen nothing."""
    for engine, header, part in zip(engines, headers, parts, strict=True):
        events, positions = read_events(part)
        engine.restore(
            events,
            positions,
            watermark=header["watermark"],
            latest=header["latest"],
            position=header["position"],
            horizon=header.get("dead", BEGINNING),
        )
