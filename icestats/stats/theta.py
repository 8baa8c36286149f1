"""Theta sketches: how many distinct values a column has, within a known error.

A Theta sketch is the set of hashes below a threshold, theta. This one keeps the smallest 2^lg_k hashes, and the next
one is theta. So it depends only on the values, not on their order or on how partitions were merged. Source: Iceberg's
Puffin spec, "apache-datasketches-theta-v1"; DataSketches' compact Theta layout.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import datasketches
import numpy as np
import numpy.typing as npt
import zstandard

from icestats.stats.hashing import Hashes

MAX_THETA: Final = (1 << 63) - 1
_SEED_HASH: Final = 0x93CC
"""The low 16 bits of the hash of seed 9001, which DataSketches writes."""

_FAMILY_COMPACT = 3
_LEAST_BITS = 16
"""Of a packed hash: closer ones would be of more than 10^14 values, and take many times their bytes in memory."""
_FREE_BYTES, _MOST_RATIO = 1 << 16, 8
"""Hashes of values hardly compress. What does, above so many bytes, takes many times what it was stored in."""
_UNPACKED_AT_ONCE = 1 << 13
"""Whole bytes, whatever bits each has."""
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = 0x02, 0x04, 0x08, 0x10, 0x20


LEAVES_OUT_EMPTY: Final = frozenset({"string", "binary"})
"""Types that have an empty value, which Iceberg and DataSketches do not put into a sketch."""
_OTHERWISE: Final = {
    **dict.fromkeys(LEAVES_OUT_EMPTY, "does not count an empty value"),
    **dict.fromkeys(("float", "double"), "counts 0.0 and -0.0, and NaN of other bits, as different values"),
}


def describe_counting(column: str, type_text: str) -> tuple[str, ...]:
    """Say what the NDV of a sketch takes otherwise than SQL does; nothing of types that have no such value."""
    how = _OTHERWISE.get(type_text)
    return () if how is None else (f"the NDV of {column} {how}",)


class ThetaSketch:
    """A set of values, represented by the smallest of their hashes.

    Parameters
    ----------
    lg_k : int
        The sketch keeps 2^lg_k hashes. Iceberg uses 12 (4,096 hashes), for an error of 3 % at 95 % confidence.

    Notes
    -----
    The count is exact up to 2^lg_k distinct values. Beyond, its relative standard error is 1 / sqrt(2^lg_k - 1).

    Examples
    --------
    >>> import pyarrow as pa
    >>> from icestats.stats.hashing import hash_values
    >>> sketch = ThetaSketch()
    >>> sketch.update(hash_values(pa.array([1, 2, 2, None]), "long"))
    >>> sketch.ndv
    2
    """

    __slots__ = ("_hashes", "_theta", "is_empty", "lg_k")

    def __init__(self, lg_k: int = 12) -> None:
        if not 4 <= lg_k <= 26:
            raise ValueError(f"lg_k is {lg_k}, expected 4 to 26")
        self.lg_k = lg_k
        self._theta = MAX_THETA
        self.is_empty = True
        """Whether no value was added."""
        self._hashes: Hashes = np.zeros(0, np.uint64)

    def update(self, hashes: Hashes) -> None:
        """Add values by their 63-bit hashes from `hashing.hash_values`."""
        if len(hashes):
            self.is_empty = False
            self._add(hashes[hashes < np.uint64(self._theta)])

    def merge(self, other: ThetaSketch) -> None:
        """Add the values of another sketch to this one. The result is the same in whatever order sketches merge."""
        self.is_empty = self.is_empty and other.is_empty
        self._theta = min(self._theta, other._theta)
        self._add(other._hashes)

    def _add(self, hashes: Hashes) -> None:
        self._hashes = _distinct(np.concatenate([self._hashes, np.sort(hashes)]), self._theta)
        if len(self._hashes) > 1 << self.lg_k:
            self._theta = int(self._hashes[1 << self.lg_k])
            self._hashes = self._hashes[: 1 << self.lg_k].copy()

    @property
    def is_exact(self) -> bool:
        """Whether the sketch keeps the hash of every distinct value, so that the estimate is exact."""
        return self._theta == MAX_THETA

    @property
    def theta(self) -> float:
        """The share of all possible hashes that are below the threshold."""
        return self._theta / 2.0**63

    @property
    def hashes(self) -> Hashes:
        """The hashes of the sketch, in ascending order; read-only."""
        view = self._hashes.view()
        view.flags.writeable = False
        return view

    def estimate(self) -> float:
        """Return the estimated number of distinct values."""
        count = float(len(self._hashes))
        return count if self._theta == MAX_THETA else count / (self._theta / 2.0**63)

    @property
    def ndv(self) -> int:
        """The estimate as in Iceberg's property `ndv`: rounded down."""
        return int(self.estimate())

    def bounds(self, std_devs: int = 2) -> tuple[float, float]:
        """Return the bounds of the estimate at 1, 2 or 3 standard deviations (68 %, 95.4 %, 99.7 %).

        Returns
        -------
        tuple of float
            Lower and upper bound; both are the exact count if the sketch is exact.

        Raises
        ------
        ValueError
            `std_devs` is not 1, 2 or 3.
        """
        if std_devs not in (1, 2, 3):
            raise ValueError(f"std_devs is {std_devs}, expected 1, 2 or 3")
        if self.is_exact:
            return self.estimate(), self.estimate()
        sketch = datasketches.compact_theta_sketch.deserialize(self.to_bytes())
        return float(sketch.get_lower_bound(std_devs)), float(sketch.get_upper_bound(std_devs))

    @property
    def relative_error(self) -> float:
        """The error of the estimate at 95.4 % confidence, as a share of the estimate; 0.0 if the sketch is exact."""
        estimate = self.estimate()
        lower, upper = self.bounds(2)
        return max(upper - estimate, estimate - lower) / estimate if estimate else 0.0

    def to_bytes(self) -> bytes:
        """Return the bytes that Java's DataSketches writes for Iceberg: serial version 3, compact, ordered."""
        hashes = self._hashes.astype("<u8", copy=False).tobytes()
        flags = _READ_ONLY | _COMPACT | _ORDERED
        exact = self._theta == MAX_THETA
        if self.is_empty:
            # For an empty sketch Java leaves out the hash of the seed, C++ does not. Neither reads it.
            return struct.pack("<6BH", 1, 3, _FAMILY_COMPACT, 0, 0, flags | _EMPTY, 0)
        if exact and len(self._hashes) == 1:
            return struct.pack("<6BH", 1, 3, _FAMILY_COMPACT, 0, 0, flags | _SINGLE, _SEED_HASH) + hashes
        # Bytes 12 to 15 are the sampling probability: a float, always 1.
        head = struct.pack(
            "<6BHIf", 2 if exact else 3, 3, _FAMILY_COMPACT, 0, 0, flags, _SEED_HASH, len(self._hashes), 1
        )
        return head + (b"" if exact else struct.pack("<Q", self._theta)) + hashes

    @classmethod
    def from_bytes(cls, data: bytes, lg_k: int = 12) -> ThetaSketch:
        """Return the sketch in bytes that DataSketches wrote: any serial version from 1 to 4, ordered or not.

        Parameters
        ----------
        data : bytes
            A compact sketch that Iceberg, Trino, Spark or DataSketches wrote.
        lg_k : int
            The size to which updates and merges reduce it. Reading does not: the estimate is that of the writer.

        Raises
        ------
        ValueError
            The bytes are damaged, or not a compact Theta sketch of seed 9001.
        """
        sketch = cls(lg_k)
        sketch._theta, sketch._hashes, sketch.is_empty = _parse(bytes(data))
        return sketch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ThetaSketch):
            return NotImplemented
        mine, theirs = (self._theta, self.is_empty), (other._theta, other.is_empty)
        return mine == theirs and np.array_equal(self._hashes, other._hashes)

    __hash__ = None  # type: ignore[assignment]  # mutable: two equal sketches may part

    def __repr__(self) -> str:
        lower, upper = self.bounds()
        return f"ThetaSketch(estimate={self.estimate():.0f}, bounds=({lower:.0f}, {upper:.0f}))"

    def __reduce__(self) -> tuple[object, ...]:
        return ThetaSketch.from_bytes, (self.to_bytes(), self.lg_k)


