"""Which manifests can hold rows of `Table.files` that match an Arrow expression, by the manifest list alone.

Each manifest's partition summaries become a guarantee about its files, which Arrow simplifies the expression with:
where nothing is left of it, the manifest need not be read. Source: Iceberg spec, "Manifest Lists", `field_summary`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from icestats.iceberg.metadata import PartitionSpec
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.types import decode_value, to_arrow_type

_UNSAFE_TYPES = frozenset({"uuid"})
"""Java ordered UUIDs as two signed numbers: its summaries bound other sets of values than their bytes do."""


def select_manifests(
    manifest_files: pa.Table,
    row_filter: pc.Expression | None,
    files_schema: pa.Schema,
    specs: Mapping[int, PartitionSpec],
    partition: Sequence[PartitionColumn],
) -> pa.Table:
    """Return the manifests that may hold files which match.

    Parameters
    ----------
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`.
    row_filter : pyarrow.compute.Expression or None
        About columns of `files_schema`; None selects all.
    files_schema : pyarrow.Schema
        The schema of `Table.files`.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    partition : sequence of PartitionColumn
        The fields of `partition` in `files_schema`: a spec may call one otherwise, or another one so.

    Returns
    -------
    pyarrow.Table
        Rows of `manifest_files`, in their order: none that could match is missing.
    """
    if row_filter is None or not manifest_files.num_rows:
        return manifest_files
    columns = {column.field_id: column for column in partition}
    parquet, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    rows = manifest_files.to_pylist()
    # Fragments of files that are never opened: they carry the guarantees.
    fragments = [
        parquet.make_fragment(str(i), local, partition_expression=_guarantee(row, specs, columns))
        for i, row in enumerate(rows)
    ]
    kept = ds.FileSystemDataset(fragments, files_schema, parquet, local).get_fragments(filter=row_filter)
    return manifest_files.take(pa.array(sorted(int(fragment.path) for fragment in kept), pa.int64()))


def _guarantee(
    row: Mapping[str, Any], specs: Mapping[int, PartitionSpec], columns: Mapping[int, PartitionColumn]
) -> pc.Expression:
    known = pc.field("spec_id") == pa.scalar(row["partition_spec_id"], pa.int32())
    known &= pc.field("manifest_path") == row["manifest_path"]
    if row["content"] == "data":
        known &= pc.field("content") == "data"
    spec = specs.get(row["partition_spec_id"])
    for field, summary in zip(spec.fields if spec else (), row["partitions"] or (), strict=False):
        column = columns[field.field_id]
        if column.type is None or column.type in _UNSAFE_TYPES or summary["contains_null"]:
            continue
        if summary["contains_nan"] is not False and column.type in ("float", "double"):
            continue
        for side, bound in (("lower", summary["lower_bound"]), ("upper", summary["upper_bound"])):
            value = _scalar(column.type, bound)
            if value is not None:
                reference = pc.field("partition", column.name)
                known &= reference >= value if side == "lower" else reference <= value
    return known


def _scalar(type_text: str, bound: bytes | None) -> pa.Scalar | None:
    if bound is None:
        return None
    try:
        return pa.scalar(decode_value(type_text, bound), to_arrow_type(type_text))
    except (ValueError, TypeError, pa.ArrowException):
        return None
