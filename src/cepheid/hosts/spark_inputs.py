"""Guaranteed detection on Spark: what a stream waits for, and what a history need not wait for.

A history is complete: nothing in it is late, and every policy gives the same answer. A stream has
Spark's one watermark, which for a union is the least of its branches' own, so that every input gets
a branch and a watermark (SPEC A1.4's stability).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.sql import SparkSession

from cepheid.algebra.query import Query
from cepheid.hosts.input_front import inputs_of
from cepheid.model.errors import EnvironmentProblem, OptionError
from cepheid.model.options import Options

_MIN_OR_MAX = "spark.sql.streaming.multipleWatermarkPolicy"


@dataclass(frozen=True, slots=True)
class AwaitedInputs:
    """The inputs without which time does not move on, or only by the time-out."""

    names: tuple[str, ...]
    timeout: int | str | timedelta | None

    def __str__(self) -> str:
        """For people."""
        waited = "" if self.timeout is None else f", each waited for up to {self.timeout}"
        return f"the least of what the inputs {', '.join(self.names)} have reached{waited}"


def of_history(options: Options) -> Options:
    """The options for events that are all there."""
    if options.policy == "guaranteed" and not options.close_at_end:
        raise OptionError.of(
            "guaranteed-end",
            'on Spark, close_at_end=False ends at the last event, and policy="guaranteed" at the '
            "last event of the input that ends first",
            help="leave one of them out, or detect in process",
        )
    return _driven_by_spark(options)


def of_stream(
    programs: Sequence[Sequence[Query]], options: Options, spark: SparkSession
) -> tuple[AwaitedInputs | None, Options]:
    """What programs on a stream have to wait for, if anything, and the options to go on with."""
    if options.policy != "guaranteed":
        return None, options
    if (spark.conf.get(_MIN_OR_MAX, None) or "min") != "min":
        raise EnvironmentProblem.of(
            "watermark-policy",
            'policy="guaranteed" needs the least of all watermarks, and this session takes another',
            help=f'spark.conf.set("{_MIN_OR_MAX}", "min")',
        )
    read = {name for stages in programs for name in inputs_of(stages, options.inputs)}
    awaited = AwaitedInputs(tuple(sorted(read)), options.input_timeout)
    return awaited, _driven_by_spark(options)


def _driven_by_spark(options: Options) -> Options:
    return replace(options, policy="bounded", inputs=None, input_timeout=None)
