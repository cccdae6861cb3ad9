"""Who an event is, on every host: its id column, or its content and a number among twins."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.store import View
from cepheid.kernels.identity import (
    PAIRS_OF_DIGITS,
    chain_lanes,
    fold_bytes,
    fold_integers,
    hexadecimal,
    match_lanes,
    run_lanes,
)
from cepheid.kernels.memory import room
from cepheid.model.options import Options
from cepheid.planner.chains import Chains


def event_lanes(view: View, options: Options) -> np.ndarray:
    """Two 64-bit lanes per row of the view, which tell equal events apart."""
    lanes = event_contents(view, options)
    if options.id is None:
        twins = twin_numbers(lanes, view)
        if twins is not None:
            fold_integers(lanes, twins, twins > 0, np.uint64(0x7477696E73))
    return lanes


def event_contents(view: View, options: Options) -> np.ndarray:
    """The same without numbers among equal events; a chunk's are worked out once."""
    parts = []
    for chunk in view.chunks:
        if chunk.lanes is None:
            chunk.lanes = _content(chunk.batch, options)
        parts.append(chunk.lanes)
    return np.concatenate(parts, axis=1) if parts else np.zeros((2, 0), np.uint64)


def _content(batch: pa.RecordBatch, options: Options) -> np.ndarray:
    lanes = np.zeros((2, batch.num_rows), np.uint64)
    if options.id is not None:
        _fold(lanes, batch.column(options.id), "id")
        return lanes
    for name in sorted(batch.schema.names):
        _fold(lanes, batch.column(name), name)
    return lanes


def match_ids(lanes: np.ndarray, rows: np.ndarray, fingerprint: str) -> pa.Array:
    """32 hexadecimal characters per match: H(fingerprint, its events in pattern order)."""
    out = room(len(rows), 2, dtype=np.uint64)
    match_lanes(lanes, rows, *_seeds(fingerprint), out)
    return _as_text(out)


def chain_ids(lanes: np.ndarray, chains: Chains, fingerprint: str) -> pa.Array:
    """The same for matches of any length; running totals know what their events would add."""
    out = room(len(chains), 2, dtype=np.uint64)
    seeds = _seeds(fingerprint)
    if chains.totals is None:
        chain_lanes(lanes, chains.ends, chains.rows, *seeds, out)
    else:
        counts, runs = np.ascontiguousarray(chains.totals.counts), chains.totals.lanes
        run_lanes(lanes, chains.ends, chains.rows, counts, runs, *seeds, out)
    return _as_text(out)


def _seeds(fingerprint: str) -> tuple[np.uint64, np.uint64]:
    digest = hashlib.blake2b(fingerprint.encode(), digest_size=16).digest()
    halves = (int.from_bytes(half, "little") for half in (digest[:8], digest[8:]))
    first, second = (np.uint64(half) for half in halves)
    return first, second


def _as_text(lanes: np.ndarray) -> pa.Array:
    rows = len(lanes)
    text = room(16 * rows, dtype=np.uint16)
    hexadecimal(lanes.reshape(-1).view(np.uint8), PAIRS_OF_DIGITS, text)
    if 32 * rows < 2**31:
        offsets = np.arange(0, 32 * rows + 1, 32, dtype=np.int32)
        return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))
    wide = np.arange(0, 32 * rows + 1, 32, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(wide), pa.py_buffer(text))


