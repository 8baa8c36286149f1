"""icestats: all roll-ups by manifest, by partition and over the table, bounds included.

`LOCATION [CALLS [all-but-one]]`: the last of some calls is timed; `all-but-one` leaves out the last data manifest.
"""

from __future__ import annotations

from benchmarks.peers.reporting import BOUNDS, MAPS, Sums, argument, group_sums, report
from benchmarks.peers.table_location import metadata_path
from icestats import load
from icestats.iceberg.storage import Storage
from icestats.read.manifests.manifests import RollUps, manifests_to_read
from icestats.read.rollups.rollup_cache import read_cached_rollups


def read() -> RollUps:
    """Read as `Table` does: through the local cache, which ICESTATS_CACHE may turn off."""
    table = load(metadata_path(argument(1)))
    manifests = manifests_to_read(table.manifest_files())
    if argument(3) == "all-but-one":
        manifests.remove([manifest for manifest in manifests if manifest.content == "data"][-1])
    return read_cached_rollups(manifests, table.metadata, Storage(), table.schema)


def sums(rollups: RollUps) -> Sums:
    cells = rollups.table_cells.to_pylist()
    found = group_sums(
        (name, cell["field_id"], cell[name[:-1]], cell[f"{name[:-1]}_file_count"])
        for name in MAPS
        for cell in cells
        if cell[f"{name[:-1]}_file_count"]
    )
    bounds = {
        name: {
            cell["field_id"]: (cell[name[:-1]].hex(), cell[f"{name[:-1]}_file_count"])
            for cell in cells
            if cell[f"{name[:-1]}_file_count"]
        }
        for name in BOUNDS
    }
    return {**found, **bounds}


if __name__ == "__main__":
    report(read, sums, calls=int(argument(2, "1")))
