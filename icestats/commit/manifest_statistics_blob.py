"""Roll-ups by manifest -> an `icestats-manifest-stats-v1` blob, and the other way round by `read.manifest_statistics`.

Source: "Add manifest-level statistics to Apache Iceberg for CBO estimation", fields 521 to 527.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.commit.avro_container import write_container
from icestats.commit.puffin_writer import NewBlob
from icestats.metadata import Field, Snapshot
from icestats.read.avro_tokens import encode_tokens
from icestats.read.manifest_statistics_layout import (
    BOUND_MAPS,
    COLUMNS_KEY,
    COUNTS,
    MANIFEST_STATISTICS,
    MISSING_MAPS,
    SUM_MAPS,
    blob_schema,
)
from icestats.read.manifests import RollUps
from icestats.stats.known_cells import find_known_cells, has_column_statistic

_Words = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_DATA = 0


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
    numbers, lengths, parts, record_ends = _Records(manifest_files, rollups, columns).tokens()
    data, ends = encode_tokens(numbers, lengths, parts)
    offsets = [0, *ends[record_ends - 1].tolist()]
    records = [data[start:end] for start, end in pairwise(offsets)]
    described = json.dumps([[column.field_id, column.type] for column in columns])
    return write_container(blob_schema(), records, {COLUMNS_KEY: described})


class _Records:
    """The tokens of all records, record by record."""

    def __init__(self, manifest_files: pa.Table, rollups: RollUps, columns: Sequence[Field]) -> None:
        groups, self._width = rollups.manifests, len(columns)
        self._field_ids = np.array([column.field_id for column in columns], np.int64)
        self._paths = [path.encode() for path in manifest_files["manifest_path"].to_pylist()]
        self._manifest_lengths = manifest_files["manifest_length"].to_pylist()
        self._is_data = [content == "data" for content in manifest_files["content"].to_pylist()]
        self._counts = list(zip(*(groups[name].to_pylist() for name in COUNTS), strict=True))
        known = find_known_cells(rollups.manifest_cells, groups["live_file_count"].to_numpy(), self._width)
        shape = (len(self._paths), self._width)
        self._maps: list[tuple[bool, _Words, _Flags]] = []
        for statistic, name in SUM_MAPS.items():
            applies = np.array([has_column_statistic(column, statistic) for column in columns], np.bool_)
            values = known.values[statistic]
            present = np.asarray(values.is_valid()).reshape(shape) & applies
            self._maps.append((name != "total_value_counts", values.fill_null(0).to_numpy().reshape(shape), present))
        for statistic in MISSING_MAPS:
            applies = np.array([has_column_statistic(column, statistic) for column in columns], np.bool_)
            missing = known.missing[statistic].reshape(shape)
            self._maps.append((False, missing, (missing > 0) & applies))
        self._bounds = [known.values[statistic].to_pylist() for statistic in BOUND_MAPS]

    def tokens(self) -> tuple[_Words, _Words, list[bytes], _Words]:
        numbers: list[_Words] = []
        lengths: list[_Words] = []
        parts: list[bytes] = []
        sizes = np.zeros(len(self._paths), np.int64)
        for record, path in enumerate(self._paths):
            head = [len(path), self._manifest_lengths[record], *self._head(record)]
            pieces = [np.array(head, np.int64)]
            behind = [np.array([len(path)], np.int64), np.zeros(len(head) - 1, np.int64)]
            parts.append(path)
            for optional, values, present in self._maps:
                piece = self._map(record, optional, values[record], present[record])
                pieces.append(piece)
                behind.append(np.zeros(len(piece), np.int64))
            for bounds in self._bounds:
                piece, raw, found = self._bound_map(record, bounds)
                pieces.append(piece)
                behind.append(raw)
                parts += found
            sizes[record] = sum(len(piece) for piece in pieces)
            numbers += pieces
            lengths += behind
        nothing = np.zeros(0, np.int64)
        ends: _Words = np.cumsum(sizes)
        return np.concatenate([nothing, *numbers]), np.concatenate([nothing, *lengths]), parts, ends

    def _head(self, record: int) -> list[int]:
        counts = self._counts[record]
        if not self._is_data[record]:
            return [1, 0, 0, *counts]
        return [_DATA, 1, counts[1], 1, counts[2], *counts]

    def _map(self, record: int, optional: bool, values: _Words, present: _Flags) -> _Words:
        tag = [int(self._is_data[record])] if optional else []
        if optional and not self._is_data[record]:
            return np.array(tag, np.int64)
        chosen = np.flatnonzero(present) if self._is_data[record] else np.zeros(0, np.int64)
        if not chosen.size:
            return np.array([*tag, 0], np.int64)
        out = np.zeros(len(tag) + 2 * len(chosen) + 2, np.int64)
        out[: len(tag)] = tag
        out[len(tag)] = len(chosen)
        out[len(tag) + 1 : -1 : 2] = self._field_ids[chosen]
        out[len(tag) + 2 : -1 : 2] = values[chosen]
        return out

    def _bound_map(self, record: int, bounds: list[bytes | None]) -> tuple[_Words, _Words, list[bytes]]:
        if not self._is_data[record]:
            return np.zeros(1, np.int64), np.zeros(1, np.int64), []
        row = bounds[record * self._width : (record + 1) * self._width]
        chosen = [place for place, bound in enumerate(row) if bound is not None]
        found = [row[place] or b"" for place in chosen]
        if not chosen:
            return np.array([1, 0], np.int64), np.zeros(2, np.int64), []
        numbers = np.zeros(2 * len(chosen) + 3, np.int64)
        numbers[:2] = 1, len(chosen)
        numbers[2:-1:2] = self._field_ids[chosen]
        numbers[3:-1:2] = [len(bound) for bound in found]
        lengths = np.zeros_like(numbers)
        lengths[3:-1:2] = numbers[3:-1:2]
        return numbers, lengths, found
