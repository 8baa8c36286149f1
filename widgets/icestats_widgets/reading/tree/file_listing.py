"""All live files of a snapshot in little memory: only what the list of files shows and sorts by."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icestats.iceberg.metadata import Field
from icestats.table.table import Table

_PART = 48
"""Number of manifests whose files are read in full at a time, before most columns are dropped."""
_KEPT = (
    "content",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "manifest_path",
)
_REPEATED = ("content", "file_format", "manifest_path")


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
        The files so far, one row each: columns of `schemas.files_schema`, those that repeat as dictionaries; `folder`
        and `file_name`, which make the path; `nulls`, `lower` and `upper` of the column, null where they are unknown.
    int
        The number of manifests read.
    int
        The number of all manifests.
    """
    paths = table.manifest_files()["manifest_path"].to_pylist()
    columns = [] if column is None else [column.name]
    parts: list[pa.Table] = []
    for start in range(0, len(paths), _PART):
        files = table.files(columns=columns, manifest_paths=paths[start : start + _PART])
        parts.append(_narrow(files, column))
        done, so_far = min(start + _PART, len(paths)), pa.concat_tables(parts)
        yield so_far.unify_dictionaries() if done == len(paths) else so_far, done, len(paths)
    if not parts:
        yield _narrow(table.files(), column), 0, 0


def _narrow(files: pa.Table, column: Field | None) -> pa.Table:
    columns = {name: files[name] for name in _KEPT}
    columns |= {name: pc.dictionary_encode(files[name]) for name in _REPEATED}
    columns |= split_paths(files["file_path"].combine_chunks())
    kinds = {
        "nulls": ("null_value_counts", pa.int64()),
        "lower": ("lower_bounds", pa.binary()),
        "upper": ("upper_bounds", pa.binary()),
    }
    for name, (source, kind) in kinds.items():
        if column is None:
            columns[name] = pa.chunked_array([pa.nulls(len(files), kind)])
        else:
            columns[name] = pc.map_lookup(files[source], pa.scalar(column.field_id, pa.int32()), "first")
    return pa.table(columns).combine_chunks()


def split_paths(paths: pa.Array) -> dict[str, pa.Array]:
    """Return `folder`, a dictionary, and `file_name`, which make each path."""
    steps = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    first, after = steps.offsets[:-1], steps.offsets[1:]
    folders = pc.binary_join_element_wise(steps.values.take(first), "", "/")
    is_in_folder = pc.equal(pc.list_value_length(steps), 2)
    return {
        "folder": pc.dictionary_encode(pc.if_else(is_in_folder, folders, "")),
        "file_name": steps.values.take(pc.subtract(after, 1)),
    }


def file_path(files: pa.Table, row: int) -> str:
    """Return the path of one of them."""
    if "file_path" in files.column_names:
        return str(files["file_path"][row])
    return f"{files['folder'][row].as_py()}{files['file_name'][row].as_py()}"


def find_file(files: pa.Table, path: str) -> int:
    """Return the row of a path; -1 if there is none."""
    if "file_path" in files.column_names:
        return int(pc.index(files["file_path"], path).as_py())
    rows = pc.equal(files["file_name"], path.rsplit("/", 1)[-1]).to_numpy()
    return next((int(row) for row in rows.nonzero()[0] if file_path(files, int(row)) == path), -1)
