"""Roll-ups by manifest -> an `icestats-manifest-stats-v1` blob, and the other way round by `read.manifest_statistics`.

Source: "Add manifest-level statistics to Apache Iceberg for CBO estimation", fields 521 to 527.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.commit.avro_container import write_container
from icestats.commit.puffin_writer import NewBlob
from icestats.iceberg.metadata import Field, Snapshot
from icestats.read.avro.avro_tokens import Octets, encode_tokens
from icestats.read.manifests.manifests import RollUps
from icestats.read.rollups.manifest_statistics_layout import (
    BOUND_MAPS,
    COLUMNS_KEY,
    COUNTS,
    MANIFEST_STATISTICS,
    MISSING_MAPS,
    OPTIONAL_MAPS,
    SUM_MAPS,
    blob_schema,
)
from icestats.stats.rollup_cells import find_known_cells, has_column_statistic

_Words = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
RECORDS_A_BLOCK = 4
"""A reader finds where each block begins without decoding what is before it, and decodes all blocks in step."""
_RECORDS_AT_ONCE = 128
"""Arrays of so many manifests stay in the processor's cache, and their memory is used again for the next."""
# Tokens before the counts: path, length, content, and the proposal's two totals, which manifests of deletes have not.
_DATA_HEAD, _DELETES_HEAD = 7, 5


def build_manifest_statistics_blob(
    snapshot: Snapshot, manifest_files: pa.Table, rollups: RollUps, columns: Sequence[Field]
) -> NewBlob:
    """Build the blob of a snapshot's manifests.

    Parameters
    ----------
    snapshot : Snapshot
        What the blob is registered for. What it says of a manifest holds for every snapshot that has it.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    rollups : RollUps
        The roll-up by manifest of these, in their order.
    columns : sequence of Field
        The columns of its cells.
    """
    payload = write_manifest_statistics(manifest_files, rollups, columns)
    properties = {"manifest-count": str(len(manifest_files)), "column-count": str(len(columns))}
    return NewBlob(MANIFEST_STATISTICS, (), snapshot.snapshot_id, snapshot.sequence_number, payload, properties)


def write_manifest_statistics(manifest_files: pa.Table, rollups: RollUps, columns: Sequence[Field]) -> bytes:
    """Return the blob's payload: an Avro container file, not compressed, since the Puffin file compresses it.

    Notes
    -----
    A statistic that one live file of a manifest lacks is in none of the proposal's maps, and the number of files that
    lack it is in a map of the kit's own. Manifests of deletes have counts of files only.
    """
    width = len(columns)
    records: list[memoryview] = []
    for first in range(0, len(manifest_files), _RECORDS_AT_ONCE):
        files, groups = (table.slice(first, _RECORDS_AT_ONCE) for table in (manifest_files, rollups.manifests))
        cells = rollups.manifest_cells.slice(first * width, _RECORDS_AT_ONCE * width)
        records += _Records(files, groups, cells, columns).encode()
    described = json.dumps([[column.field_id, column.type] for column in columns])
    return write_container(blob_schema(), records, {COLUMNS_KEY: described}, records_a_block=RECORDS_A_BLOCK)


