"""The records of an `icestats-manifest-stats-v1` blob: the first of each block at once, then the second of each, ...

The kit's own blobs have few records a block, so that many are decoded in step, field by field.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from icestats.read.avro.avro_tokens import LONGEST, Words, decode_numbers, expand_ranges
from icestats.read.rollups.manifest_statistics_layout import BOUND_MAPS, COUNTS, NUMBER_MAPS, OPTIONAL_MAPS

# More than the numbers that are read at most before their place is checked.
_PADDING = bytes(8 * LONGEST)
_SHORTEST_END = 0x80


class StatisticsRecords:
    """The records of a blob.

    Parameters
    ----------
    blocks : sequence of bytes
        The bytes of each block.
    counts : sequence of int
        The number of records of each.
    most_entries : int
        How many entries a map may have.

    Raises
    ------
    ValueError, IndexError, EOFError, OverflowError
        A block is damaged.
    """

    def __init__(self, blocks: Sequence[bytes], counts: Sequence[int], most_entries: int) -> None:
        record_counts, sizes = np.array(counts, np.int64), np.array([len(block) for block in blocks], np.int64)
        if (record_counts > sizes).any():
            raise ValueError("a block has more records than bytes")
        self._most_entries = most_entries
        self.data = np.frombuffer(b"".join([*blocks, _PADDING]), np.uint8)
        self._ends = np.flatnonzero(self.data < _SHORTEST_END)
        self.paths = np.zeros((2, int(record_counts.sum())), np.int64)
        """Where the path of each record begins in `data`, and its length."""
        self.heads = np.zeros((2 + len(COUNTS), self.paths.shape[1]), np.int64)
        """The manifest's length, its content, and its counts, in each record."""
        self._numbers: dict[str, list[Words]] = {name: [] for name in NUMBER_MAPS}
        self._bounds: dict[str, list[tuple[Words, ...]]] = {name: [] for name in BOUND_MAPS.values()}
        self._read(record_counts, sizes)

    def __len__(self) -> int:
        return self.paths.shape[1]

    def find_numbers(self, name: str) -> tuple[Words, Words, Words]:
        """Return the entries of a map of numbers: their records, their keys, and for `decode_numbers` their values."""
        records, tokens, sizes = np.concatenate([np.zeros((3, 0), np.int64), *self._numbers[name]], axis=1)
        keys = np.repeat(tokens, sizes) + 2 * expand_ranges(np.zeros_like(sizes), sizes)
        return np.repeat(records, sizes), self.decode_numbers(keys), keys + 1

    def decode_numbers(self, tokens: Words) -> Words:
        """Return the numbers of tokens, which are counted from the beginning of `data`."""
        return decode_numbers(self.data, self._ends[tokens - 1] + 1)[0]

    def find_bounds(self, name: str) -> tuple[Words, Words, Words, Words]:
        """Return the entries of a map of bounds: their records, keys, where they begin in `data` and their lengths."""
        found = [np.stack(entries) for entries in self._bounds[name]]
        records, keys, starts, lengths = np.concatenate([np.zeros((4, 0), np.int64), *found], axis=1)
        return records, keys, starts, lengths

    def _read(self, counts: Words, sizes: Words) -> None:
        ends = np.cumsum(sizes)
        at = ends - sizes
        first = np.cumsum(counts) - counts
        for number in range(int(counts.max(initial=0))):
            chosen = np.flatnonzero(counts > number)
            at[chosen] = self._read_records(first[chosen] + number, at[chosen], ends[chosen])
        if (at != ends).any():
            raise ValueError("bytes are left over behind the last record")

    def _read_records(self, records: Words, at: Words, ends: Words) -> Words:
        """Read a record of each block; return where it ends."""
        length, at = decode_numbers(self.data, at)
        _check_lengths(length, ends - at)
        self.paths[:, records] = at, length
        self.heads[0, records], at = decode_numbers(self.data, at + length)
        token = self._read_numbers(records, np.searchsorted(self._ends, at))
        at = self._ends[token - 1] + 1
        for name in BOUND_MAPS.values():
            at = self._read_bounds(name, records, at, ends)
        if (at > ends).any():
            raise ValueError("a record runs past the end of its block")
        return at

    def _read_numbers(self, records: Words, token: Words) -> Words:
        """Read a record's numbers behind the manifest's length, up to its bounds; return the token of these."""
        self.heads[1, records] = self.decode_numbers(token)
        token = token + 1
        for _ in range(2):
            token = token + 1 + _check_branches(self.decode_numbers(token))
        self.heads[2:, records] = self.decode_numbers(token + np.arange(len(COUNTS))[:, None])
        token = token + len(COUNTS)
        for name in NUMBER_MAPS:
            written = np.ones_like(token)
            if name in OPTIONAL_MAPS:
                written = _check_branches(self.decode_numbers(token))
                token = token + 1
            size = self._check_sizes(name, np.where(written > 0, self.decode_numbers(token), 0))
            filled = np.flatnonzero(size)
            self._numbers[name].append(np.stack([records[filled], token[filled] + 1, size[filled]]))
            token = token + written + np.where(size > 0, 2 * size + 1, 0)
            _check_ends(name, self.decode_numbers(token[filled] - 1))
        return token

    def _read_bounds(self, name: str, records: Words, at: Words, ends: Words) -> Words:
        written, at = decode_numbers(self.data, at)
        written = np.flatnonzero(_check_branches(written))
        size = np.zeros_like(at)
        size[written], at[written] = decode_numbers(self.data, at[written])
        self._check_sizes(name, size)
        for number in range(int(size.max(initial=0))):
            chosen = np.flatnonzero(size > number)
            key, start = decode_numbers(self.data, at[chosen])
            length, start = decode_numbers(self.data, start)
            _check_lengths(length, ends[chosen] - start)
            self._bounds[name].append((records[chosen], key, start, length))
            at[chosen] = start + length
        filled = np.flatnonzero(size)
        last, at[filled] = decode_numbers(self.data, at[filled])
        _check_ends(name, last)
        return at

    def _check_sizes(self, name: str, size: Words) -> Words:
        if ((size < 0) | (size > self._most_entries)).any():
            raise ValueError(f"{name} has {int(size.max())} entries in one block, expected 0 to {self._most_entries}")
        return size


def _check_lengths(length: Words, room: Words) -> None:
    if ((length < 0) | (length > room)).any():
        raise ValueError("a value runs past the end")


def _check_branches(branch: Words) -> Words:
    if ((branch < 0) | (branch > 1)).any():
        raise ValueError("a union has another branch than null and its value")
    return branch


def _check_ends(name: str, count: npt.NDArray[np.int64]) -> None:
    if count.any():
        raise ValueError(f"{name} is not one block of entries")
