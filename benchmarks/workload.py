"""SASE's synthetic workload (section 6): 20 uniform types, one event per tick, V keys."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.generate import StreamParameters, generate_batches

LENGTH = 3
BATCH_ROWS = 100_000
SEED = 2006

Int8s = npt.NDArray[np.int8]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """The rows as the limits and NumPy like them: type number (0 is E1), key and time."""

    type: Int8s
    key: Int64s
    time: Int64s

    def __len__(self) -> int:
        return len(self.time)

    def slice(self, start: int, stop: int) -> "Columns":
        """Rows from `start` until before `stop`, without copying."""
        return Columns(self.type[start:stop], self.key[start:stop], self.time[start:stop])

    def batches(self, rows: int = BATCH_ROWS) -> list["Columns"]:
        """The rows cut into consecutive batches."""
        return [self.slice(at, at + rows) for at in range(0, len(self), rows)]


def query(window: int, key: str = "attr1", length: int = LENGTH) -> str:
    """The SASE text of the workload's query."""
    components = ", ".join(f"E{number}" for number in range(1, length + 1))
    return f"EVENT SEQ({components}) WHERE [{key}] WITHIN {window}"


def arrow_events(
    rows: int, domain: int, *, attributes: int = 1, batch_rows: int = BATCH_ROWS, seed: int = SEED
) -> list[pa.RecordBatch]:
    """Batches with dictionary-encoded types and integer keys; `domain` is V of every attribute."""
    parameters = StreamParameters(
        events=rows, attributes=attributes, domain_sizes=domain, seed=seed
    )
    return list(generate_batches(parameters, batch_rows))


def with_strings(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows with types and attributes as plain strings."""
    schema = pa.schema(
        [
            field if field.name == "ts" else pa.field(field.name, pa.string())
            for field in batches[0].schema
        ]
    )
    return [batch.cast(schema) for batch in batches]


def columns(batches: list[pa.RecordBatch], key: str = "attr1") -> Columns:
    """The type, key and time columns of some batches as contiguous arrays."""
    return Columns(
        type=np.concatenate([_type_numbers(batch) for batch in batches]),
        key=np.concatenate([batch[key].to_numpy() for batch in batches]),
        time=np.concatenate([batch["ts"].to_numpy() for batch in batches]),
    )


def _type_numbers(batch: pa.RecordBatch) -> Int8s:
    types = batch["type"]
    assert isinstance(types, pa.DictionaryArray)
    return types.indices.to_numpy()
