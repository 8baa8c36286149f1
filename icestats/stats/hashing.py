"""The hashes in Iceberg's Theta sketches and in Hive's bit vectors, for a whole Arrow batch at a time.

Source: Iceberg's Puffin spec, "apache-datasketches-theta-v1"; Iceberg spec, "Appendix D: Single-value serialization";
MurmurHash3 x64 128 (Austin Appleby, public domain); Hive 4 `Murmur3.hash64`, `GenericUDAFComputeBitVectorBase`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.arrays import to_doubles
from icestats.iceberg.types import parse_type
from icestats.stats import column_values as values

_SEED = 9001
"""The default seed of DataSketches, and the only one that Iceberg uses."""

_HIVE_SEED = 104_729
_MASK = (1 << 64) - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F
_FINAL_1 = 0xFF51AFD7ED558CCD
_FINAL_2 = 0xC4CEB9FE1A85EC53
_CHUNK = 16_384
_FEW = 24
_DTYPES = {"boolean": np.uint8, "int": np.int32, "date": np.int32, "float": np.int32}
EMPTY_HASH = np.uint64(2)
"""Of an empty string or binary where each value needs a hash: Theta leaves these out."""
NULL_HASH = np.uint64(1)
"""Of null, where it is a value like others."""

Hashes = npt.NDArray[np.uint64]


def hash_values(array: pa.Array, type_text: str) -> Hashes:
    """Return the 63-bit Theta hash of each non-null value: MurmurHash3 of its single-value bytes, shifted right by one.

    Parameters
    ----------
    array : pyarrow.Array
        The values of a top-level column, in any Arrow form of the Iceberg type: sliced, dictionary-encoded, narrower
        integers, other time units.
    type_text : str
        The Iceberg type.

    Returns
    -------
    numpy.ndarray of uint64
        One hash per value, in order. Nulls have no hash, nor have empty strings and binaries: DataSketches ignores
        them.

    Raises
    ------
    ValueError
        The array cannot be read as that type.

    Notes
    -----
    The hashes are bit for bit those of Iceberg's Spark procedure `compute_table_stats`, quirks included:

    - A uuid is hashed as its text of 36 characters, not as its 16 bytes, because Spark has no uuid type.
    - A floating point number is hashed by its raw bits: 0.0 and -0.0 are two values, and so are two NaN with different
      bits. (DataSketches' own `update(double)` would unite them; Iceberg passes it bytes.)
    - A decimal is hashed as the shortest big-endian two's complement of its unscaled value.

    Examples
    --------
    >>> hash_values(pa.array([5]), "long").tolist() == hash_values(pa.array([5], pa.int32()), "long").tolist()
    True
    >>> len(hash_values(pa.array(["a", "", None]), "string"))
    1
    """
    return hash_dense(values.dense_values(array, type_text), type_text)


def hash_dense(dense: pa.Array, type_text: str) -> Hashes:
    """Return the hashes of `hash_values`, for values from `column_values.dense_values`."""
    kind = parse_type(type_text)
    if kind.name in ("string", "binary", "fixed"):
        return _hash_ranges(*values.byte_ranges(dense))
    if len(dense) == 0:
        return np.zeros(0, np.uint64)
    if kind.name == "uuid":
        return _hash_rows(values.uuid_texts(dense))
    if kind.name == "decimal":
        return _hash_decimals(values.unscaled_words(dense))
    return hash_words(values.fixed_words(dense), type_text)


def hash_words(words: npt.NDArray[Any], type_text: str) -> Hashes:
    """Return the hashes of `hash_values`, for values of a type that has at most 8 bytes.

    Parameters
    ----------
    words : numpy.ndarray
        Of the type's own width: numbers, or their bits; unscaled decimals as `int64`.
    type_text : str
        The Iceberg type.
    """
    name = parse_type(type_text).name
    if name == "decimal":
        return _hash_decimals(np.stack([words, words >> 63], axis=1))
    if name == "boolean":
        both = _hash_words(np.array([0, 1], np.uint64), 1)
        return np.take(both, words)
    unsigned: npt.NDArray[Any] = words.view(np.uint32 if words.itemsize == 4 else np.uint64)
    return _hash_words(unsigned, words.itemsize)


def hash_all(dense: pa.Array, type_text: str) -> Hashes:
    """Return a hash for each dense value: that of `hash_values`, `EMPTY_HASH` for an empty string."""
    hashes = hash_dense(dense, type_text)
    if len(hashes) == len(dense):
        return hashes
    every = np.full(len(dense), EMPTY_HASH)
    every[np.diff(values.byte_ranges(dense)[1]) > 0] = hashes
    return every


def hash_keys(keys: pa.Array, type_text: str) -> Hashes:
    """Return Theta's hashes of values as a sketch keeps them (`frequent_items.to_key`)."""
    if pa.types.is_integer(keys.type):
        return hash_words(keys.to_numpy(zero_copy_only=False).astype(_DTYPES.get(type_text, np.int64)), type_text)
    if type_text == "uuid":
        return hash_dense(keys.cast(pa.binary()).cast(pa.binary(16)), "uuid")
    # A decimal is hashed as its single-value bytes.
    return hash_all(keys, "binary")


def hash_for_hive(dense: pa.Array, type_text: str) -> Hashes:
    """Return the hashes that Hive's HyperLogLog takes in, for values from `column_values.dense_values`.

    Hive takes whole numbers, days and seconds as 64-bit integers, other numbers as doubles, and strings as UTF-8.

    Examples
    --------
    >>> [hex(h) for h in hash_for_hive(pa.array([5]), "long").tolist()]
    ['0x678a0afe9c7c6e47']
    """
    kind = parse_type(type_text)
    if kind.name == "string":
        return _hash_ranges_for_hive(*values.byte_ranges(dense))
    if kind.name in ("float", "double", "decimal"):
        numbers = to_doubles(dense).to_numpy(zero_copy_only=False)
        words = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    else:
        words = values.fixed_words(dense).astype(np.int64)
    if kind.is_timestamp:
        words = words // (10**9 if kind.name.endswith("_ns") else 10**6)
    hashes = np.full(len(words), _HIVE_SEED, np.uint64)
    _absorb_for_hive(hashes, words.view(np.uint64).byteswap())
    return _finish_for_hive(hashes, np.uint64(8))


def _hash_ranges_for_hive(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Hashes:
    order = np.argsort(-np.diff(offsets), kind="stable")
    starts, lengths = offsets[:-1][order], np.diff(offsets)[order]
    hashes, words = np.full(len(order), _HIVE_SEED, np.uint64), _unaligned_words(data)
    counts = lengths >> 3
    for block in range(int(counts.max(initial=0))):
        active = int(np.count_nonzero(counts > block))
        _absorb_for_hive(hashes[:active], words[starts[:active] + (block << 3)])
    tails = _cut(words[starts + (lengths & ~7)], lengths & 7)
    _mix(tails, np.empty_like(tails), _C1, 31, _C2)
    hashes ^= tails
    return _finish_for_hive(hashes, lengths.astype(np.uint64))


def _absorb_for_hive(hashes: Hashes, words: Hashes) -> None:
    spare = np.empty_like(hashes)
    _mix(words, spare, _C1, 31, _C2)
    hashes ^= words
    _rotate(hashes, 27, spare)
    hashes *= np.uint64(5)
    hashes += np.uint64(0x52DCE729)


def _finish_for_hive(hashes: Hashes, lengths: Hashes | np.uint64) -> Hashes:
    hashes ^= lengths
    _avalanche(hashes, np.empty_like(hashes))
    return hashes


def _hash_words(words: npt.NDArray[Any], length: int | npt.NDArray[np.int64]) -> Hashes:
    # A value of at most 8 bytes has no block of 16, only a tail, which changes the first half.
    hashes = np.empty(len(words), np.uint64)
    for start in range(0, len(words), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        first = words[chunk].astype(np.uint64)
        spare = np.empty_like(first)
        second = np.full_like(first, _SEED)
        second ^= np.uint64(length) if isinstance(length, int) else length[chunk].astype(np.uint64)
        _mix(first, spare, _C1, 31, _C2)
        first ^= second
        hashes[chunk] = _finish(first, second, spare)
    return hashes


def _rotate(words: Hashes, count: int, spare: Hashes) -> None:
    np.right_shift(words, np.uint64(64 - count), out=spare)
    words <<= np.uint64(count)
    words |= spare


def _mix(words: Hashes, spare: Hashes, before: int, count: int, after: int) -> None:
    words *= np.uint64(before)
    _rotate(words, count, spare)
    words *= np.uint64(after)


def _avalanche(words: Hashes, spare: Hashes) -> None:
    for factor in (_FINAL_1, _FINAL_2):
        np.right_shift(words, np.uint64(33), out=spare)
        words ^= spare
        words *= np.uint64(factor)
    np.right_shift(words, np.uint64(33), out=spare)
    words ^= spare


def _finish(first: Hashes, second: Hashes, spare: Hashes) -> Hashes:
    # The length is in both halves already.
    first += second
    second += first
    _avalanche(first, spare)
    _avalanche(second, spare)
    first += second
    first >>= np.uint64(1)
    return first


def _hash_rows(rows: npt.NDArray[np.uint8]) -> Hashes:
    # Rows are ranges of the same length.
    offsets = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    return _hash_ranges(np.ascontiguousarray(rows).reshape(-1), offsets)


def _hash_decimals(words: npt.NDArray[np.int64]) -> Hashes:
    low, high = words[:, 0], words[:, 1]
    lengths = _byte_lengths(low)
    # The shortest big-endian bytes: move the value's own bytes to the top of a word, then reverse the word.
    pushed = np.ascontiguousarray(low).view(np.uint64) << (64 - 8 * lengths).astype(np.uint64)
    hashes = _hash_words(pushed.byteswap(), lengths)
    wide = np.flatnonzero(high != low >> 63)
    if len(wide):
        hashes[wide] = _hash_wide_decimals(words[wide])
    return hashes


def _hash_wide_decimals(words: npt.NDArray[np.int64]) -> Hashes:
    lengths = 8 + _byte_lengths(words[:, 1])
    # A high word of 0 or -1 still needs one byte here, because the top bit of the low word has the other sign.
    big_endian = words[:, ::-1].astype(">i8").view(np.uint8).reshape(-1, 16)
    hashes = np.empty(len(words), np.uint64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        hashes[rows] = _hash_rows(big_endian[rows, 16 - length :])
    return hashes


def _byte_lengths(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    # The length of the shortest two's complement.
    magnitudes = numbers ^ (numbers >> 63)
    lengths = np.ones(len(numbers), np.int64)
    for bits in range(7, 63, 8):
        lengths += magnitudes >= 1 << bits
    return lengths


def _hash_ranges(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Hashes:
    lengths = np.diff(offsets)
    starts = offsets[:-1]
    filled = lengths > 0
    if not filled.all():
        lengths, starts = lengths[filled], starts[filled]
    if len(lengths) == 0:
        return np.zeros(0, np.uint64)
    # Ranges with the most blocks of 16 bytes come first. For every n, those that have a block n are then a prefix.
    blocks = lengths >> 4
    most = int(blocks.max())
    order = np.argsort((most - blocks).astype(np.uint16) if most < 1 << 16 else most - blocks, kind="stable")
    hashes = np.empty(len(lengths), np.uint64)
    words = _unaligned_words(data)
    for begin in range(0, len(order), _CHUNK):
        rows = order[begin : begin + _CHUNK]
        hashes[rows] = _hash_sorted(data, words, starts[rows], lengths[rows])
    return hashes


def _unaligned_words(data: npt.NDArray[np.uint8]) -> Hashes:
    # The 8 bytes from each byte on, little endian. The padding keeps reads past the end inside the buffer.
    padded = np.concatenate([data, np.zeros(16, np.uint8)])
    return np.lib.stride_tricks.as_strided(padded.view(np.uint8)[:8].view("<u8"), (len(data) + 9,), (1,))


def _hash_sorted(
    data: npt.NDArray[np.uint8], words: Hashes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Hashes:
    first = np.full(len(starts), _SEED, np.uint64)
    second = first.copy()
    counts = lengths >> 4
    block = 0
    active = int(np.count_nonzero(counts))
    while active >= _FEW or (active > 0 and block < 64):
        _absorb(words, starts[:active] + (block << 4), first[:active], second[:active])
        block += 1
        active = int(np.count_nonzero(counts[:active] > block))
    for row in range(active):
        place = int(starts[row])
        body = data[place + (block << 4) : place + (int(counts[row]) << 4)]
        first[row], second[row] = _absorb_one(body, int(first[row]), int(second[row]))
    return _absorb_tail(words, starts, lengths, first, second)


def _absorb(words: Hashes, places: npt.NDArray[np.int64], first: Hashes, second: Hashes) -> None:
    spare = np.empty_like(first)
    block = words[places]
    _mix(block, spare, _C1, 31, _C2)
    first ^= block
    _rotate(first, 27, spare)
    first += second
    first *= np.uint64(5)
    first += np.uint64(0x52DCE729)
    block = words[places + 8]
    _mix(block, spare, _C2, 33, _C1)
    second ^= block
    _rotate(second, 31, spare)
    second += first
    second *= np.uint64(5)
    second += np.uint64(0x38495AB5)


def _absorb_one(body: npt.NDArray[np.uint8], first: int, second: int) -> tuple[int, int]:
    # For a few long values: mix all blocks of a value at once, then chain them in Python.
    pairs = body.copy().view("<u8").astype(np.uint64).reshape(-1, 2)
    left, right = pairs[:, 0].copy(), pairs[:, 1].copy()
    spare = np.empty_like(left)
    _mix(left, spare, _C1, 31, _C2)
    _mix(right, spare, _C2, 33, _C1)
    for one, two in zip(left.tolist(), right.tolist(), strict=True):
        first ^= one
        first = ((first << 27 | first >> 37) + second) * 5 + 0x52DCE729 & _MASK
        second ^= two
        second = ((second << 31 | second >> 33) + first) * 5 + 0x38495AB5 & _MASK
    return first, second


def _absorb_tail(
    words: Hashes,
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    first: Hashes,
    second: Hashes,
) -> Hashes:
    spare = np.empty_like(first)
    places = starts + (lengths & ~15)
    tails = lengths & 15
    last = _cut(words[places + 8], tails - 8)
    _mix(last, spare, _C2, 33, _C1)
    second ^= last
    last = _cut(words[places], tails)
    _mix(last, spare, _C1, 31, _C2)
    first ^= last
    unsigned = lengths.astype(np.uint64)
    first ^= unsigned
    second ^= unsigned
    return _finish(first, second, spare)


def _cut(words: Hashes, kept_bytes: npt.NDArray[np.int64]) -> Hashes:
    # Bytes beyond the value become zero. A word of zeros mixes to zero, as if it were not there.
    bits = (np.clip(kept_bytes, 0, 8) << 3).astype(np.uint64)
    kept = np.where(bits == 64, np.uint64(_MASK), (np.uint64(1) << (bits & np.uint64(63))) - np.uint64(1))
    words &= kept
    return words
