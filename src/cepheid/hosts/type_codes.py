"""The type column as small integers: which rows a query wants, and which bits they get."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.kernels.interning import StringTable
from cepheid.model.errors import DataError

_MOST_STRANGE_TYPES = 1 << 20


class TypeCodes:
    """Reads type columns against the types of one query.

    `wanted[code]` is 1 for types of the query and `bits[code]` is the mask of the components such an
    event may fill; a row without a type has code -1, and both tables end with a zero for it.
    """

    def __init__(self, type_bits: Mapping[str, int], bits_of_any_type: int, column: str) -> None:
        """For a query that knows `type_bits`; other types get `bits_of_any_type`."""
        self._type_bits = type_bits
        self._any = bits_of_any_type
        self._column = column
        self._dictionary: pa.Array | None = None
        self.some_unnamed = False
        self._forget()

    def _forget(self) -> None:
        self._strings = StringTable()
        self._known = [self._strings.code(name) for name in self._type_bits]
        self.wanted = np.zeros(0, np.int64)
        self.bits = np.zeros(0, np.int64)
        self._wanted_codes: np.ndarray | None = None

    def wanted_codes(self, dtype: np.dtype[np.integer]) -> np.ndarray:
        """The wanted codes in the type column's own dtype."""
        if self._wanted_codes is None or self._wanted_codes.dtype != dtype:
            self._wanted_codes = np.flatnonzero(self.wanted).astype(dtype)
        return self._wanted_codes

    def read(self, column: pa.Array) -> np.ndarray:
        """The codes of a type column; afterwards `wanted` and `bits` fit them.

        `some_unnamed` says whether a row has no type.
        """
        self.some_unnamed = column.null_count > 0
        if pa.types.is_dictionary(column.type):
            return self._read_dictionary(column)
        self._dictionary = None
        if pa.types.is_integer(column.type):
            column = column.cast(pa.string())
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            if pa.types.is_null(column.type) and len(column):
                self._tables([])
                return np.full(len(column), -1, np.int64)
            raise DataError.of(
                "bad-type-column",
                f"the type column `{self._column}` holds {column.type}, not names of event types",
                help="name the right column with type=, or cast it to strings",
            )
        return self._read_strings(column)

    def names(self, codes: np.ndarray) -> np.ndarray:
        """The names of wanted codes (object array); strangers come out as None."""
        out = np.full(len(codes), None, object)
        for name, code in self._code_of().items():
            out[codes == code] = name
        return out

    def code_lookup(self, flags: Mapping[str, bool], default: bool) -> np.ndarray:
        """A table code -> flag for per-type facts, with `default` for other types."""
        table = np.full(len(self.bits), default, np.bool_)
        for name, code in self._code_of().items():
            if name in flags:
                table[code] = flags[name]
        return table

    def _code_of(self) -> dict[str, int]:
        if self._dictionary is not None:
            values = self._dictionary.to_pylist()
            return {name: code for code, name in enumerate(values) if name is not None}
        return dict(zip(self._type_bits, self._known, strict=True))

    def _read_dictionary(self, column: pa.DictionaryArray) -> np.ndarray:
        values = column.dictionary
        if self._dictionary is None or not values.equals(self._dictionary):
            self._tables([str(v) if v is not None else None for v in values.to_pylist()])
            self._dictionary = values
        self.some_unnamed |= values.null_count > 0
        indices = column.indices
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(-1)
        return np.asarray(indices.to_numpy(zero_copy_only=False))

    def _tables(self, names: list[str | None]) -> None:
        bits = [0 if n is None else self._type_bits.get(n, self._any) for n in names]
        self.bits = np.array([*bits, 0], np.int64)
        self.wanted = (self.bits != 0).astype(np.int64)
        self._wanted_codes = None

    def _read_strings(self, column: pa.Array) -> np.ndarray:
        if self._strings.count > _MOST_STRANGE_TYPES:
            self._forget()
        wide = pa.types.is_large_string(column.type)
        offsets = np.frombuffer(column.buffers()[1], np.int64 if wide else np.int32)
        data = column.buffers()[2]
        text = np.frombuffer(data, np.uint8) if data is not None and data.size else _NOTHING
        rows = np.arange(column.offset, column.offset + len(column))
        codes = self._strings.codes(rows, offsets, text)
        if len(self.bits) <= self._strings.count + 1:
            size = 2 * self._strings.count + 64
            self.bits = np.full(size, self._any, np.int64)
            self.bits[self._known] = list(self._type_bits.values())
            self.bits[-1] = 0
            self.wanted = (self.bits != 0).astype(np.int64)
            self._wanted_codes = None
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes


_NOTHING = np.zeros(1, np.uint8)