class _Records:
    """Some records, field by field: the tokens of each are counted, and then put where they belong."""

    def __init__(self, manifest_files: pa.Table, groups: pa.Table, cells: pa.Table, columns: Sequence[Field]) -> None:
        self._width = len(columns)
        self._field_ids = np.array([column.field_id for column in columns], np.int64)
        self._manifest_lengths = manifest_files["manifest_length"].to_numpy()
        self._is_data = np.asarray(pc.equal(manifest_files["content"], "data"), np.bool_)
        self._counts = np.stack([groups[name].to_numpy() for name in COUNTS], axis=1)
        known = find_known_cells(cells, groups["live_file_count"].to_numpy(), self._width)
        self._maps: list[_Map] = []
        for statistic, name in SUM_MAPS.items():
            values = known.values[statistic]
            present = self._flags(values.is_valid(), columns, statistic)
            self._maps.append(_Map(present, values.fill_null(0).to_numpy(), optional=name in OPTIONAL_MAPS))
        for statistic in MISSING_MAPS:
            missing = known.missing[statistic]
            self._maps.append(_Map(self._flags(missing > 0, columns, statistic), missing))
        pool: list[Octets] = []
        paths, path_offsets = _binary(manifest_files["manifest_path"].cast(pa.binary()).combine_chunks())
        self._path_lengths, self._path_places = np.diff(path_offsets), path_offsets[:-1]
        pool.append(paths)
        for statistic in BOUND_MAPS:
            values = known.values[statistic]
            bounds, offsets = _binary(values)
            places = offsets[:-1] + sum(map(len, pool))
            present = self._flags(values.is_valid(), columns, statistic)
            self._maps.append(_Map(present, np.diff(offsets), optional=True, places=places))
            pool.append(bounds)
        self._pool = np.concatenate(pool)

    def _flags(self, cells: object, columns: Sequence[Field], statistic: str) -> _Flags:
        applies = np.array([has_column_statistic(column, statistic) for column in columns], np.bool_)
        return np.asarray(cells, np.bool_).reshape(len(self._is_data), self._width) & applies & self._is_data[:, None]

    def encode(self) -> list[memoryview]:
        """Return the records."""
        head_sizes = np.where(self._is_data, _DATA_HEAD, _DELETES_HEAD) + len(COUNTS)
        sizes = np.stack([head_sizes, *(one.count_tokens(self._is_data) for one in self._maps)], axis=1)
        starts = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        tokens = _Tokens(*(np.zeros(int(sizes.sum()), np.int64) for _ in range(3)))
        self._fill_heads(tokens, starts[:, 0])
        for number, one in enumerate(self._maps, 1):
            one.fill(tokens, starts[:, number], self._is_data, self._field_ids)
        data, ends = encode_tokens(*tokens, self._pool)
        offsets = [0, *ends[np.cumsum(sizes.sum(axis=1)) - 1].tolist()]
        return [data.data[start:end] for start, end in pairwise(offsets)]

    def _fill_heads(self, tokens: _Tokens, at: _Words) -> None:
        tokens.numbers[at] = tokens.lengths[at] = self._path_lengths
        tokens.places[at] = self._path_places
        tokens.numbers[at + 1] = self._manifest_lengths
        tokens.numbers[at + 2] = ~self._is_data
        # The proposal's two totals: a branch of the union and, for data, the number.
        data = at[self._is_data]
        for place, column in ((3, 1), (5, 2)):
            tokens.numbers[data + place] = 1
            tokens.numbers[data + place + 1] = self._counts[self._is_data, column]
        behind = at + np.where(self._is_data, _DATA_HEAD, _DELETES_HEAD)
        for column in range(len(COUNTS)):
            tokens.numbers[behind + column] = self._counts[:, column]


class _Tokens(NamedTuple):
    """The tokens of all records, as `encode_tokens` takes them."""

    numbers: _Words
    lengths: _Words
    places: _Words


class _Map:
    """One map of all records."""

    def __init__(
        self, present: _Flags, values: _Words, *, optional: bool = False, places: _Words | None = None
    ) -> None:
        self._records, columns = np.nonzero(present)
        self._columns = columns
        cells = self._records * present.shape[1] + columns
        self._values = values[cells]
        self._places = None if places is None else places[cells]
        self._sizes = np.bincount(self._records, minlength=len(present)).astype(np.int64)
        self._optional = optional

    def count_tokens(self, is_data: _Flags) -> _Words:
        """Return how many tokens the map has in each record."""
        # A branch of the union; a number of entries, which are two tokens each; and 0 behind the last.
        counted = 1 + is_data.astype(np.int64) if self._optional else np.ones(len(is_data), np.int64)
        return counted + np.where(self._sizes > 0, 2 * self._sizes + 1, 0)

    def fill(self, tokens: _Tokens, at: _Words, is_data: _Flags, field_ids: _Words) -> None:
        """Put the map's tokens, from `at` on, where they belong; what is 0 is there already."""
        if self._optional:
            tokens.numbers[at] = is_data
            at = at + 1
        filled = self._sizes > 0
        tokens.numbers[at[filled]] = self._sizes[filled]
        before = np.cumsum(self._sizes) - self._sizes
        entries = np.arange(len(self._records)) - before[self._records]
        keys = at[self._records] + 1 + 2 * entries
        tokens.numbers[keys] = field_ids[self._columns]
        tokens.numbers[keys + 1] = self._values
        if self._places is not None:
            tokens.lengths[keys + 1] = self._values
            tokens.places[keys + 1] = self._places


def _binary(values: pa.BinaryArray) -> tuple[Octets, _Words]:
    """Return the bytes of binary values, and where in them each begins, and the last ends."""
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return np.zeros(0, np.uint8), np.zeros(len(values) + 1, np.int64)
    places = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)
    return np.frombuffer(data, np.uint8)[places[0] : places[-1]], places - places[0]
