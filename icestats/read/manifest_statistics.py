"""Committed manifest statistics: an `icestats-manifest-stats-v1` blob -> the roll-up by manifest.

A manifest never changes once written, so what a blob says of a path and length holds for every snapshot that has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.errors import MetadataError, UnsupportedError
from icestats.metadata import Field
from icestats.read.avro_file import parse_schema, read_header, read_long
from icestats.read.avro_records import read_blocks
from icestats.read.avro_tokens import decode_numbers, expand_ranges
from icestats.read.manifest_statistics_layout import (
    BOUND_MAPS,
    COLUMNS_KEY,
    COUNTS,
    MISSING_MAPS,
    SUM_MAPS,
    blob_schema,
)
from icestats.schemas import MANIFEST_GROUPS
from icestats.stats.known_cells import KnownCells, build_known_cells, has_column_statistic

_Words = npt.NDArray[np.int64]
_OPTIONAL = ("total_column_sizes", "total_null_value_counts", "total_nan_value_counts")
_NUMBER_MAPS = (*SUM_MAPS.values(), *MISSING_MAPS.values())
_SCHEMA = json.loads(json.dumps(blob_schema()))


@dataclass(frozen=True, slots=True)
class ManifestStatistics:
    """The roll-up by manifest of some manifests."""

    manifests: pa.Table
    """`schemas.MANIFEST_GROUPS`."""
    manifest_lengths: tuple[int, ...]
    cells: pa.Table
    """`schemas.ROLLUP_CELLS`: the cells of `manifests`; sums over a part of a manifest's files are left out."""


def read_manifest_statistics(payload: bytes, columns: Sequence[Field], path: str) -> ManifestStatistics:
    """Read the payload of a blob.

    Parameters
    ----------
    payload : bytes
        An Avro container file.
    columns : sequence of Field
        The columns that are wanted.
    path : str
        The Puffin file, for messages.

    Raises
    ------
    UnsupportedError
        The blob has other fields or field ids, or was made before a wanted column was added or got its type.
    MetadataError
        The blob is cut or damaged.
    """
    header = read_header(payload, path)
    if parse_schema(header) != _SCHEMA:
        raise UnsupportedError(f"{path}: its manifest statistics have other fields or field ids than this version's")
    places = _find_columns(header.metadata.get(COLUMNS_KEY, b""), columns, path)
    found = _Found(places, columns)
    try:
        for _, count, block in read_blocks(payload, header):
            found.read_block(block, count)
        return found.build()
    except (IndexError, KeyError, ValueError, EOFError, OverflowError, pa.ArrowException) as error:
        text = " ".join(str(error).split()) or "a value runs past the end"
        raise MetadataError(f"its manifest statistics are damaged: {text}", path) from error


def _find_columns(text: bytes, columns: Sequence[Field], path: str) -> Mapping[int, int]:
    """Return the place of each stored column among those that are wanted, -1 for one that is not."""
    try:
        stored = {int(field_id): str(kind) for field_id, kind in json.loads(text)}
    except (ValueError, TypeError) as error:
        raise MetadataError(f"its manifest statistics do not say which columns they are of: {error}", path) from error
    for column in columns:
        if stored.get(column.field_id) != column.type:
            was = stored.get(column.field_id)
            before = "was not there yet" if was is None else f"was of type {was}"
            raise UnsupportedError(
                f"{path}: its manifest statistics were made when column {column.name!r} {before}: compute them again"
            )
    wanted = {column.field_id: place for place, column in enumerate(columns)}
    return {field_id: wanted.get(field_id, -1) for field_id in stored}