@dataclass(frozen=True, slots=True)
class CommonValues:
    """The number of distinct values that two columns have in common."""

    estimate: float
    lower: float
    """At 95.4 % confidence, like `upper`. Both are the exact count if both sketches are exact."""
    upper: float


def estimate_common_values(one: ThetaSketch, other: ThetaSketch) -> CommonValues:
    """Estimate how many distinct values two sketches have in common.

    Parameters
    ----------
    one, other : ThetaSketch
        The sketches of two columns of the same type. An int and a long have different hashes.

    Notes
    -----
    The fewer values are in common, the larger is the relative error, because fewer of the kept hashes are in common.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from icestats.stats.hashing import hash_values
    >>> one, other = ThetaSketch(), ThetaSketch()
    >>> one.update(hash_values(pa.array([1, 2, 3]), "long"))
    >>> other.update(hash_values(pa.array([2, 3, 4]), "long"))
    >>> estimate_common_values(one, other)
    CommonValues(estimate=2.0, lower=2.0, upper=2.0)
    """
    intersection = datasketches.theta_intersection()
    for sketch in (one, other):
        intersection.update(datasketches.compact_theta_sketch.deserialize(sketch.to_bytes()))
    common = intersection.get_result()
    return CommonValues(
        float(common.get_estimate()), float(common.get_lower_bound(2)), float(common.get_upper_bound(2))
    )


