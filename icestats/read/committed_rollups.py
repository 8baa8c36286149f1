"""Roll-ups by manifest from committed manifest statistics, in place of the manifests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from icestats.errors import IcestatsError
from icestats.metadata import Field
from icestats.read.manifest_pool import ManifestToRead
from icestats.read.manifest_statistics import ManifestStatistics, read_manifest_statistics
from icestats.read.manifest_statistics_layout import MANIFEST_STATISTICS
from icestats.read.manifests import RollUps, manifests_to_read
from icestats.read.puffin import read_blob
from icestats.read.rollup_merge import merge_groups_cells, merge_manifests, take_manifests
from icestats.read.statistics_files import CommittedBlob
from icestats.schemas import MANIFEST_GROUPS, ROLLUP_CELLS
from icestats.storage import FileReader

_LOG = logging.getLogger("icestats")
LEAST_SHARE_KNOWN = 0.5
"""Committed statistics of a smaller part of the manifests, in bytes, are not used: the local cache may know more."""

ReadManifests = Callable[[Sequence[ManifestToRead]], RollUps]
"""Reads the roll-up by manifest of manifests."""


def read_committed_rollups(
    storage: FileReader,
    blobs: Iterable[CommittedBlob],
    manifest_files: pa.Table,
    columns: Sequence[Field],
    read: ReadManifests,
) -> RollUps | None:
    """Return the roll-up by manifest from the nearest usable blob, reading only the manifests that it does not know.

    Parameters
    ----------
    storage : FileReader
        Where to read the blob from.
    blobs : iterable of CommittedBlob
        The table's blobs, the nearest first.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`: all manifests of a snapshot.
    columns : sequence of Field
        The columns that are wanted.
    read : callable
        Reads the manifests that are new since.

    Returns
    -------
    RollUps or None
        Without partitions; None where no blob of most of these manifests can be used. Cells are known, or unknown with
        the number of files that lack the figure, as those of the manifests are; sums over a part of the files are not
        there. Why a blob is not used is logged as a warning of the logger `icestats`.
    """
    for found in blobs:
        if found.blob.type != MANIFEST_STATISTICS:
            continue
        try:
            payload = read_blob(storage, found.blob, found.statistics_path)
            statistics = read_manifest_statistics(payload, columns, found.statistics_path)
        except IcestatsError as error:
            _LOG.warning("committed manifest statistics are not used: %s", error)
            continue
        rollups = _apply(statistics, manifest_files, columns, read)
        if rollups is not None:
            return rollups
    return None


def _apply(
    statistics: ManifestStatistics, manifest_files: pa.Table, columns: Sequence[Field], read: ReadManifests
) -> RollUps | None:
    place = {path: i for i, path in enumerate(statistics.manifests["manifest_path"].to_pylist())}
    paths, lengths = manifest_files["manifest_path"].to_pylist(), manifest_files["manifest_length"].to_numpy()
    # The length behind the last one is that of a manifest which is not there.
    known_lengths = np.array([*statistics.manifest_lengths, -1], np.int64)
    found = np.array([place.get(path, -1) for path in paths], np.int64)
    found[known_lengths[found] != lengths] = -1
    missing = np.flatnonzero(found < 0)
    if lengths[missing].sum() > (1 - LEAST_SHARE_KNOWN) * lengths.sum():
        return None
    parts = [_only_manifests(*take_manifests(statistics.manifests, statistics.cells, found[found >= 0], len(columns)))]
    if missing.size:
        parts.append(read(manifests_to_read(manifest_files.take(pa.array(missing)))))
    groups, cells = merge_manifests(parts, paths, len(columns))
    return _only_manifests(groups, cells, merge_groups_cells(cells, columns))


def _only_manifests(manifests: pa.Table, cells: pa.Table, table_cells: pa.Table | None = None) -> RollUps:
    nothing = pa.schema([]).empty_table()
    whole = ROLLUP_CELLS.empty_table() if table_cells is None else table_cells
    return RollUps(manifests.cast(MANIFEST_GROUPS), cells.cast(ROLLUP_CELLS), nothing, nothing, whole)