class _Found:
    """What has been read of all blocks."""

    def __init__(self, places: Mapping[int, int], columns: Sequence[Field]) -> None:
        self._columns, self._width = columns, len(columns)
        self._ids = np.array(sorted(places), np.int64)
        self._places = np.array([places[field_id] for field_id in sorted(places)], np.int64)
        self._by_id = places
        self._names: list[tuple[str, int]] = []
        self._heads: list[list[int]] = []
        self._cells: dict[str, list[tuple[_Words, _Words]]] = {name: [] for name in _NUMBER_MAPS}
        self._bounds: dict[str, list[bytes | None]] = {name: [] for name in BOUND_MAPS.values()}

    def read_block(self, data: bytes, count: int) -> None:
        """Take in the records of a block."""
        numbers, ends = decode_numbers(data)
        maps: dict[str, list[tuple[int, int, int]]] = {name: [] for name in _NUMBER_MAPS}
        position = 0
        for _ in range(count):
            length, position = read_long(data, position)
            path = data[position : position + length].decode()
            length, position = read_long(data, position + length)
            self._names.append((path, length))
            token = int(np.searchsorted(ends, position))
            token = self._read_numbers(numbers, token, maps)
            position = int(ends[token - 1]) + 1
            for name in BOUND_MAPS.values():
                position = self._read_bounds(data, position, self._bounds[name])
        if position != len(data):
            raise ValueError("bytes are left over behind the last record")
        for name, found in maps.items():
            self._keep(name, numbers, np.array(found, np.int64).reshape(-1, 3))

    def _read_numbers(self, numbers: _Words, token: int, maps: dict[str, list[tuple[int, int, int]]]) -> int:
        """Read a record's numbers behind its length, up to its bounds; return the token of these."""
        head = [int(numbers[token])]
        token += 1
        for _ in range(2):
            token += 1 + int(numbers[token])
        head += numbers[token : token + len(COUNTS)].tolist()
        token += len(COUNTS)
        for name in _NUMBER_MAPS:
            if name in _OPTIONAL:
                token += 1
                if numbers[token - 1] == 0:
                    continue
            size = int(numbers[token])
            if size:
                maps[name].append((len(self._heads), token + 1, size))
                token += 2 * size + 1
                if size < 0 or numbers[token] != 0:
                    raise ValueError(f"{name} is not one block of entries")
            token += 1
        self._heads.append(head)
        return token

    def _read_bounds(self, data: bytes, position: int, out: list[bytes | None]) -> int:
        row: list[bytes | None] = [None] * (self._width + 1)
        tag, position = read_long(data, position)
        size, position = read_long(data, position) if tag else (0, position)
        for _ in range(size):
            key, length = data[position], data[position + 1]
            if key < 0x80 and length < 0x80:
                position += 2
                key, length = key >> 1, length >> 1
            else:
                key, position = read_long(data, position)
                length, position = read_long(data, position)
            end = position + length
            row[self._by_id[key]] = data[position:end]
            position = end
        if size:
            size, position = read_long(data, position)
        if size or position > len(data):
            raise ValueError("a map of bounds is not one block of entries")
        out += row[: self._width]
        return position

    def _keep(self, name: str, numbers: _Words, found: _Words) -> None:
        records, starts, sizes = found.T
        pairs = np.repeat(starts, sizes) + 2 * expand_ranges(np.zeros_like(sizes), sizes)
        keys = numbers[pairs]
        order = np.minimum(np.searchsorted(self._ids, keys), len(self._ids) - 1)
        if keys.size and (self._ids[order] != keys).any():
            raise ValueError(f"{name} has a column that it does not say it has")
        places = self._places[order]
        wanted = places >= 0
        cells = np.repeat(records, sizes) * self._width + places
        self._cells[name].append((cells[wanted], numbers[pairs + 1][wanted]))

    def build(self) -> ManifestStatistics:
        """Build the roll-up of all records."""
        heads = np.array(self._heads, np.int64).reshape(len(self._heads), 1 + len(COUNTS))
        if (heads < 0).any():
            raise ValueError("a count is negative")
        columns = {"manifest_path": pa.array([path for path, _ in self._names], pa.string())}
        columns |= {name: pa.array(heads[:, 1 + i]) for i, name in enumerate(COUNTS)}
        live = np.where(heads[:, 0] == 0, heads[:, 1], 0)
        size = len(live) * self._width
        values: dict[str, pa.Array] = {}
        missing: dict[str, _Words] = {}
        for statistic, name in SUM_MAPS.items():
            numbers, absent = self._spread(name, size)
            values[statistic] = pa.array(numbers, mask=absent)
        for statistic, name in BOUND_MAPS.items():
            values[statistic] = pa.array(self._bounds[name], pa.binary())
        for statistic, name in MISSING_MAPS.items():
            applies = np.array([has_column_statistic(column, statistic) for column in self._columns], np.bool_)
            lacking = self._spread(name, size)[0]
            missing[statistic] = np.where(np.tile(applies, len(live)), lacking, np.repeat(live, self._width))
        cells = build_known_cells(KnownCells(values, missing), self._columns, live)
        return ManifestStatistics(pa.table(columns, schema=MANIFEST_GROUPS), tuple(n for _, n in self._names), cells)

    def _spread(self, name: str, size: int) -> tuple[_Words, npt.NDArray[np.bool_]]:
        numbers, absent = np.zeros(size, np.int64), np.ones(size, np.bool_)
        for cells, found in self._cells[name]:
            numbers[cells] = found
            absent[cells] = False
        return numbers, absent
