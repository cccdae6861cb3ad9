"""What a manager tells of its queries and nodes, as plain values."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from cepheid.manager.entries import Entry
from cepheid.manager.manager import Manager
from cepheid.manager.wire import diagnostic_as_json, error_as_json
from cepheid.model.diagnostics import Diagnostic
from cepheid.statistics.event_statistics import to_json


def submitted(entry: Entry, warnings: tuple[Diagnostic, ...]) -> dict[str, Any]:
    """What is told to the one who submitted a query."""
    return {
        "name": entry.name,
        "node": entry.place.node,
        "sink": entry.place.sink,
        "warnings": [diagnostic_as_json(each) for each in warnings],
    }


def busy_of(manager: Manager) -> list[dict[str, Any]]:
    """The nodes that are at work now, since when, and the queries on them."""
    now = datetime.now(UTC)
    return [
        {
            "node": node.number,
            "since": since.isoformat(timespec="seconds"),
            "seconds": (now - since).total_seconds(),
            "queries": [
                each.name
                for each in manager.entries.by_name.values()
                if each.place.node == node.number and each.state == "running"
            ],
        }
        for node in manager.nodes
        if (since := node.busy_since) is not None
    ]


def list_of(manager: Manager) -> dict[str, Any]:
    """All queries, and what holds up the events if something does."""
    return {
        "queries": [
            {
                "name": entry.name,
                "language": entry.language,
                "state": entry.state,
                "since": entry.when,
                "matches": entry.matches,
                "node": entry.place.node,
                "sink": entry.place.sink,
                "shares_with": manager.shares_with(entry),
                "error": None if entry.problem is None else error_as_json(entry.problem),
            }
            for entry in manager.entries.by_name.values()
        ],
        "trouble": None if manager.trouble is None else error_as_json(manager.trouble),
        "busy": busy_of(manager),
        "changed_files": sorted(manager.changed_files),
    }


def queries_of(manager: Manager) -> dict[str, Any]:
    """All that is needed to plan the running queries elsewhere: texts, options, what is known."""
    known, schema = manager.progress.statistics(), manager.schema
    return {
        "queries": [
            {
                "name": entry.name,
                "text": entry.text,
                "source": entry.source,
                "language": entry.language,
                "query": entry.query,
                "node": entry.place.node,
                "since": entry.since,
            }
            for entry in manager.entries.by_name.values()
            if entry.state == "running"
        ],
        "options": dict(manager.setting.options),
        "statistics": None if known is None else to_json(known),
        "schema": None
        if schema is None
        else base64.b64encode(schema.serialize().to_pybytes()).decode("ascii"),
    }


def nodes_of(manager: Manager) -> dict[str, Any]:
    """All nodes and sink proxies, and how far the stream has come."""
    entries = list(manager.entries.by_name.values())
    known = manager.progress.statistics()
    # The statistics count in the time column's unit; people count timestamps by the second.
    is_timestamp = known is not None and known.time_unit == "us"
    nodes = []
    for node in manager.nodes:
        facts = node.facts
        nodes.append(
            {
                "node": node.number,
                "process": node.process_id,
                "queries": sum(
                    each.place.node == node.number and each.state == "running" for each in entries
                ),
                "operators": manager.placement.operators(node.number),
                "load": manager.placement.load(node.number) * (1_000_000 if is_timestamp else 1),
                "events": facts.received,
                "events_per_second": facts.events_per_second,
                "live_events": facts.live_events,
                "restarts": facts.restarts,
            }
        )
    return {
        "nodes": nodes,
        "proxies": [
            {
                "proxy": number,
                "process": manager.sinks.process_id(number),
                "queries": sum(each.place.sink == number for each in entries),
                "files": facts.files,
                "bytes": facts.bytes,
            }
            for number, facts in enumerate(manager.sinks.facts)
        ],
        "stream": {
            "events": manager.progress.events,
            "late": manager.progress.late,
            "unusable": manager.progress.unusable,
            "files": sum(each["op"] == "file" for each in manager.files.values()),
            "refused": sum(each["op"] == "refused" for each in manager.files.values()),
            "changed": len(manager.changed_files),
            "waiting": manager.waiting,
            "to_do_again": manager.to_do_again,
        },
        "busy": busy_of(manager),
        "load_unit": "s" if is_timestamp else "tick",
        "strategy": manager.setting.strategy.value,
    }
