"""Every Arrow schema that crosses a module's border, with its units.

Sizes are bytes, counts are files or rows, identifiers are 64-bit integers; null is *unknown* wherever a figure may be
missing.
"""

from __future__ import annotations

from collections.abc import Sequence

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

PLANNING_STATISTICS = ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound")
"""The statistics of a column that planning looks at."""

FILE_FIGURES = pa.schema(
    [
        pa.field("manifest_index", pa.int32(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("file_path", pa.string()),
        pa.field("file_format", pa.string()),
        pa.field("spec_id", pa.int32(), nullable=False),
        pa.field("partition", pa.struct([]), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("file_size_in_bytes", pa.int64(), nullable=False),
        pa.field("sequence_number", pa.int64()),
        pa.field("referenced_data_file", pa.string()),
    ]
)
"""The fixed columns of `file_figures_schema`."""


def file_figures_schema(partition_type: pa.StructType, field_ids: Sequence[int]) -> pa.Schema:
    """Return the schema of live files as planning needs them: one row an entry (status ADDED or EXISTING).

    `manifest_index` is the place of the manifest among those that were read; sizes are bytes. For each column of field
    id N the statistics `value_count_N`, `null_value_count_N`, `nan_value_count_N` (values) and the single values
    `lower_bound_N` and `upper_bound_N`; null where the file lacks them.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs together, by field id; a field that the row's spec has not is null.
    field_ids : sequence of int
        The columns that have statistics.
    """
    place = FILE_FIGURES.get_field_index("partition")
    fixed = FILE_FIGURES.set(place, pa.field("partition", partition_type, nullable=False))
    return pa.schema([*fixed, *_figure_fields(field_ids)])


def _figure_fields(field_ids: Sequence[int]) -> list[pa.Field]:
    return [
        pa.field(f"{name}_{field_id}", pa.binary() if name.endswith("bound") else pa.int64())
        for field_id in field_ids
        for name in PLANNING_STATISTICS
    ]


PLAN_STEPS = pa.schema(
    [
        pa.field("step", pa.string(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("total", pa.int64(), nullable=False),
        pa.field("kept", pa.int64()),
        pa.field("skipped", pa.int64()),
        pa.field("kept_bytes", pa.int64()),
        pa.field("kept_rows", pa.int64()),
        pa.field("duration_ms", pa.float64(), nullable=False),
        pa.field("values_read", pa.int64(), nullable=False),
        pa.field("bytes_read", pa.int64(), nullable=False),
        pa.field("note", pa.string(), nullable=False),
    ]
)
"""One row a step of a plan: `unit` is `manifest`, `file`, `row group` or `row`; `total` is what is left before it,
`kept` + `skipped` of it. `kept_bytes` is bytes (of manifests their length), null where unknown; `kept_rows` records,
row-level deletes not deducted. `duration_ms` has the reading; `values_read` counts statistics, `bytes_read` bytes of
metadata."""

_EXPLANATION = [
    pa.field("kept", pa.bool_(), nullable=False),
    pa.field("step", pa.string(), nullable=False),
    pa.field("predicate", pa.string(), nullable=False),
    pa.field("reason", pa.string(), nullable=False),
    pa.field("evidence", pa.string(), nullable=False),
]

PLAN_MANIFESTS = pa.schema(
    [
        pa.field("manifest_path", pa.string(), nullable=False),
        pa.field("manifest_length", pa.int64(), nullable=False),
        pa.field("spec_id", pa.int32(), nullable=False),
        pa.field("live_file_count", pa.int64()),
        pa.field("record_count", pa.int64()),
        *_EXPLANATION,
    ]
)
"""One row a manifest of data with live files, in manifest list order: whether a plan reads it, the step that skipped it
(or the last that kept it), the predicates that decided, the kind of reason, and the bounds and literals that are the
evidence. Of a kept one every predicate is named that could not skip it. Length in bytes."""


def plan_files_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of a plan's files: one row a live data file of the manifests that were read.

    Explained as `PLAN_MANIFESTS` are. `delete_files` are the paths of the delete files that apply to a kept file;
    empty for a skipped one. Sizes are bytes.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs together, by field id; a field that the row's spec has not is null.
    """
    return pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False),
            pa.field("spec_id", pa.int32(), nullable=False),
            pa.field("partition", partition_type, nullable=False),
            pa.field("record_count", pa.int64(), nullable=False),
            pa.field("file_size_in_bytes", pa.int64(), nullable=False),
            pa.field("manifest_path", pa.string(), nullable=False),
            *_EXPLANATION,
            pa.field("delete_files", pa.list_(pa.string()), nullable=False),
        ]
    )


def row_group_figures_schema(field_ids: Sequence[int]) -> pa.Schema:
    """Return the schema of row groups: one row a row group of a Parquet file.

    `file_index` is the place of the file among those that were read; `size_bytes` is compressed. The statistics of each
    column are those of `file_figures_schema`; `nan_value_count_N` is always null, for Parquet has none.

    Parameters
    ----------
    field_ids : sequence of int
        The columns that have statistics.
    """
    return pa.schema(
        [
            pa.field("file_index", pa.int64(), nullable=False),
            pa.field("row_group", pa.int32(), nullable=False),
            pa.field("row_count", pa.int64(), nullable=False),
            pa.field("size_bytes", pa.int64(), nullable=False),
            *_figure_fields(field_ids),
        ]
    )


PLAN_ROW_GROUPS = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("row_group", pa.int32(), nullable=False),
        pa.field("row_count", pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        *_EXPLANATION,
    ]
)
"""One row a row group of the files that a plan keeps, explained as `PLAN_MANIFESTS` are; sizes are compressed bytes."""

_HISTOGRAM = pa.list_(pa.struct([("least", pa.int64()), ("most", pa.int64()), ("share", pa.float64())]))


def _depth_fields(what: str) -> list[pa.Field]:
    return [
        pa.field(f"{what}_count", pa.int64(), nullable=False),
        pa.field(f"{what}_without_bounds_count", pa.int64(), nullable=False),
        pa.field(f"{what}_depth_mean", pa.float64(), nullable=False),
        pa.field(f"{what}_depth_max", pa.int64(), nullable=False),
        pa.field(f"{what}_share_opened", pa.float64(), nullable=False),
        pa.field(f"{what}_depth_histogram", _HISTOGRAM, nullable=False),
    ]


LAYOUT = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("transform", pa.string(), nullable=False),
        *_depth_fields("manifest"),
        *_depth_fields("file"),
        pa.field("partition_file_depth_mean", pa.float64(), nullable=False),
        pa.field("partition_file_depth_max", pa.int64(), nullable=False),
    ]
)
"""One row a partition field or column: over the keys of the table's rows (each bound of a file stands for half of its
rows) in how many manifests' and files' ranges a key lies: mean and most, the share of all of them, and how the keys are
spread over depths of at least `least` and at most `most`. Ranges without bounds are counted as ranges of every key, but
not in `partition_file_depth`, which counts the files of the key's own partition."""

WHAT_IF = pa.schema(
    [
        pa.field("row_filter", pa.string(), nullable=False),
        pa.field("step", pa.string(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        *(
            pa.field(f"{what}_{when}", pa.int64(), nullable=False)
            for when in ("now", "then")
            for what in ("total", "kept", "kept_bytes", "kept_rows")
        ),
    ]
)
"""One row a filter and step: what the step is about and what it leaves, as it is now, and as predicted."""

MANIFEST_REWRITE = pa.schema(
    [
        pa.field("subject", pa.string(), nullable=False),
        pa.field("figure", pa.string(), nullable=False),
        pa.field("before", pa.float64(), nullable=False),
        pa.field("predicted", pa.float64(), nullable=False),
        pa.field("after", pa.float64()),
    ]
)
"""One row a figure of a rewrite of manifests: of a filter, manifests or files that a step keeps; of a partition field,
manifests that a key lies in. `after` is null where nothing has been rewritten yet."""

ESTIMATES = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("rows", pa.float64()),
        pa.field("rows_lower", pa.float64()),
        pa.field("rows_upper", pa.float64()),
        pa.field("bound", pa.string(), nullable=False),
        pa.field("bytes", pa.float64()),
        pa.field("scan_bytes", pa.float64()),
        pa.field("rows_deletes_ignored", pa.float64()),
        pa.field("rows_positions_deducted", pa.float64()),
        pa.field("rows_deletes_deducted", pa.float64()),
        pa.field("q_error", pa.float64()),
        pa.field("assumes", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("values_read", pa.int64(), nullable=False),
        pa.field("bytes_read", pa.int64(), nullable=False),
        pa.field("duration_ms", pa.float64(), nullable=False),
    ]
)
"""One row a source: the estimated number of rows that satisfy a filter, row-level deletes treated as asked, with bounds
where something promises them (`bound` says what); the bytes of these rows in the projected columns, and of the files
that cannot be skipped (on disk); the rows with all deletes ignored, with position deletes deducted, with equality
deletes taken for filters, too; the q-error against the counted rows, both taken for at least one row; what the estimate
assumes, or `reason`: why it is unknown; how many statistics it took, the metadata bytes that hold them, and the
milliseconds of computing it once they are read. Null is unknown."""

WORKLOAD = pa.schema(
    [
        pa.field("row_filter", pa.string(), nullable=False),
        pa.field("actual", pa.int64()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("rows", pa.float64()),
        pa.field("rows_lower", pa.float64()),
        pa.field("rows_upper", pa.float64()),
        pa.field("q_error", pa.float64()),
        pa.field("reason", pa.string(), nullable=False),
    ]
)
"""One row a filter and source: the counted rows, and what the source estimates, as in `ESTIMATES`."""

WORKLOAD_SUMMARY = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("answered_count", pa.int64(), nullable=False),
        pa.field("unknown_count", pa.int64(), nullable=False),
        pa.field("q_error_median", pa.float64()),
        pa.field("q_error_p90", pa.float64()),
        pa.field("q_error_max", pa.float64()),
        pa.field("bounded_count", pa.int64(), nullable=False),
        pa.field("within_bounds_count", pa.int64(), nullable=False),
    ]
)
"""One row a source: filters that it answers and those that it cannot, the median, the 90 % quantile and the largest of
its q-errors over those that it answers; for how many filters it promises bounds, and how often the truth is within."""
