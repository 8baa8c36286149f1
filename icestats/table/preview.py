"""Previews of formats that tables do not have yet, in files of their own: a table is read for them, never changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

from icestats.errors import CallError, CommitError, StatisticsMissingError
from icestats.iceberg.metadata import Snapshot
from icestats.iceberg.metadata_json import read_document
from icestats.table.table import Table, check_table

__all__ = ["build_content_stats", "read_preview_manifest_list", "write_preview_manifest_list"]


def write_preview_manifest_list(
    table: Table, folder: str | Path, *, i_know_this_breaks_pyiceberg: bool = False
) -> Path:
    """Copy a table's metadata, with the proposal's fields 521 to 527 in the manifest list.

    Parameters
    ----------
    table : Table
        Of one snapshot; its manifests and data files stay where they are, and the table itself is not changed.
    folder : str or path
        A new local folder, the location of the copy. Its property `gc.enabled` is false, as the files are the table's.
    i_know_this_breaks_pyiceberg : bool
        Must be said: PyIceberg 0.12 fails on a manifest list with maps that it does not know.

    Returns
    -------
    pathlib.Path
        The copy's metadata.json. Spark reads the copy by its folder, and `icestats.load` by this file.

    Raises
    ------
    CallError
        It was not said; the folder exists, or is none.
    CommitError
        The folder cannot be written; nothing of it is left.
    StatisticsMissingError
        The table has no snapshot.
    UnsupportedError
        The snapshot has no manifest list.

    Notes
    -----
    Java goes by field ids and ignores these; what it writes next has them no more. Readers of format version 4 would
    take 521 and 522 for other fields. Source: the manifest-level statistics proposal.
    """
    from icestats.commit.preview_manifest_list import build_preview_manifest_list, build_preview_metadata

    if not i_know_this_breaks_pyiceberg:
        raise CallError("PyIceberg cannot read what this writes: say i_know_this_breaks_pyiceberg=True")
    snapshot = _snapshot(table)
    try:
        folder = Path(folder).absolute()
        taken, exists = f"{folder} exists: the copy needs a folder of its own", folder.exists()
    except (TypeError, OSError) as error:
        raise CallError(f"folder is {folder!r:.80}: expected the path of a new local folder") from error
    if exists:
        raise CallError(taken)
    storage = table._source.storage
    data = build_preview_manifest_list(storage, snapshot, table.manifests())
    document = read_document(storage, table._source.metadata_location)
    manifest_list = folder / "metadata" / f"snap-{snapshot.snapshot_id}-preview.avro"
    metadata = folder / "metadata" / "v1.metadata.json"
    try:
        folder.mkdir(parents=True)
        manifest_list.parent.mkdir()
        manifest_list.write_bytes(data)
        metadata.write_bytes(build_preview_metadata(document, snapshot.snapshot_id, str(folder), str(manifest_list)))
        (folder / "metadata" / "version-hint.text").write_text("1")
    except FileExistsError as error:
        # Somebody else's, made while the manifests were read.
        raise CallError(taken) from error
    except (OSError, ValueError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CommitError(f"{folder} cannot be written: {error}") from error
    return metadata


def read_preview_manifest_list(table: Table) -> pa.Table:
    """Read the proposal's fields from a table's manifest list.

    Returns
    -------
    pyarrow.Table
        One row a manifest, in manifest list order: `manifest_path` string, `total_record_count` int64 (rows),
        `total_file_size_in_bytes` int64, `total_column_sizes` map<int32, int64> (bytes), `total_null_value_counts` and
        `total_nan_value_counts` map<int32, int64> (values), `lower_bounds` and `upper_bounds` map<int32, binary>; null
        for manifests of deletes, and where the list does not have the field under the proposal's name and id.
    """
    from icestats.commit.preview_manifest_list import read_proposal_fields

    snapshot = _snapshot(table)
    if snapshot.manifest_list is None:
        raise StatisticsMissingError(f"snapshot {snapshot.snapshot_id} of {table.name} has no manifest list")
    return read_proposal_fields(table._source.storage, snapshot.manifest_list)


def build_content_stats(table: Table) -> bytes:
    """Return the figures of a table's manifests with `content_stats` of format version 4 (id 146), a Parquet file.

    It has the same fields as the blob that `compute(manifests=True)` commits: those of the spec, and the kit's own.
    """
    from icestats.read.rollups.manifest_statistics import write_manifest_statistics

    check_table(table)
    reader = table._reader
    return write_manifest_statistics(
        reader.manifest_files, reader.manifest_rollups, table.schema.columns, compression="zstd"
    )


def _snapshot(table: Table) -> Snapshot:
    check_table(table)
    if table.snapshot is None:
        raise StatisticsMissingError(f"{table.name} has no snapshot yet: there is no manifest list")
    return table.snapshot
