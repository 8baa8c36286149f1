"""The Arrow schemas of all answers, with their units.

Sizes are bytes, counts are files or rows, identifiers are 64-bit integers. A figure that is null is *unknown*.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

__all__ = [
    "COLUMNS",
    "COMPUTED",
    "ESTIMATES",
    "LAYOUT",
    "MANIFESTS",
    "MANIFEST_FILES",
    "MANIFEST_REWRITE",
    "PLAN_MANIFESTS",
    "PLAN_ROW_GROUPS",
    "PLAN_STEPS",
    "REFS",
    "SKETCHES",
    "SNAPSHOTS",
    "WHAT_IF",
    "WORKLOAD",
    "WORKLOAD_SUMMARY",
    "files_schema",
    "partitions_schema",
    "plan_files_schema",
    "row_group_metrics_schema",
]

COUNTS = pa.map_(pa.int32(), pa.int64())
"""Field id to a count, or to a size in bytes; null is unknown."""
BOUNDS = pa.map_(pa.int32(), pa.binary())
"""Field id to single-value bytes (spec, Appendix D); null is unknown."""

SUMMED_STATISTICS = ("column_size", "value_count", "null_value_count", "nan_value_count")
"""The statistics of a column that are summed over files, in the order of the roll-up."""
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
"""One row per manifest, from the manifest list (spec, "Manifest Lists"): lengths in bytes, counts of files and of rows.
`content` is `data` or `deletes`."""

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
"""One row per column of a group, group by group, with the columns in the same order in each group. A statistic is the
sum or the extreme over the live data files of the group that have it; `*_file_count` is how many have it. `column_size`
is bytes, the other sums are counts of values. `valueless_file_count` counts the files without a bound whose column is
all null or all NaN: these need no bound."""

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
"""One row per manifest: its live entries (status ADDED or EXISTING), their records and bytes. In a delete manifest
these are delete files, delete records and their bytes, and the last three columns count the files of each kind.
`position_delete_file_count` does not count deletion vectors (`dv_count`)."""


def partition_groups_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of the roll-up by partition: one row per partition of one spec.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs, by field id. A field that is not in the row's spec is null.
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
    """Return the schema of live files: one row per entry (status ADDED or EXISTING) of a data or delete manifest.

    `content` is `data`, `position_deletes` (this includes deletion vectors, whose `file_format` is PUFFIN) or
    `equality_deletes`. `status` is 0 for EXISTING and 1 for ADDED. Sizes and offsets are bytes. If an entry has no
    `snapshot_id`, sequence numbers or `first_row_id`, these are inherited, or null if unknown. The maps have the
    columns that you asked for: null if the file lacks the map, without a key if it lacks the column. Bounds are the
    file's own single-value bytes, of the type that the column had when the file was written.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs, by field id. A field that is not in the row's spec is null.
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
"""For each statistic two maps by field id: its value over the live data files, null if unknown, and the number of live
files that lack it. `column_sizes` is bytes."""

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
"""One row per manifest of the snapshot, in manifest list order: `MANIFEST_FILES`, `MANIFEST_GROUPS` and `COLUMN_MAPS`.
The maps of a delete manifest are null."""

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
"""One row per column (a primitive field at any depth), over all live data files. Counts are files and values, sizes are
bytes on disk, lengths are bytes of values, bounds are single-value bytes. `ndv`, the number of distinct values, is from
the nearest committed Theta sketch. `missing_files` has for each unknown statistic how many files lack it. `provenance`
says for each figure where it comes from and how far you can trust it."""


