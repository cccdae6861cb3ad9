"""The event generator of the SASE paper (section 5.1, Table 1), with the disorders of real data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.generate.parameters import require
from cepheid.generate.zipf import draw_ranks

Gaps = Literal["fixed", "exponential"]

# Rows are drawn in blocks of this many, each column of each block from its own seed: so the rows
# do not depend on how they are cut into batches, and a longer stream begins with the shorter one.
BLOCK_ROWS = 1 << 18

# Positions of the independent random sequences within a block's seed.
_TYPES, _GAPS, _TIES, _DELAYS, _VALUES = range(5)


@dataclass(frozen=True, slots=True)
class StreamParameters:
    """
    What a generated stream looks like; the paper's symbols stand behind the fields.

    Types are named E1, E2, ... and attributes attr1, attr2, ...; E1 and the value 1 are the most
    frequent ones when a theta is above 0. Times are integer ticks. No two events share a time
    unless `tie_fraction` says so, and rows are in time order unless `disorder` says otherwise.
    """

    events: int = 100_000
    types: int = 20  # T
    type_theta: float = 0.0  # theta_1
    attributes: int = 5  # A
    domain_sizes: int | tuple[int, ...] = 100  # V_i; one number serves every attribute
    value_theta: float = 0.0
    seed: int = 0
    time_step: int = 1  # ticks from one event to the next, on average when gaps are exponential
    gaps: Gaps = "fixed"
    tie_fraction: float = 0.0  # share of the events that take the time of the one before
    null_fraction: float = 0.0  # share of the attribute values that are null
    disorder: int = 0  # ticks by which an event may arrive late

    def __post_init__(self) -> None:
        """Refuse parameters that describe no stream."""
        require(self.events >= 0, "`events` must not be negative")
        require(1 <= self.types <= 32_767, "`types` must lie between 1 and 32767")
        require(self.attributes >= 0, "`attributes` must not be negative")
        require(self.seed >= 0, "`seed` must not be negative")
        require(self.time_step >= 1, "`time_step` must be at least 1 tick")
        require(self.gaps in ("fixed", "exponential"), "`gaps` must be fixed or exponential")
        require(self.disorder >= 0, "`disorder` must not be negative")
        for name in ("type_theta", "value_theta"):
            require(getattr(self, name) >= 0, f"`{name}` must not be negative")
        for name in ("tie_fraction", "null_fraction"):
            require(0 <= getattr(self, name) <= 1, f"`{name}` must lie between 0 and 1")
        if isinstance(self.domain_sizes, tuple):
            require(
                len(self.domain_sizes) == self.attributes,
                f"`domain_sizes` must hold one size for each of {self.attributes} attributes",
            )
        require(all(size >= 1 for size in self.domains), "`domain_sizes` must be at least 1")

    @property
    def domains(self) -> tuple[int, ...]:
        """The number of values of each attribute, V_1 to V_A."""
        if isinstance(self.domain_sizes, tuple):
            return self.domain_sizes
        return (self.domain_sizes,) * self.attributes

    @property
    def type_names(self) -> tuple[str, ...]:
        """E1 to E_T."""
        return tuple(f"E{number}" for number in range(1, self.types + 1))

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """attr1 to attr_A."""
        return tuple(f"attr{number}" for number in range(1, self.attributes + 1))


def stream_schema(parameters: StreamParameters) -> pa.Schema:
    """The columns of the generated stream: type, ts, attr1 to attr_A."""
    code_type = pa.int8() if parameters.types <= 127 else pa.int16()
    fields = [
        pa.field("type", pa.dictionary(code_type, pa.string()), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
    ]
    fields += [pa.field(name, pa.int64()) for name in parameters.attribute_names]
    return pa.schema(fields)


def generate_stream(parameters: StreamParameters) -> pa.Table:
    """
    The whole stream as one table.

    >>> small = StreamParameters(events=3, types=2, attributes=1, domain_sizes=10, time_step=5)
    >>> generate_stream(small)["ts"].to_pylist()
    [0, 5, 10]
    """
    return pa.Table.from_batches(_arrivals(parameters), stream_schema(parameters))


def generate_batches(
    parameters: StreamParameters, rows_per_batch: int = BLOCK_ROWS
) -> Iterator[pa.RecordBatch]:
    """
    The same rows as `generate_stream`, a batch at a time; every batch but the last is full.

    Memory holds one block, one batch and, with `disorder`, the events still on their way.
    """
    require(rows_per_batch >= 1, "`rows_per_batch` must be at least 1")
    return _in_batches_of(rows_per_batch, _arrivals(parameters))


def _in_batches_of(
    rows_per_batch: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    missing = rows_per_batch
    for batch in batches:
        while batch.num_rows >= missing:
            yield _joined([*waiting, batch.slice(0, missing)])
            batch = batch.slice(missing)
            waiting, missing = [], rows_per_batch
        if batch.num_rows:
            waiting.append(batch)
            missing -= batch.num_rows
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _arrivals(parameters: StreamParameters) -> Iterator[pa.RecordBatch]:
    """Blocks in the order in which the events arrive."""
    blocks = _blocks_in_time_order(parameters)
    if parameters.disorder == 0:
        yield from blocks
        return
    schema = stream_schema(parameters)
    under_way = schema.empty_table().combine_chunks()
    arrival_of = np.empty(0, dtype=np.int64)
    for number, block in enumerate(blocks):
        times = block["ts"].to_numpy()
        delays = _random(parameters, number, _DELAYS).integers(
            0, parameters.disorder, block.num_rows, dtype=np.int64, endpoint=True
        )
        arrival_of = np.concatenate([arrival_of, times + delays])
        under_way = pa.concat_tables([under_way, pa.Table.from_batches([block])])
        # Later events arrive at this block's last time at the earliest, and lose the tie.
        order = np.argsort(arrival_of, kind="stable")
        here = int(np.searchsorted(arrival_of[order], times[-1], side="right"))
        yield from under_way.take(order[:here]).combine_chunks().to_batches()
        still = np.sort(order[here:])
        under_way = under_way.take(still).combine_chunks()
        arrival_of = arrival_of[still]
    yield from under_way.take(np.argsort(arrival_of, kind="stable")).combine_chunks().to_batches()


def _blocks_in_time_order(parameters: StreamParameters) -> Iterator[pa.RecordBatch]:
    schema = stream_schema(parameters)
    names = pa.array(parameters.type_names, pa.string())
    last_time = 0
    for number, first_row in enumerate(range(0, parameters.events, BLOCK_ROWS)):
        count = min(BLOCK_ROWS, parameters.events - first_row)
        codes = draw_ranks(
            _random(parameters, number, _TYPES), parameters.types, parameters.type_theta, count
        )
        times = last_time + np.cumsum(_gaps(parameters, number, count))
        last_time = int(times[-1])
        code_type = schema.field("type").type.index_type
        types = pa.DictionaryArray.from_arrays(pa.array(codes - 1, code_type, safe=False), names)
        values = [
            _values(parameters, number, attribute, count)
            for attribute in range(parameters.attributes)
        ]
        yield pa.RecordBatch.from_arrays([types, pa.array(times), *values], schema=schema)


def _gaps(parameters: StreamParameters, block: int, count: int) -> npt.NDArray[np.int64]:
    if parameters.gaps == "fixed":
        gaps = np.full(count, parameters.time_step, dtype=np.int64)
    else:
        # Exponential gaps in discrete time are geometric: at least one tick, the mean is exact.
        random = _random(parameters, block, _GAPS)
        gaps = random.geometric(1 / parameters.time_step, count).astype(np.int64)
    if parameters.tie_fraction > 0:
        tied = _random(parameters, block, _TIES).random(count) < parameters.tie_fraction
        gaps[tied] = 0
    if block == 0:
        gaps[0] = 0  # time begins with the first event
    return gaps


def _values(parameters: StreamParameters, block: int, attribute: int, count: int) -> pa.Array[Any]:
    size = parameters.domains[attribute]
    random = _random(parameters, block, _VALUES + 2 * attribute)
    values = draw_ranks(random, size, parameters.value_theta, count)
    if parameters.null_fraction == 0:
        return pa.array(values, pa.int64())
    random = _random(parameters, block, _VALUES + 2 * attribute + 1)
    return pa.array(values, pa.int64(), mask=random.random(count) < parameters.null_fraction)


def _random(parameters: StreamParameters, block: int, sequence: int) -> np.random.Generator:
    return np.random.default_rng([parameters.seed, block, sequence])
