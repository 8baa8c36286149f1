"""Live files in little memory: only what lists of files show and sort by, their paths as folders and names."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks
from icestats.iceberg.metadata import Field
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics
from icestats.table.table import Table

_PART = 48
"""Number of manifests whose files are read at a time."""
_KEPT = ("content", "folder", "file_name", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes")
_METRICS = {"nulls": "null_value_count", "lower": "lower_bound", "upper": "upper_bound"}


def read_file_listing(table: Table, column: Field | None) -> Iterator[tuple[pa.Table, int, int]]:
    """Read the live files of a snapshot, part by part.

    Parameters
    ----------
    table : Table
        The table.
    column : Field or None
        The column whose nulls and bounds to read.

    Yields
    ------
    pyarrow.Table
        The files so far, as `read_listed_files` gives them.
    int
        The number of manifests read.
    int
        The number of all manifests.
    """
    manifest_files = table.manifest_files()
    count = manifest_files.num_rows
    parts: list[pa.Table] = []
    for start in range(0, max(count, 1), _PART):
        parts.append(read_listed_files(table, manifest_files.slice(start, _PART), column))
        done, so_far = min(start + _PART, count), pa.concat_tables(parts)
        yield so_far.unify_dictionaries() if done == count else so_far, done, count


def read_listed_files(table: Table, manifest_files: pa.Table, column: Field | None) -> pa.Table:
    """Read the live files of some manifests.

    Parameters
    ----------
    table : Table
        The table.
    manifest_files : pyarrow.Table
        Some of `table.manifest_files()`.
    column : Field or None
        The column whose nulls and bounds to read.

    Returns
    -------
    pyarrow.Table
        One row a file: columns of `schemas.file_metrics_schema`, paths split; `manifest_path`; `nulls`, `lower` and
        `upper` of the column, null where they are unknown.
    """
    source, field_ids = table._source, [] if column is None else [column.field_id]
    manifests = manifests_to_read(manifest_files)
    files = read_file_metrics(manifests, source.metadata, source.storage, field_ids, splits_paths=True)
    listed = {name: files[name] for name in _KEPT}
    listed["manifest_path"] = pa.DictionaryArray.from_arrays(
        combine_chunks(files["manifest_index"]), combine_chunks(manifest_files["manifest_path"])
    )
    for name, metric in _METRICS.items():
        unknown = pa.nulls(len(files), pa.int64() if name == "nulls" else pa.binary())
        listed[name] = unknown if column is None else files[f"{metric}_{column.field_id}"]
    return pa.table(listed).combine_chunks()


def file_path(files: pa.Table, row: int) -> str:
    """Return the path of one of them."""
    return f"{files['folder'][row].as_py()}{files['file_name'][row].as_py()}"


def find_file(files: pa.Table, path: str) -> int:
    """Return the row of a path; -1 if there is none."""
    rows = pc.equal(files["file_name"], path.rsplit("/", 1)[-1]).to_numpy()
    return next((int(row) for row in rows.nonzero()[0] if file_path(files, int(row)) == path), -1)