def partitions_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of `Table.partitions`: `partition_groups_schema` followed by `COLUMN_MAPS`."""
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
"""One row per blob of a registered table statistics file. `snapshot_id` is the snapshot it was computed for, and
`commits_behind` how many commits later the loaded snapshot is (0: none; null: the blob's snapshot is not an ancestor).
`files_behind` and `rows_behind` count the data files that these commits added, and their rows (commits of `replace` are
left out, as they change no row; null: a snapshot's summary does not say). `used_by` names the engines that plan with
the blob as it is now (`statistics_age.ENGINES` says with which settings; `icestats` is this kit). `length` is the
blob's length in the file in bytes. `listed` says whether metadata.json lists the blob; if not, only the file's footer
does. A column that was dropped is named `#<field id>`."""

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
"""One row per column that a scan has read, over live rows only. Exact: the counts of values (nulls included), the
smallest and largest value as single-value bytes (NaN left out), and lengths in bytes. `ndv` is an estimate with its
relative standard error (0: exact). Sketch sizes are serialised bytes; `kll_size_bytes` is null if the type has no KLL
sketch."""

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
"""One row per snapshot that has not expired, in the order of metadata.json."""

REFS = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
    ]
)
"""One row per branch or tag."""

PLANNING_STATISTICS = ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound")
"""The statistics of a column that planning uses."""

_FILE_METRICS = pa.schema(
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
"""The columns of `file_metrics_schema` that are always there."""


def file_metrics_schema(partition_type: pa.StructType, field_ids: Sequence[int]) -> pa.Schema:
    """Return the schema of live files for planning: one row per entry (status ADDED or EXISTING).

    `manifest_index` is the position of the manifest among those that were read. Sizes are bytes. For each column with
    field id N there are `value_count_N`, `null_value_count_N` and `nan_value_count_N` (values), and the single-value
    bytes `lower_bound_N` and `upper_bound_N`; null if the file lacks them.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs, by field id. A field that is not in the row's spec is null.
    field_ids : sequence of int
        The columns whose statistics are wanted.
    """
    place = _FILE_METRICS.get_field_index("partition")
    fixed = _FILE_METRICS.set(place, pa.field("partition", partition_type, nullable=False))
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
"""One row per step of a plan. `unit` is `manifest`, `file`, `row group` or `row`. `total` is what is left before the
step; it is `kept` + `skipped`. `kept_bytes` is bytes (for manifests, their length), null if unknown. `kept_rows` counts
records; row-level deletes are not deducted. `duration_ms` includes reading. `values_read` counts statistics,
`bytes_read` bytes of metadata."""

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
"""One row per data manifest with live files, in manifest list order: whether a plan reads it (`kept`), the step that
skipped it (or the last step, which kept it), the predicates that decided, the kind of reason, and the bounds and
literals as evidence. For a kept manifest, `predicate` names every predicate that could not skip it. `manifest_length`
is bytes."""


def plan_files_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of a plan's files: one row per live data file of the manifests that were read.

    `kept` to `evidence` are as in `PLAN_MANIFESTS`. `delete_files` are the paths of the delete files that apply to a
    kept file; empty for a skipped one. Sizes are bytes.

    Parameters
    ----------
    partition_type : pyarrow.StructType
        The fields of all specs, by field id. A field that is not in the row's spec is null.
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


def row_group_metrics_schema(field_ids: Sequence[int]) -> pa.Schema:
    """Return the schema of row groups: one row per row group of a Parquet file.

    `file_index` is the position of the file among those that were read. `size_bytes` is compressed. The statistics of
    each column are those of `file_metrics_schema`. `nan_value_count_N` is always null, as Parquet does not have it.

    Parameters
    ----------
    field_ids : sequence of int
        The columns whose statistics are wanted.
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
"""One row per row group of the files that a plan keeps. `kept` to `evidence` are as in `PLAN_MANIFESTS`; `size_bytes`
is compressed."""

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
"""One row per partition field or column. A key's depth is the number of manifests, or of files, whose range contains
it. The keys are those of the table's rows; each bound of a file stands for half of its rows. `*_depth_mean` and
`*_depth_max` are over all keys, `*_share_opened` is the mean as a share of all manifests or files, and
`*_depth_histogram` has the share of the keys whose depth is from `least` to `most`. A range without bounds contains
every key, except in `partition_file_depth_*`, which count the files of the key's own partition."""

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
"""One row per filter and step: the totals of the step and what it keeps, now and as predicted (`then`)."""

MANIFEST_REWRITE = pa.schema(
    [
        pa.field("subject", pa.string(), nullable=False),
        pa.field("figure", pa.string(), nullable=False),
        pa.field("before", pa.float64(), nullable=False),
        pa.field("predicted", pa.float64(), nullable=False),
        pa.field("after", pa.float64()),
    ]
)
"""One row per figure of a manifest rewrite. If `subject` is a filter, the figure counts the manifests or files that a
step keeps; if it is a partition field, the manifests whose range contains a key. `after` is null until the manifests
are rewritten."""

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
"""One row per source. `rows` is the estimated number of rows that match a filter, with row-level deletes treated as
asked. `rows_lower` and `rows_upper` are its bounds; `bound` says what they rest on. `bytes` is the size of these rows
in the projected columns, and `scan_bytes` the size of the files that cannot be skipped, both on disk. The next three
columns are rows with all deletes ignored, with position deletes deducted, and with equality deletes deducted as well,
each read as a filter. `q_error` compares `rows` with the counted rows; both count as at least one row. `assumes` says
what the estimate assumes, and `reason` why it is unknown. `values_read` counts the statistics used, `bytes_read` the
metadata bytes that hold them, and `duration_ms` is the computing time once they are read. Null is unknown."""

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
"""One row per filter and source: the counted rows (`actual`) and the source's estimate, as in `ESTIMATES`."""

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
"""One row per source: how many filters it answers and how many it cannot; the median, the 90 % quantile and the maximum
of its q-errors over the filters that it answers; for how many filters it has bounds (`bounded_count`), and for how many
the counted rows are within them."""
