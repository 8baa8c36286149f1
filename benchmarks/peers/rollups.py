"""icestats: all roll-ups by manifest, by partition and over the table, bounds included; `LOCATION [CALLS]`."""

from __future__ import annotations

import sys

import icestats
from benchmarks.peers.reporting import MAPS, Sums, argument, group_sums, report
from benchmarks.peers.table_location import metadata_path
from icestats.read.manifests import RollUps, manifests_to_read, read_rollups
from icestats.storage import Storage


def read() -> RollUps:
    table = icestats.load(metadata_path(argument()))
    manifests = manifests_to_read(table.manifest_files())
    return read_rollups(manifests, table.metadata, Storage(), table.schema)


def sums(rollups: RollUps) -> Sums:
    cells = rollups.table_cells.to_pylist()
    return group_sums(
        (name, cell["field_id"], cell[name[:-1]], cell[f"{name[:-1]}_file_count"])
        for name in MAPS
        for cell in cells
        if cell[f"{name[:-1]}_file_count"]
    )


if __name__ == "__main__":
    report(read, sums, calls=int(argument(2)) if len(sys.argv) > 2 else 1)
