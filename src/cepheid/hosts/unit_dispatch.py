"""Which of many separate queries an event can touch: found through the index of their conditions.

Queries that run on their own would each look through every batch. Here a batch is looked through
once for all of them, and a query gets the rows whose type and own conditions fit one of its
components; a row that fits none cannot be part of a match, nor stand in its way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import Absent, Expression
from cepheid.hosts.event_reader import EventReader
from cepheid.hosts.ingest import EventBatch
from cepheid.hosts.set_aside import event_times
from cepheid.hosts.type_codes import TypeCodes
from cepheid.kernels.relevance import gather
from cepheid.model.options import Options
from cepheid.planner.dispatch import Dispatcher
from cepheid.planner.sequence_plan import Component, Negation
from cepheid.planner.workload_plan import Group

WORTH_IT = 4
"""Fewer queries are quicker to ask one by one."""


class UnitDispatch:
    """The rows of a batch that matter to each of some groups, each of one query."""

    def __init__(self, groups: Sequence[Group], options: Options) -> None:
        """Conditions are told apart by how they treat what an event lacks."""
        self._groups = len(groups)
        by_rule: dict[Absent, list[tuple[int, tuple[str, ...], Expression]]] = {}
        for number, group in enumerate(groups):
            for stage in group.prepared[0]:
                parts: list[Component | Negation] = [*stage.plan.components, *stage.plan.negations]
                for each in parts:
                    atoms = by_rule.setdefault(stage.plan.absent, [])
                    atoms.append((number, each.types, each.test))
        self._readers = [_AtomReader(atoms, rule, options) for rule, atoms in by_rule.items()]

    def rows(self, events: EventBatch) -> list[np.ndarray]:
        """For each group the rows that may matter to it, in order."""
        found = [reader.touched(events) for reader in self._readers]
        rows = np.concatenate([rows for rows, _ in found])
        groups = np.concatenate([groups for _, groups in found])
        size = events.batch.num_rows
        pairs = np.unique(groups * size + rows)
        bounds = np.searchsorted(pairs, size * np.arange(self._groups + 1))
        return [
            pairs[begin:end] - number * size for number, (begin, end) in enumerate(pairwise(bounds))
        ]


class _AtomReader(EventReader):
    """Reads the columns that conditions of one kind need."""

    def __init__(
        self,
        atoms: Sequence[tuple[int, tuple[str, ...], Expression]],
        absent: Absent,
        options: Options,
    ) -> None:
        self._dispatcher = Dispatcher([(types, test) for _, types, test in atoms], absent)
        self._group_of = np.array([number for number, _, _ in atoms], np.int64)
        numbers, of_any = self._dispatcher.type_numbers, self._dispatcher.number_of_any
        super().__init__(TypeCodes(numbers, of_any, options.type), 0, options)

    def touched(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray]:
        """Rows and the groups that they may matter to; a pair may come twice."""
        batch = events.batch
        codes = self.types.read(batch.column(self.options.type))
        times, _ = event_times(batch, self.options)
        wanted = np.flatnonzero(self.types.wanted[codes])
        arrays = self.arrays(batch, wanted, codes, times, events.lacks, open_schema=True)
        return wanted[arrays["pair_rows"]], self._group_of[arrays["pair_atoms"]]

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
        """Pairs of the selected rows and atoms."""
        rows = np.arange(len(codes)) if selected is None else selected
        types, mine = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        gather(rows, codes, self.types.bits, times, types, mine)
        column = self._getter(batch, selected, codes, lacks, open_schema)
        pair_rows, pair_atoms = self._dispatcher.pairs(types, column)
        return {"t": mine, "pair_rows": pair_rows, "pair_atoms": pair_atoms}
