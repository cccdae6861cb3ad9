"""The system on one page: text -> algebra -> plan -> a host that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.hosts.in_process import Detector, detect_in_process
from cepheid.model.errors import OptionError
from cepheid.model.options import make_options
from cepheid.planner.compiled_query import CompiledQuery, compile_text

if TYPE_CHECKING:
    from cepheid.hosts.workload import Workload

__all__ = ["CompiledQuery", "Detector", "compile", "detect", "scan"]


def compile(text: str, language: str | None = None, *, name: str = "query") -> CompiledQuery:
    """Check a query and make it ready to run; `name` is what messages call the text.

    >>> compile("EVENT SEQ(A x, !(B n), C y) WHERE [id] WITHIN 12 hours").names
    ('query',)
    """
    return compile_text(text, language, name=name)


def detect(events: Any, query: CompiledQuery | Workload | str, **options: Any) -> Any:
    """All matches of a query, or of all queries of a workload, in the events.

    Events: pyarrow Table, pandas DataFrame, list of dicts, Spark DataFrame (batch or streaming), or
    a dict of those by type or by registered source. Returns a pyarrow Table (pandas in, pandas
    out), or a lazy Spark DataFrame for Spark input.

    >>> table = detect([{"type": "A", "ts": 1}, {"type": "B", "ts": 2}], "EVENT SEQ(A x, B y)")
    >>> table.column("x").to_pylist()
    [{'type': 'A', 'ts': 1}]
    """
    if not isinstance(query, CompiledQuery | str):
        return _detect_all(events, query, options)
    compiled = compile_text(query) if isinstance(query, str) else query
    if is_spark(events):
        from cepheid.hosts.spark import detect_spark  # noqa: PLC0415 (pyspark's one door)

        return detect_spark(events, compiled, make_options(options))
    table = detect_in_process(events, compiled, make_options(options))
    return table.to_pandas() if type(events).__module__.startswith("pandas") else table


def _detect_all(events: Any, workload: Workload, options: dict[str, Any]) -> Any:
    control = options.pop("control", None)
    if options:
        raise OptionError.of(
            "options-of-workload",
            f"a workload has its own options; `{next(iter(options))}` is given beside it",
            help="give options to cepheid.Workload(...)",
        )
    if is_spark(events):
        from cepheid.hosts.spark import detect_workload_spark  # noqa: PLC0415 (as below)

        return detect_workload_spark(events, workload, control)
    return workload.detect(events)


def scan(spark: Any, path: Any, query: CompiledQuery | str, **options: Any) -> Any:
    """The matches in event files, as a lazy DataFrame: each task reads its own slice of time."""
    from cepheid.hosts.spark import scan_spark  # noqa: PLC0415 (pyspark's one door)

    compiled = compile_text(query) if isinstance(query, str) else query
    return scan_spark(spark, path, compiled, make_options(options))


def is_spark(events: Any) -> bool:
    """Whether events are a Spark DataFrame, or a dict that has one."""
    if isinstance(events, dict):
        return any(is_spark(part) for part in events.values())
    return type(events).__module__.startswith("pyspark.") and not isinstance(events, pa.Table)


def is_stream(events: Any) -> bool:
    """Whether events are a streaming DataFrame of Spark, or a dict that has one."""
    if isinstance(events, dict):
        return any(is_stream(part) for part in events.values())
    return is_spark(events) and bool(events.isStreaming)
