"""icestats: all roll-ups by manifest, by partition and over the table, bounds included.

`LOCATION [CALLS [WITHOUT]]`: the last of some calls is timed, and so many manifests at the end of the list left out.
"""

from __future__ import annotations

import icestats
from benchmarks.peers.reporting import MAPS, Sums, argument, group_sums, report
from benchmarks.peers.table_location import metadata_path
from icestats.read.manifests import RollUps, manifests_to_read
from icestats.read.rollup_cache import read_cached_rollups
from icestats.storage import Storage


def read(without: int) -> RollUps:
    """Read as `Table` does: through the local cache, which ICESTATS_CACHE may turn off."""
    table = icestats.load(metadata_path(argument(1)))
    manifests = manifests_to_read(table.manifest_files())
    return read_cached_rollups(manifests[: len(manifests) - without], table.metadata, Storage(), table.schema)


def sums(rollups: RollUps) -> Sums:
    cells = rollups.table_cells.to_pylist()
    return group_sums(
        (name, cell["field_id"], cell[name[:-1]], cell[f"{name[:-1]}_file_count"])
        for name in MAPS
        for cell in cells
        if cell[f"{name[:-1]}_file_count"]
    )


if __name__ == "__main__":
    report(lambda: read(int(argument(3, "0"))), sums, calls=int(argument(2, "1")))
