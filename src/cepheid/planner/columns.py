"""Columns of event attributes as arrays: how they come from Arrow and go back.

Numbers travel in band (`model.undefined`); strings are Arrow arrays with nulls and a mask of the
rows whose event does not have the attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expression import ScalarType
from cepheid.model.errors import DataError
from cepheid.model.undefined import (
    ABSENT_FLOAT,
    ABSENT_INT,
    MAX_INT,
    MIN_INT,
    NULL_FLOAT,
    NULL_INT,
)

if TYPE_CHECKING:
    # Generic in the type hints only.
    ArrowArray: TypeAlias = pa.Array[Any]
    ArrowColumn: TypeAlias = pa.Array[Any] | pa.ChunkedArray[Any]

Mask: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_MICROSECONDS_PER = {"s": 1_000_000, "ms": 1_000, "us": 1}
_MICROSECONDS_PER_DAY = 86_400_000_000
_LARGEST_STRING_ARRAY = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One attribute of many events: `values` for numbers, or `strings` with their `absent` rows.

    An UNKNOWN column has int64 values that are all undefined or absent. `may_be_undefined` and
    `may_be_absent` are false only when no row is; `replaced` counts the values that could not be
    kept (out of range, or equal to a reserved one) and are now undefined.
    """

    type: ScalarType
    values: Numbers | None = None
    strings: ArrowArray | None = None
    absent: Mask | None = None
    may_be_undefined: bool = True
    may_be_absent: bool = True
    replaced: int = 0

    def __len__(self) -> int:
        return len(self.texts if self.values is None else self.values)

    @property
    def numbers(self) -> Numbers:
        """The values of a column that holds no strings."""
        assert self.values is not None, f"a {self.type.value} column has no numbers"
        return self.values

    @property
    def texts(self) -> ArrowArray:
        """The strings of a column that holds strings."""
        assert self.strings is not None, f"a {self.type.value} column has no strings"
        return self.strings

    def absent_rows(self) -> Mask | None:
        """Where the event does not have the attribute; None when nowhere."""
        if not self.may_be_absent:
            return None
        if self.type is ScalarType.STRING:
            return self.absent
        mark = ABSENT_FLOAT if self.type is ScalarType.FLOAT else ABSENT_INT
        rows: Mask = self.numbers == mark
        return rows

    def take(self, rows: npt.NDArray[np.int64]) -> Column:
        """The column at other rows; a negative row (an unbound variable) is undefined."""
        outside = rows < 0
        some_outside = bool(outside.any())
        undefined = self.may_be_undefined or some_outside
        if self.strings is not None:
            positions: Any = pa.array(rows, mask=outside if some_outside else None)
            absent = None
            if self.absent is not None:
                absent = self.absent[rows] & ~outside
            return Column(
                self.type,
                strings=self.strings.take(positions),
                absent=absent,
                may_be_undefined=undefined,
                may_be_absent=self.may_be_absent,
            )
        if some_outside:
            inside = ~outside
            values: Any = np.full(len(rows), _null_of(self.type), self.numbers.dtype)
            values[inside] = self.numbers[rows[inside]]
        else:
            values = self.numbers[rows]
        return Column(
            self.type,
            values,
            may_be_undefined=undefined,
            may_be_absent=self.may_be_absent,
        )


def undefined_column(rows: int) -> Column:
    """A column without a value: what a variable of another branch of a union has."""
    return Column(ScalarType.UNKNOWN, np.full(rows, NULL_INT, np.int64), may_be_absent=False)


def absent_column(rows: int) -> Column:
    """The column of an attribute that no event here has."""
    return Column(ScalarType.UNKNOWN, np.full(rows, ABSENT_INT, np.int64))


