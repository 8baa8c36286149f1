"""The Arrow schemas of planning, with their units; null is *unknown*, as in `schemas`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

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
