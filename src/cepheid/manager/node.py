"""A node: a process that runs the queries placed on it (NEXT, DEBS 2009, section 4.1).

It is a `Workload` behind frames. All it knows is in its snapshot and in what it was asked since, so
that one that died is replaced by another which is asked the same again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from operator import is_
from time import perf_counter
from typing import Any

import pyarrow as pa

from cepheid.algebra.pattern import Atom, walk
from cepheid.hosts.found import Found
from cepheid.hosts.snapshot import write_table
from cepheid.hosts.workload import Workload
from cepheid.manager.wire import Frame
from cepheid.model.errors import CepheidError
from cepheid.planner.active import ALWAYS
from cepheid.planner.compiled_query import compile_text
from cepheid.planner.workload_plan import Member
from cepheid.statistics.event_statistics import from_json


class NodeWorkload(Workload):
    """A workload from which a query can be dropped, too, when a node cannot do its work."""

    def drop(self, name: str) -> None:
        """Forget a query that was removed, with all that it would still find before its end."""
        forever = ALWAYS.until
        self._change([m for m in self._members if m.name != name or m.active.until == forever])


class Node:
    """The workload of one node, asked by frames."""

    def __init__(self) -> None:
        """Without queries and without options; `start` comes first."""
        self._workload = NodeWorkload()
        self._members: tuple[Member, ...] = ()
        self._needs: list[str] | None = []
        self._plan = 0
        self._has_fed = False

    def answer(self, frame: Frame) -> Frame:
        """Do what a frame asks for, and tell how things stand then."""
        begin = perf_counter()
        asked = frame.head
        found = Found()
        events = 0
        match asked["do"]:
            case "start":
                self._start(asked["options"], frame.parts)
            case "add":
                self._add(asked)
            case "pause":
                self._workload.pause(asked["name"], at=asked["at"])
            case "resume":
                self._workload.resume(asked["name"], at=asked["at"])
            case "remove":
                self._workload.remove(asked["name"], at=asked["at"])
            case "drop":
                self._workload.drop(asked["name"])
            case "feed":
                for batch in pa.ipc.open_stream(frame.parts[0]):
                    events += batch.num_rows
                    found = found + self._workload.feed(batch)
                found = found + self._workload.advance(asked["watermark"])
                self._has_fed = True
            case "advance":
                found = self._workload.advance(asked["watermark"])
            case "snapshot":
                return Frame({}, (self._workload.snapshot(),))
            case "sharing":
                # Queries that do not fit one another's columns are found out by the first events.
                with suppress(CepheidError):
                    return Frame({"shares": sharing(self._workload)})
                return Frame({"shares": {}})
            case other:
                message = f"a node does not know `{other}`"
                raise ValueError(message)
        matches = dict(found)
        tables = tuple(write_table(each.table()) for each in matches.values())
        return Frame(
            {
                "names": list(matches),
                "counts": [len(each) for each in matches.values()],
                "needs": self._needed(),
                "plan": [self._plan, self._has_fed],
                "live": self._workload.live_events,
                "events": events,
                "seconds": perf_counter() - begin,
            },
            tables,
        )

    def _needed(self) -> list[str] | None:
        """The types that the queries read; looked for anew only when there are other queries."""
        members = self._workload.members
        same = len(members) == len(self._members) and all(map(is_, members, self._members))
        if not same:
            self._members, self._needs = members, needed_types(self._workload)
            self._plan += 1
        return self._needs

    def _start(self, options: Mapping[str, Any], snapshot: Sequence[bytes]) -> None:
        if snapshot:
            restored = NodeWorkload.restore(snapshot[0], **options)
            assert isinstance(restored, NodeWorkload)
            self._workload = restored
        else:
            self._workload = NodeWorkload(**options)

    def _add(self, asked: Mapping[str, Any]) -> None:
        if asked["statistics"] is not None:
            # Rates are for the optimiser: plans may change with them, matches cannot.
            known = from_json(asked["statistics"])
            self._workload.options = replace(self._workload.options, statistics=known)
        compiled = compile_text(asked["text"], asked["language"])[asked["query"]]
        self._workload.add(compiled, name=asked["name"], at=asked["at"])


def needed_types(workload: Workload) -> list[str] | None:
    """The event types that the queries of a workload read; None if one of them reads any type."""
    found: set[str] = set()
    for member in workload.members:
        for stage in member.query.stages(workload.options):
            for each in walk(stage.pattern):
                if isinstance(each, Atom):
                    if not each.types:
                        return None
                    found.update(each.types)
    return sorted(found)


def sharing(workload: Workload, most: int = 20) -> dict[str, list[str]]:
    """The queries with which each one has something in common that runs once; not all if many."""
    found: dict[str, dict[str, None]] = {}
    shared = (
        node.queries
        for graph in (workload.graph() if workload.members else ())
        for node in graph.nodes
        if node.kind != "query" and len(node.queries) > 1
    )
    for names in shared:
        for name in names:
            others = (other for other in names if other != name)
            found.setdefault(name, {}).update(dict.fromkeys(islice(others, most)))
    return {name: list(others)[:most] for name, others in found.items()}