def _distinct(hashes: Hashes, theta: int) -> Hashes:
    # numpy.unique uses a hash table, which is ten times slower than sorting. Two runs in order merge in one pass.
    hashes.sort(kind="stable")
    first = np.searchsorted(hashes, np.uint64(1))
    limit = np.searchsorted(hashes, np.uint64(theta))
    hashes = hashes[first:limit]
    keep = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=keep[1:])
    return hashes[keep]


def _damaged(reason: str) -> ValueError:
    return ValueError(f"not a compact Theta sketch: {reason}; compute the statistics again")


def _parse(data: bytes) -> tuple[int, Hashes, bool]:
    if len(data) < 8:
        raise _damaged(f"{len(data)} bytes, expected 8 or more")
    preamble, version, family, _, _, flags, seed_hash = struct.unpack_from("<6BH", data)
    preamble &= 0x3F
    if family != _FAMILY_COMPACT or not 1 <= version <= 4:
        raise _damaged(f"family {family} and serial version {version}, expected family 3 and version 1 to 4")
    is_empty = (version >= 3 and bool(flags & _EMPTY)) or (version == 2 and preamble == 1)
    if is_empty:
        return MAX_THETA, np.zeros(0, np.uint64), True
    if version > 1 and seed_hash != _SEED_HASH:
        raise _damaged(f"seed hash {seed_hash:#06x}, expected {_SEED_HASH:#06x} (seed 9001)")
    if len(data) > _FREE_BYTES and _MOST_RATIO * len(zstandard.ZstdCompressor(1).compress(data)) < len(data):
        raise _damaged(f"{len(data):,} bytes of hashes that repeat one another")
    theta, hashes = _parse_packed(data, preamble) if version == 4 else _parse_plain(data, preamble, version)
    if len(hashes) == 0 and theta == MAX_THETA and version < 3:
        return theta, hashes, True
    return theta, _checked(hashes, theta), False


def _checked(hashes: Hashes, theta: int) -> Hashes:
    hashes = np.sort(hashes)
    if not 0 < theta <= MAX_THETA:
        raise _damaged(f"theta {theta}, expected 1 to 2^63 - 1")
    if len(hashes) and not (int(hashes[0]) > 0 and int(hashes[-1]) < theta):
        raise _damaged("a hash that is zero or not below theta")
    if np.any(hashes[1:] == hashes[:-1]):
        raise _damaged("a hash that is there twice")
    return hashes


def _parse_plain(data: bytes, preamble: int, version: int) -> tuple[int, Hashes]:
    if version == 1:
        preamble = 3
    if preamble == 1:
        return MAX_THETA, _read_hashes(data, 8, 1)
    if preamble not in (2, 3) or len(data) < 8 * preamble:
        raise _damaged(f"{preamble} preamble longs in {len(data)} bytes, expected 1 to 3 and as many bytes")
    (count,) = struct.unpack_from("<I", data, 8)
    theta = struct.unpack_from("<Q", data, 16)[0] if preamble == 3 else MAX_THETA
    return theta, _read_hashes(data, 8 * preamble, count)


def _read_hashes(data: bytes, offset: int, count: int) -> Hashes:
    if len(data) != offset + 8 * count:
        raise _damaged(f"{len(data)} bytes, expected {offset + 8 * count} for {count} hashes")
    return np.frombuffer(data, "<u8", count, offset).astype(np.uint64)


def _parse_packed(data: bytes, preamble: int) -> tuple[int, Hashes]:
    # Serial version 4: the differences of ascending hashes, `width` bits each, most significant bit first.
    width, count_bytes = data[3], data[4]
    offset = 16 if preamble > 1 else 8
    if not _LEAST_BITS <= width <= 63 or not 1 <= count_bytes <= 4 or len(data) < offset + count_bytes:
        expected = f"expected {_LEAST_BITS} to 63 and 1 to 4"
        raise _damaged(f"{width} bits a hash and a count of {count_bytes} bytes, {expected}")
    theta = struct.unpack_from("<Q", data, 8)[0] if preamble > 1 else MAX_THETA
    count = int.from_bytes(data[offset : offset + count_bytes], "little")
    offset += count_bytes
    if len(data) != offset + (count * width + 7) // 8:
        raise _damaged(f"{len(data)} bytes, expected {offset + (count * width + 7) // 8} for {count} hashes")
    packed, steps = np.frombuffer(data, np.uint8, offset=offset), np.zeros(count, np.uint64)
    for start in range(0, count, _UNPACKED_AT_ONCE):
        rows = min(count - start, _UNPACKED_AT_ONCE)
        bits = np.unpackbits(packed[start * width // 8 :][: rows * 8], count=rows * width).reshape(rows, width)
        padded: npt.NDArray[np.uint8] = np.zeros((rows, 64), np.uint8)
        padded[:, 64 - width :] = bits
        steps[start : start + rows] = np.packbits(padded, axis=1).view(">u8").reshape(-1)
    return theta, np.cumsum(steps, dtype=np.uint64)
