"""The one door to the Spark hosts; what lies behind it loads pyspark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.hosts.spark_batch import detect_batch, plan_batch
from cepheid.hosts.spark_inputs import of_history
from cepheid.hosts.spark_registered import registered_frames
from cepheid.hosts.spark_scan import BatchInstead, ScanPlan, plan_scan, read_files
from cepheid.model.errors import OptionError
from cepheid.model.options import Options, make_options
from cepheid.planner.compiled_query import CompiledQuery, compile_text
from cepheid.planner.prepare import with_statistics
from cepheid.planner.registered_sources import registrations_of

if TYPE_CHECKING:
    from cepheid.hosts.spark_workload import WorkloadPlan
    from cepheid.hosts.spark_workload_stream import WorkloadStreamPlan
    from cepheid.hosts.workload import Workload


def detect_spark(events: Any, query: CompiledQuery, options: Options) -> Any:
    """The matches in a Spark DataFrame: a lazy one for a batch, a streaming one for a stream."""
    events, options = _registered(events, query, with_statistics(options))
    if getattr(events, "isStreaming", False):
        from cepheid.hosts.spark_streaming import detect_stream  # noqa: PLC0415 (loads more)

        return detect_stream(events, query, options)
    return detect_batch(events, query, of_history(options))


def detect_workload_spark(events: Any, workload: Workload, control: Any = None) -> Any:
    """The matches of all queries of a workload in one job: lazy, in the form common to all."""
    return _workload_plan(events, workload, control).matches()


def explain_workload_spark(events: Any, workload: Workload) -> str:
    """How a workload would run on Spark: which queries where, and which edges are shuffled."""
    return _workload_plan(events, workload).explain()


def _workload_plan(
    events: Any, workload: Workload, control: Any = None
) -> WorkloadPlan | WorkloadStreamPlan:
    events = registered_frames(events, workload.registrations)
    options = with_statistics(workload.options)
    if getattr(events, "isStreaming", False):
        from cepheid.hosts.spark_workload_stream import (  # noqa: PLC0415 (loads more)
            plan_workload_stream,
        )

        return plan_workload_stream(events, workload.members, options, control)
    if control is not None:
        raise OptionError.of(
            "control-of-batch",
            "control= is for streams: a finite history has nothing to come and go in",
            help="leave it out",
        )
    from cepheid.hosts.spark_workload import plan_workload_batch  # noqa: PLC0415 (as above)

    return plan_workload_batch(events, workload.members, of_history(options))


def scan_spark(spark: Any, path: Any, query: CompiledQuery, options: Options) -> Any:
    """The matches in event files, found by tasks that each read a slice of time: lazy."""
    return _scan_plan(spark, path, query, with_statistics(options)).matches()


def explain_spark(
    events: Any, query: CompiledQuery | str, *, spark: Any = None, **options: Any
) -> str:
    """How a detection would run on Spark: on which host, divided how, filtered where, and why.

    `events` is a DataFrame, or the path of files together with the session `spark`. Planning may
    run the small jobs that the hosts run before a detection.
    """
    compiled = compile_text(query) if isinstance(query, str) else query
    chosen = make_options(options)
    if spark is not None:
        return _scan_plan(spark, events, compiled, chosen).explain()
    events, chosen = _registered(events, compiled, chosen)
    if getattr(events, "isStreaming", False):
        from cepheid.hosts.spark_streaming import plan_stream  # noqa: PLC0415 (loads more)

        return plan_stream(events, compiled, chosen).explain()
    return plan_batch(events, compiled, of_history(chosen)).explain()


def _registered(events: Any, query: CompiledQuery, options: Options) -> tuple[Any, Options]:
    """The events and the options that tell of them, once for all hosts behind this door."""
    registrations = registrations_of(query, options)
    if registrations is None:
        return events, options
    return registered_frames(events, registrations), registrations.options


def _scan_plan(
    spark: Any, path: Any, query: CompiledQuery, options: Options
) -> ScanPlan | BatchInstead:
    options = of_history(options)
    registrations = registrations_of(query, options)
    if registrations is None:
        return plan_scan(spark, path, query, options)
    # Slices of time are cut by the time column that the files have; a source may make another.
    frame = registered_frames(read_files(spark, path, options), registrations)
    reason = "the records of registered sources become events first"
    return BatchInstead(plan_batch(frame, query, registrations.options), reason)
