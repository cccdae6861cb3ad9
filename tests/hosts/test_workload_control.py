"""Orders to a workload on a stream: each has a number of its own, whoever gives it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.hosts.spark_workload_control import WorkloadControl
from cepheid.hosts.stream_clock import StreamClock
from cepheid.hosts.stream_workload import StreamLane, WorkloadStreamTask
from cepheid.hosts.workload_lanes import lanes_of
from cepheid.hosts.workload_orders import Order
from cepheid.model.errors import OptionError

SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("id", pa.int64())])
PAIR = "EVENT SEQ(A x, B y) WHERE [id] WITHIN 10"
WRITERS, ORDERS = 2, 100


def bound(folder: Path) -> WorkloadControl:
    """A control as the stream of one keyed query leaves it; no Spark is needed for its orders."""
    workload = cepheid.Workload({"pair": PAIR}, types={"A": ["id"], "B": ["id"]})
    lanes = lanes_of(workload.members, workload.options, SCHEMA, buckets=2, nodes=1)
    control = WorkloadControl(folder)
    control.bind(lanes, workload.options, SCHEMA, 2)
    return control


def written(folder: Path) -> list[Order]:
    files = sorted(folder.glob("*.order"))
    orders = [Order.read(file.read_text("utf-8")) for file in files]
    assert [int(file.stem) for file in files] == [order.number for order in orders]
    return orders


def test_many_who_order_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    begin = threading.Barrier(WRITERS)

    def orders_of(writer: int) -> WorkloadControl:
        control = bound(tmp_path)
        begin.wait()
        for number in range(ORDERS // 2):
            control.add(PAIR, name=f"{writer}/{number}")
            control.pause(f"{writer}/{number}")
        return control

    with ThreadPoolExecutor(WRITERS) as pool:
        controls = list(pool.map(orders_of, range(WRITERS)))
    orders = written(tmp_path)
    assert [order.number for order in orders] == list(range(WRITERS * ORDERS))
    for writer in range(WRITERS):
        own = [(o.kind, o.name) for o in orders if o.name.startswith(f"{writer}/")]
        assert own == [
            (kind, f"{writer}/{n}") for n in range(ORDERS // 2) for kind in ("begin", "end")
        ]
    assert all(set(control.names) == set(controls[0].names) for control in controls)
    assert not list(tmp_path.glob(".*"))


def test_only_one_of_several_gets_a_name(tmp_path: Path) -> None:
    controls = [bound(tmp_path) for _ in range(WRITERS)]
    begin = threading.Barrier(WRITERS)

    def is_added(control: WorkloadControl) -> bool:
        begin.wait()
        try:
            control.add(PAIR, name="wished")
        except OptionError:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        assert sum(pool.map(is_added, controls)) == 1
    controls[0].remove("wished")
    assert all("wished" not in control.names for control in controls)
    with pytest.raises(OptionError, match="no query `wished`"):
        controls[1].pause("wished")
    assert [order.kind for order in written(tmp_path)] == ["begin", "remove"]


def test_orders_that_arrive_together_are_carried_out_in_their_order() -> None:
    workload = cepheid.Workload({"pair": PAIR})
    lanes = lanes_of(workload.members, workload.options, SCHEMA, buckets=2, nodes=1)
    lane = StreamLane(workload.members, lanes[0].routing, 0)
    task = WorkloadStreamTask(
        (lane,), workload.options, SCHEMA, StreamClock(is_timestamp=False), "", "", 0
    )
    query = (PAIR, "sase", "query")
    orders = [
        Order("begin", "new", 0, 50, query, number=0),
        Order("end", "new", 0, 60, number=1),
        Order("begin", "new", 0, 70, query, number=2),
    ]
    for arrived in (orders, orders[::-1]):
        changed = task.changed(task.detector(0, None), 0, [o.text() for o in arrived], 10)
        assert changed is not None
        active = [(m.active.since, m.active.until) for m in changed[0].members if m.name == "new"]
        assert [since for since, _ in active] == [50, 70]
        assert active[0][1] == 60 < active[1][1]
