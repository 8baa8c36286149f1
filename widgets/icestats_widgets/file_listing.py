"""All live files of a snapshot in little memory: what the list of files shows and sorts by, and no more."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from icestats.metadata import Field
from icestats.table import Table

_PART = 150
"""Manifests whose files are read at once, in full, before they are cut down."""
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


def read_file_listing(
    table: Table, column: Field | None, progress: Callable[[int, int], None] | None = None
) -> pa.Table:
    """Read the live files of a snapshot.

    Parameters
    ----------
    table : Table
        The table.
    column : Field or None
        The column whose nulls and bounds are wanted.
    progress : callable, optional
        Called with the number of manifests that are done and of all; what it raises stops the reading.

    Returns
    -------
    pyarrow.Table
        One row a live file: columns of `schemas.files_schema`, those that repeat as dictionaries; `folder` and
        `file_name`, which make the path; `nulls`, `lower` and `upper` of the column, null where they are unknown.
    """
    paths = table.manifest_files()["manifest_path"].to_pylist()
    parts = []
    for start in range(0, len(paths), _PART):
        files = table.files(
            columns=[] if column is None else [column.name], manifest_paths=paths[start : start + _PART]
        )
        parts.append(_narrow(files, column))
        if progress is not None:
            progress(min(start + _PART, len(paths)), len(paths))
    return pa.concat_tables(parts).unify_dictionaries() if parts else _narrow(table.files(), column)


def _narrow(files: pa.Table, column: Field | None) -> pa.Table:
    columns = {name: files[name] for name in _KEPT}
    columns |= {name: pc.dictionary_encode(files[name]) for name in _REPEATED}
    parts = pc.extract_regex(files["file_path"], r"(?s)^(?P<folder>.*/)?(?P<name>[^/]*)$")
    columns["folder"] = pc.dictionary_encode(pc.struct_field(parts, "folder"))
    columns["file_name"] = pc.struct_field(parts, "name")
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
    return pa.table(columns)


def file_paths(files: pa.Table) -> pa.Array:
    """Return the paths of listed files, or of `schemas.files_schema`."""
    if "file_path" in files.column_names:
        return files["file_path"].combine_chunks()
    folders = pc.cast(files["folder"], pa.string())
    return pc.binary_join_element_wise(folders, files["file_name"], "").combine_chunks()


def file_path(files: pa.Table, row: int) -> str:
    """Return the path of one of them."""
    if "file_path" in files.column_names:
        return str(files["file_path"][row])
    return f"{files['folder'][row].as_py()}{files['file_name'][row].as_py()}"


def find_file(files: pa.Table, path: str) -> int:
    """Return the row of a path; -1 where there is none."""
    if "file_path" in files.column_names:
        return int(pc.index(files["file_path"], path).as_py())
    rows = pc.equal(files["file_name"], path.rsplit("/", 1)[-1]).to_numpy()
    return next((int(row) for row in rows.nonzero()[0] if file_path(files, int(row)) == path), -1)
