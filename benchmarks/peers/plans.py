"""Plans and estimates of one filter, and layouts: seconds of each call, as JSON. `WAY LOCATION FILTER`.

WAY is one of `WAYS`; LOCATION is the folder of `registered_table`, for estimates with manifest statistics committed;
for `plan_location` it is the table's own folder.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.table_location import metadata_path

if TYPE_CHECKING:
    from icestats import Table


def main() -> None:
    way, location, row_filter = sys.argv[1:]
    seconds, counts = [], []
    for _ in range(3):
        call = WAYS[way](location, row_filter)
        started = time.perf_counter()
        counts.append(call())
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": seconds, "counts": counts}))


def _plan(location: str, row_filter: str) -> Callable[[], int]:
    table = _load_registered(location)
    return lambda: len(table.plan(row_filter).kept_file_paths())


def _plan_location(location: str, row_filter: str) -> Callable[[], int]:
    import icestats

    table = icestats.load(metadata_path(location))
    return lambda: len(table.plan(row_filter).kept_file_paths())


def _layout(location: str, _: str) -> Callable[[], int]:
    table = _load_registered(location)
    return lambda: table.layout().spread.file_count


def _pyiceberg(location: str, row_filter: str) -> Callable[[], int]:
    from pyiceberg.catalog.sql import SqlCatalog

    from benchmarks.registered_table import CATALOG, NAME, catalog_properties

    with SqlCatalog(CATALOG, **catalog_properties(Path(location))) as catalog:
        table = catalog.load_table(NAME)
    return lambda: sum(1 for _ in table.scan(row_filter).plan_files())


def _estimate(location: str, row_filter: str) -> Callable[[], int]:
    table = _load_registered(location)
    return lambda: _ask(table, row_filter)


def _estimate_again(location: str, row_filter: str) -> Callable[[], int]:
    table = _load_registered(location)
    _ask(table, row_filter)
    return lambda: _ask(table, row_filter)


def _load_registered(location: str) -> Table:
    import icestats
    from benchmarks.registered_table import CATALOG, NAME, catalog_properties

    return icestats.load(NAME, catalog={**catalog_properties(Path(location)), "name": CATALOG})


def _ask(table: Table, row_filter: str) -> int:
    found = table.estimate(row_filter, sources=["manifests"])["manifests"]
    if table._reader.known_rollups() is not None:
        raise SystemExit("the manifests were read, the blob was not used")
    rows: float = found.rows
    return round(rows)


WAYS = {
    "plan": _plan,
    "plan_location": _plan_location,
    "pyiceberg": _pyiceberg,
    "layout": _layout,
    "estimate": _estimate,
    "estimate_again": _estimate_again,
}

if __name__ == "__main__":
    main()
