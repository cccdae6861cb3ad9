"""The Spark scan host: each task reads a slice of time from the files and detects there.

Only matches reach the JVM. The file list is frozen when the scan is planned; footers (and text
files) are read by tasks. Where slices of time do not pay, the batch host takes over, and `explain`
says why.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from cepheid.hosts.arrow_filter import row_condition
from cepheid.hosts.division import KeyByType, TimeReach, Undivided, key_of, reach_of
from cepheid.hosts.event_files import EventFiles, FileFormat, OtherTable, list_event_files
from cepheid.hosts.file_facts import FACTS, FileFacts, read_facts
from cepheid.hosts.plain_types import plain_schema
from cepheid.hosts.prepared_program import PreparedProgram, prepare_program
from cepheid.hosts.scan_plan import Slicing, UnitTimes, disorder, slice_units
from cepheid.hosts.scan_task import DescribeTask, ReadTask, ScanTask
from cepheid.hosts.slice_reader import SliceReader
from cepheid.hosts.spark_batch import BatchPlan, plan_batch, refuse_arrival_order
from cepheid.hosts.spark_task import DetectionTask
from cepheid.hosts.spark_types import spark_schema
from cepheid.hosts.time_slices import MOST_READ, TimeSlices
from cepheid.model.errors import DataError, PerformanceWarning
from cepheid.model.options import Options
from cepheid.planner.compiled_query import CompiledQuery

_SHUFFLE_COST = 2.3
"""How much longer an event takes through a shuffle than through a scan, as measured."""
_REMEMBERED = 16
_NAMES = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A scan ready to run; `notes` say why it runs this way."""

    spark: SparkSession
    task: ScanTask
    schema: pa.Schema
    notes: tuple[str, ...]

    def matches(self) -> DataFrame:
        """The lazy DataFrame of the matches; one task per slice."""
        slices = len(self.task.slices)
        numbers = self.spark.range(0, slices, 1, slices)
        return numbers.mapInArrow(self.task.run, spark_schema(self.schema))

    def explain(self) -> str:
        """How the scan runs, for people."""
        return "\n".join(["host: Spark scan", *self.notes])


@dataclass(frozen=True, slots=True)
class BatchInstead:
    """The files go through the batch host, for a reason."""

    plan: BatchPlan
    reason: str

    def matches(self) -> DataFrame:
        """The lazy DataFrame of the matches."""
        return self.plan.matches()

    def explain(self) -> str:
        """Why, and how the batch host runs it."""
        return f"no scan by slices of time: {self.reason}\n{self.plan.explain()}"


def plan_scan(
    spark: SparkSession, path: Any, query: CompiledQuery, options: Options
) -> ScanPlan | BatchInstead:
    """List the files, let tasks describe them, and cut them into slices of time if that pays."""
    listed = list_event_files(path)
    if isinstance(listed, OtherTable):
        frame = _read_with_spark(spark, listed)
        return BatchInstead(plan_batch(frame, query, options), listed.reason)
    facts = _facts(spark, listed, options)
    schema = unified_schema([fact.schema for fact in facts], listed)
    program = prepare_program(query, options, schema)
    refuse_arrival_order(options)
    units = UnitTimes([unit for fact in facts for unit in fact.units])
    slicing, reason = _slicing(spark, listed, units, program)
    reader = _reader(listed, schema, program)
    if reason is not None:
        frame = _frame(spark, reader)
        return BatchInstead(plan_batch(frame, query, options), reason)
    slices = slicing.slices
    task = ScanTask(
        DetectionTask(
            query, options, plain_schema(program.form.schema), end=_end_of_time(program, units)
        ),
        reader,
        slices,
        tuple(units.of_slice(slices, number) for number in range(len(slices))),
    )
    return ScanPlan(spark, task, program.form.schema, _notes(listed, units, slicing, reader))


def unified_schema(schemas: list[pa.Schema], files: EventFiles) -> pa.Schema:
    """The columns of all files, each in a type that fits them all."""
    known = [schema for schema in schemas if len(schema)]
    if not known:
        raise DataError.of(
            "no-events",
            f"the files of `{files.root}` are all empty",
            help="without a header or a row nobody knows the columns",
        )
    try:
        return pa.unify_schemas(known, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise DataError.of(
            "mixed-types",
            f"the files of `{files.root}` do not agree on a column's type: {problem}",
            help="give columns of one name the same type in every file",
        ) from None


# -- what is known of the files -------------------------------------------------------------------

_remembered: OrderedDict[tuple[Any, ...], list[FileFacts]] = OrderedDict()


def _facts(spark: SparkSession, files: EventFiles, options: Options) -> list[FileFacts]:
    """The files' facts; those of unchanged files are known from the last time."""
    key = (files, options.end_column, options.type)
    if key in _remembered:
        _remembered.move_to_end(key)
        return _remembered[key]
    tasks = min(len(files.files), 4 * _cores(spark))
    described = spark.range(0, tasks, 1, tasks).mapInArrow(
        DescribeTask(files, options, tasks).run, spark_schema(FACTS)
    )
    facts = read_facts(described.toArrow())
    _remembered[key] = facts
    while len(_remembered) > _REMEMBERED:
        _remembered.popitem(last=False)
    return facts


def _cores(spark: SparkSession) -> int:
    """How many tasks run at once, as far as the settings tell."""
    told = spark.conf.get("spark.default.parallelism", None)
    if told and told.isdigit():
        return max(1, int(told))
    master = spark.conf.get("spark.master", None) or ""
    local = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if local:
        number = local[1] or "1"
        return (os.cpu_count() or 1) if number == "*" else int(number)
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master)
    if cluster:
        return int(cluster[1]) * int(cluster[2])
    executors = spark.conf.get("spark.executor.instances", None)
    cores = spark.conf.get("spark.executor.cores", None)
    if executors and cores and executors.isdigit() and cores.isdigit():
        return max(1, int(executors) * int(cores))
    partitions = spark.conf.get("spark.sql.shuffle.partitions", "8") or "8"
    return max(1, int(partitions))


