"""PyIceberg: `ManifestFile.fetch_manifest_entry` of each data manifest, and NumPy sums of the four maps; no bounds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import StaticTable

from benchmarks.peers.reporting import MAPS, Sums, argument, group_sums, report
from benchmarks.peers.table_location import metadata_path

Totals = dict[str, tuple[np.ndarray, np.ndarray]]
"""Map -> sum and number of files, by field id."""


def read() -> Totals:
    table = StaticTable.from_metadata(metadata_path(argument()))
    size = table.metadata.last_column_id + 1
    totals = {name: (np.zeros(size, np.int64), np.zeros(size, np.int64)) for name in MAPS}
    for manifest in table.metadata.current_snapshot().manifests(table.io):  # type: ignore[union-attr]  # it has one
        if manifest.content == ManifestContent.DATA:
            files = [entry.data_file for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]
            for name in MAPS:
                add(totals[name], [getattr(file, name) or {} for file in files])
    return totals


def add(total: tuple[np.ndarray, np.ndarray], maps: list[Mapping[int, int]]) -> None:
    keys = np.fromiter((key for found in maps for key in found), np.int64)
    values = np.fromiter((value for found in maps for value in found.values()), np.int64)
    np.add.at(total[0], keys, values)
    np.add.at(total[1], keys, 1)


def sums(totals: Totals) -> Sums:
    return group_sums(
        (name, key, total[key], count[key])
        for name, (total, count) in totals.items()
        for key in np.flatnonzero(count).tolist()
    )


if __name__ == "__main__":
    report(read, sums)
