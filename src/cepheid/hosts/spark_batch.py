"""The Spark batch host: filter and project in the JVM, bring together what can match, detect."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cepheid.hosts.division import KeyByType, key_of
from cepheid.hosts.prepared_program import prepare_program
from cepheid.hosts.spark_filter import EventFilter, quoted
from cepheid.hosts.spark_task import DetectionTask
from cepheid.hosts.spark_types import arrow_schema, plain_schema, spark_schema
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery


def detect_batch(events: DataFrame, query: CompiledQuery, options: Options) -> DataFrame:
    """The matches in a DataFrame, lazily."""
    schema = arrow_schema(events.schema)
    program = prepare_program(query, options, schema)
    tests = EventFilter(program, schema)
    columns = program.columns(schema)
    needed = events.filter(tests.is_usable() & tests.matters()).select(*map(quoted, columns))
    key = key_of(program)
    task = DetectionTask(query, options, plain_schema(program.form.schema))
    if isinstance(key, KeyByType):
        divided = needed.repartition(*_key_columns(key, tests))
    else:
        divided = needed.coalesce(1)
    ordered = divided.sortWithinPartitions(quoted(options.end_column))
    return ordered.mapInArrow(task.by_key, spark_schema(program.form.schema))


def _key_columns(key: KeyByType, tests: EventFilter) -> list[Column]:
    columns = []
    for number in range(key.width):
        if key.of_any is not None:
            columns.append(quoted(key.of_any[number]))
            continue
        chosen = sf.lit(None)
        for attributes, types in key.groups().items():
            chosen = sf.when(tests.is_of(types), quoted(attributes[number])).otherwise(chosen)
        columns.append(chosen)
    return columns
