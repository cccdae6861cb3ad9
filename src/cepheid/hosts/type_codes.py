"""The type column as small integers: which rows a query wants, and which bits they get."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cepheid.kernels.interning import match_names
from cepheid.model.errors import DataError


class TypeCodes:
    """Reads type columns against the types of one query.

    `wanted[code]` is 1 for types of the query and `bits[code]` is the mask of the components such
    an event may fill; a row without a type has code -1, and both tables end with a zero for it.
    """

    def __init__(self, type_bits: Mapping[str, int], bits_of_any_type: int, column: str) -> None:
        """For a query that knows `type_bits`; other types get `bits_of_any_type`."""
        self._type_bits = type_bits
        self._any = bits_of_any_type
        self._column = column
        self._dictionary: pa.Array | None = None
        self.some_unnamed = False
        self._texts = [name.encode() for name in type_bits]
        self._names = np.frombuffer(b"".join(self._texts) or b"\0", np.uint8)
        self._name_offsets = np.cumsum([0, *(len(text) for text in self._texts)])
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
        if isinstance(column, pa.DictionaryArray):
            if column.dictionary.null_count == 0:
                return self._read_dictionary(column)
            column = column.dictionary_decode()
            self.some_unnamed = column.null_count > 0
        if pa.types.is_integer(column.type):
            column = column.cast(pa.string())
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            if pa.types.is_null(column.type):
                self._dictionary = None
                self._tables([*self._type_bits, _STRANGER])
                return np.full(len(column), -1, np.int64)
            raise bad_type_column(self._column, column.type)
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
            return {str(name): code for code, name in enumerate(values)}
        return {name: code for code, name in enumerate(self._type_bits)}

    def _read_dictionary(self, column: pa.DictionaryArray) -> np.ndarray:
        values = column.dictionary
        if self._dictionary is None or not values.equals(self._dictionary):
            self._tables([str(v) for v in values.to_pylist()])
            self._dictionary = values
        indices = column.indices
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(-1)
        return np.asarray(indices.to_numpy(zero_copy_only=False))

    def _tables(self, names: list[str]) -> None:
        bits = [self._type_bits.get(name, self._any) for name in names]
        self.bits = np.array([*bits, 0], np.int64)
        self.wanted = (self.bits != 0).astype(np.int64)
        self._wanted_codes = None

    def _read_strings(self, column: pa.Array) -> np.ndarray:
        """Codes by comparison with the query's own types; every stranger has one code."""
        if self._dictionary is not None or not len(self.bits):
            self._dictionary = None
            self._tables([*self._type_bits, _STRANGER])
        wide = pa.types.is_large_string(column.type)
        buffers = column.buffers()
        offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)
        offsets = offsets[column.offset : column.offset + len(column) + 1]
        data = buffers[2]
        text = np.frombuffer(data, np.uint8) if data is not None and data.size else _NOTHING
        codes = np.empty(len(column), np.int8 if len(self._texts) < 100 else np.int32)
        match_names(offsets, text, self._names, self._name_offsets, codes)
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes


_NOTHING = np.zeros(1, np.uint8)
_STRANGER = "\0"


def bad_type_column(name: str, kind: pa.DataType) -> DataError:
    """The error for a type column that holds no names."""
    return DataError.of(
        "bad-type-column",
        f"the type column `{name}` holds {kind}, not names of event types",
        help="name the right column with type=, or cast it to strings",
    )
