"""Footers of Parquet files, changed into such as other writers make: Thrift's compact protocol, read and written.

A struct is a mapping of field ids to the kind of a value and the value.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Struct = dict[int, tuple[int, Any]]
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


def edit_statistics(
    path: Path, edit: Callable[[str, Struct], Any], *, created_by: str | None = None, has_orders: bool = True
) -> None:
    """Change the statistics of each column in each row group, and what the file says of its writer."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = _Reader(data, start).struct()
    for group in footer[4][1][1]:
        for chunk in group[1][1][1]:
            metadata = chunk[3][1]
            if 12 in metadata:
                edit(b".".join(metadata[3][1][1]).decode(), metadata[12][1])
    if created_by is not None:
        footer[6] = _BINARY, created_by.encode()
    if not has_orders:
        footer.pop(7, None)
    written = _write_struct(footer)
    path.write_bytes(data[:start] + written + len(written).to_bytes(4, "little") + b"PAR1")


def build_empty_file(names: list[str], columns: int) -> bytes:
    """Return a file without row groups: structs inside of each other, with columns of numbers in the last one."""
    groups = [{4: (_BINARY, name.encode()), 5: (_I32, 1)} for name in ["schema", *names]]
    groups[-1][5] = _I32, columns
    leaves: list[Struct] = [{1: (_I32, 1), 4: (_BINARY, b"a")}] * columns
    footer = {1: (_I32, 2), 2: (_LIST, (_STRUCT, groups + leaves)), 3: (_I64, 0), 4: (_LIST, (_STRUCT, []))}
    written = _write_struct(footer)
    return b"PAR1" + written + len(written).to_bytes(4, "little") + b"PAR1"


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position = data, position

    def take(self, length: int) -> bytes:
        self.position += length
        return self.data[self.position - length : self.position]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.take(1)[0]) >= 0x80:
            value, shift = value | (byte & 0x7F) << shift, shift + 7
        return value | byte << shift

    def number(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> Struct:
        found: Struct = {}
        field_id = 0
        while head := self.take(1)[0]:
            field_id = field_id + (head >> 4) if head >> 4 else self.number()
            found[field_id] = head & 15, self.value(head & 15)
        return found

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_I16, _I32, _I64):
            return self.number()
        if kind == _LIST:
            head = self.take(1)[0]
            count = self.varint() if head >> 4 == 15 else head >> 4
            return head & 15, [self.value(head & 15) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct()
        return self.take({_BYTE: 1, _DOUBLE: 8}.get(kind) or self.varint())


def _write_varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + _write_varint(value >> 7)


def _write_number(value: int) -> bytes:
    return _write_varint((value << 1) ^ (value >> 63))


def _write_struct(fields: Struct) -> bytes:
    written = b""
    for field_id, (kind, value) in sorted(fields.items()):
        if kind in (_TRUE, _FALSE):
            written += bytes([_TRUE if value else _FALSE]) + _write_number(field_id)
        else:
            written += bytes([kind]) + _write_number(field_id) + _write_value(kind, value)
    return written + b"\0"


def _write_value(kind: int, value: Any) -> bytes:
    if kind in (_I16, _I32, _I64):
        return _write_number(value)
    if kind == _STRUCT:
        return _write_struct(value)
    if kind == _LIST:
        of, values = value
        return bytes([0xF0 | of]) + _write_varint(len(values)) + b"".join(_write_value(of, one) for one in values)
    data: bytes = value
    return data if kind in (_BYTE, _DOUBLE) else _write_varint(len(data)) + data
