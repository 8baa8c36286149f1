"""The Arrow schemas of all answers, with their units.

Sizes are bytes, counts are files or rows, identifiers are 64-bit integers. A figure that is null is *unknown*: columns
are `_required`, which never have nulls, or `_optional`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

__all__ = [
    "COLUMNS",
    "COMPUTED",
    "COVERAGE",
    "ESTIMATES",
    "LAYOUT",
    "MANIFESTS",
    "MANIFEST_FILES",
    "MANIFEST_REWRITE",
    "PLAN_MANIFESTS",
    "PLAN_ROW_GROUPS",
    "PLAN_STEPS",
    "REFS",
    "REPORTED",
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


def _required(kind: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name in names]


def _optional(kind: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, kind) for name in names]


COUNTS = pa.map_(pa.int32(), pa.int64())
"""Field id to a count, or to a size in bytes; null is unknown."""
BOUNDS = pa.map_(pa.int32(), pa.binary())
"""Field id to single-value bytes (spec, Appendix D); null is unknown."""

SUMMED_STATISTICS = ("column_size", "value_count", "null_value_count", "nan_value_count")
"""The statistics of a column that are summed over files, in the order of the roll-up."""
STATISTICS = (*SUMMED_STATISTICS, "lower_bound", "upper_bound")

FIELD_SUMMARY = pa.struct(
    _required(pa.bool_(), "contains_null")
    + _optional(pa.bool_(), "contains_nan")
    + _optional(pa.binary(), "lower_bound", "upper_bound")
)

MANIFEST_FILES = pa.schema(
    _required(pa.string(), "manifest_path")
    + _required(pa.int64(), "manifest_length")
    + _required(pa.int32(), "partition_spec_id")
    + _required(pa.string(), "content")
    + _required(pa.int64(), "sequence_number", "min_sequence_number")
    + _optional(pa.int64(), "added_snapshot_id", "added_files_count", "existing_files_count")
    + _optional(pa.int64(), "deleted_files_count", "added_rows_count", "existing_rows_count", "deleted_rows_count")
    + _optional(pa.list_(FIELD_SUMMARY), "partitions")
    + _optional(pa.binary(), "key_metadata")
    + _optional(pa.int64(), "first_row_id")
)
"""One row per manifest, from the manifest list (spec, "Manifest Lists"): lengths in bytes, counts of files and of rows.
`content` is `data` or `deletes`."""

ROLLUP_CELLS = pa.schema(
    _required(pa.int32(), "field_id")
    + _required(pa.int64(), *(f"{name}{part}" for name in SUMMED_STATISTICS for part in ("", "_file_count")))
    + _optional(pa.binary(), "lower_bound")
    + _required(pa.int64(), "lower_bound_file_count")
    + _optional(pa.binary(), "upper_bound")
    + _required(pa.int64(), "upper_bound_file_count", "valueless_file_count")
)
"""One row per column of a group, group by group, with the columns in the same order in each group. A statistic is the
sum or the extreme over the live data files of the group that have it; `*_file_count` is how many have it. `column_size`
is bytes, the other sums are counts of values. `valueless_file_count` counts the files without a bound whose column is
all null or all NaN: these need no bound."""

MANIFEST_GROUPS = pa.schema(
    _required(pa.string(), "manifest_path")
    + _required(pa.int64(), "live_file_count", "record_count", "file_size_in_bytes", "position_delete_file_count")
    + _required(pa.int64(), "equality_delete_file_count", "dv_count")
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
        _required(partition_type, "partition")
        + _required(pa.int32(), "spec_id")
        + _required(pa.int64(), "data_record_count", "data_file_count", "total_data_file_size_in_bytes")
        + _required(pa.int64(), "position_delete_record_count", "position_delete_file_count")
        + _required(pa.int64(), "equality_delete_record_count", "equality_delete_file_count")
        + _optional(pa.int64(), "total_record_count")
        + _optional(pa.timestamp("ms", tz="UTC"), "last_updated_at")
        + _optional(pa.int64(), "last_updated_snapshot_id")
        + _required(pa.int64(), "dv_count")
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
        _required(pa.string(), "content", "file_path", "file_format")
        + _required(pa.int32(), "spec_id")
        + _required(partition_type, "partition")
        + _required(pa.int64(), "record_count", "file_size_in_bytes")
        + _optional(COUNTS, "column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
        + _optional(BOUNDS, "lower_bounds", "upper_bounds")
        + _optional(pa.binary(), "key_metadata")
        + _optional(pa.list_(pa.int64()), "split_offsets")
        + _optional(pa.list_(pa.int32()), "equality_ids")
        + _optional(pa.int32(), "sort_order_id")
        + _optional(pa.int64(), "first_row_id")
        + _optional(pa.string(), "referenced_data_file")
        + _optional(pa.int64(), "content_offset", "content_size_in_bytes")
        + _required(pa.int32(), "status")
        + _optional(pa.int64(), "snapshot_id", "sequence_number", "file_sequence_number")
        + _required(pa.string(), "manifest_path")
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
    list(MANIFEST_FILES)
    + _required(pa.int64(), "live_file_count", "total_record_count", "total_file_size_in_bytes")
    + _required(pa.int64(), "position_delete_file_count", "equality_delete_file_count", "dv_count")
    + list(COLUMN_MAPS)
)
"""One row per manifest of the snapshot, in manifest list order: `MANIFEST_FILES`, `MANIFEST_GROUPS` and `COLUMN_MAPS`.
The maps of a delete manifest are null."""

_COMMON_VALUE = pa.struct(
    _required(pa.string(), "value")
    + _required(pa.int64(), "rows_at_least", "rows_at_most")
    + _required(pa.float64(), "share")
)

COLUMNS = pa.schema(
    _required(pa.int32(), "field_id")
    + _required(pa.string(), "name", "type")
    + _required(pa.bool_(), "required")
    + _required(pa.int64(), "live_file_count")
    + _optional(pa.int64(), "column_size", "value_count", "null_value_count", "nan_value_count")
    + _optional(pa.binary(), "lower_bound", "upper_bound")
    + _optional(pa.int64(), "ndv")
    + _optional(pa.float64(), "avg_length")
    + _optional(pa.int64(), "max_length")
    + _optional(pa.list_(_COMMON_VALUE), "common_values")
    + _required(pa.map_(pa.string(), pa.int64()), "missing_files")
    + _required(pa.map_(pa.string(), pa.string()), "provenance")
)
"""One row per column (a primitive field at any depth), over all live data files. Counts are files and values, sizes are
bytes on disk, lengths are bytes of values, bounds are single-value bytes. If column statistics are committed for this
very snapshot, counts of values, nulls and NaN, and bounds are theirs: exact, over live rows. If not, they are of the
files, deletes not applied. `ndv`, the number of distinct values, is from the nearest committed Theta sketch; lengths
are from the nearest column statistics. `common_values` are the five most common values of the nearest ones that are
committed, most common first: each as text, its live rows of that snapshot at least and at most, and the middle of both
as a share of all rows; one that ends with `…` is as in `FREQUENT_VALUES`; null where none are committed.
`missing_files` has for each unknown statistic how many files lack it. `provenance` says for each figure where it comes
from and how far you can trust it."""


REPORTED = pa.schema(
    _required(pa.string(), "column")
    + _optional(pa.string(), "type")
    + _optional(pa.int64(), "ndv", "null_count", "avg_length", "max_length")
    + _optional(pa.string(), "min", "max")
    + _required(pa.int64(), "bin_count")
    + [pa.field("edges", pa.list_(pa.float64()))]
    + _required(pa.string(), "sources")
)
"""One row per top-level column that an optimizer is told of, over live rows: distinct values, nulls, lengths in bytes
of its values, bounds as text, and the edges of an equi-height histogram of `bin_count` bins, as doubles (dates in days,
timestamps in microseconds since 1970-01-01); a common value that has bins of its own is as many edges. Null where
nothing is reported; `sources` says why, or where each figure comes from."""


PARTITION_MAPS = (
    pa.field("ndvs", COUNTS),
    pa.field("ndv_relative_errors", pa.map_(pa.int32(), pa.float64())),
    pa.field("ndv_commits_behind", COUNTS),
    pa.field("avg_lengths", COUNTS),
    pa.field("max_lengths", COUNTS),
)
"""Maps by field id of what committed statistics of partitions know; a column that they do not know is not in a map.
`ndvs` are the numbers of distinct values by the Theta sketches that are kept for a partition, no more than its data
files have values that are not null, `ndv_relative_errors` their errors at 95 % confidence, as shares (0: exact but for
hash collisions; 0.0 and -0.0, and NaN of other bits, count as different values), `ndv_commits_behind` the commits since
the snapshot that they describe (0: this one). Lengths are bytes of values over the live rows of this very snapshot:
`avg_lengths` is rounded, `max_lengths` exact."""


def partitions_schema(partition_type: pa.StructType) -> pa.Schema:
    """Return the schema of `Table.partitions`: `partition_groups_schema`, `COLUMN_MAPS`, `PARTITION_MAPS`."""
    return pa.schema([*partition_groups_schema(partition_type), *COLUMN_MAPS, *PARTITION_MAPS])


FREQUENT_VALUES = pa.schema(
    _optional(pa.string(), "value")
    + _required(pa.int64(), "rows_at_least", "rows_at_most")
    + _required(pa.float64(), "share")
    + _required(pa.int64(), "snapshot_id", "commits_behind")
)
"""One row a common value of a column, most common first; last a row without a `value`, for any one of the others. Rows
are live ones of the snapshot that they were counted of; `share` is the middle of both bounds by all its rows. A string
of 256 characters, or a binary of 256 bytes, with `…` behind it stands for all values that begin so, taken together."""

COLUMNS_TOGETHER = pa.schema(
    _required(pa.string(), "first", "second")
    + _required(pa.float64(), "first_decides_second", "second_decides_first")
    + _required(pa.int64(), "ndv", "row_count")
    + _required(
        pa.list_(
            pa.struct(
                _optional(pa.string(), "first", "second") + _optional(pa.int64(), "rows_at_least", "rows_at_most")
            )
        ),
        "common_pairs",
    )
    + _required(pa.int64(), "snapshot_id", "commits_behind")
)
"""One row a pair of columns that has statistics together. `..._decides_...` is an estimate of the share of rows
with the most common partner, 0 to 1; `ndv` the number of distinct pairs, an estimate within Theta's error; `row_count`
the rows that were counted; `common_pairs` up to ten of them, most common first. A null value is null."""

SKETCHES = pa.schema(
    _required(pa.string(), "type")
    + _required(pa.list_(pa.int32()), "field_ids")
    + _required(pa.list_(pa.string()), "columns")
    + _required(pa.int64(), "snapshot_id")
    + _optional(pa.int64(), "commits_behind", "files_behind", "rows_behind")
    + _required(pa.list_(pa.string()), "used_by")
    + _optional(pa.int64(), "ndv")
    + _required(pa.map_(pa.string(), pa.string()), "properties")
    + _required(pa.int64(), "length")
    + _required(pa.bool_(), "listed")
    + _required(pa.string(), "statistics_path")
)
"""One row per blob of a registered table statistics file. `snapshot_id` is the snapshot it was computed for, and
`commits_behind` how many commits later the loaded snapshot is (0: none; null: the blob's snapshot is no ancestor, or
the name mapping gives an earlier name of its column to another one, and it may be of before). `files_behind` and
`rows_behind` count the data files that these commits added, and their rows (commits of `replace` are left out, as they
change no row; null: a snapshot's summary does not say). `used_by` names the engines that plan with
the blob as it is now (`Table.coverage` says with which settings; `icestats` is this kit). `length` is the
blob's length in the file in bytes. `listed` says whether metadata.json lists the blob; if not, only the file's footer
does, where engines look or, for large blobs and those of no single column, hidden from them. A column that was dropped
is named `#<field id>`."""

COMPUTED = pa.schema(
    _required(pa.int32(), "field_id")
    + _required(pa.string(), "name", "type")
    + _required(pa.int64(), "value_count", "null_value_count", "nan_value_count")
    + _optional(pa.binary(), "min_value", "max_value")
    + _optional(pa.float64(), "avg_length")
    + _optional(pa.int64(), "max_length")
    + _required(pa.int64(), "ndv")
    + _required(pa.float64(), "ndv_relative_error")
    + _required(pa.int64(), "theta_size_bytes")
    + _optional(pa.int64(), "kll_size_bytes")
)
"""One row per column that a scan has read, over live rows only. Exact: the counts of values (nulls included), the
smallest and largest value as single-value bytes (NaN left out), and lengths in bytes. `ndv` is an estimate with its
relative error at 95 % confidence (0: exact) of how many values there are that are not empty: Theta leaves the empty
string out, and counts 0.0 and -0.0, and NaN of other bits, as different values. Sketch sizes are
serialised bytes; `kll_size_bytes` is null if the type has no KLL sketch."""

COVERAGE = pa.schema(
    _required(pa.string(), "engine", "engine_version", "level")
    + _optional(pa.string(), "column")
    + _optional(pa.int32(), "field_id")
    + _required(pa.string(), "statistic")
    + _required(pa.bool_(), "uses", "available")
    + _optional(pa.string(), "source")
    + _optional(pa.int64(), "commits_behind")
    + _required(pa.bool_(), "read_by_engine")
    + _optional(pa.string(), "command")
    + _required(pa.string(), "evidence")
)
"""One row per engine and statistic, and per column where the level is `table-column` or `partition-column`. `uses` says
whether the engine's optimizer uses the statistic, of tables of any format; `available` whether this table has it, and
`source` where: the place that the engine reads, or else the newest. `commits_behind` counts the commits from the
snapshot that it is of to the loaded one (null: the table does not have it). `read_by_engine` says whether the engine
reads it there today, and `command` what would provide it (null: the engine has it, does not use it, or nothing provides
it). `evidence` is how the engine uses it or why not, and in brackets the documentation or source file that says so.
What is of a snapshot that has expired, or is no ancestor, counts as missing, though engines may use it: `SKETCHES`."""

SNAPSHOTS = pa.schema(
    _required(pa.int64(), "snapshot_id")
    + _optional(pa.int64(), "parent_snapshot_id")
    + _required(pa.int64(), "sequence_number")
    + _required(pa.timestamp("ms", tz="UTC"), "committed_at")
    + _required(pa.string(), "operation")
    + _optional(pa.int32(), "schema_id")
    + _optional(pa.string(), "manifest_list")
    + _required(pa.map_(pa.string(), pa.string()), "summary")
)
"""One row per snapshot that has not expired, in the order of metadata.json."""

REFS = pa.schema([*_required(pa.string(), "name", "type"), *_required(pa.int64(), "snapshot_id")])
"""One row per branch or tag."""

PLANNING_STATISTICS = ("value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound")
"""The statistics of a column that planning uses."""

_FILE_METRICS = pa.schema(
    _required(pa.int32(), "manifest_index")
    + _required(pa.string(), "content")
    + _optional(pa.string(), "file_path", "file_format")
    + _required(pa.int32(), "spec_id")
    + _required(pa.struct([]), "partition")
    + _required(pa.int64(), "record_count", "file_size_in_bytes")
    + _optional(pa.int64(), "sequence_number")
    + _optional(pa.string(), "referenced_data_file")
)
"""The columns of `file_metrics_schema` that are always there."""
_REPEATED = pa.dictionary(pa.int32(), pa.string())
_SPLIT = {
    "content": _required(_REPEATED, "content"),
    "file_path": [*_required(_REPEATED, "folder"), *_required(pa.string(), "file_name")],
    "file_format": _optional(_REPEATED, "file_format"),
}
"""What stands in their place where paths are split."""


def file_metrics_schema(
    partition_type: pa.StructType, field_ids: Sequence[int], *, splits_paths: bool = False
) -> pa.Schema:
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
    splits_paths : bool, optional
        Whether `folder` and `file_name` stand in place of `file_path`, and what repeats is a dictionary.
    """
    place = _FILE_METRICS.get_field_index("partition")
    fixed = _FILE_METRICS.set(place, pa.field("partition", partition_type, nullable=False))
    split = [one for field in fixed for one in (_SPLIT.get(field.name, (field,)) if splits_paths else (field,))]
    return pa.schema([*split, *_figure_fields(field_ids)])


def _figure_fields(field_ids: Sequence[int]) -> list[pa.Field]:
    return [
        pa.field(f"{name}_{field_id}", pa.binary() if name.endswith("bound") else pa.int64())
        for field_id in field_ids
        for name in PLANNING_STATISTICS
    ]


PLAN_STEPS = pa.schema(
    _required(pa.string(), "step", "unit")
    + _required(pa.int64(), "total")
    + _optional(pa.int64(), "kept", "skipped", "kept_bytes", "kept_rows")
    + _required(pa.float64(), "duration_ms")
    + _required(pa.int64(), "values_read", "bytes_read")
    + _required(pa.string(), "note")
)
"""One row per step of a plan. `unit` is `manifest`, `file`, `row group` or `row`. `total` is what is left before the
step; it is `kept` + `skipped`. `kept_bytes` is bytes (for manifests, their length), null if unknown. `kept_rows` counts
records; row-level deletes are not deducted. `duration_ms` includes reading. `values_read` counts statistics,
`bytes_read` bytes of metadata."""

_EXPLANATION = [*_required(pa.bool_(), "kept"), *_required(pa.string(), "step", "predicate", "reason", "evidence")]

PLAN_MANIFESTS = pa.schema(
    _required(pa.string(), "manifest_path")
    + _required(pa.int64(), "manifest_length")
    + _required(pa.int32(), "spec_id")
    + _optional(pa.int64(), "live_file_count", "record_count")
    + _EXPLANATION
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
        _required(pa.string(), "file_path")
        + _required(pa.int32(), "spec_id")
        + _required(partition_type, "partition")
        + _required(pa.int64(), "record_count", "file_size_in_bytes")
        + _required(pa.string(), "manifest_path")
        + _EXPLANATION
        + _required(pa.list_(pa.string()), "delete_files")
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
        _required(pa.int64(), "file_index")
        + _required(pa.int32(), "row_group")
        + _required(pa.int64(), "row_count", "size_bytes")
        + _figure_fields(field_ids)
    )


PLAN_ROW_GROUPS = pa.schema(
    _required(pa.string(), "file_path")
    + _required(pa.int32(), "row_group")
    + _required(pa.int64(), "row_count", "size_bytes")
    + _EXPLANATION
)
"""One row per row group of the files that a plan keeps. `kept` to `evidence` are as in `PLAN_MANIFESTS`; `size_bytes`
is compressed."""

_HISTOGRAM = pa.list_(pa.struct([("least", pa.int64()), ("most", pa.int64()), ("share", pa.float64())]))


def _depth_fields(what: str) -> list[pa.Field]:
    return [
        *_required(pa.int64(), f"{what}_count", f"{what}_without_bounds_count"),
        *_required(pa.float64(), f"{what}_depth_mean"),
        *_required(pa.int64(), f"{what}_depth_max"),
        *_required(pa.float64(), f"{what}_share_opened"),
        *_required(_HISTOGRAM, f"{what}_depth_histogram"),
    ]


LAYOUT = pa.schema(
    _required(pa.string(), "name", "kind", "type", "transform")
    + _depth_fields("manifest")
    + _depth_fields("file")
    + _required(pa.float64(), "partition_file_depth_mean")
    + _required(pa.int64(), "partition_file_depth_max")
)
"""One row per partition field or column. A key's depth is the number of manifests, or of files, whose range contains
it. The keys are those of the table's rows; each bound of a file stands for half of its rows. `*_depth_mean` and
`*_depth_max` are over all keys, `*_share_opened` is the mean as a share of all manifests or files, and
`*_depth_histogram` has the share of the keys whose depth is from `least` to `most`. A range without bounds contains
every key, except in `partition_file_depth_*`, which count the files of the key's own partition."""

WHAT_IF = pa.schema(
    _required(pa.string(), "row_filter", "step", "unit")
    + _required(pa.int64(), "total_now", "kept_now", "kept_bytes_now", "kept_rows_now")
    + _required(pa.int64(), "total_then", "kept_then", "kept_bytes_then", "kept_rows_then")
)
"""One row per filter and step: the totals of the step and what it keeps, now and as predicted (`then`)."""

MANIFEST_REWRITE = pa.schema(
    _required(pa.string(), "subject", "figure")
    + _required(pa.float64(), "before", "predicted")
    + _optional(pa.float64(), "after")
)
"""One row per figure of a manifest rewrite. If `subject` is a filter, the figure counts the manifests or files that a
step keeps; if it is a partition field, the manifests whose range contains a key. `after` is null until the manifests
are rewritten, and where others have changed the table's columns or partition fields meanwhile."""

ESTIMATES = pa.schema(
    _required(pa.string(), "source")
    + _optional(pa.float64(), "rows", "rows_lower", "rows_upper")
    + _required(pa.string(), "bound")
    + _optional(pa.float64(), "bytes", "scan_bytes", "rows_deletes_ignored", "rows_positions_deducted")
    + _optional(pa.float64(), "rows_deletes_deducted", "q_error")
    + _required(pa.string(), "assumes", "reason")
    + _required(pa.int64(), "values_read", "bytes_read")
    + _required(pa.float64(), "duration_ms")
)
"""One row per source. `rows` is the estimated number of rows that match a filter, with row-level deletes treated as
asked. `rows_lower` and `rows_upper` are its bounds, whole numbers; `bound` says what they rest on. `bytes` is the size
of these rows in the projected columns, and `scan_bytes` the size of the files that cannot be skipped, both on disk. The
next three columns are rows with all deletes ignored, with position deletes deducted, and with equality deletes deducted
as well, each read as a filter. `q_error` compares `rows` with the counted rows; both count as at least one row.
`assumes` says what the estimate assumes, and `reason` why it is unknown. `values_read` counts the statistics used,
`bytes_read` the metadata bytes that hold them, and `duration_ms` is the computing time once they are read. Null is
unknown."""

WORKLOAD = pa.schema(
    _required(pa.string(), "row_filter")
    + _optional(pa.int64(), "actual")
    + _required(pa.string(), "source")
    + _optional(pa.float64(), "rows", "rows_lower", "rows_upper", "q_error")
    + _required(pa.string(), "reason")
)
"""One row per filter and source: the counted rows (`actual`) and the source's estimate, as in `ESTIMATES`."""

WORKLOAD_SUMMARY = pa.schema(
    _required(pa.string(), "source")
    + _required(pa.int64(), "answered_count", "unknown_count")
    + _optional(pa.float64(), "q_error_median", "q_error_p90", "q_error_max")
    + _required(pa.int64(), "bounded_count", "within_bounds_count")
)
"""One row per source: how many filters it answers and how many it cannot; the median, the 90 % quantile and the maximum
of its q-errors over the filters that it answers; for how many filters it has bounds (`bounded_count`), and for how many
the counted rows are within them."""
