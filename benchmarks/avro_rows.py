"""Avro rows in bulk: each field of all rows at once, as padded bytes with a mask of those that count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]
Longs: TypeAlias = NDArray[np.int64]
Piece: TypeAlias = tuple[Bytes, Mask]
"""Bytes and which of them count, both of shape (rows, ..., width)."""
ABSENT, PRESENT = 0, 2
"""The first byte of an optional value."""


def padded(cells: Bytes, lengths: Longs) -> Piece:
    """Return bytes of which the first `lengths` count."""
    return cells, np.arange(cells.shape[-1]) < lengths[..., None]


def varint(values: Longs) -> Piece:
    """Return zig-zag integers."""
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    groups = rest[..., None] >> np.arange(0, 7 * width, 7, dtype=np.uint64)
    following = np.zeros(groups.shape, np.bool_)
    following[..., :-1] = groups[..., 1:] > 0
    counted = np.ones(groups.shape, np.bool_)
    counted[..., 1:] = groups[..., 1:] > 0
    cells: Bytes = (groups & np.uint64(0x7F)).astype(np.uint8)
    cells[following] |= 0x80
    return cells, counted


def text(strings: Sequence[bytes]) -> Piece:
    """Return strings behind their lengths."""
    array = np.array(strings, np.bytes_)
    lengths = np.char.str_len(array).astype(np.int64)
    cells = array.view(np.uint8).reshape(len(array), array.dtype.itemsize)
    return beside(varint(lengths), padded(cells, lengths))


def beside(*pieces: Piece) -> Piece:
    """Return pieces one behind the other."""
    return np.concatenate([cells for cells, _ in pieces], -1), np.concatenate([mask for _, mask in pieces], -1)


def constant(data: bytes, rows: int) -> Piece:
    """Return the same bytes in each row."""
    cells = np.broadcast_to(np.frombuffer(data, np.uint8), (rows, len(data)))
    return cells, np.ones(cells.shape, np.bool_)


def optional(piece: Piece, present: Mask) -> Piece:
    """Return a union with null, null first."""
    branch = np.where(present, PRESENT, ABSENT).astype(np.uint8)[:, None]
    return beside((branch, np.ones(branch.shape, np.bool_)), (piece[0], piece[1] & present[:, None]))


def entries(keys: Longs, values: Piece, present: Mask) -> Piece:
    """Return a map with integer keys, an array of records of key and value: (rows, keys, width) -> (rows, width)."""
    rows = len(present)
    key, counted = varint(keys)
    shape = (*present.shape, key.shape[-1])
    cells, mask = beside((np.broadcast_to(key, shape), np.broadcast_to(counted, shape)), values)
    counts = present.sum(1)
    count_cells, count_mask = varint(counts)
    return beside(
        (count_cells, count_mask & (counts > 0)[:, None]),
        (cells.reshape(rows, -1), (mask & present[..., None]).reshape(rows, -1)),
        constant(b"\0", rows),
    )


def blocks(piece: Piece, size: int) -> Iterator[tuple[int, bytes]]:
    """Cut rows into blocks of at least `size` bytes: the number of rows of each, and its bytes."""
    cells, mask = piece
    data = cells[mask].tobytes()
    ends = np.cumsum(mask.sum(1))
    first, start = 0, 0
    while first < len(ends):
        last = min(int(np.searchsorted(ends, start + size)), len(ends) - 1)
        yield last + 1 - first, data[start : int(ends[last])]
        first, start = last + 1, int(ends[last])
