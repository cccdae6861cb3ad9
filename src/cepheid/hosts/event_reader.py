"""The columns of a batch's relevant rows, as kernels and conditions read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.type_codes import TypeCodes
from cepheid.kernels.interning import KeyTable, StringTable
from cepheid.kernels.memory import room
from cepheid.kernels.relevance import gather, look_up, take
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.model.undefined import ABSENT_FLOAT, ABSENT_INT, MIN_INT, NULL_INT
from cepheid.planner.columns import Column, from_arrow, string_buffers


class AbsentKey(Exception):
    """A key attribute is absent in some row: equality through it is not transitive."""


class EventReader(ABC):
    """Reads columns; knows the strings and keys seen so far."""

    def __init__(self, types: TypeCodes, key_width: int, options: Options) -> None:
        """`key_width`: of how many columns a key is made; 0 for no key."""
        self.types = types
        self.strings = StringTable()
        self.keys = KeyTable(key_width) if key_width else None
        self.options = options
        self.undefined_rows = 0

    @abstractmethod
    def arrays(
        self,
        batch: pa.RecordBatch,
        selected: np.ndarray | None,
        codes: np.ndarray,
        times: np.ndarray,
        lacks: Mapping[str, np.ndarray],
        *,
        open_schema: bool,
    ) -> dict[str, np.ndarray]:
        """What a kernel reads of the selected rows; codes and times are the whole batch's."""

    def _types_and_times(
        self, selected: np.ndarray | None, codes: np.ndarray, times: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `types` says of each selected row, and its time, in arrays of their own."""
        rows = len(codes) if selected is None else len(selected)
        bits, mine = room(rows), room(rows)
        if selected is None:
            look_up(codes, self.types.bits, times, bits, mine)
        else:
            gather(selected, codes, self.types.bits, times, bits, mine)
        return bits, mine

    def _getter(
        self,
        batch: pa.RecordBatch,
        selected: np.ndarray | None,
        codes: np.ndarray,
        lacks: Mapping[str, np.ndarray],
        open_schema: bool,
    ) -> Callable[[str], Column]:
        """The attributes of the selected rows, each read when it is first asked for."""
        known: dict[str, Column] = {}

        def column(name: str) -> Column:
            if name not in known:
                known[name] = self._column(batch, name, selected, codes, lacks, open_schema)
            return known[name]

        return column

    def _key_values(self, column: Column, kind: ScalarType) -> np.ndarray:
        if ScalarType.FLOAT not in (kind, column.type):
            return self._kernel_values(column, column.type)
        floats = self._kernel_values(
            column, ScalarType.FLOAT
        )  # whole numbers in some batches are floats too
        values = (floats + 0.0).view(np.int64).copy()  # -0.0 equals 0.0
        values[np.isnan(floats)] = NULL_INT
        values[floats == ABSENT_FLOAT] = ABSENT_INT
        return values

    def _kernel_values(self, column: Column, kind: ScalarType) -> np.ndarray:
        if column.strings is not None:
            return self._string_codes(column)
        values: np.ndarray = column.numbers
        if kind is ScalarType.FLOAT and column.type is not ScalarType.FLOAT:
            floats = values.astype(np.float64)
            floats[values == NULL_INT] = np.nan
            floats[values == ABSENT_INT] = ABSENT_FLOAT
            return floats
        return values

    def _string_codes(self, column: Column) -> np.ndarray:
        strings = column.strings
        assert strings is not None
        rows = np.arange(strings.offset, strings.offset + len(strings))
        codes = self.strings.codes(rows, *string_buffers(strings))
        if strings.null_count:
            codes[strings.is_null().to_numpy(zero_copy_only=False)] = NULL_INT
        if column.absent is not None:
            codes[column.absent] = ABSENT_INT
        return codes

    def _column(
        self,
        batch: pa.RecordBatch,
        name: str,
        selected: np.ndarray | None,
        codes: np.ndarray,
        lacks: Mapping[str, np.ndarray],
        open_schema: bool,
    ) -> Column:
        where = batch.schema.get_field_index(name)
        if where < 0:
            codes = codes if selected is None else codes[selected]
            declared = self.options.types
            if declared is None and not open_schema:
                raise unknown_column(name, batch.schema.names)
            # A declared attribute that did not come is null; any other is absent.
            flags = {t: name in attributes for t, attributes in (declared or {}).items()}
            has = self.types.code_lookup(flags, False)
            values = np.where(has[codes], np.int64(NULL_INT), np.int64(ABSENT_INT))
            return Column(ScalarType.UNKNOWN, values)
        array = batch.column(where)
        absent = self._absent_rows(name, array, selected, codes, lacks)
        if (
            absent is None
            and array.null_count == 0
            and (pa.types.is_int64(array.type) or pa.types.is_float64(array.type))
        ):
            values = np.asarray(array)
            return _plain(values if selected is None else take(values, selected), name)
        if selected is not None:
            array = array.take(pa.array(selected))
        return from_arrow(array, null_is_absent=absent is None, absent=absent, name=name)

    def _absent_rows(
        self,
        name: str,
        array: pa.Array,
        selected: np.ndarray | None,
        codes: np.ndarray,
        lacks: Mapping[str, np.ndarray],
    ) -> np.ndarray | None:
        """Which rows lack the attribute; None when a null is all that says so."""
        declared = self.options.types
        if declared is not None:
            codes = codes if selected is None else codes[selected]
            lacking = self.types.code_lookup({t: name not in declared[t] for t in declared}, False)
            absent: np.ndarray = lacking[codes]
            stated = self.types.code_lookup(dict.fromkeys(declared, True), False)[codes]
            if not stated.all():  # events of the other types tell it themselves
                told = lacks.get(name)
                if told is None:
                    told = array.is_null().to_numpy(zero_copy_only=False)
                absent = absent | (~stated & (told if selected is None else told[selected]))
            return absent
        if name in lacks:
            rows: np.ndarray = lacks[name]
            chosen: np.ndarray = rows if selected is None else rows[selected]
            return chosen
        return None


def _plain(values: np.ndarray, name: str) -> Column:
    if values.dtype == np.float64:
        return from_arrow(pa.array(values), null_is_absent=False, name=name)
    if len(values) and values.min() < MIN_INT:
        return from_arrow(pa.array(values), null_is_absent=False, name=name)
    return Column(ScalarType.INT, values, may_be_undefined=False, may_be_absent=False)


def unknown_column(name: str, known: list[str]) -> DataError:
    """The error for a column a query needs and the events do not have."""
    return DataError.of(
        "unknown-column",
        f"the events have no column `{name}`",
        help=did_you_mean(name, known) or f"columns: {', '.join(known)}",
    )
