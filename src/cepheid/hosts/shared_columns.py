"""A batch's relevant rows for many sequences at once: which atoms they are, and their keys."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import Absent
from cepheid.hosts.event_reader import AbsentKey, EventReader
from cepheid.hosts.type_codes import TypeCodes
from cepheid.kernels.memory import room
from cepheid.model.options import Options
from cepheid.model.undefined import ABSENT_INT, NULL_INT
from cepheid.planner.columns import Column
from cepheid.planner.dispatch import Dispatcher
from cepheid.planner.shared_sequences import SharedSequences

NO_KEY = -1


class SharedColumns(EventReader):
    """Finds atoms through the index of their predicates, keys for each group of key attributes."""

    def __init__(self, shared: SharedSequences, options: Options) -> None:
        """No strings and no keys seen yet."""
        self._dispatcher = Dispatcher(
            [(atom.types, atom.test) for atom in shared.atoms], shared.absent
        )
        numbers, of_any = self._dispatcher.type_numbers, self._dispatcher.number_of_any
        super().__init__(TypeCodes(numbers, of_any, options.type), len(shared.kinds), options)
        self._kinds = shared.kinds
        self._absent_is_null = shared.absent is Absent.FALSE
        self._groups = shared.key_groups
        self._uses_key = np.zeros(
            (len(self._groups), max([0, of_any, *numbers.values()]) + 1), bool
        )
        for atom in shared.atoms:
            if atom.key:
                uses = self._uses_key[self._groups.index(atom.key)]
                uses[[numbers[name] for name in atom.types] or slice(None)] = True

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
        """t and k0.. of the selected rows, and pairs of row and atom."""
        column = self._getter(batch, selected, codes, lacks, open_schema)
        types, times = self._types_and_times(selected, codes, times)
        arrays = {"t": times}
        for g, names in enumerate(self._groups):
            arrays[f"k{g}"] = self._keys_of([column(n) for n in names], self._uses_key[g][types])
        arrays["pair_rows"], arrays["pair_atoms"] = self._dispatcher.pairs(types, column)
        return arrays

    def _keys_of(self, columns: list[Column], wanted: np.ndarray) -> np.ndarray:
        """The keys of the wanted rows; a null equals nothing, nor does what is absent in NEXT."""
        values = room(len(columns), len(wanted))
        usable = wanted
        for i, column in enumerate(columns):
            values[i] = self._key_values(column, self._kinds[i])
            if column.may_be_absent:
                absent = values[i] == ABSENT_INT
                if self._absent_is_null:
                    usable = usable & ~absent
                elif (absent & wanted).any():
                    raise AbsentKey
            if column.may_be_undefined:
                usable = usable & (values[i] != NULL_INT)
        assert self.keys is not None
        if usable.all():
            return self.keys.codes(values)
        self.undefined_rows += int((wanted & ~usable).sum())
        keys = np.full(len(wanted), NO_KEY, np.int64)
        keys[usable] = self.keys.codes(np.ascontiguousarray(values[:, usable]))
        return keys
