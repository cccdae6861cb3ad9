"""What a stateful operator hands on: matches, and how many events it set aside.

Rows leave Spark's operator through pandas, which is exact and quick for columns of plain values
alone. Where a match has no others, its columns travel side by side, and Spark itself makes structs
of them. Else matches travel in packs, which a further step in Python has to open (spark_packing).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from cepheid.hosts.plain_types import fit
from cepheid.hosts.spark_packing import REASON, Unpacking, pack_table
from cepheid.hosts.spark_types import spark_schema
from cepheid.hosts.stream_bucket import Step

_MATCHES_AT_ONCE = 1 << 16
_BOUND = "bound"
_MOST_STRUCTS = 62


class StreamOutput(Protocol):
    """How the steps of buckets become rows, and the rows of all buckets the matches."""

    @property
    def schema(self) -> StructType:
        """The rows that the operator makes."""

    def frames(self, step: Step[Any]) -> Iterator[pd.DataFrame]:
        """The rows of one step."""

    def matches(self, found: DataFrame, metric: str) -> DataFrame:
        """The matches; what was set aside is counted under the metric."""


def stream_output(matches: pa.Schema, aside: pa.Schema | None) -> StreamOutput:
    """For matches of this schema; `aside` is that of events set aside, if they are wanted too."""
    if aside is None and FlatOutput.suits(matches):
        return FlatOutput(matches)
    return PackedOutput(matches, aside)


@dataclass(frozen=True, slots=True)
class FlatOutput:
    """Every value of a match in a column of its own; the last one says which structs there are."""

    form: pa.Schema

    @staticmethod
    def suits(form: pa.Schema) -> bool:
        """Whether a match has only plain values, and structs of plain values."""
        structs = [field for field in form if pa.types.is_struct(field.type)]
        return len(structs) <= _MOST_STRUCTS and all(_is_plain(leaf.type) for leaf in _leaves(form))

    @property
    def schema(self) -> StructType:
        """How many events were set aside, the values by number, and the structs as bits."""
        leaves = _leaves(self.form)
        plain = pa.schema([(f"c{n}", _as_plain(leaf.type)) for n, leaf in enumerate(leaves)])
        counts = [StructField(name, LongType()) for name in ("late", "quarantined")]
        return StructType([*counts, *spark_schema(plain).fields, StructField(_BOUND, LongType())])

    def frames(self, step: Step[Any]) -> Iterator[pd.DataFrame]:
        """The rows of one step; one without a match says how many events were set aside."""
        late, quarantined = len(step.late), len(step.quarantined)
        if late or quarantined:
            empty = fit(self.form.empty_table(), self.form)
            nulls = [pa.nulls(1, array.type) for array in self._columns(empty)]
            yield self._frame(nulls, np.array([late]), np.array([quarantined]), None)
        for table in step.matches.tables(_MATCHES_AT_ONCE):
            fitting = fit(table, self.form)
            bound = np.zeros(len(table), np.int64)
            structs = (n for n, field in enumerate(self.form) if pa.types.is_struct(field.type))
            for bit, place in enumerate(structs):
                there = fitting.column(place).is_valid().to_numpy()
                bound |= there.astype(np.int64) << bit
            none = np.zeros(len(table), np.int64)
            yield self._frame(self._columns(fitting), none, none, bound)

    def _frame(
        self,
        columns: list[pa.Array],
        late: np.ndarray,
        quarantined: np.ndarray,
        bound: np.ndarray | None,
    ) -> pd.DataFrame:
        flags = pa.nulls(len(late), pa.int64()) if bound is None else pa.array(bound)
        arrow = [pd.arrays.ArrowExtensionArray(array) for array in (*columns, flags)]
        # Without names Spark takes columns by their places, and need not look them up.
        return pd.DataFrame(dict(enumerate((late, quarantined, *arrow))), copy=False)

    def _columns(self, table: pa.Table) -> list[pa.Array]:
        columns = []
        for field, chunked in zip(self.form, table.columns, strict=True):
            array = chunked.combine_chunks()
            if isinstance(array, pa.ChunkedArray):
                array = array.chunk(0) if array.num_chunks else pa.array([], field.type)
            parts = array.flatten() if pa.types.is_struct(field.type) else [array]
            for part in parts:
                kind = _as_plain(part.type)
                columns.append(part if part.type == kind else part.cast(kind))
        return columns

    def matches(self, found: DataFrame, metric: str) -> DataFrame:
        """The matches, made of their columns by Spark."""
        leaves = iter(enumerate(_leaves(self.form)))

        def value() -> Column:
            number, leaf = next(leaves)
            column = sf.col(f"c{number}")
            if pa.types.is_timestamp(leaf.type):
                column = sf.timestamp_micros(column)
            return column.alias(leaf.name)

        columns, bit = [], 0
        for field in self.form:
            if not pa.types.is_struct(field.type):
                columns.append(value())
                continue
            struct = sf.struct(*[value() for _ in field.type])
            is_bound = sf.col(_BOUND).bitwiseAND(sf.lit(1 << bit)) != sf.lit(0)
            columns.append(sf.when(is_bound, struct).alias(field.name))
            bit += 1
        is_match = sf.col(_BOUND).isNotNull()
        counts = [sf.count_if(is_match).alias("matched"), _total("late"), _total("quarantined")]
        rows = found.observe(metric, *counts).filter(is_match)
        return rows.select(*columns).to(spark_schema(self.form))


@dataclass(frozen=True, slots=True)
class PackedOutput:
    """Matches, and events set aside if these are wanted, as one binary value for many."""

    form: pa.Schema
    aside: pa.Schema | None

    @property
    def schema(self) -> StructType:
        """Numbers, and packs."""
        numbers = [StructField(name, LongType()) for name in ("matched", "late", "quarantined")]
        return StructType(
            [*numbers, *(StructField(name, BinaryType()) for name in ("matches", "aside"))]
        )

    def frames(self, step: Step[Any]) -> Iterator[pd.DataFrame]:
        """The rows of one step."""
        late, quarantined = len(step.late), len(step.quarantined)
        if late or quarantined:
            yield self._frame(0, late, quarantined, None, self._aside(step))
        for table in step.matches.tables(_MATCHES_AT_ONCE):
            yield self._frame(len(table), 0, 0, pack_table(fit(table, self.form)), None)

    def _frame(self, *values: int | bytes | None) -> pd.DataFrame:
        return pd.DataFrame([values], columns=self.schema.fieldNames())

    def _aside(self, step: Step[Any]) -> bytes | None:
        if self.aside is None:
            return None
        parts = []
        if len(step.late):
            reason = pa.repeat("before the watermark", len(step.late))
            parts.append(step.late.append_column(REASON, reason))
        if len(step.quarantined):
            parts.append(step.quarantined)
        return pack_table(pa.concat_tables(parts, promote_options="permissive"))

    def matches(self, found: DataFrame, metric: str) -> DataFrame:
        """The matches, unpacked; events set aside as rows of their own."""
        counts = [_total(name) for name in ("matched", "late", "quarantined")]
        rows = self.form
        if self.aside is not None:
            late = pa.field("late", pa.struct(list(self.aside)))
            rows = pa.schema([*rows, late, pa.field("reason", pa.string())])
        packs = found.observe(metric, *counts).select("matches", "aside")
        return packs.mapInArrow(Unpacking(rows).unpack, spark_schema(rows))


def _total(name: str) -> Column:
    return sf.coalesce(sf.sum(name), sf.lit(0)).alias(name)


def _leaves(form: pa.Schema) -> list[pa.Field]:
    leaves: list[pa.Field] = []
    for field in form:
        leaves += list(field.type) if pa.types.is_struct(field.type) else [field]
    return leaves


def _is_plain(kind: pa.DataType) -> bool:
    """Whether pandas hands such values on as they are, or as the numbers they are inside."""
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us" and kind.tz is not None)
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_signed_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_string(kind)
    )


def _as_plain(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(kind) else kind
