"""Sizes of files that Iceberg's `add_files`, `migrate` and `snapshot` take in: no snapshot's summary has them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icestats
from icestats.iceberg.storage import local_path


@pytest.mark.parametrize("later_append_count", [0, 2])
def test_the_size_of_files_is_unknown_where_a_summary_leaves_it_out(catalog, catalog_properties, later_append_count):
    rows = pa.table({"id": np.random.default_rng(1).integers(0, 1 << 60, 50_000)})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    assert icestats.load("db.t", catalog=catalog_properties).overview().file_size_in_bytes > 100_000
    path = local_path(table.metadata_location)
    document = json.loads(path.read_text())
    summary = document["snapshots"][0]["summary"]
    del summary["added-files-size"]
    summary["total-files-size"] = "0"  # as Iceberg 1.12 writes it
    path.write_text(json.dumps(document))
    for _ in range(later_append_count):
        table.refresh().append(rows.slice(0, 1))
    loaded = icestats.load("db.t", catalog=catalog_properties)
    assert int(loaded.snapshot.summary["total-files-size"]) < 10_000
    assert loaded.overview().file_size_in_bytes is None
    assert "size of files          unknown" in repr(loaded)
    live = pc.sum(loaded.files()["file_size_in_bytes"]).as_py()
    assert loaded._find_size_bytes() == live, "what sketches by partition may take by default is a share of it"
