"""cepheid finds patterns of events: in history, in live streams, and across distributed sources."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cepheid.delivery.deliver import Delivery, deliver
    from cepheid.hosts.spark_workload_control import WorkloadControl
    from cepheid.hosts.workload import Workload
    from cepheid.model.errors import (
        CepheidError,
        DataError,
        EnvironmentProblem,
        LimitExceeded,
        MismatchWarning,
        OptionError,
        PerformanceWarning,
        QueryError,
        StateError,
    )
    from cepheid.session import CompiledQuery, Detector, compile, detect, scan

__version__ = "0.1.0"
__all__ = [
    "CepheidError",
    "CompiledQuery",
    "DataError",
    "Delivery",
    "Detector",
    "EnvironmentProblem",
    "LimitExceeded",
    "MismatchWarning",
    "OptionError",
    "PerformanceWarning",
    "QueryError",
    "StateError",
    "Workload",
    "WorkloadControl",
    "compile",
    "deliver",
    "detect",
    "scan",
]
_HOMES = {
    "Delivery": "delivery.deliver",
    "Workload": "hosts.workload",
    "WorkloadControl": "hosts.spark_workload_control",
    "deliver": "delivery.deliver",
    **dict.fromkeys(("CompiledQuery", "Detector", "compile", "detect", "scan"), "session"),
}
"""Where public names live that are no errors."""


def __getattr__(name: str) -> Any:
    """Public names are loaded on first use: importing cepheid costs nothing."""
    if name not in __all__:
        message = f"module `cepheid` has no attribute `{name}`"
        raise AttributeError(message)
    return getattr(import_module(f"cepheid.{_HOMES.get(name, 'model.errors')}"), name)
