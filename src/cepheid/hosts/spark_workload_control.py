"""Queries that come and go while a workload runs on a stream (DESIGN: changes are rows, too).

Orders are written as files into a folder that the streaming query reads beside the events, and are
copied to every bucket of the lane they concern. A query joins the lane that divides events as it
needs them; where there is none, it cannot join: it would need another key, or columns that do not
travel, which a running streaming query cannot change.
"""

from __future__ import annotations

import os
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cepheid.hosts.in_process import as_time
from cepheid.hosts.prepared_program import prepare_program
from cepheid.hosts.query_names import known_query, refuse_taken
from cepheid.hosts.spark_packing import PACK_SCHEMA, PACKS
from cepheid.hosts.stream_routing import route
from cepheid.hosts.stream_workload import StreamLane
from cepheid.hosts.workload_lanes import Lane, together
from cepheid.hosts.workload_orders import BEGIN, END, REMOVE, Order, refuse_sources, written_query
from cepheid.model.errors import OptionError
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery, compile_text

ORDER = -1
"""What stands for the number of a pack that holds an order."""


@dataclass(frozen=True, slots=True)
class _Known:
    query: tuple[str, str, str]
    lane: int
    is_active: bool


class WorkloadControl:
    """Adds, pauses, resumes and removes queries of a workload that runs on a stream.

    Give it to `cepheid.detect(stream, workload, control=...)` first. Its folder remembers what was
    ordered; after a restart a new one on the same folder knows it. Several may give orders at the
    same time; each order fits those before it.
    """

    def __init__(self, folder: Path | str) -> None:
        """`folder` is made if it is missing; every executor must be able to read it."""
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lanes: tuple[Lane, ...] | None = None
        self._known: dict[str, _Known] = {}
        self._next = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The queries that run or are paused, whoever ordered it."""
        self._catch_up()
        return tuple(self._known)

    def add(self, query: CompiledQuery | str, *, name: str, at: Any = None) -> None:
        """Let a query see events from the time `at` on (default: from those nobody has seen)."""
        compiled = compile_text(query) if isinstance(query, str) else query
        refuse_sources(compiled)

        def order() -> Order:
            refuse_taken(name, self._known)
            lane = self._lane_for(compiled)
            return Order(BEGIN, name, lane, _time(at), written_query(compiled))

        self._give(order)

    def resume(self, name: str, *, at: Any = None) -> None:
        """Let a paused query see events again."""

        def order() -> Order | None:
            known = known_query(name, self._known)
            if known.is_active:
                return None
            return Order(BEGIN, name, known.lane, _time(at), known.query)

        self._give(order)

    def pause(self, name: str, *, at: Any = None) -> None:
        """Let a query see no event from the time `at` on."""

        def order() -> Order | None:
            known = known_query(name, self._known)
            return Order(END, name, known.lane, _time(at)) if known.is_active else None

        self._give(order)

    def remove(self, name: str, *, at: Any = None) -> None:
        """The same, for good; the name is free again."""
        self._give(lambda: Order(REMOVE, name, known_query(name, self._known).lane, _time(at)))

    # -- for the host -----------------------------------------------------------------------------

    def bind(
        self, lanes: tuple[Lane, ...], options: Options, schema: pa.Schema, buckets: int
    ) -> None:
        """Be told what runs, and read what was ordered before."""
        self._lanes, self._options, self._schema, self._buckets = lanes, options, schema, buckets
        self._known = {
            member.name: _Known(written_query(member.query), number, True)
            for number, lane in enumerate(lanes)
            for member in lane.members
        }
        self._next = 0
        self._catch_up()

    def packs(self, spark: SparkSession, lanes: Sequence[StreamLane]) -> DataFrame:
        """The orders as packs for every bucket of their lanes: a stream."""
        texts = spark.readStream.schema("value string").text(str(self.folder))
        return texts.mapInArrow(_OrderPacking(tuple(lanes)).pack, PACK_SCHEMA)

    def _give(self, order: Callable[[], Order | None]) -> None:
        """Give an order that fits all that was ordered before it, by this or another control."""
        while True:
            self._catch_up()
            wanted = order()
            if wanted is None or self._is_written(replace(wanted, number=self._next)):
                return self._catch_up()

    def _is_written(self, order: Order) -> bool:
        """Write an order under its number, whole at once; False if another has the number."""
        hidden = self.folder / f".{uuid.uuid4().hex}"
        hidden.write_text(order.text() + "\n", "utf-8")
        try:
            # A link is refused where the name is taken; a renaming would replace what is there.
            os.link(hidden, self.folder / f"{order.number:08d}.order")
        except FileExistsError:
            return False
        finally:
            hidden.unlink()
        return True

    def _catch_up(self) -> None:
        """Read the orders that came since; before a stream has told its queries there are none."""
        if self._lanes is None:
            return
        numbers = sorted(int(file.stem) for file in self.folder.glob("*.order"))
        for number in numbers[bisect_left(numbers, self._next) :]:
            self._learn(Order.read((self.folder / f"{number:08d}.order").read_text("utf-8")))
            self._next = number + 1

    def _learn(self, order: Order) -> None:
        if order.kind == BEGIN:
            assert order.query is not None
            self._known[order.name] = _Known(order.query, order.lane, True)
        elif order.kind == REMOVE:
            self._known.pop(order.name, None)
        elif order.name in self._known:
            known = self._known[order.name]
            self._known[order.name] = replace(known, is_active=False)

    def _lane_for(self, query: CompiledQuery) -> int:
        if self._lanes is None:
            raise OptionError.of(
                "not-running",
                "this control belongs to no stream yet",
                help="give it to cepheid.detect(stream, workload, control=...) first",
            )
        program = prepare_program(query, self._options, self._schema)
        routing = route(program, self._schema, self._buckets)
        for number, lane in enumerate(self._lanes):
            if routing.is_one_task and lane.routing.is_one_task:
                return number
            joint = together(lane.routing, routing)
            if joint is not None and _is_divided_alike(joint, lane):
                return number
        wanted = "one task" if routing.is_one_task else f"the key {routing.key}"
        raise OptionError.of(
            "needs-restart",
            f"the query divides its events by {wanted}, as no query of this stream does",
            notes=tuple(f"lane {n}: {lane}" for n, lane in enumerate(self._lanes)),
            help="run it in a second streaming query, or start this one anew with it",
        )


def _is_divided_alike(joint: Any, lane: Lane) -> bool:
    """Whether events reach the lane's buckets as the new query needs them."""
    own = lane.routing
    if own.by_instant:
        return True
    same_key = own.key is not None and (own.key.of_any is not None or joint.key == own.key)
    return same_key and joint.witnesses == own.witnesses and joint.is_lone == own.is_lone


def _time(at: Any) -> int | None:
    return None if at is None else as_time(at)


@dataclass(frozen=True, slots=True)
class _OrderPacking:
    """An order for each bucket of its lane, as a pack without events."""

    lanes: tuple[StreamLane, ...]

    def pack(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The packs of all orders, in their order."""
        for batch in batches:
            rows = [
                (bucket, ORDER, ORDER, True, text.encode())
                for text in batch.column(0).to_pylist()
                if text.strip()
                for lane in (self.lanes[Order.read(text).lane],)
                for bucket in range(lane.first, lane.after)
            ]
            if rows:
                columns = zip(*rows, strict=True)
                yield pa.record_batch(
                    [pa.array(c, f.type) for c, f in zip(columns, PACKS, strict=True)],
                    schema=PACKS,
                )
