"""PyIceberg: `inspect.data_files()`, one row a live data file; nothing is rolled up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyiceberg.table import StaticTable

from benchmarks.peers.reporting import MAPS, Sums, argument, group_sums, report
from benchmarks.peers.table_location import metadata_path


def read() -> pa.Table:
    return StaticTable.from_metadata(metadata_path(argument())).inspect.data_files()


def sums(files: pa.Table) -> Sums:
    rows = []
    for name in MAPS:
        chunks = files[name].chunks
        keys = np.concatenate([chunk.keys.to_numpy() for chunk in chunks])
        values = np.concatenate([chunk.items.to_numpy() for chunk in chunks])
        for key in np.unique(keys):
            found = values[keys == key]
            rows.append((name, key, found.sum(), len(found)))
    return group_sums(rows)


if __name__ == "__main__":
    report(read, sums)
