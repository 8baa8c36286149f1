"""DataFusion: Arrow batches of the four maps from the data manifests, summed with NumPy; no bounds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from datafusion import SessionConfig, SessionContext, col, lit

from benchmarks.peers.reporting import MAPS, Sums, argument, group_sums, report
from benchmarks.peers.table_location import last_field_id, manifest_list_path


def link_data_manifests(location: str, folder: str) -> None:
    """Make a folder of the data manifests alone, which is what a listing of DataFusion can be of."""
    found = SessionContext().read_avro(manifest_list_path(location)).to_pydict()
    for path, content in zip(found["manifest_path"], found["content"], strict=True):
        if content == 0:
            (Path(folder) / Path(path).name).symlink_to(path)


def read_maps(names: Sequence[str], folder: str) -> Iterator[list[pa.Array]]:
    """Yield some maps of the live entries, batch by batch."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    context = SessionContext(SessionConfig().with_target_partitions(threads))
    context.register_avro("manifests", folder)
    live = context.table("manifests").filter(col("status") != lit(2))
    for batch in live.select(*(col("data_file")[name] for name in names)).execute_stream():
        yield batch.to_pyarrow().columns


def new_totals(location: str) -> np.ndarray:
    return np.zeros((len(MAPS), 2, last_field_id(location) + 1), np.int64)


def add_sums(totals: np.ndarray, columns: Sequence[pa.Array]) -> None:
    for number, column in enumerate(columns):
        entries = column.flatten()
        keys, values = entries.field(0).to_numpy(), entries.field(1).to_numpy()
        np.add.at(totals[number, 0], keys, values)
        totals[number, 1] += np.bincount(keys, minlength=totals.shape[2])


def read(location: str, folder: str) -> np.ndarray:
    totals = new_totals(location)
    for columns in read_maps(MAPS, folder):
        add_sums(totals, columns)
    return totals


def sums(totals: np.ndarray) -> Sums:
    return group_sums(
        (name, key, totals[number, 0, key], totals[number, 1, key])
        for number, name in enumerate(MAPS)
        for key in np.flatnonzero(totals[number, 1]).tolist()
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        link_data_manifests(argument(), folder)
        report(lambda: read(argument(), folder), sums)


if __name__ == "__main__":
    main()
