"""The payload of an `icestats-manifest-stats-v1` blob: the roll-up by manifest as Parquet, one row a manifest.

Totals have the names and ids of the manifest-level statistics proposal, statistics of columns are `content_stats` of
format version 4. Ids of the proposal collide with others of version 4: fields go by name and id together.

    500, 501, 517     manifest_path, manifest_length, content: as in the manifest list
    521, 522          total_record_count, total_file_size_in_bytes: long, of live data files; null for deletes
    O + 0             live_file_count: long; O is 1,500,000,000
    O + 1 to 3        position_delete_file_count, equality_delete_file_count, dv_count: long
    O + 4, O + 5      delete_record_count, delete_file_size_in_bytes: long, of live delete files; null for data
    146               content_stats: null for deletes

A manifest never changes once written, so what a blob says of a path and length holds for every snapshot that has it.
The Puffin file compresses the blob and keeps a checksum of it. Source: "Add manifest-level statistics to Apache Iceberg
for CBO estimation".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import MANIFEST_GROUPS, ROLLUP_CELLS
from icestats.errors import UnsupportedError
from icestats.iceberg.metadata import Field
from icestats.read.manifests.manifests import RollUps
from icestats.read.parquet.parquet_footer import MAX_FOOTER_SIZE_BYTES
from icestats.read.rollups.content_stats import (
    CONTENT_STATS,
    content_stats_id,
    content_stats_paths,
    decode_content_stats,
    encode_content_stats,
)
from icestats.read.rollups.stored_table import (
    OWN_FIELDS,
    arrays_by_id,
    damage_in,
    describe_columns,
    field_id_of,
    open_parquet,
    read_column_types,
    read_parquet,
    stored_field,
    write_parquet,
)
from icestats.stats.rollup_cells import build_known_cells, find_known_cells

MOST_ROWS_A_MANIFEST = 100
"""A blob with this many rows for each manifest of a snapshot takes longer to read than these."""
_MOST_FIELDS = 20
"""Of a column, and of a manifest."""
_DAMAGED = "its manifest statistics are cut or damaged"
_MOST_FIGURES = 16
_FIGURE_BYTES = 150
"""What the footer takes for a figure beside the column's name."""
_OWN = ("live_file_count", "position_delete_file_count", "equality_delete_file_count", "dv_count")
_TOTALS = {"record_count": "total_record_count", "file_size_in_bytes": "total_file_size_in_bytes"}
_OF_DELETES = {"record_count": "delete_record_count", "file_size_in_bytes": "delete_file_size_in_bytes"}
_HEAD = pa.schema(
    [
        stored_field("manifest_path", pa.string(), 500, nullable=False),
        stored_field("manifest_length", pa.int64(), 501, nullable=False),
        stored_field("content", pa.int32(), 517, nullable=False),
        *(stored_field(name, pa.int64(), 521 + i) for i, name in enumerate(_TOTALS.values())),
        *(stored_field(name, pa.int64(), OWN_FIELDS + i, nullable=False) for i, name in enumerate(_OWN)),
        *(stored_field(name, pa.int64(), OWN_FIELDS + 4 + i) for i, name in enumerate(_OF_DELETES.values())),
    ]
)


def can_be_written(columns: Sequence[Field]) -> bool:
    """Whether what is written of so many columns, each by up to 16 figures, has a footer that is read."""
    size = sum(_MOST_FIGURES * (len(column.name.encode()) + _FIGURE_BYTES) for column in columns)
    return size <= MAX_FOOTER_SIZE_BYTES


def write_manifest_statistics(
    manifest_files: pa.Table,
    rollups: RollUps,
    columns: Sequence[Field],
    *,
    compression: Literal["zstd", "none"] = "none",
) -> bytes:
    """Return the payload.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    rollups : RollUps
        The roll-up by manifest of these, in their order.
    columns : sequence of Field
        The columns of its cells.
    compression : {"none", "zstd"}
        None for a blob, which the Puffin file compresses.
    """
    groups = rollups.manifests
    is_data = pc.equal(manifest_files["content"], "data").combine_chunks()
    arrays = {name: manifest_files[name] for name in ("manifest_path", "manifest_length")}
    arrays["content"] = pc.invert(is_data).cast(pa.int32())
    arrays |= {name: groups[name] for name in _OWN}
    nothing = pa.scalar(None, pa.int64())
    arrays |= {stored: pc.if_else(is_data, groups[name], nothing) for name, stored in _TOTALS.items()}
    arrays |= {stored: pc.if_else(is_data, nothing, groups[name]) for name, stored in _OF_DELETES.items()}
    table = pa.table([arrays[name] for name in _HEAD.names], schema=_HEAD)
    known = find_known_cells(rollups.manifest_cells, to_numpy(groups["live_file_count"]), len(columns))
    stored = [column for column in columns if content_stats_id(column) is not None]
    if stored:
        stats = encode_content_stats(known, columns, to_numpy(is_data))
        table = table.append_column(stored_field("content_stats", stats.type, CONTENT_STATS), stats)
    return write_parquet(table.replace_schema_metadata(describe_columns(stored)), compression)


