"""Roll-ups by manifest from committed manifest statistics, in place of the manifests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import MANIFEST_GROUPS, ROLLUP_CELLS
from icestats.errors import IcestatsError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import FileReader
from icestats.read.manifests.manifest_pool import ManifestToRead
from icestats.read.manifests.manifests import RollUps, manifests_to_read
from icestats.read.puffin.puffin import read_blob
from icestats.read.puffin.statistics_files import CommittedBlob
from icestats.read.rollups.manifest_statistics import ManifestStatistics
from icestats.read.rollups.manifest_statistics_layout import MANIFEST_STATISTICS
from icestats.read.rollups.rollup_merge import merge_groups_cells, merge_manifests, take_columns, take_manifests

_LOG = logging.getLogger("icestats")
LEAST_SHARE_KNOWN = 0.5
"""Committed statistics of a smaller part of the manifests, in bytes, are not used: the local cache may know more."""

ReadManifests = Callable[[Sequence[ManifestToRead]], RollUps]
"""Reads the roll-up by manifest of manifests, with all columns of the snapshot."""


class CommittedRollups:
    """The roll-up by manifest of a snapshot as committed statistics have it: what is asked for is decoded, no more.

    Parameters
    ----------
    storage : FileReader
        Where to read blobs from.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`: all manifests of the snapshot.
    columns : sequence of Field
        All columns of the snapshot.

    Notes
    -----
    Why a blob is not used is logged once, as a warning of the logger `icestats`.
    """

    def __init__(self, storage: FileReader, manifest_files: pa.Table, columns: Sequence[Field]) -> None:
        self._storage = storage
        self._manifest_files = manifest_files
        self._columns = columns
        self._opened: dict[tuple[str, int], _Opened | None] = {}
        self._said: set[str] = set()

    def read(
        self, blobs: Iterable[CommittedBlob], columns: Sequence[Field], read_manifests: ReadManifests
    ) -> RollUps | None:
        """Return the roll-up by manifest of some columns from the nearest usable blob.

        Parameters
        ----------
        blobs : iterable of CommittedBlob
            The table's blobs, the nearest first.
        columns : sequence of Field
            The columns that are wanted.
        read_manifests : callable
            Reads the manifests that no blob knows, which are new since.

        Returns
        -------
        RollUps or None
            Without partitions; None where no blob of most of these manifests can be used. Cells are known, or unknown
            with the number of files that lack the figure, as those of the manifests are; sums over a part of the files
            are not there.
        """
        for found in blobs:
            if found.blob.type != MANIFEST_STATISTICS:
                continue
            try:
                opened = self._open(found, read_manifests)
                if opened is not None:
                    return opened.build(columns)
            except IcestatsError as error:
                if str(error) not in self._said:
                    _LOG.warning("committed manifest statistics are not used: %s", error)
                    self._said.add(str(error))
        return None

    def _open(self, found: CommittedBlob, read_manifests: ReadManifests) -> _Opened | None:
        key = (found.statistics_path, found.blob.offset)
        if key not in self._opened:
            payload = read_blob(self._storage, found.blob, found.statistics_path)
            statistics = ManifestStatistics(payload, found.statistics_path)
            self._opened[key] = _match(statistics, self._manifest_files, self._columns, read_manifests)
        return self._opened[key]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A blob that knows most of a snapshot's manifests."""

    statistics: ManifestStatistics
    chosen: npt.NDArray[np.int64]
    """Those of its manifests that the snapshot has."""
    newer: RollUps | None
    """Of the manifests that it does not know."""
    columns: Sequence[Field]
    """Those of `newer`."""
    paths: Sequence[str]
    """All manifests of the snapshot, in their order."""

    def build(self, columns: Sequence[Field]) -> RollUps:
        """Build the roll-up of some columns."""
        known = (self.statistics.manifests, self.statistics.build_cells(columns), self.chosen, len(columns))
        parts = [_only_manifests(*take_manifests(*known))]
        if self.newer is not None:
            cells = take_columns(self.newer.manifest_cells, self.columns, columns)
            parts.append(_only_manifests(self.newer.manifests, cells))
        groups, cells = merge_manifests(parts, self.paths, len(columns))
        return _only_manifests(groups, cells, merge_groups_cells(cells, columns))


def _match(
    statistics: ManifestStatistics, manifest_files: pa.Table, columns: Sequence[Field], read_manifests: ReadManifests
) -> _Opened | None:
    place = {path: i for i, path in enumerate(statistics.manifests["manifest_path"].to_pylist())}
    paths, lengths = manifest_files["manifest_path"].to_pylist(), to_numpy(manifest_files["manifest_length"])
    # The length behind the last one is that of a manifest which is not there.
    known_lengths = np.array([*statistics.manifest_lengths, -1], np.int64)
    found = np.array([place.get(path, -1) for path in paths], np.int64)
    found[known_lengths[found] != lengths] = -1
    missing = np.flatnonzero(found < 0)
    if lengths[missing].sum() > (1 - LEAST_SHARE_KNOWN) * lengths.sum():
        return None
    newer = read_manifests(manifests_to_read(manifest_files.take(pa.array(missing)))) if missing.size else None
    return _Opened(statistics, found[found >= 0], newer, columns, paths)


def _only_manifests(manifests: pa.Table, cells: pa.Table, table_cells: pa.Table | None = None) -> RollUps:
    nothing = pa.schema([]).empty_table()
    whole = ROLLUP_CELLS.empty_table() if table_cells is None else table_cells
    return RollUps(manifests.cast(MANIFEST_GROUPS), cells.cast(ROLLUP_CELLS), nothing, nothing, whole)
