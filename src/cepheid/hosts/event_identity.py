"""Who an event is, the same on every host: its id column, or its content and an ordinal among twins."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.hosts.store import View
from cepheid.kernels.identity import (
    DIGITS,
    fold_bytes,
    fold_integers,
    hexadecimal,
    match_lanes,
)
from cepheid.model.options import Options


def event_lanes(view: View, options: Options) -> np.ndarray:
    """Two 64-bit lanes per row of the view."""
    table = view.table
    if options.id is not None:
        lanes = np.zeros((2, len(table)), np.uint64)
        _fold(lanes, table.column(options.id), "id")
        return lanes
    lanes = np.zeros((2, len(table)), np.uint64)
    for name in sorted(table.column_names):
        _fold(lanes, table.column(name), name)
    _number_twins(lanes, view)
    return lanes


def match_ids(lanes: np.ndarray, rows: np.ndarray, fingerprint: str) -> pa.Array:
    """32 hexadecimal characters per match: H(fingerprint, its events in pattern order)."""
    digest = hashlib.blake2b(fingerprint.encode(), digest_size=16).digest()
    out = np.empty((2, len(rows)), np.uint64)
    match_lanes(
        lanes,
        np.ascontiguousarray(rows),
        np.uint64(int.from_bytes(digest[:8], "little")),
        np.uint64(int.from_bytes(digest[8:], "little")),
        out,
    )
    text = np.empty(32 * len(rows), np.uint8)
    hexadecimal(out, DIGITS, text)
    offsets = np.arange(0, 32 * len(rows) + 1, 32, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(
        len(rows), pa.py_buffer(offsets), pa.py_buffer(text)
    ).cast(pa.string())


def _fold(lanes: np.ndarray, column: pa.ChunkedArray, name: str) -> None:
    seed = np.uint64(
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    )
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    if len(array) == 0 or array.null_count == len(array):
        return
    if pa.types.is_dictionary(array.type):
        # Each distinct value is folded once, then looked up: type columns have a handful.
        own = np.zeros((2, len(array.dictionary)), np.uint64)
        _fold(own, pa.chunked_array([array.dictionary]), name)
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
        values = (floats + 0.0).view(np.int64)  # -0.0 equals 0.0
    elif pa.types.is_timestamp(kind):
        micro = array.cast(pa.timestamp("us", kind.tz), safe=False)
        values = micro.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    elif pa.types.is_boolean(kind):
        values = array.cast(pa.int8()).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        _fold_text(lanes, array, valid, seed)
        return
    fold_integers(lanes, np.ascontiguousarray(values), valid, seed)


def _fold_text(lanes: np.ndarray, array: pa.Array, valid: np.ndarray, seed: np.uint64) -> None:
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        array = array.cast(pa.large_binary())
    elif pa.types.is_large_string(array.type):
        array = array.cast(pa.large_binary())
    elif not pa.types.is_large_binary(array.type):
        array = pa.array([None if v is None else repr(v) for v in array.to_pylist()]).cast(
            pa.large_binary()
        )
    array = pc.fill_null(array, b"")
    offsets = np.frombuffer(array.buffers()[1], np.int64)[
        array.offset : array.offset + len(array) + 1
    ]
    data = array.buffers()[2]
    bytes_ = (
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    )
    fold_bytes(lanes, offsets, bytes_, valid, seed)


def _number_twins(lanes: np.ndarray, view: View) -> None:
    """Identical rows share their time, so only views with ties have to look (SPEC B2)."""
    tied = any(chunk.ties for chunk in view.chunks) or any(
        a.last_time >= b.first_time for a, b in zip(view.chunks, view.chunks[1:], strict=False)
    )
    if not tied:
        return
    order = np.lexsort((lanes[1], lanes[0]))
    a, b = lanes[0][order], lanes[1][order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    starts = np.flatnonzero(new)
    ordinal = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    twins = np.zeros(len(order), np.int64)
    twins[order] = ordinal
    fold_integers(lanes, twins, twins > 0, np.uint64(0x7477696E73))
