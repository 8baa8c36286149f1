"""Partition statistics that are added to an ancestor's file are those of all manifests, or all manifests are read."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from icestats.commit.partition_statistics_file import build_stored_table
from icestats.read.partitions.partition_history import read_snapshot_partitions
from tests.added_rows import numbers
from tests.stored_partitions import expire_all_but_current, make, stored_path
from tests.written_deletes import delete_equal, list_data_files

pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
def test_every_step_of_a_history_equals_a_full_computation(catalog: SqlCatalog, load, catalog_properties):
    """Appends, overwrites, deletes, merged manifests, spec and schema changes, expired snapshots."""
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(3), "bucket"))
    schema = Schema(
        NestedField(1, "id", LongType(), required=False), NestedField(2, "at", TimestamptzType(), required=False)
    )
    for seed in range(3):
        name = f"db.t{seed}"
        table = catalog.create_table(name, schema, partition_spec=spec)
        how = [
            change_and_compare(random.Random(seed * 100 + step), table, lambda name=name: load(name))
            for step in range(9)
        ]
        assert {"incremental", "full"} <= set(how)


def change_and_compare(rng: random.Random, table: IcebergTable, load) -> str:
    table.refresh()
    kind = rng.choice(["append", "append", "append", "overwrite", "delete", "merge", "spec", "column", "expire"])
    ids = [rng.randrange(60) for _ in range(8)]
    rows = numbers(ids).select(["id", "at"])
    if kind == "overwrite":
        table.overwrite(rows, f"id < {rng.randrange(30, 60)}")
    elif kind == "delete" and table.current_snapshot() is not None:
        table.delete(f"id >= {rng.randrange(30, 60)}")
    elif kind == "merge":
        with table.transaction() as change:
            change.set_properties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})
        table.append(rows)
        with table.transaction() as change:
            change.set_properties({"commit.manifest-merge.enabled": "false"})
    elif kind == "spec":
        with table.update_spec() as update:
            if len(table.spec().fields) > 1:
                update.remove_field("number")
            else:
                update.add_field("at", DayTransform(), "number")
    elif kind == "column" and len(table.schema().fields) < 3:
        with table.update_schema() as update:
            update.add_column("note", StringType())
    elif kind == "expire":
        expire_all_but_current(table)
    table.append(rows)
    loaded = load()
    made = make(loaded)
    expected = loaded._reader
    full = type(expected)(loaded._source, loaded.snapshot, loaded.schema)
    found = read_snapshot_partitions(
        loaded.metadata,
        loaded._source.storage,
        loaded.snapshot,
        loaded.manifest_files(),
        loaded.schema.columns,
        lambda: full.rollups,
        incremental=False,
    )
    stored = build_stored_table(found.statistics, found.partition, loaded.metadata.format_version)
    assert made.of_metadata.partitions.equals(stored), kind
    if rng.random() < 0.8:
        made.commit()
        assert load().partitions().equals(load().read().partitions())
    return "incremental" if "added to the file of" in repr(made) else "full"


def test_a_rewritten_manifest_makes_the_computation_full_and_says_so(small_table, load):
    make(load()).commit()
    small_table.delete("id = 5")
    text = repr(make(load()))
    assert "manifests read: the file of snapshot" in text
    assert "have been rewritten since" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("data_record_count", "data_record_count, its manifest list has 200"),
        ("equality_delete_record_count", "equality_delete_record_count, its manifest list has 1"),
    ],
)
def test_counts_that_do_not_add_up_are_not_added_to(small_table, load, name, said):
    delete_equal(small_table, pa.table({"id": pa.array([3], pa.int64())}), list_data_files(small_table)[0])
    make(load(), with_column_stats=False).commit()
    path = stored_path(load())
    table = pq.read_table(path)
    place = table.column_names.index(name)
    counts = table[name].to_pylist()
    counts[0] += 1
    table = table.set_column(place, table.schema.field(place), pa.array(counts, pa.int64()))
    pq.write_table(table, path, store_schema=False)
    small_table.append(numbers([500]))
    text = repr(make(load(), with_column_stats=False))
    assert "as the sum of " in text
    assert said in text
