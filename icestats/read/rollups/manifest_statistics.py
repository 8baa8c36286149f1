"""Committed manifest statistics: an `icestats-manifest-stats-v1` blob -> the roll-up by manifest.

A manifest never changes once written, so what a blob says of a path and length holds for every snapshot that has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.schemas import MANIFEST_GROUPS, ROLLUP_CELLS
from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import find_width
from icestats.read.avro.avro_file import parse_schema, read_header
from icestats.read.avro.avro_records import read_blocks
from icestats.read.avro.avro_tokens import Octets, Words, expand_ranges
from icestats.read.rollups.manifest_statistics_layout import (
    BOUND_MAPS,
    COLUMNS_KEY,
    COUNTS,
    MISSING_MAPS,
    SUM_MAPS,
    blob_schema,
)
from icestats.read.rollups.manifest_statistics_records import StatisticsRecords
from icestats.stats.rollup_cells import KnownCells, build_known_cells, has_column_statistic

_SCHEMA = json.loads(json.dumps(blob_schema()))
_FOREIGN = -2
"""The place of a column that the blob does not name."""
_MOST_LOOKED_UP = 1 << 16
"""Field ids below are looked up in a table, others are searched."""


class ManifestStatistics:
    """The roll-up by manifest of some manifests, its columns decoded as far as they are asked for.

    Parameters
    ----------
    payload : bytes
        A blob: an Avro container file.
    path : str
        The Puffin file, for messages.

    Raises
    ------
    UnsupportedError
        The blob has other fields or field ids.
    MetadataError
        The blob is cut or damaged, as far as that is seen before its columns are decoded.
    """

    def __init__(self, payload: bytes, path: str) -> None:
        self._path = path
        header = read_header(payload, path)
        if parse_schema(header) != _SCHEMA:
            raise UnsupportedError(
                f"{path}: its manifest statistics have other fields or field ids than this version's"
            )
        self._types = _read_types(header.metadata.get(COLUMNS_KEY, b""), path)
        with _damage_in(path):
            blocks, counts = [], []
            for _, count, block in read_blocks(payload, header):
                blocks.append(block)
                counts.append(count)
            self._records = StatisticsRecords(blocks, counts, len(self._types))
            lengths, content, *numbers = self._records.heads
            if (self._records.heads < 0).any():
                raise ValueError("a length or a count is negative")
            groups = {"manifest_path": _gather(self._records.data, *self._records.paths).cast(pa.string())}
            groups |= {name: pa.array(values) for name, values in zip(COUNTS, numbers, strict=True)}
            self.manifests = pa.table(groups, schema=MANIFEST_GROUPS)
            """`schemas.MANIFEST_GROUPS`."""
        self.manifest_lengths: tuple[int, ...] = tuple(lengths.tolist())
        self._live = np.where(content == 0, numbers[0], 0)

    def build_cells(self, columns: Sequence[Field]) -> pa.Table:
        """Return the cells of `manifests`, `schemas.ROLLUP_CELLS`; sums over a part of a manifest's files are left out.

        Parameters
        ----------
        columns : sequence of Field
            The columns that are wanted.

        Raises
        ------
        UnsupportedError
            The blob was made before a wanted column was added or got its type.
        MetadataError
            What the blob has of these columns is damaged.
        """
        for column in columns:
            if self._types.get(column.field_id) != column.type:
                was = self._types.get(column.field_id)
                before = "was not there yet" if was is None else f"was of type {was}"
                raise UnsupportedError(
                    f"{self._path}: its manifest statistics were made when column {column.name!r} {before}: "
                    "compute them again"
                )
        if not columns:
            return ROLLUP_CELLS.empty_table()
        with _damage_in(self._path):
            return _Cells(self._records, list(self._types), columns).build(self._live)


@contextmanager
def _damage_in(path: str) -> Iterator[None]:
    try:
        yield
    except (IndexError, KeyError, ValueError, EOFError, OverflowError, pa.ArrowException) as error:
        text = " ".join(str(error).split()) or "a value runs past the end"
        raise MetadataError(f"its manifest statistics are damaged: {text}", path) from error


def _read_types(text: bytes, path: str) -> dict[int, str]:
    """Return the type of each stored column."""
    try:
        return {int(field_id): str(kind) for field_id, kind in json.loads(text)}
    except (ValueError, TypeError) as error:
        raise MetadataError(f"its manifest statistics do not say which columns they are of: {error}", path) from error


class _Cells:
    """The cells of all records: every wanted column, for each record in turn."""

    def __init__(self, records: StatisticsRecords, stored: Sequence[int], columns: Sequence[Field]) -> None:
        self._records, self._columns = records, columns
        wanted = {column.field_id: place for place, column in enumerate(columns)}
        self._ids = np.array(sorted(stored), np.int64)
        self._places = np.array([wanted.get(field_id, -1) for field_id in sorted(stored)], np.int64)
        self._table: Words | None = None
        if self._ids.size and self._ids[0] >= 0 and self._ids[-1] < _MOST_LOOKED_UP:
            self._table = np.full(int(self._ids[-1]) + 2, _FOREIGN, np.int64)
            self._table[self._ids] = self._places
        self._size = len(records) * len(columns)

    def build(self, live: Words) -> pa.Table:
        """Build `schemas.ROLLUP_CELLS`, given the number of live data files of each record."""
        values: dict[str, pa.Array] = {}
        missing: dict[str, Words] = {}
        for statistic, name in SUM_MAPS.items():
            numbers, present = self._numbers(name)
            values[statistic] = pa.array(numbers, mask=~present)
        for statistic, name in BOUND_MAPS.items():
            values[statistic] = self._bounds(name)
        for statistic, name in MISSING_MAPS.items():
            applies = np.array([has_column_statistic(column, statistic) for column in self._columns], np.bool_)
            lacking = self._numbers(name)[0]
            missing[statistic] = np.where(np.tile(applies, len(live)), lacking, np.repeat(live, len(self._columns)))
        return build_known_cells(KnownCells(values, missing), self._columns, live)

    def _numbers(self, name: str) -> tuple[Words, npt.NDArray[np.bool_]]:
        records, keys, tokens = self._records.find_numbers(name)
        cells, wanted = self._find(name, records, keys)
        numbers, present = np.zeros(self._size, np.int64), np.zeros(self._size, np.bool_)
        numbers[cells] = self._records.decode_numbers(tokens[wanted])
        present[cells] = True
        return numbers, present

    def _bounds(self, name: str) -> pa.BinaryArray:
        records, keys, starts, lengths = self._records.find_bounds(name)
        cells, wanted = self._find(name, records, keys)
        spread = np.zeros(self._size, np.int64), np.full(self._size, -1, np.int64)
        for target, found in zip(spread, (starts, lengths), strict=True):
            target[cells] = found[wanted]
        widths = np.tile([find_width(column.type) or -1 for column in self._columns], len(self._records))
        if ((spread[1] >= 0) & (widths >= 0) & (spread[1] != widths)).any():
            raise ValueError(f"{name} has a value of another length than its column's type has")
        return _gather(self._records.data, *spread)

    def _find(self, name: str, records: Words, keys: Words) -> tuple[Words, npt.NDArray[np.bool_]]:
        """Return the cells of entries, and which entries are of wanted columns; the cells are of these."""
        if self._table is None:
            order = np.minimum(np.searchsorted(self._ids, keys), len(self._ids) - 1)
            places = np.where(self._ids[order] == keys, self._places[order], _FOREIGN)
        else:
            # Negative keys are beyond all others as unsigned numbers.
            places = self._table[np.minimum(keys.view(np.uint64), np.uint64(len(self._table) - 1))]
        if (places == _FOREIGN).any():
            raise ValueError(f"{name} has a column that it does not say it has")
        wanted = places >= 0
        return (records * len(self._columns) + places)[wanted], wanted


def _gather(data: Octets, starts: Words, lengths: Words) -> pa.BinaryArray:
    """Build an array of values that lie in `data`, null where a length is negative."""
    present = lengths >= 0
    counts = np.where(present, lengths, 0)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    content = data[expand_ranges(starts, counts)]
    buffers = [pa.array(present).buffers()[1], pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(counts), buffers)
