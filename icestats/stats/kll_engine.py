"""The KLL sketches of DataSketches, extended to 64-bit integers, text and long decimals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import datasketches
import numpy as np
import numpy.typing as npt

from icestats.stats.kll_layout import (
    KllLayout,
    decode_integer,
    encode_integer,
    find_items,
    parse_kll,
    settle_level_zero,
)

# Python's datasketches has no sketch of 64-bit integers (kll_ints_sketch silently truncates them to 32 bits). The
# sketch of doubles holds them instead: sign and magnitude become sign and magnitude of a double, in the same order.
# _BIAS keeps them away from the subnormal doubles, which are all equal in a process that flushes these to zero.
_BIAS: Final = 1 << 52
NARROW_LIMIT: Final = 0x7FF0_0000_0000_0000 - _BIAS
"""Integers of this magnitude or above would become infinities or NaN: they need the sketch of Python objects."""
_SIGN: Final = -(1 << 63)


class _TextSerDe(datasketches.PyObjectSerDe):  # type: ignore[misc]  # datasketches has no types
    """UTF-8 after its length in bytes. PyStringsSerDe counts characters instead, which is right only for ASCII."""

    def get_size(self, item: str) -> int:
        return 4 + len(item.encode())

    def to_bytes(self, item: str) -> bytes:
        data = item.encode()
        return len(data).to_bytes(4, "little") + data

    def from_bytes(self, data: bytes, offset: int) -> tuple[str, int]:
        length = int.from_bytes(data[offset : offset + 4], "little")
        return data[offset + 4 : offset + 4 + length].decode("utf-8"), 4 + length


class _IntegerSerDe(datasketches.PyObjectSerDe):  # type: ignore[misc]  # datasketches has no types
    """Integers of any size after their length in bytes."""

    def get_size(self, item: int) -> int:
        return 4 + len(encode_integer(item))

    def to_bytes(self, item: int) -> bytes:
        data = encode_integer(item)
        return len(data).to_bytes(4, "little") + data

    def from_bytes(self, data: bytes, offset: int) -> tuple[int, int]:
        length = int.from_bytes(data[offset : offset + 4], "little")
        return decode_integer(data[offset + 4 : offset + 4 + length]), 4 + length


_SERDES: Final[dict[str, Any]] = {
    "string": _TextSerDe(),
    "decimal": _IntegerSerDe(),
    "long": datasketches.PyLongsSerDe(),
}


class KllEngine:
    """A sketch of DataSketches for one item type.

    Parameters
    ----------
    item_type : str
        One of `kll_layout.ITEM_TYPES`.
    k : int
        The size of the sketch.
    """

    __slots__ = ("is_wide", "item_type", "k", "sketch")

    def __init__(self, item_type: str, k: int) -> None:
        self.item_type = item_type
        self.k = k
        # Whether there are longs of `NARROW_LIMIT` or above: then all are kept as Python integers.
        self.is_wide = False
        doubles = _is_numeric(item_type, is_wide=False)
        self.sketch: Any = datasketches.kll_doubles_sketch(k) if doubles else datasketches.kll_items_sketch(k)

    @classmethod
    def open(cls, layout: KllLayout) -> KllEngine:
        """Return a sketch with the contents of a valid layout."""
        engine = cls(layout.item_type, layout.k)
        if layout.n:
            engine.is_wide = layout.item_type == "long" and not _is_narrow(layout.min_value, layout.max_value)
            engine.sketch = _open(layout, engine.is_wide)
        return engine

    @property
    def has_objects(self) -> bool:
        """Whether items are kept as Python objects, which is far slower than keeping numbers."""
        return not _is_numeric(self.item_type, self.is_wide)

    def update(self, items: Sequence[Any] | npt.NDArray[Any]) -> None:
        """Add items: Python objects one by one, or numbers at once if the sketch does not keep objects."""
        if self.item_type == "double":
            # DataSketches rejects read-only arrays, such as those that share Arrow's memory.
            self.sketch.update(np.array(items, np.float64))
            return
        if self.item_type == "long":
            if len(items) == 0:
                return
            if not _is_narrow(int(np.min(items)), int(np.max(items))):
                self._widen()
            if not self.is_wide:
                self.sketch.update(_doubles(items))
                return
            items = np.asarray(items, np.int64).tolist()
        update = self.sketch.update
        for item in items:
            update(item)

    def add(self, levels: Sequence[Sequence[Any]], low: Any, high: Any) -> None:
        """Add weighted items: an item of level h counts 2^h times.

        Parameters
        ----------
        levels : sequence of sequences
            From 1 to 65,535 items in all. Each level but the first is in ascending order.
        low, high
            The smallest and the largest of the values that the items stand for.
        """
        if self.item_type == "long" and not _is_narrow(low, high):
            self._widen()
        n = sum(len(level) << height for height, level in enumerate(levels))
        k = max(self.k, sum(map(len, levels)))
        self.sketch.merge(_open(KllLayout(self.item_type, k, k, n, low, high, tuple(levels)), self.is_wide))

    def merge(self, other: KllEngine) -> None:
        """Add the items of another sketch, which does not change."""
        if other.is_wide:
            self._widen()
        self.sketch.merge(_open(other.layout(), True) if self.is_wide and not other.is_wide else other.sketch)

    def layout(self) -> KllLayout:
        """Return the contents of the sketch."""
        if self.has_objects:
            return parse_kll(self.item_type, bytes(self.sketch.serialize(_SERDES[self.item_type])))
        layout = parse_kll("double", bytes(self.sketch.serialize()))
        return _mapped(layout, "long") if self.item_type == "long" else layout

    def to_bytes(self) -> bytes:
        """Return the bytes of `layout()`."""
        if self.item_type == "string":
            return settle_level_zero("string", bytes(self.sketch.serialize(_SERDES["string"])))
        if self.has_objects:
            return self.layout().to_bytes()
        data = settle_level_zero("double", bytes(self.sketch.serialize()))
        if self.item_type == "double":
            return data
        offset = find_items(data)
        return data[:offset] + _longs(np.frombuffer(data, "<f8", offset=offset)).astype("<i8").tobytes()

    def _widen(self) -> None:
        if not self.is_wide:
            self.sketch, self.is_wide = _open(self.layout(), True), True


def _open(layout: KllLayout, is_wide: bool) -> Any:
    if not _is_numeric(layout.item_type, is_wide):
        return datasketches.kll_items_sketch.deserialize(layout.to_bytes(), _SERDES[layout.item_type])
    layout = _mapped(layout, "double") if layout.item_type == "long" else layout
    return datasketches.kll_doubles_sketch.deserialize(layout.to_bytes())


def _is_narrow(low: int, high: int) -> bool:
    return -NARROW_LIMIT < low <= high < NARROW_LIMIT


def _is_numeric(item_type: str, is_wide: bool) -> bool:
    return item_type == "double" or (item_type == "long" and not is_wide)


def _mapped(layout: KllLayout, item_type: str) -> KllLayout:
    convert = _doubles if item_type == "double" else _longs
    if layout.n == 0:
        return replace(layout, item_type=item_type)
    low, high = convert([layout.min_value, layout.max_value]).tolist()
    levels = tuple(convert(level).tolist() for level in layout.levels)
    return replace(layout, item_type=item_type, min_value=low, max_value=high, levels=levels)


def _doubles(longs: Any) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.int64] = np.asarray(longs, np.int64)
    doubles: npt.NDArray[np.float64] = ((np.abs(values) + _BIAS) | (values & _SIGN)).view(np.float64)
    return doubles


def _longs(doubles: Any) -> npt.NDArray[np.int64]:
    bits = np.asarray(doubles, np.float64).view(np.int64)
    magnitudes = (bits & ~np.int64(_SIGN)) - _BIAS
    return np.where(bits < 0, -magnitudes, magnitudes)