def from_arrow(
    array: ArrowColumn,
    *,
    null_is_absent: bool,
    absent: Mask | None = None,
    name: str = "",
) -> Column:
    """An Arrow column as arrays; copies nothing when it is int64 or float64 without nulls.

    `absent` marks the rows whose event type does not have the attribute; with `null_is_absent`
    every null counts as that (docs/semantics.md#null-and-absent). `name` is for the message about
    an unsupported type.

    >>> from_arrow(pa.array([3, None]), null_is_absent=False).values.tolist() == [3, NULL_INT]
    True
    """
    plain = _contiguous(array)
    kind = plain.type
    null_rows = plain.is_null().to_numpy(zero_copy_only=False) if plain.null_count else None
    if _is_string(kind):
        return _string_column(plain, null_rows, null_is_absent, absent)
    if pa.types.is_null(kind):
        scalar, values, lost = ScalarType.UNKNOWN, np.full(len(plain), NULL_INT, np.int64), None
        undefined = bool(len(plain))
        null_rows = np.ones(len(plain), np.bool_)
    elif pa.types.is_boolean(kind):
        scalar, values, lost = ScalarType.BOOL, _unmasked(plain.cast(pa.int8()), np.int64), None
        undefined = False
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        scalar, values, lost = ScalarType.FLOAT, _unmasked(_as_double(plain), np.float64), None
        undefined, lost = _inspect_floats(values)
    elif pa.types.is_integer(kind):
        scalar = ScalarType.INT
        if pa.types.is_uint64(kind):
            unsigned = _unmasked(plain, np.uint64)
            lost = unsigned > MAX_INT
            values = unsigned.astype(np.int64)
        else:
            values = _unmasked(plain, np.int64)
            lost = _reserved(values)
        undefined = False
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        scalar = ScalarType.TIMESTAMP
        values, lost = _microseconds(plain)
        undefined = False
    else:
        raise DataError.of(
            "unsupported-type",
            f"column `{name}` is of type {kind}, which queries cannot compare",
            help="cast it to a number, a boolean, a string or a timestamp, or leave it out",
        )
    return _numeric_column(scalar, values, lost, undefined, null_rows, null_is_absent, absent)


def to_arrow(column: Column, *, zone: str | None = "UTC") -> ArrowArray:
    """The Arrow column; undefined and absent both become null. `zone` is that of timestamps.

    >>> to_arrow(Column(ScalarType.BOOL, np.array([1, NULL_INT, 0]))).to_pylist()
    [True, None, False]
    """
    match column.type:
        case ScalarType.STRING:
            return column.texts
        case ScalarType.UNKNOWN:
            return pa.nulls(len(column))
        case ScalarType.FLOAT:
            values = column.numbers
            without = np.isnan(values) | (values == ABSENT_FLOAT)
            return pa.array(values, pa.float64(), mask=without if without.any() else None)
        case ScalarType.INT | ScalarType.BOOL | ScalarType.TIMESTAMP:
            values = column.numbers
            without = values < MIN_INT
            mask = without if without.any() else None
            if column.type is ScalarType.BOOL:
                return pa.array(values == 1, pa.bool_(), mask=mask)
            integers = pa.array(values, pa.int64(), mask=mask)
            if column.type is ScalarType.TIMESTAMP:
                return integers.cast(pa.timestamp("us", tz=zone))
            return integers


