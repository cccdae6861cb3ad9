"""The instances of an engine with running totals as Arrow tables, beside its live events.

First comes an empty table, whose schema is that of all events seen so far and notes what the rows
belong to: the plan, and the types of what is measured. The others are tables of whole numbers. An
event is told by its place among the live ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from cepheid.algebra.expression import ScalarType
from cepheid.hosts.snapshot import read_table, write_table
from cepheid.kernels.succession import Instances
from cepheid.model.errors import StateError

_NOTE = b"cepheid"


@dataclass(frozen=True, slots=True)
class InstanceRows:
    """Instances of the plan `plan`, whose nodes name `events` by their places.

    `schema` is what all events together had; the live ones may have less of it.
    `kinds` are the types of the measured attributes, by number of variable and name.
    """

    plan: str
    schema: pa.Schema
    instances: Instances
    events: np.ndarray
    kinds: dict[tuple[int, str], ScalarType]

    def check(self, plan: str) -> None:
        """Refuse instances of another plan: operators and totals are numbered as it has them."""
        if self.plan != plan:
            raise StateError.of(
                "other-plan",
                "the snapshot holds running totals of another plan of this query",
                help="restore it with the plan options and the version it was taken with",
            )

    def parts(self) -> list[bytes]:
        """As Arrow IPC, a part for each table."""
        note = json.dumps(
            {
                "plan": self.plan,
                "kinds": [[*of, kind.value] for of, kind in self.kinds.items()],
            }
        )
        nodes = self.instances.nodes.copy()
        nodes[:, 2] = self.events
        first = self.schema.with_metadata({_NOTE: note.encode()}).empty_table()
        of = self.instances
        rows = (nodes, of.waiting, of.witnesses, of.heads[:, None])
        return [write_table(table) for table in (first, *map(_table, rows))]

    @classmethod
    def read(cls, parts: list[bytes]) -> InstanceRows:
        """The other way round."""
        first, *others = (read_table(part) for part in parts)
        note = json.loads((first.schema.metadata or {})[_NOTE])
        nodes, waiting, witnesses, heads = (_array(table) for table in others)
        kinds = {(number, name): ScalarType(kind) for number, name, kind in note["kinds"]}
        instances = Instances(nodes, waiting, witnesses, heads[:, 0].copy())
        return cls(note["plan"], first.schema, instances, nodes[:, 2].copy(), kinds)


def schema_of(parts: list[bytes]) -> pa.Schema:
    """The schema of the events that had been seen."""
    return read_table(parts[0]).schema


def plan_digest(plan: str) -> str:
    """A short name for a plan that is told at length."""
    return blake2b(plan.encode(), digest_size=16).hexdigest()


def _table(rows: np.ndarray) -> pa.Table:
    columns = [pa.array(np.ascontiguousarray(column)) for column in rows.T]
    return pa.table(columns, names=[str(number) for number in range(len(columns))])


def _array(table: pa.Table) -> np.ndarray:
    columns = [column.to_numpy() for column in table.columns]
    return np.ascontiguousarray(np.column_stack(columns).astype(np.int64))
