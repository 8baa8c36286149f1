"""Roll-ups -> the tables of manifests, partitions and columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import MANIFESTS, partitions_schema
from icestats.iceberg.metadata import Schema
from icestats.read.manifests.manifests import RollUps
from icestats.read.partitions.partition_statistics import PartitionStatistics
from icestats.read.partitions.partition_statistics_layout import ADDED
from icestats.stats.rollup_cells import CommittedFigures, build_column_maps, build_columns


def build_manifests(manifest_files: pa.Table, rollups: RollUps, schema: Schema) -> pa.Table:
    """Build `schemas.MANIFESTS` from the manifest list and its roll-up."""
    groups = rollups.manifests
    is_data = to_numpy(pc.equal(manifest_files["content"], "data"))
    maps = build_column_maps(rollups.manifest_cells, schema.columns, to_numpy(groups["live_file_count"]), is_data)
    columns = {name: manifest_files[name] for name in manifest_files.column_names}
    columns |= {name: groups[name] for name in groups.column_names if name in MANIFESTS.names}
    columns["total_record_count"] = groups["record_count"]
    columns["total_file_size_in_bytes"] = groups["file_size_in_bytes"]
    return pa.table(columns | maps, schema=MANIFESTS)


def build_partitions(rollups: RollUps, schema: Schema) -> pa.Table:
    """Build `schemas.partitions_schema` from the roll-up by partition."""
    groups = rollups.partitions
    maps = build_column_maps(rollups.partition_cells, schema.columns, to_numpy(groups["data_file_count"]))
    columns = {name: groups[name] for name in groups.column_names} | maps
    return pa.table(columns, schema=partitions_schema(groups.schema.field("partition").type))


def build_partition_file_rows(found: PartitionStatistics, schema: Schema) -> pa.Table:
    """Build `schemas.partitions_schema` from a partition statistics file: its maps are null where it has none."""
    groups = found.groups.drop_columns(list(ADDED))
    kind = partitions_schema(groups.schema.field("partition").type)
    columns = {name: groups[name] for name in groups.column_names}
    if found.columns:
        columns |= build_column_maps(found.cells, schema.columns, to_numpy(groups["data_file_count"]))
    return pa.table({f.name: columns.get(f.name, pa.nulls(len(groups), f.type)) for f in kind}, schema=kind)


def build_column_table(
    manifest_files: pa.Table, rollups: RollUps, schema: Schema, committed: CommittedFigures
) -> pa.Table:
    """Build `schemas.COLUMNS` from the roll-up over all manifests and the figures of committed statistics."""
    live_file_counts = rollups.manifests["live_file_count"]
    is_data = pc.equal(manifest_files["content"], "data")
    return build_columns(
        rollups.table_cells,
        schema.columns,
        pc.sum(live_file_counts.filter(is_data)).as_py() or 0,
        has_deletes=bool(pc.sum(live_file_counts.filter(pc.invert(is_data))).as_py()),
        committed=committed,
    )
