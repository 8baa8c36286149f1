"""Every Arrow schema that crosses a module's border, with its units.

Sizes are bytes, counts are files or rows, identifiers are 64-bit integers; null is *unknown* wherever a figure may be
missing.
"""

from __future__ import annotations

import pyarrow as pa

COUNTS = pa.map_(pa.int32(), pa.int64())
"""Field id to a count or a size in bytes; a null value is unknown."""
BOUNDS = pa.map_(pa.int32(), pa.binary())
"""Field id to a single value as bytes (spec, Appendix D); a null value is unknown."""

SUMMED_STATISTICS = ("column_size", "value_count", "null_value_count", "nan_value_count")
"""Statistics of a column that add up over files, in the order of the roll-up."""
STATISTICS = (*SUMMED_STATISTICS, "lower_bound", "upper_bound")

FIELD_SUMMARY = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.binary()),
        pa.field("upper_bound", pa.binary()),
    ]
)

MANIFEST_FILES = pa.schema(
    [
        pa.field("manifest_path", pa.string(), nullable=False),
        pa.field("manifest_length", pa.int64(), nullable=False),
        pa.field("partition_spec_id", pa.int32(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("min_sequence_number", pa.int64(), nullable=False),
        pa.field("added_snapshot_id", pa.int64()),
        pa.field("added_files_count", pa.int64()),
        pa.field("existing_files_count", pa.int64()),
        pa.field("deleted_files_count", pa.int64()),
        pa.field("added_rows_count", pa.int64()),
        pa.field("existing_rows_count", pa.int64()),
        pa.field("deleted_rows_count", pa.int64()),
        pa.field("partitions", pa.list_(FIELD_SUMMARY)),
        pa.field("key_metadata", pa.binary()),
        pa.field("first_row_id", pa.int64()),
    ]
)
"""One row a manifest, as the manifest list has it (spec, "Manifest Lists"): lengths in bytes, counts of files and of
rows. `content` is `data` or `deletes`."""

ROLLUP_CELLS = pa.schema(
    [
        pa.field("field_id", pa.int32(), nullable=False),
        *(
            field
            for statistic in SUMMED_STATISTICS
            for field in (
                pa.field(statistic, pa.int64(), nullable=False),
                pa.field(f"{statistic}_file_count", pa.int64(), nullable=False),
            )
        ),
        pa.field("lower_bound", pa.binary()),
        pa.field("lower_bound_file_count", pa.int64(), nullable=False),
        pa.field("upper_bound", pa.binary()),
        pa.field("upper_bound_file_count", pa.int64(), nullable=False),
        pa.field("valueless_file_count", pa.int64(), nullable=False),
    ]
)
"""One row a (group, column), group by group, every column in the same order in each group: sums and extremes over the
live data files of the group that have the statistic, and how many of them have it. `column_size` is bytes; the counts
are values. `valueless_file_count` counts files whose column is all null or all NaN and that have no bound: they need
none."""

MANIFEST_GROUPS = pa.schema(
    [
        pa.field("manifest_path", pa.string(), nullable=False),
        pa.field("live_file_count", pa.int64(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("file_size_in_bytes", pa.int64(), nullable=False),
        pa.field("position_delete_file_count", pa.int64(), nullable=False),
        pa.field("equality_delete_file_count", pa.int64(), nullable=False),
        pa.field("dv_count", pa.int64(), nullable=False),
    ]
)
"""One row a manifest: its live entries (status ADDED or EXISTING), their records and bytes. In a manifest of deletes
these are delete files, delete records and their bytes, and the last three columns say of which kind (dv: deletion
vectors, which `position_delete_file_count` does not count)."""


def partition_groups_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of the roll-up by partition: one row a partition of one spec.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs together, by field id; a field that the row's spec has not is null.
    """
    return pa.schema(
        [
            pa.field("partition", partition_type, nullable=False),
            pa.field("spec_id", pa.int32(), nullable=False),
            pa.field("data_record_count", pa.int64(), nullable=False),
            pa.field("data_file_count", pa.int64(), nullable=False),
            pa.field("total_data_file_size_in_bytes", pa.int64(), nullable=False),
            pa.field("position_delete_record_count", pa.int64(), nullable=False),
            pa.field("position_delete_file_count", pa.int64(), nullable=False),
            pa.field("equality_delete_record_count", pa.int64(), nullable=False),
            pa.field("equality_delete_file_count", pa.int64(), nullable=False),
            pa.field("total_record_count", pa.int64()),
            pa.field("last_updated_at", pa.timestamp("ms", tz="UTC")),
            pa.field("last_updated_snapshot_id", pa.int64()),
            pa.field("dv_count", pa.int64(), nullable=False),
        ]
    )


def files_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of live files: one row an entry (status ADDED or EXISTING) of a manifest of data or of deletes.

    `content` is `data`, `position_deletes` (deletion vectors among them, of `file_format` PUFFIN) or
    `equality_deletes`; `status` is 0 for EXISTING and 1 for ADDED. Sizes and offsets are bytes. `snapshot_id`, the
    sequence numbers and `first_row_id` are inherited where the entry leaves them out, and null where they are unknown.
    The maps have the columns that were asked for; a map that the file lacks is null, a column that it lacks has no key.
    Bounds are single values as the file has them, of the type that the column had when the file was written.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs together, by field id; a field that the row's spec has not is null.
    """
    return pa.schema(
        [
            pa.field("content", pa.string(), nullable=False),
            pa.field("file_path", pa.string(), nullable=False),
            pa.field("file_format", pa.string(), nullable=False),
            pa.field("spec_id", pa.int32(), nullable=False),
            pa.field("partition", partition_type, nullable=False),
            pa.field("record_count", pa.int64(), nullable=False),
            pa.field("file_size_in_bytes", pa.int64(), nullable=False),
            pa.field("column_sizes", COUNTS),
            pa.field("value_counts", COUNTS),
            pa.field("null_value_counts", COUNTS),
            pa.field("nan_value_counts", COUNTS),
            pa.field("lower_bounds", BOUNDS),
            pa.field("upper_bounds", BOUNDS),
            pa.field("key_metadata", pa.binary()),
            pa.field("split_offsets", pa.list_(pa.int64())),
            pa.field("equality_ids", pa.list_(pa.int32())),
            pa.field("sort_order_id", pa.int32()),
            pa.field("first_row_id", pa.int64()),
            pa.field("referenced_data_file", pa.string()),
            pa.field("content_offset", pa.int64()),
            pa.field("content_size_in_bytes", pa.int64()),
            pa.field("status", pa.int32(), nullable=False),
            pa.field("snapshot_id", pa.int64()),
            pa.field("sequence_number", pa.int64()),
            pa.field("file_sequence_number", pa.int64()),
            pa.field("manifest_path", pa.string(), nullable=False),
        ]
    )


COLUMN_MAPS = tuple(
    field
    for statistic in STATISTICS
    for field in (
        pa.field(f"{statistic}s", COUNTS if statistic in SUMMED_STATISTICS else BOUNDS),
        pa.field(f"{statistic}s_missing_files", COUNTS),
    )
)
"""For each statistic a map from field id to its value over the live data files, null where it is unknown, and a map
from field id to the number of live files that lack it. `column_sizes` is bytes."""

MANIFESTS = pa.schema(
    [
        *MANIFEST_FILES,
        pa.field("live_file_count", pa.int64(), nullable=False),
        pa.field("total_record_count", pa.int64(), nullable=False),
        pa.field("total_file_size_in_bytes", pa.int64(), nullable=False),
        pa.field("position_delete_file_count", pa.int64(), nullable=False),
        pa.field("equality_delete_file_count", pa.int64(), nullable=False),
        pa.field("dv_count", pa.int64(), nullable=False),
        *COLUMN_MAPS,
    ]
)
"""One row a manifest of the snapshot, in manifest list order: `MANIFEST_FILES`, `MANIFEST_GROUPS`, `COLUMN_MAPS`. The
maps of a manifest of deletes are null."""

COLUMNS = pa.schema(
    [
        pa.field("field_id", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("required", pa.bool_(), nullable=False),
        pa.field("live_file_count", pa.int64(), nullable=False),
        pa.field("column_size", pa.int64()),
        pa.field("value_count", pa.int64()),
        pa.field("null_value_count", pa.int64()),
        pa.field("nan_value_count", pa.int64()),
        pa.field("lower_bound", pa.binary()),
        pa.field("upper_bound", pa.binary()),
        pa.field("ndv", pa.int64()),
        pa.field("avg_length", pa.float64()),
        pa.field("max_length", pa.int64()),
        pa.field("missing_files", pa.map_(pa.string(), pa.int64()), nullable=False),
        pa.field("provenance", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)
"""One row a column (a primitive field at any depth): its roll-up over all live data files, in rows, values and bytes
(sizes on disk; lengths of values), bounds as single-value bytes, the number of distinct values of the nearest
committed Theta sketch. `missing_files` says for each unknown roll-up how many files lack it, `provenance` for each
figure where it is from and what it is worth."""


def partitions_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of `Table.partitions`: `partition_groups_schema` and `COLUMN_MAPS`."""
    return pa.schema([*partition_groups_schema(partition_type), *COLUMN_MAPS])


SKETCHES = pa.schema(
    [
        pa.field("type", pa.string(), nullable=False),
        pa.field("field_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("columns", pa.list_(pa.string()), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("commits_behind", pa.int64()),
        pa.field("files_behind", pa.int64()),
        pa.field("rows_behind", pa.int64()),
        pa.field("used_by", pa.list_(pa.string()), nullable=False),
        pa.field("ndv", pa.int64()),
        pa.field("properties", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("listed", pa.bool_(), nullable=False),
        pa.field("statistics_path", pa.string(), nullable=False),
    ]
)
"""One row a blob of a registered table statistics file: the snapshot that it was computed for, how many commits the
loaded snapshot is ahead of it (0: none; null: not an ancestor), how many data files and how many rows in them these
commits have added (those of `replace` left out, as they change no row; null: a snapshot's summary does not say), which
engines plan with it as things are (`read.statistics_age.ENGINES` says under which settings; `icestats` is the kit
itself), its length in the file in bytes, and whether metadata.json lists it or only the file's footer does. A column
that has been dropped since is named `#<field id>`."""

COMPUTED = pa.schema(
    [
        pa.field("field_id", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("value_count", pa.int64(), nullable=False),
        pa.field("null_value_count", pa.int64(), nullable=False),
        pa.field("nan_value_count", pa.int64(), nullable=False),
        pa.field("min_value", pa.binary()),
        pa.field("max_value", pa.binary()),
        pa.field("avg_length", pa.float64()),
        pa.field("max_length", pa.int64()),
        pa.field("ndv", pa.int64(), nullable=False),
        pa.field("ndv_relative_error", pa.float64(), nullable=False),
        pa.field("theta_size_bytes", pa.int64(), nullable=False),
        pa.field("kll_size_bytes", pa.int64()),
    ]
)
"""One row a column that a scan has read, live rows only: counts of values (nulls included), exact; the smallest and
largest value as single-value bytes (NaN left out), exact; lengths in bytes, exact; the number of distinct values, an
estimate with its relative standard error (0: exact); sizes of the serialised sketches in bytes, null where the type
has no KLL."""

SNAPSHOTS = pa.schema(
    [
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_snapshot_id", pa.int64()),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("committed_at", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("schema_id", pa.int32()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)
"""One row a snapshot that has not been expired, in the order of metadata.json."""

REFS = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
    ]
)
"""One row a branch or tag."""
