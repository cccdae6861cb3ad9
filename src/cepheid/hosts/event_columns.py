"""A batch's relevant rows as the arrays a sequence kernel reads: masks, times, keys, columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.hosts.event_reader import AbsentKey, EventReader
from cepheid.hosts.type_codes import TypeCodes
from cepheid.model.options import Options
from cepheid.model.undefined import ABSENT_INT, MIN_INT, NULL_INT
from cepheid.planner.chain_plan import ChainLayout
from cepheid.planner.column_expression import evaluate_predicate
from cepheid.planner.columns import Column
from cepheid.planner.kernel_expression import StringConstant
from cepheid.planner.sequence_layout import Layout

if TYPE_CHECKING:  # it loads the kernels of successors
    from cepheid.planner.succession_layout import SuccessionLayout


class EventColumns(EventReader):
    """Turns relevant rows into kernel inputs for one layout; knows strings and keys seen so far."""

    def __init__(
        self,
        layout: Layout | SuccessionLayout | ChainLayout,
        options: Options,
        first_events: tuple[int, int] | None = None,
    ) -> None:
        """`first_events`: only events with a time in [low, high) may start a match."""
        self.layout = layout
        types = TypeCodes(layout.type_bits, layout.bits_of_any_type, options.type)
        width = len(layout.key_attributes[0]) if layout.key_attributes else 0
        super().__init__(types, width, options)
        self._first_events = first_events
        self.ints = np.array(
            [
                self.strings.code(c.text) if isinstance(c, StringConstant) else c
                for c in layout.int_constants
            ],
            np.int64,
        )
        self.floats = np.array(layout.float_constants, np.float64)

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
        """mask, t, k0.., c0.. of the selected rows; codes and times are the whole batch's.

        Where atoms are dispatched, `touching` and `touched` are pairs of row and atom.
        """
        layout = self.layout
        column = self._getter(batch, selected, codes, lacks, open_schema)
        mask, times = self._types_and_times(selected, codes, times)
        rows = len(mask)
        self._test_bits(mask, times, column)
        arrays = {"mask": mask, "t": times}
        for g, names in enumerate(layout.key_attributes):
            arrays[f"k{g}"] = self._key_codes(g, [column(n) for n in names], mask)
        arrays |= self._attributes(rows, column)
        if layout.dispatcher is not None:
            arrays["touching"], arrays["touched"] = layout.dispatcher.pairs(mask, column)
        return arrays

    def complete(
        self,
        mask: np.ndarray,
        times: np.ndarray,
        batch: pa.RecordBatch,
        selected: np.ndarray,
        codes: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """c0.. of selected rows, whose masks lose what the rows may not fill.

        The batch must have all the columns that are read.
        """
        layout = self.layout
        if self._first_events is None and not layout.bit_tests and not layout.columns:
            return {}
        column = self._getter(batch, selected, codes, {}, False)
        self._test_bits(mask, times, column)
        return self._attributes(len(mask), column)

    def _attributes(self, rows: int, column: Callable[[str], Column]) -> dict[str, np.ndarray]:
        """The attributes that a kernel reads, and the tests that are worked out for it."""
        layout = self.layout
        tests = dict(layout.computed)
        arrays = {}
        for c, (name, kind) in enumerate(layout.columns):
            if name in tests:
                holds = evaluate_predicate(
                    tests[name], lambda _, of: column(of), rows, layout.plan.absent
                )
                arrays[f"c{c}"] = holds.astype(np.int64)
            else:
                arrays[f"c{c}"] = self._kernel_values(column(name), kind)
            # Some are Arrow's own, which none may write to. A kernel is compiled for what it gets,
            # and would be again for what looks different.
            arrays[f"c{c}"].flags.writeable = False
        return arrays

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
