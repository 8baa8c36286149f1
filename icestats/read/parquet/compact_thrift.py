"""Thrift's compact protocol -> plain Python values by field id: what Parquet writes its metadata in.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

Kind: TypeAlias = "type | Wanted | tuple[Kind]"
"""What a value is to be: of a Python type, a struct with wanted fields of its own, or a list of one kind."""
Wanted: TypeAlias = Mapping[int, Kind]
"""The wanted fields of a struct, by id."""

_MOST_LEVELS = 16
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class ThriftReader:
    """Reads structs, one behind the other.

    Parameters
    ----------
    data : bytes
        Where they are.
    position : int
        Where the first one begins.

    Notes
    -----
    What is not wanted is passed over. Each element of a list has a byte at least, so no more of them are made than
    there are bytes.
    """

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self._data = data
        self.position = position
        """Where the next struct begins."""

    def read_struct(self, wanted: Wanted) -> dict[int, Any]:
        """Return the wanted fields of the next struct, by id.

        Raises
        ------
        ValueError
            The data are cut, or no such struct: a wanted field is of another kind.
        """
        try:
            return self._struct(wanted, 0)
        except (IndexError, struct.error):
            raise ValueError("it is cut, or no Thrift struct") from None

    def _struct(self, wanted: Wanted, level: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field_id = 0
        while head := self._byte():
            kind = head & 15
            field_id = field_id + (head >> 4) if head >> 4 else self._number()
            expected = wanted.get(field_id)
            value = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, expected, level)
            if expected is not None:
                found[field_id] = _check(value, expected)
        return found

    def _value(self, kind: int, expected: Kind | None, level: int) -> Any:
        if level > _MOST_LEVELS:
            raise ValueError(f"values are nested more than {_MOST_LEVELS} levels deep")
        if kind in (_I16, _I32, _I64):
            return self._number()
        if kind == _BINARY:
            return self._binary(expected is not None)
        if kind == _STRUCT:
            return self._struct(expected if isinstance(expected, Mapping) else {}, level + 1)
        if kind in (_LIST, _SET):
            return self._list(expected[0] if isinstance(expected, tuple) else None, level)
        if kind == _MAP:
            return self._map(level)
        if kind == _DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        raise ValueError(f"a value of the unknown kind {kind}")

    def _list(self, expected: Kind | None, level: int) -> list[Any]:
        head = self._byte()
        kind = head & 15
        count = self._size() if head >> 4 == 15 else head >> 4
        found = []
        for _ in range(count):
            value = self._value(kind, expected, level + 1)
            if expected is not None:
                found.append(_check(value, expected))
        return found

    def _map(self, level: int) -> None:
        count = self._size()
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._value(kinds >> 4, None, level + 1)
            self._value(kinds & 15, None, level + 1)

    def _binary(self, is_wanted: bool) -> bytes | None:
        length = self._size()
        if is_wanted:
            return bytes(self._take(length))
        self.position += length
        return None

    def _size(self) -> int:
        """Return the length of a string or a list, which no more bytes are left than."""
        size = self._varint()
        if size > len(self._data) - self.position:
            raise ValueError(f"a length of {size:,} where {len(self._data) - self.position:,} bytes are left")
        return size

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise ValueError("a number is longer than 64 bits")
        return value & 0xFFFF_FFFF_FFFF_FFFF

    def _byte(self) -> int:
        byte = self._data[self.position]
        self.position += 1
        return byte

    def _take(self, length: int) -> bytes | memoryview:
        start = self.position
        self.position += length
        return self._data[start : self.position]


def _check(value: Any, expected: Kind) -> Any:
    kind = expected if isinstance(expected, type) else list if isinstance(expected, tuple) else dict
    if type(value) is not kind:
        raise ValueError(f"a value is a {type(value).__name__}, expected a {kind.__name__}")
    return value
