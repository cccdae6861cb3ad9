"""What the queries found in a batch goes where each of them says, exactly once.

Files of the batch are written again if the batch is done again, and are the same. Files that grow
get what is new behind the length that the journal tells; the new length is written down with the
batch. What a console shows cannot be taken back: after a kill it may be shown again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cepheid.manager.durable import Journal
from cepheid.manager.entries import Entries
from cepheid.manager.growing_file import add_to_file, length_of
from cepheid.manager.registered_sink import Way
from cepheid.manager.setting import Setting
from cepheid.manager.sink_proxies import Delivered, SinkProxies


def deliver_batch(
    batch: int,
    found: Sequence[tuple[str, bytes]],
    entries: Entries,
    sinks: SinkProxies,
    journal: Journal,
    setting: Setting,
) -> dict[str, int]:
    """Deliver tables of queries by their names; returns the new lengths of files that grew."""
    routed = []
    for name, table in found:
        route = entries.routes[name]
        target = route.target
        begins = False
        if target.way is Way.GROWING_FILE:
            assert target.path is not None
            _see_length(target.path, entries, journal)
            begins = entries.ends[target.path] == 0
        shown = _shown(name, entries, setting) if target.way is Way.SHOWN else None
        routed.append(Delivered(route.proxy, target, table, begins, shown))
    grown = sinks.deliver(batch, routed)
    return {path: add_to_file(path, entries.ends[path], piece) for path, piece in grown.items()}


def _see_length(path: str, entries: Entries, journal: Journal) -> None:
    """A file that somebody has made shorter, or moved away, goes on from what is left of it."""
    length = length_of(path)
    if length < entries.ends[path]:
        record = {"op": "shortened", "path": path, "end": length}
        journal.append(record)
        entries.apply(record)


def _shown(name: str, entries: Entries, setting: Setting) -> Mapping[str, Any] | None:
    """What a console must know of a query; of one that is stopped, nothing more is shown."""
    entry = entries.by_name.get(name)
    if entry is None:
        return None
    told = {"text": entry.text, "language": entry.language, "query": entry.query}
    return {**told, "name": name, "options": setting.options}
