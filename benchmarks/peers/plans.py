"""Plans of one filter, and layouts: seconds of each call, as JSON. WAY is `icestats`, `layout` or `pyiceberg`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from benchmarks.peers.table_location import metadata_path


def main() -> None:
    way, location, row_filter = sys.argv[1:]
    seconds, counts = [], []
    for _ in range(3):
        call = WAYS[way](location, row_filter)
        started = time.perf_counter()
        counts.append(call())
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": seconds, "counts": counts}))


def _icestats(location: str, row_filter: str) -> Callable[[], int]:
    import icestats

    table = icestats.load(metadata_path(location))
    return lambda: len(table.plan(row_filter).kept_file_paths())


def _layout(location: str, _: str) -> Callable[[], int]:
    import icestats

    table = icestats.load(metadata_path(location))
    return lambda: table.layout().spread.file_count


def _pyiceberg(location: str, row_filter: str) -> Callable[[], int]:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(metadata_path(location))
    return lambda: sum(1 for _ in table.scan(row_filter).plan_files())


WAYS = {"icestats": _icestats, "layout": _layout, "pyiceberg": _pyiceberg}

if __name__ == "__main__":
    main()
