"""cepheid finds patterns of events: in history, in live streams, and across distributed sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cepheid.delivery.deliver import Delivery, deliver
    from cepheid.hosts.spark_workload_control import WorkloadControl
    from cepheid.hosts.workload import Workload
    from cepheid.session import CompiledQuery, Detector, compile, detect, scan

__version__ = "0.1.0"
__all__ = [
    "CompiledQuery",
    "Delivery",
    "Detector",
    "Workload",
    "WorkloadControl",
    "compile",
    "deliver",
    "detect",
    "scan",
]
_DELIVERY = ("Delivery", "deliver")


def __getattr__(name: str) -> Any:
    """Public names are loaded on first use: importing cepheid costs nothing."""
    if name in _DELIVERY:
        from cepheid.delivery import deliver as delivery  # noqa: PLC0415 (as below)

        return getattr(delivery, name)
    if name == "Workload":
        from cepheid.hosts import workload  # noqa: PLC0415 (only when it is used)

        return workload.Workload
    if name == "WorkloadControl":
        from cepheid.hosts import spark_workload_control  # noqa: PLC0415 (loads pyspark)

        return spark_workload_control.WorkloadControl
    if name in __all__:
        from cepheid import session  # noqa: PLC0415 (loads numba; only when something is used)

        return getattr(session, name)
    message = f"module `cepheid` has no attribute `{name}`"
    raise AttributeError(message)
