"""Small segments travel in one value with the header: one call to the state store, not two.

A call to Spark's state store from Python takes a good part of a millisecond, whatever it carries,
and a step of a bucket is often a few milliseconds. What a step leaves behind is usually small, and
gone at the next one.
"""

from __future__ import annotations

from cepheid.hosts.stream_state import Store

_LARGEST = 8 << 10
_MOST_TOGETHER = 32 << 10
_NUMBER, _SIZE = 8, 4


class HeaderStore:
    """A store that keeps small segments behind the header, for one step of one bucket."""

    def __init__(self, store: Store) -> None:
        """`store` holds the value and the larger segments."""
        self._store = store
        self._small: dict[int, bytes] = {}

    def header(self) -> bytes | None:
        """The header, if there is one."""
        value = self._store.header()
        if value is None:
            return None
        # The header is JSON without a line break (stream_state), so the first one ends it.
        header, _, rest = value.partition(b"\n")
        at = 0
        while at < len(rest):
            number = int.from_bytes(rest[at : at + _NUMBER], "little")
            begin = at + _NUMBER + _SIZE
            at = begin + int.from_bytes(rest[at + _NUMBER : begin], "little")
            self._small[number] = rest[begin:at]
        return header

    def set_header(self, data: bytes) -> None:
        """Replace the header; this is also when small segments are written, so it comes last."""
        parts = [data, b"\n"]
        for number, segment in self._small.items():
            parts.append(number.to_bytes(_NUMBER, "little"))
            parts.append(len(segment).to_bytes(_SIZE, "little"))
            parts.append(segment)
        self._store.set_header(b"".join(parts))

    def segment(self, number: int) -> bytes:
        """One segment."""
        small = self._small.get(number)
        return self._store.segment(number) if small is None else small

    def set_segment(self, number: int, data: bytes) -> None:
        """Write a segment."""
        together = sum(map(len, self._small.values()))
        if len(data) <= _LARGEST and together + len(data) <= _MOST_TOGETHER:
            self._small[number] = data
        else:
            self._store.set_segment(number, data)

    def drop_segment(self, number: int) -> None:
        """Remove a segment."""
        if self._small.pop(number, None) is None:
            self._store.drop_segment(number)
