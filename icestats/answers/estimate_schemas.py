"""The Arrow schemas of estimates and of workloads, with their units; null is unknown."""

from __future__ import annotations

import pyarrow as pa

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