class ManifestStatistics:
    """The roll-up by manifest of some manifests, of which no more columns are decoded than are asked for.

    Parameters
    ----------
    payload : bytes
        A blob: a Parquet file.
    path : str
        The Puffin file, for messages.
    most_rows : int, optional
        How many manifests it may be of.

    Raises
    ------
    UnsupportedError
        The blob has other fields or field ids, or more manifests.
    MetadataError
        The blob is cut or damaged; damage to a column's statistics is found when that column is decoded.
    """

    def __init__(self, payload: bytes, path: str, most_rows: int | None = None) -> None:
        self._path = path
        with damage_in(path, _DAMAGED):
            self._stored = open_parquet(payload)
            file = self._stored.file
            types = read_column_types(file.metadata.metadata or {})
            schema: pa.Schema = file.schema_arrow
            rows, fields = file.metadata.num_rows, len(self._stored.footer.columns)
        if types is None or not all(_has_field(schema, field) for field in _HEAD):
            raise UnsupportedError(
                f"{path}: its manifest statistics have other fields or field ids than this version's"
            )
        if most_rows is not None and rows > most_rows:
            raise UnsupportedError(
                f"{path}: its manifest statistics are of {rows:,} manifests, more than {most_rows:,}"
            )
        self._types = types
        with damage_in(path, _DAMAGED):
            self._stats = {field_id_of(field): field for field in schema}.get(CONTENT_STATS)
            if fields > _MOST_FIELDS * (len(types) + 1):
                raise ValueError(f"it has {fields:,} fields for {len(types):,} columns")
            self._head = read_parquet(self._stored, _HEAD.names).combine_chunks()
            for field in _HEAD:
                column = self._head[field.name]
                if column.null_count and not field.nullable:
                    raise ValueError(f"{field.name} is null")
                if column.type != pa.string() and (pc.min(column).as_py() or 0) < 0:
                    raise ValueError(f"{field.name} is negative")

    @cached_property
    def manifests(self) -> pa.Table:
        """`schemas.MANIFEST_GROUPS`."""
        groups = {name: self._head[name] for name in ("manifest_path", *_OWN)}
        for name, total in _TOTALS.items():
            groups[name] = pc.coalesce(self._head[total], self._head[_OF_DELETES[name]], 0)
        return pa.table([groups[name] for name in MANIFEST_GROUPS.names], schema=MANIFEST_GROUPS)

    @property
    def manifest_lengths(self) -> tuple[int, ...]:
        """The length of each manifest in bytes."""
        return tuple(self._head["manifest_length"].to_pylist())

    def build_cells(self, columns: Sequence[Field], chosen: npt.NDArray[np.int64] | None = None) -> pa.Table:
        """Return the cells of `manifests`, `schemas.ROLLUP_CELLS`; sums over a part of a manifest's files are left out.

        Parameters
        ----------
        columns : sequence of Field
            The columns that are wanted.
        chosen : numpy.ndarray of int64, optional
            The rows that are wanted, in this order; by default all.

        Raises
        ------
        UnsupportedError
            The blob has nothing of a wanted column, or has it of another type.
        MetadataError
            What the blob has of these columns is damaged.
        """
        for column in columns:
            was = self._types.get(column.field_id)
            if was != column.type:
                before = "was not there yet" if was is None else f"was of type {was}"
                raise UnsupportedError(
                    f"{self._path}: its manifest statistics were made when column {column.name!r} {before}: "
                    "compute them again"
                )
        if not columns:
            return ROLLUP_CELLS.empty_table()
        groups = np.arange(len(self._head)) if chosen is None else chosen
        live = np.where(to_numpy(self._head["content"]) == 0, to_numpy(self._head["live_file_count"]), 0)[groups]
        with damage_in(self._path, _DAMAGED):
            table = read_parquet(self._stored, [] if self._stats is None else content_stats_paths(self._stats, columns))
            stats = arrays_by_id(table)[CONTENT_STATS]
            return build_known_cells(decode_content_stats(stats, columns, groups), columns, live)


def _has_field(schema: pa.Schema, field: pa.Field) -> bool:
    places = schema.get_all_field_indices(field.name)
    found = [schema.field(place) for place in places]
    return [(field_id_of(one), one.type) for one in found] == [(field_id_of(field), field.type)]