def string_buffers(strings: ArrowArray) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Offsets and bytes of an array of strings; its first string is number `strings.offset`."""
    buffers = strings.buffers()
    kind = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    text = buffers[2]
    data = np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(1, "u1")
    return np.frombuffer(buffers[1], kind), data


def concatenate(columns: Sequence[Column]) -> Column:
    """Columns of one type, one after another."""
    first = columns[0]
    undefined = any(c.may_be_undefined for c in columns)
    missing = any(c.may_be_absent for c in columns)
    replaced = sum(c.replaced for c in columns)
    if first.strings is None:
        values = np.concatenate([c.numbers for c in columns])
        return Column(first.type, values, None, None, undefined, missing, replaced)
    absent = None
    if any(c.absent is not None for c in columns):
        absent = np.concatenate(
            [np.zeros(len(c), np.bool_) if c.absent is None else c.absent for c in columns]
        )
    strings = _contiguous(pa.chunked_array([c.texts for c in columns]))
    return Column(first.type, None, strings, absent, undefined, missing, replaced)


def _null_of(kind: ScalarType) -> Any:
    return NULL_FLOAT if kind is ScalarType.FLOAT else NULL_INT


def _is_string(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _contiguous(column: ArrowColumn) -> ArrowArray:
    """One array of plain values: no chunks, no dictionary, no runs, no extension type."""
    array: Any = column
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 1:
            array = array.chunk(0)
        else:
            # Offsets of 32 bits cannot hold the concatenation of a large column.
            if pa.types.is_string(array.type) and array.nbytes > _LARGEST_STRING_ARRAY:
                array = array.cast(pa.large_string())
            array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    elif pa.types.is_run_end_encoded(array.type):
        array = pc.call_function("run_end_decode", [array])
    plain: ArrowArray = array
    return plain


def _string_column(
    array: ArrowArray, null_rows: Mask | None, null_is_absent: bool, absent: Mask | None
) -> Column:
    if not pa.types.is_string(array.type) and array.nbytes <= _LARGEST_STRING_ARRAY:
        array = array.cast(pa.string())
    without = null_rows if null_is_absent else None
    if absent is not None and absent.any():
        without = absent if without is None else without | absent
        array = pc.if_else(pa.array(absent), pa.scalar(None, array.type), array)
    undefined = array.null_count > 0 if without is None else array.null_count > without.sum()
    return Column(
        ScalarType.STRING,
        strings=array,
        absent=without,
        may_be_undefined=bool(undefined),
        may_be_absent=without is not None,
    )


def _numeric_column(
    scalar: ScalarType,
    values: Numbers,
    lost: Mask | None,
    undefined: bool,
    null_rows: Mask | None,
    null_is_absent: bool,
    absent: Mask | None,
) -> Column:
    """Write the marks of undefined and absent rows over the raw values."""
    some_absent = absent is not None and bool(absent.any())
    replaced = 0
    if lost is not None:
        if null_rows is not None:
            lost = lost & ~null_rows
        replaced = int(lost.sum())
    if replaced or null_rows is not None or some_absent:
        values = values.copy()
        null = _null_of(scalar)
        missing = ABSENT_FLOAT if scalar is ScalarType.FLOAT else ABSENT_INT
        if replaced:
            values[lost] = null
            undefined = True
        if null_rows is not None:
            values[null_rows] = missing if null_is_absent else null
            undefined = undefined or not null_is_absent
            some_absent = some_absent or null_is_absent
        if absent is not None:
            values[absent] = missing
    return Column(scalar, values, None, None, undefined, some_absent, replaced)


def _unmasked(array: ArrowArray, dtype: Any) -> Any:
    """The raw numbers, with anything in the rows of nulls."""
    if array.null_count:
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False).astype(dtype, copy=False)


def _as_double(array: ArrowArray) -> ArrowArray:
    return array if pa.types.is_float64(array.type) else pc.cast(array, pa.float64(), safe=False)


def _reserved(values: npt.NDArray[np.int64]) -> Mask | None:
    if len(values) and values.min() < MIN_INT:
        rows: Mask = values < MIN_INT
        return rows
    return None


def _inspect_floats(values: npt.NDArray[np.float64]) -> tuple[bool, Mask | None]:
    """Whether there is a NaN, and which rows hold the reserved number; one pass when neither."""
    if not len(values):
        return False, None
    lowest = values.min()
    if lowest > ABSENT_FLOAT:
        return False, None
    reserved: Mask = values == ABSENT_FLOAT
    return bool(np.isnan(lowest)), reserved if reserved.any() else None


def _microseconds(array: ArrowArray) -> tuple[npt.NDArray[np.int64], Mask | None]:
    """Microseconds since 1970 and the rows whose time does not fit in 64 bits of them."""
    kind = array.type
    if pa.types.is_date32(kind):
        values, factor = _unmasked(array.view(pa.int32()), np.int64), _MICROSECONDS_PER_DAY
    elif pa.types.is_date64(kind):
        values, factor = _unmasked(array.view(pa.int64()), np.int64), _MICROSECONDS_PER["ms"]
    elif kind.unit == "ns":
        # Towards the past, also before 1970, so that order is kept.
        return _unmasked(array.view(pa.int64()), np.int64) // 1_000, None
    else:
        values = _unmasked(array.view(pa.int64()), np.int64)
        factor = _MICROSECONDS_PER[kind.unit]
    if factor == 1:
        return values, _reserved(values)
    limit = MAX_INT // factor
    outside: Mask = (values > limit) | (values < -limit)
    return values * factor, outside if outside.any() else None
