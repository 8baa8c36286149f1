"""Roll-ups by manifest from committed manifest statistics, in place of the manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import to_numpy
from icestats.answers.schemas import MANIFEST_GROUPS, ROLLUP_CELLS
from icestats.errors import IcestatsError
from icestats.iceberg.metadata import Field
from icestats.iceberg.storage import FileReader
from icestats.read.manifests.manifest_pool import ManifestToRead
from icestats.read.manifests.manifests import RollUps, manifests_to_read
from icestats.read.puffin.puffin import read_blob
from icestats.read.puffin.statistics_files import MANIFEST_STATISTICS, CommittedBlob
from icestats.read.rollups.manifest_statistics import MOST_ROWS_A_MANIFEST, ManifestStatistics
from icestats.read.rollups.rollup_merge import merge_groups_cells, merge_manifests, take_columns

_LEAST_SHARE_KNOWN = 0.5
"""A blob that has a smaller share of the manifests, in bytes, is not used: the local cache may have more."""

_MOST_TRIED = 10
"""Blobs, the nearest first: a table may name one file any number of times."""
_ReadManifests = Callable[[Sequence[ManifestToRead]], RollUps]
"""Reads the roll-up by manifest of manifests, with all columns of the snapshot."""


class CommittedRollups:
    """The roll-up by manifest of a snapshot, from committed statistics; only the wanted columns are decoded.

    Parameters
    ----------
    storage : FileReader
        Where to read blobs from.
    manifest_files : pyarrow.Table
        `schemas.MANIFEST_FILES`: all manifests of the snapshot.
    columns : sequence of Field
        All columns of the snapshot.
    on_unused : callable
        Takes the error that says why a blob is not used.
    """

    def __init__(
        self,
        storage: FileReader,
        manifest_files: pa.Table,
        columns: Sequence[Field],
        on_unused: Callable[[IcestatsError], None],
    ) -> None:
        self._storage = storage
        self._manifest_files = manifest_files
        self._columns = columns
        self._opened: dict[tuple[str, int], _Opened | None] = {}
        self._on_unused = on_unused

    def read(
        self, blobs: Iterable[CommittedBlob], columns: Sequence[Field], read_manifests: _ReadManifests
    ) -> RollUps | None:
        """Return the roll-up by manifest of some columns from the nearest usable blob.

        Parameters
        ----------
        blobs : iterable of CommittedBlob
            The table's blobs, the nearest first.
        columns : sequence of Field
            The columns that are wanted.
        read_manifests : callable
            Reads the manifests that the blob does not have: they are newer.

        Returns
        -------
        RollUps or None
            Without partitions; None where there is no usable blob that has most of these manifests. A cell has the
            same figure as the manifest gives, or the number of files that lack it; it has no sum over a part of the
            files.
        """
        for found in islice((one for one in blobs if one.blob.type == MANIFEST_STATISTICS), _MOST_TRIED):
            try:
                opened = self._open(found, read_manifests)
                if opened is not None:
                    return opened.build(columns)
            except IcestatsError as error:
                self._on_unused(error)
        return None

    def _open(self, found: CommittedBlob, read_manifests: _ReadManifests) -> _Opened | None:
        key = (found.statistics_path, found.blob.offset)
        if key not in self._opened:
            payload = read_blob(self._storage, found.blob, found.statistics_path)
            most_rows = MOST_ROWS_A_MANIFEST * max(len(self._manifest_files), 10)
            statistics = ManifestStatistics(payload, found.statistics_path, most_rows)
            places = _find_places(statistics, self._manifest_files)
            _check_counts(found, statistics, self._manifest_files, places)
            self._opened[key] = _match(statistics, self._manifest_files, places, self._columns, read_manifests)
        return self._opened[key]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A blob that has most of a snapshot's manifests."""

    statistics: ManifestStatistics
    chosen: npt.NDArray[np.int64]
    """The rows of manifests that the snapshot has."""
    newer: RollUps | None
    """The roll-up of the manifests that the blob does not have."""
    columns: Sequence[Field]
    """The columns of `newer`."""
    paths: pa.ChunkedArray
    """All manifests of the snapshot, in their order."""

    def build(self, columns: Sequence[Field]) -> RollUps:
        """Build the roll-up of some columns."""
        manifests = self.statistics.manifests.take(pa.array(self.chosen))
        cells = self.statistics.build_cells(columns, self.chosen)
        if self.newer is not None:
            newer = take_columns(self.newer.manifest_cells, self.columns, columns)
            parts = [_only_manifests(manifests, cells), _only_manifests(self.newer.manifests, newer)]
            manifests, cells = merge_manifests(parts, self.paths.to_pylist(), len(columns))
        return _only_manifests(manifests, cells, merge_groups_cells(cells, columns))


def _find_places(statistics: ManifestStatistics, manifest_files: pa.Table) -> npt.NDArray[np.int64]:
    """Return which row of a blob each manifest has; -1: none."""
    places = pc.index_in(manifest_files["manifest_path"], statistics.manifests["manifest_path"])
    found = to_numpy(places, null=-1).astype(np.int64)
    # Place -1, of a path that the blob does not have, gets a length that no manifest has.
    lengths = np.array([*statistics.manifest_lengths, -1], np.int64)[found]
    found[lengths != to_numpy(manifest_files["manifest_length"])] = -1
    return found


def _check_counts(
    found: CommittedBlob, statistics: ManifestStatistics, manifest_files: pa.Table, places: npt.NDArray[np.int64]
) -> None:
    """Refuse a blob of other numbers of files or rows than the manifest list has."""
    has, stated = pa.array(places >= 0), statistics.manifests.take(pa.array(places[places >= 0]))
    for name, kind in (("live_file_count", "files"), ("record_count", "rows")):
        added, existing = (manifest_files[f"{how}_{kind}_count"].filter(has) for how in ("added", "existing"))
        listed = pc.add(added, existing)
        refuted = to_numpy(pc.fill_null(pc.not_equal(stated[name], listed), False))
        if refuted.any():
            place = int(np.flatnonzero(refuted)[0])
            reason = (
                f"its manifest statistics have {stated[name][place].as_py():,} {kind} of a manifest that has "
                f"{listed[place].as_py():,} in the manifest list"
            )
            raise found.refuse(reason)


def _match(
    statistics: ManifestStatistics,
    manifest_files: pa.Table,
    found: npt.NDArray[np.int64],
    columns: Sequence[Field],
    read_manifests: _ReadManifests,
) -> _Opened | None:
    paths, lengths = manifest_files["manifest_path"], to_numpy(manifest_files["manifest_length"])
    missing = np.flatnonzero(found < 0)
    if lengths[missing].sum() > (1 - _LEAST_SHARE_KNOWN) * lengths.sum():
        return None
    newer = read_manifests(manifests_to_read(manifest_files.take(pa.array(missing)))) if missing.size else None
    return _Opened(statistics, found[found >= 0], newer, columns, paths)


def _only_manifests(manifests: pa.Table, cells: pa.Table, table_cells: pa.Table | None = None) -> RollUps:
    nothing = pa.schema([]).empty_table()
    whole = ROLLUP_CELLS.empty_table() if table_cells is None else table_cells
    return RollUps(manifests.cast(MANIFEST_GROUPS), cells.cast(ROLLUP_CELLS), nothing, nothing, whole)
