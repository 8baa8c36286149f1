"""The bytes of a KLL sketch, parsed and checked before any other code uses them.

Source: DataSketches' KLL layout (Java `KllPreambleUtil`, C++ `kll_sketch_impl.hpp`) in compact form: serial versions 1
(many items or none) and 2 (one item).

    byte 0      preamble in 4-byte words: 2 (empty, one item) or 5
    byte 1      serial version: 1, or 2 for one item
    byte 2      family: 15
    byte 3      flags: 1 empty, 2 level zero is sorted, 4 one item
    byte 4-5    k
    byte 6      m: 8
    byte 8-15   n            (from here on only with a preamble of 5)
    byte 16-17  the smallest k of all merged sketches
    byte 18     number of levels
    byte 20-    the start of each level in an array that is filled up to its capacity, 4 bytes each; then the smallest
                item, the largest, and the items of each level, bottom level first: an item of level h counts 2^h times
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from icestats.iceberg.types import MAX_DECIMAL_SIZE, encode_unscaled

ITEM_TYPES: Final = ("double", "long", "string", "decimal")
"""How items are stored: IEEE doubles; 64-bit integers; UTF-8 text after a 4-byte length, like Java's
ArrayOfStringsSerDe; unscaled integers as big-endian two's complement after a 4-byte length. All other bytes are little
endian."""

MIN_K: Final = 8
MAX_K: Final = 65_535
TEXT_LENGTH: Final = 256
"""The number of characters that a sketch keeps of a string: neighbours become equal, and no value is below its own."""
_M = 8
_FAMILY = 15
_EMPTY, _SORTED, _SINGLE = 1, 2, 4
_MAX_LEVELS = 61
_NUMBERS = {"double": "<f8", "long": "<i8", "float": "<f4"}
"""`float` is written for Hive, and never read."""


@dataclass(frozen=True, slots=True)
class KllLayout:
    """A KLL sketch as plain values."""

    item_type: str
    k: int
    min_k: int
    n: int
    min_value: Any
    max_value: Any
    levels: tuple[Sequence[Any], ...]
    """The items of each level, as Python objects in ascending order."""

    def to_bytes(self) -> bytes:
        """Return the bytes that DataSketches writes."""
        if self.n == 0:
            return struct.pack("<4BHBB", 2, 1, _FAMILY, _EMPTY, self.k, _M, 0)
        if self.n == 1:
            return struct.pack("<4BHBB", 2, 2, _FAMILY, _SINGLE, self.k, _M, 0) + self._encode(self.levels[0])
        head = struct.pack("<4BHBBQHBB", 5, 1, _FAMILY, _SORTED, self.k, _M, 0, self.n, self.min_k, len(self.levels), 0)
        place = total_capacity(self.k, len(self.levels)) - sum(map(len, self.levels))
        starts = []
        for level in self.levels:
            starts.append(place)
            place += len(level)
        items = [item for level in self.levels for item in level]
        return head + struct.pack(f"<{len(starts)}I", *starts) + self._encode([self.min_value, self.max_value, *items])

    def _encode(self, items: Sequence[Any]) -> bytes:
        if self.item_type in _NUMBERS:
            return np.asarray(items, _NUMBERS[self.item_type]).tobytes()
        encoded = map(ITEM_CODECS[self.item_type][0], items)
        return b"".join(len(data).to_bytes(4, "little") + data for data in encoded)


def _decode_integer(data: bytes) -> int:
    if len(data) > MAX_DECIMAL_SIZE:
        raise _damaged(f"a decimal of {len(data):,} bytes")
    return int.from_bytes(data, "big", signed=True)


def _decode_text(data: bytes) -> str:
    # Another writer's may be longer: cut, they keep their order.
    return data.decode()[:TEXT_LENGTH]


ITEM_CODECS: Final[dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]]] = {
    "string": (str.encode, _decode_text),
    "decimal": (encode_unscaled, _decode_integer),
}
"""How items that follow their length are written and read."""


def empty_layout(item_type: str, k: int) -> KllLayout:
    """Return a sketch without values."""
    return KllLayout(item_type, k, k, 0, None, None, ((),))


def level_capacity(k: int, depth: int) -> int:
    """Return how many items the level `depth` below the top can hold: k (2/3)^depth, at least 8."""
    half = depth // 2 if depth > 30 else 0
    for step in (half, depth - half):
        k = ((2 * k << step) // 3**step + 1) >> 1
    return max(_M, k)


def total_capacity(k: int, level_count: int) -> int:
    """Return how many items a sketch with `level_count` levels can hold."""
    return sum(level_capacity(k, depth) for depth in range(level_count))


def parse_kll(item_type: str, data: bytes) -> KllLayout:
    """Return the contents of the bytes of a KLL sketch.

    Parameters
    ----------
    item_type : str
        One of `ITEM_TYPES`.
    data : bytes
        A KLL sketch of DataSketches in its compact form.

    Raises
    ------
    ValueError
        The bytes are damaged: a length, a count, a weight or an order is wrong. Parsing never takes more memory than a
        small multiple of the bytes.
    """
    if item_type not in ITEM_TYPES:
        raise ValueError(f"item type {item_type!r}, expected one of {', '.join(ITEM_TYPES)}")
    if len(data) < 8:
        raise _damaged(f"{len(data)} bytes, expected 8 or more")
    preamble, version, family, flags, k, m, _ = struct.unpack_from("<4BHBB", data)
    kind = flags & (_EMPTY | _SINGLE)
    if (family, m) != (_FAMILY, _M) or not MIN_K <= k <= MAX_K:
        raise _damaged(f"family {family}, m {m} and k {k}, expected 15, 8 and a k of 8 or more")
    if (kind, preamble, version) not in ((_EMPTY, 2, 1), (_SINGLE, 2, 2), (0, 5, 1)):
        raise _damaged(f"flags {flags}, {preamble} preamble words and serial version {version} contradict each other")
    if kind == _EMPTY:
        _decode(item_type, data, 8, 0)
        return empty_layout(item_type, k)
    if kind == _SINGLE:
        items = _decode(item_type, data, 8, 1)
        _check_range(items, items[0], items[0])
        return KllLayout(item_type, k, k, 1, items[0], items[0], (items,))
    return _parse_full(item_type, data, k, bool(flags & _SORTED))


def _parse_full(item_type: str, data: bytes, k: int, is_sorted: bool) -> KllLayout:
    if len(data) < 24:
        raise _damaged(f"{len(data)} bytes, expected 24 or more")
    n, min_k, level_count, _ = struct.unpack_from("<QHBB", data, 8)
    if not 1 <= level_count <= _MAX_LEVELS or len(data) < 20 + 4 * level_count or not MIN_K <= min_k <= k:
        raise _damaged(f"{level_count} levels and a smallest k of {min_k}, expected 1 to {_MAX_LEVELS} and 8 to {k}")
    starts = [*struct.unpack_from(f"<{level_count}I", data, 20), total_capacity(k, level_count)]
    sizes = [after - start for start, after in pairwise(starts)]
    if min(sizes) < 0:
        raise _damaged(f"levels that start at {starts[:-1]} in an array of {starts[-1]}")
    if n < 2 or n != sum(size << height for height, size in enumerate(sizes)):
        raise _damaged(f"n is {n}, the items' weights add up to another count")
    low, high, *items = _decode(item_type, data, 20 + 4 * level_count, 2 + sum(sizes))
    if item_type == "string":
        # Java orders text by UTF-16 units, which is another order beyond U+FFFF. Such an order is not damage.
        low, high = min(low, high, *items), max(low, high, *items)
    _check_range(items, low, high)
    levels: list[list[Any]] = []
    place = 0
    for size in sizes:
        level = items[place : place + size]
        levels.append(sorted(level) if item_type == "string" or not (levels or is_sorted) else level)
        place += size
    if not all(map(_ascends, levels)):
        raise _damaged("a level whose items do not ascend")
    return KllLayout(item_type, k, min_k, n, low, high, tuple(levels))


def _decode(item_type: str, data: bytes, offset: int, count: int) -> list[Any]:
    if item_type in _NUMBERS:
        if len(data) != offset + 8 * count:
            raise _damaged(f"{len(data)} bytes, expected {offset + 8 * count} for {count} values")
        numbers: list[Any] = np.frombuffer(data, _NUMBERS[item_type], count, offset).tolist()
        return numbers
    items: list[Any] = []
    decode = ITEM_CODECS[item_type][1]
    for _ in range(count):
        end = offset + 4 + int.from_bytes(data[offset : offset + 4], "little")
        if end > len(data) or offset + 4 > len(data):
            raise _damaged(f"{len(data)} bytes, too few for {count} values")
        try:
            items.append(decode(data[offset + 4 : end]))
        except UnicodeDecodeError:
            raise _damaged(f"text {data[offset + 4 : end][:16].hex()} that is not UTF-8") from None
        offset = end
    if offset != len(data):
        raise _damaged(f"{len(data)} bytes, expected {offset} for {count} values")
    return items


def _check_range(items: Sequence[Any], low: Any, high: Any) -> None:
    # NaN, which is neither below nor above anything, fails this test too.
    if not all(low <= item <= high for item in items):
        raise _damaged("a value outside of the smallest and largest, or not a number")


def _ascends(items: Sequence[Any]) -> bool:
    return all(a <= b for a, b in pairwise(items))


def _damaged(reason: str) -> ValueError:
    return ValueError(f"not a KLL sketch: {reason}; compute the statistics again")
