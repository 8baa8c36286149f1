"""One snapshot as it is read: the manifest list, the roll-ups, the committed statistics, each once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from icestats.catalog import Source
from icestats.metadata import Field, Schema, Snapshot
from icestats.read.manifest_list import read_manifest_list
from icestats.read.manifests import RollUps, manifests_to_read, read_files
from icestats.read.rollup_cache import read_cached_rollups
from icestats.read.statistics_files import CommittedBlob, read_committed_blobs, read_committed_figures, read_kll
from icestats.rollup_tables import build_column_table, build_manifests, build_partitions
from icestats.stats.histogram import Histogram, Kind, build_histogram


class SnapshotReader:
    """Reads a snapshot, and keeps what it has read.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot or None
        None for a table that has none: everything is empty.
    schema : Schema
        The schema that the snapshot is read with.
    """

    def __init__(self, source: Source, snapshot: Snapshot | None, schema: Schema) -> None:
        self.source = source
        self.snapshot = snapshot
        self.schema = schema

    @cached_property
    def manifest_files(self) -> pa.Table:
        """The manifest list, `schemas.MANIFEST_FILES`."""
        return read_manifest_list(self.source.storage, self.snapshot)

    @cached_property
    def rollups(self) -> RollUps:
        """The roll-ups of the live files, from the local cache as far as it knows them."""
        manifests = manifests_to_read(self.manifest_files)
        return read_cached_rollups(manifests, self.source.metadata, self.source.storage, self.schema)

    @cached_property
    def blobs(self) -> tuple[CommittedBlob, ...]:
        """The blobs of the registered statistics files, the nearest first."""
        return tuple(read_committed_blobs(self.source.storage, self.source.metadata, self.snapshot))

    def read_manifests(self) -> pa.Table:
        """Return `schemas.MANIFESTS`."""
        return build_manifests(self.manifest_files, self.rollups, self.schema)

    def read_partitions(self) -> pa.Table:
        """Return `schemas.partitions_schema`."""
        return build_partitions(self.rollups, self.schema)

    def read_columns(self) -> pa.Table:
        """Return `schemas.COLUMNS`."""
        figures = read_committed_figures(self.source.storage, self.blobs)
        return build_column_table(self.manifest_files, self.rollups, self.schema, figures)

    def read_files(self, field_ids: Sequence[int], manifest_files: pa.Table | None = None) -> pa.Table:
        """Return `schemas.files_schema` with the statistics of some columns, of all manifests or of some."""
        manifests = manifests_to_read(self.manifest_files if manifest_files is None else manifest_files)
        return read_files(manifests, self.source.metadata, self.source.storage, field_ids)

    def read_histogram(self, field: Field, *, bins: int, kind: Kind) -> Histogram:
        """Return a column's histogram from its nearest committed KLL sketch."""
        found = read_kll(self.source.storage, self.blobs, field)
        return build_histogram(
            found.sketch,
            column=field.name,
            type_text=field.type,
            bins=bins,
            kind=kind,
            snapshot_id=found.snapshot_id,
            null_count=found.null_count,
            nan_count=found.nan_count,
        )