def _fold(lanes: np.ndarray, array: pa.Array, name: str) -> None:
    seed = np.uint64(
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    )
    if len(array) == 0 or array.null_count == len(array):
        return
    if pa.types.is_dictionary(array.type):
        # Each distinct value is folded once, then looked up: type columns have a handful.
        own = np.zeros((2, len(array.dictionary)), np.uint64)
        _fold(own, array.dictionary, name)
        if array.null_count == 0:
            lanes += own[:, array.indices.to_numpy(zero_copy_only=False)]
            return
        codes = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        known = array.is_valid().to_numpy(zero_copy_only=False)
        lanes += np.where(known, own[:, codes], np.uint64(0))
        return
    valid = (
        np.ones(len(array), np.bool_)
        if array.null_count == 0
        else array.is_valid().to_numpy(zero_copy_only=False)
    )
    kind = array.type
    if pa.types.is_integer(kind):
        values = array.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False)
    elif pa.types.is_floating(kind):
        floats = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        valid = valid & ~np.isnan(floats)  # NaN is undefined, like null
        values = (floats + 0.0).view(np.int64).copy()  # -0.0 equals 0.0
        # A whole number is the same event whether its column came as integers or as floats.
        whole = (np.abs(floats) < 2.0**53) & (np.trunc(floats) == floats)
        values[whole] = floats[whole].astype(np.int64)
    elif pa.types.is_timestamp(kind):
        micro = array.cast(pa.timestamp("us", kind.tz), safe=False)
        values = micro.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    elif pa.types.is_boolean(kind):
        values = array.cast(pa.int8()).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    elif pa.types.is_decimal(kind):
        numbers = [None if value is None else value.normalize() for value in array.to_pylist()]
        whole = np.array([n is not None and n == n.to_integral_value() for n in numbers])
        fractions = [None if w else v for w, v in zip(whole, numbers, strict=True)]
        _fold_text(lanes, pa.array([f and str(f) for f in fractions]), valid & ~whole, seed)
        values = np.array([_wrapped(n) if w else 0 for w, n in zip(whole, numbers, strict=True)])
        valid = valid & whole
    else:
        _fold_text(lanes, array, valid, seed)
        return
    fold_integers(lanes, np.ascontiguousarray(values), valid, seed)


def _fold_text(lanes: np.ndarray, array: pa.Array, valid: np.ndarray, seed: np.uint64) -> None:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        array = array.cast(pa.large_binary())
    elif not pa.types.is_large_binary(array.type):
        array = pa.array([_as_bytes(v) for v in array.to_pylist()], pa.large_binary())
    array = pc.fill_null(array, b"")
    offsets = np.frombuffer(array.buffers()[1], np.int64)[
        array.offset : array.offset + len(array) + 1
    ]
    data = array.buffers()[2]
    bytes_ = (
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    )
    fold_bytes(lanes, offsets, bytes_, valid, seed)


def _wrapped(number: Any) -> np.int64:
    """A whole number in 64 bits, as casting an unsigned one gives it."""
    return np.uint64(int(number) % 2**64).astype(np.int64)


def _as_bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else _canonical(value)).encode()


def _canonical(value: object) -> str:
    """A value of a rarer type as text that no host writes differently."""
    match value:
        case dict():
            inner = (f"{k}:{_canonical(v)}" for k, v in sorted(value.items()) if v is not None)
            return "{" + ",".join(inner) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_canonical, value)) + "]"
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return moment.isoformat(timespec="microseconds")
        case date() | time():
            return value.isoformat()
        case float() if value.is_integer():
            return str(int(value))
        case Decimal():
            return str(value.normalize())
        case _:
            return repr(value)


def twin_numbers(contents: np.ndarray, view: View) -> np.ndarray | None:
    """The number of each row of the view among equal ones; None if there are none.

    Identical rows share their time, so only views with ties have to look. What was numbered
    elsewhere is the same event as one that is numbered here, not another.
    """
    told = [chunk.twins is not None for chunk in view.chunks]
    if not any(told):
        return _numbered(contents) if view.ties else None
    twins = np.concatenate(
        [np.zeros(len(c), np.int64) if c.twins is None else c.twins for c in view.chunks]
    )
    own = np.flatnonzero(~np.repeat(told, [len(chunk) for chunk in view.chunks]))
    twins[own] = _numbered(contents[:, own])
    return twins


def _numbered(contents: np.ndarray) -> np.ndarray:
    order = np.lexsort((contents[1], contents[0]))
    a, b = contents[0][order], contents[1][order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    starts = np.flatnonzero(new)
    ordinal = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    twins = np.zeros(len(order), np.int64)
    twins[order] = ordinal
    return twins