# -- choosing -------------------------------------------------------------------------------------


def _slicing(
    spark: SparkSession, files: EventFiles, units: UnitTimes, program: PreparedProgram
) -> tuple[Slicing, str | None]:
    """The slices, and the reason why the batch host should do it instead, if there is one."""
    cores = _cores(spark)
    reach = reach_of(program)
    keyed = isinstance(key_of(program), KeyByType)
    text = files.format is not FileFormat.PARQUET
    exactly = program.options.partitions
    if isinstance(reach, Undivided):
        whole = slice_units(units, TimeReach(0, 0), 1, exactly=1)
        wanted = slice_units(units, TimeReach(0, 0), cores, exactly).wanted
        if keyed and wanted > 1:
            return whole, reach.reason
        if wanted > 1:
            _warn(f"one task reads all files: {reach.reason}, and there is no key")
        return whole, None
    slicing = slice_units(units, reach, cores, exactly)
    if not program.options.close_at_end and any(unit.has_untyped for unit in units.units):
        return slicing, "close_at_end=False asks for the last event, and some rows have no type"
    if text and not all(unit.is_ordered for unit in units.units):
        return slicing, "the text files are not in order of time"
    scattered = max(disorder(units, slicing), slicing.read)
    if scattered > MOST_READ:
        stored = f"slices would read {scattered:.1f} times what is stored"
        return slicing, f"{stored}, since the files are not in order of time"
    number = len(slicing.slices)
    is_held_up = number < min(slicing.wanted, len(units.units))  # by the window: there are edges
    late = slicing.end(cores) > _SHUFFLE_COST / min(cores, slicing.wanted)
    if is_held_up and keyed and (number == 1 or late):
        return slicing, "the window is too long for slices, and there is a key"
    if is_held_up and number == 1:
        _warn("one task reads all files: there is no key, and the window is too long for slices")
    return slicing, None


def _reader(files: EventFiles, schema: pa.Schema, program: PreparedProgram) -> SliceReader:
    wanted = []
    for name in program.columns(schema):
        field = schema.field(name)
        is_dictionary = pa.types.is_dictionary(field.type)
        kind = field.type.value_type if is_dictionary else field.type
        if pa.types.is_string(kind) and (is_dictionary or name == program.options.type):
            field = field.with_type(_NAMES)  # event types: a handful of names, told by number
        wanted.append(field)
    condition = row_condition(program, schema)
    return SliceReader(files, pa.schema(wanted), program.options, program.types, condition)


def _end_of_time(program: PreparedProgram, units: UnitTimes) -> int | None:
    if program.options.close_at_end:
        return None
    return max((unit.high for unit in units.units), default=-(2**62)) - program.lateness


# -- the way through the batch host ---------------------------------------------------------------


def read_files(spark: SparkSession, path: Any, options: Options) -> DataFrame:
    """All rows of event files as a DataFrame, of the types that a scan would find."""
    listed = list_event_files(path)
    if isinstance(listed, OtherTable):
        return _read_with_spark(spark, listed)
    if listed.format is FileFormat.PARQUET:
        return spark.read.parquet(*listed.urls())
    schema = unified_schema([fact.schema for fact in _facts(spark, listed, options)], listed)
    return _frame(spark, SliceReader(listed, schema, options))


def _frame(spark: SparkSession, reader: SliceReader) -> DataFrame:
    """The same files as a DataFrame: Parquet by Spark itself, text as the scan reads it."""
    files = reader.files
    if files.format is FileFormat.PARQUET:
        return spark.read.parquet(*files.urls())
    tasks = min(len(files.files), 4 * _cores(spark))
    schema = plain_schema(reader.schema)
    work = ReadTask(reader, schema, tasks).run
    return spark.range(0, tasks, 1, tasks).mapInArrow(work, spark_schema(schema))


def _read_with_spark(spark: SparkSession, table: OtherTable) -> DataFrame:
    reader = spark.read.format(table.format)
    if table.format == "csv":
        reader = reader.option("header", True).option("inferSchema", True)
    try:
        return reader.load(table.path)
    except AnalysisException as problem:
        raise DataError.of(
            "unreadable-events",
            f"`{table.path}` cannot be read: {problem.getCondition() or problem}",
            notes=(table.reason,),
            help=f"Spark must have a reader for {table.format}",
        ) from None


# -- telling --------------------------------------------------------------------------------------


def _warn(message: str) -> None:
    warnings.warn(message, PerformanceWarning, stacklevel=2)


def _notes(
    files: EventFiles, units: UnitTimes, slicing: Slicing, reader: SliceReader
) -> tuple[str, ...]:
    slices: TimeSlices = slicing.slices
    kind = "row groups" if files.format is FileFormat.PARQUET else "files"
    notes = [
        f"{len(files.files)} {files.format.value} files, {files.size} bytes, {units.rows} rows in "
        f"{len(units.units)} {kind}, as they were when the scan was planned",
        f"{len(slices)} slices of time, each read by one task with {slices.reach.back} before and "
        f"{slices.reach.forward} after its own first events; together they read "
        f"{slicing.read:.2f} times what is stored",
        f"columns: {', '.join(reader.schema.names)}",
    ]
    if reader.condition is not None:
        notes.append(f"row groups are passed over unless {reader.condition}")
    return tuple(notes)
