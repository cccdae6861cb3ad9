"""Nodes that are at their work for long, told to people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

_WORTH_TELLING = 2.0
"""Seconds; most batches take far less."""


def busy_lines(busy: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each node that has been busy for a while."""
    return [
        f"node {each['node']} has been busy with a batch for {each['seconds']:,.0f} s, "
        f"since {datetime.fromisoformat(each['since']).astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        for each in busy
        if each["seconds"] >= _WORTH_TELLING
    ]
