"""A batch's relevant rows as the arrays a sequence kernel reads: masks, times, keys, columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.type_codes import TypeCodes
from cepheid.kernels.interning import KeyTable, StringTable
from cepheid.kernels.relevance import gather, take
from cepheid.model.diagnostics import did_you_mean
from cepheid.model.errors import DataError
from cepheid.model.options import Options
from cepheid.model.undefined import ABSENT_FLOAT, ABSENT_INT, MIN_INT, NULL_INT
from cepheid.planner.chain_plan import ChainLayout
from cepheid.planner.column_expression import evaluate_predicate
from cepheid.planner.columns import Column, from_arrow
from cepheid.planner.kernel_expression import StringConstant
from cepheid.planner.sequence_layout import Layout
from cepheid.planner.succession_layout import SuccessionLayout


class AbsentKey(Exception):
    """A key attribute is absent in some row: equality through it is not transitive."""


class EventColumns:
    """Turns relevant rows into kernel inputs for one layout; knows strings and keys seen so far."""

    def __init__(
        self,
        layout: Layout | SuccessionLayout | ChainLayout,
        options: Options,
        first_events: tuple[int, int] | None = None,
    ) -> None:
        """`first_events`: only events with a time in [low, high) may start a match."""
        self.layout = layout
        self.types = TypeCodes(layout.type_bits, layout.bits_of_any_type, options.type)
        self.strings = StringTable()
        self.keys = KeyTable(len(layout.key_attributes[0])) if layout.key_attributes else None
        self.options = options
        self._first_events = first_events
        self.ints = np.array(
            [
                self.strings.code(c.text) if isinstance(c, StringConstant) else c
                for c in layout.int_constants
            ],
            np.int64,
        )
        self.floats = np.array(layout.float_constants, np.float64)
        self.undefined_rows = 0

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
        """mask, t, k0.., c0.. of the selected rows; codes and times are the whole batch's."""
        layout = self.layout
        column = self._columns(batch, selected, codes, lacks, open_schema)
        if selected is None:
            selected = np.arange(len(codes))
        rows = len(selected)
        mask = np.empty(rows, np.int64)
        mine = np.empty(rows, np.int64)
        gather(selected, codes, self.types.bits, times, mask, mine)
        times = mine
        self._test_bits(mask, times, column)
        arrays = {"mask": mask, "t": times}
        for g, names in enumerate(layout.key_attributes):
            arrays[f"k{g}"] = self._key_codes(g, [column(n) for n in names], mask)
        tests = dict(layout.computed)
        for c, (name, kind) in enumerate(layout.columns):
            if name in tests:
                holds = evaluate_predicate(
                    tests[name], lambda _, of: column(of), rows, layout.plan.absent
                )
                arrays[f"c{c}"] = holds.astype(np.int64)
            else:
                arrays[f"c{c}"] = self._kernel_values(column(name), kind)
        return arrays

    def test_bits(
        self,
        mask: np.ndarray,
        times: np.ndarray,
        batch: pa.RecordBatch,
        selected: np.ndarray,
        codes: np.ndarray,
    ) -> None:
        """Take from the masks of selected rows, whose times are given, what they may not fill.

        The batch must have all the columns that are tested.
        """
        self._test_bits(mask, times, self._columns(batch, selected, codes, {}, False))

    def _test_bits(
        self, mask: np.ndarray, times: np.ndarray, column: Callable[[str], Column]
    ) -> None:
        if self._first_events is not None:
            low, high = self._first_events
            mask[(times < low) | (times >= high)] &= ~np.int64(1)
        for bit, _, test in self.layout.bit_tests:
            holds = evaluate_predicate(
                test, lambda _, name: column(name), len(mask), self.layout.plan.absent
            )
            mask &= ~((~holds).astype(np.int64) << bit)

    def _columns(
        self,
        batch: pa.RecordBatch,
        selected: np.ndarray | None,
        codes: np.ndarray,
        lacks: Mapping[str, np.ndarray],
        open_schema: bool,
    ) -> Callable[[str], Column]:
        """The function from names to columns of the selected rows; each is read once."""
        known: dict[str, Column] = {}

        def column(name: str) -> Column:
            if name not in known:
                known[name] = self._column(batch, name, selected, codes, lacks, open_schema)
            return known[name]

        return column

    def _key_codes(self, group: int, columns: list[Column], mask: np.ndarray) -> np.ndarray:
        bits = sum(1 << bit for bit, g in self.layout.bit_keys if g == group)
        values = np.empty((len(columns), len(mask)), np.int64)
        for i, column in enumerate(columns):
            values[i] = self._key_values(column, self.layout.key_kinds[i])
            if isinstance(self.layout, ChainLayout):
                self._lose_bits(values[i], mask, bits)
                continue
            if column.may_be_absent and ((values[i] == ABSENT_INT) & (mask & bits != 0)).any():
                raise AbsentKey
            if column.may_be_undefined:
                undefined = values[i] == NULL_INT
                self.undefined_rows += int((undefined & (mask & bits != 0)).sum())
                # A null equals nothing, so such a row cannot match or be a witness; only a single
                # positive component is compared with witnesses alone and stays, out of their reach.
                lost = bits & ~1 if self.layout.plan.length == 1 else bits
                mask[undefined] &= ~np.int64(lost)
        assert self.keys is not None
        return self.keys.codes(values)

    def _lose_bits(self, values: np.ndarray, mask: np.ndarray, bits: int) -> None:
        """Among successors an absent value equals nothing either: the row is out, under any key."""
        undefined = values < MIN_INT
        if undefined.any():
            self.undefined_rows += int((undefined & (mask & bits != 0)).sum())
            mask[undefined] &= ~np.int64(bits)
            defined = values[~undefined]
            values[undefined] = defined[0] if len(defined) else 0

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
        wide = pa.types.is_large_string(strings.type)
        buffers = strings.buffers()
        offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)
        text = (
            np.frombuffer(buffers[2], np.uint8)
            if buffers[2] is not None and buffers[2].size
            else np.zeros(1, np.uint8)
        )
        rows = np.arange(strings.offset, strings.offset + len(strings))
        codes = self.strings.codes(rows, offsets, text)
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
