"""Figures of answers beside rows that are counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo, In
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
)

import icestats
from icestats.commit.table_statistics_blobs import build_manifest_statistics_blob
from icestats.scan.scan_job import Sizes
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import TableStatistics
from icestats.table.metadata_statistics import MetadataStatistics
from icestats.table.statistics import Statistics
from tests.computed_statistics import compute_here
from tests.stored_partitions import stored_path
from tests.written_deletes import delete_equal, list_data_files

pytestmark = pytest.mark.usefixtures("no_cache")
NOT_A_NUMBER = np.array([0x7FF8 << 48, 0xFFF8 << 48], np.uint64).view(np.float64)
"""What Java and NumPy write, and what a division of zeros gives on x86."""


def create(catalog: SqlCatalog, by: int | None = None, **types: IcebergType):
    schema = Schema(*(NestedField(i, name, kind) for i, (name, kind) in enumerate(types.items(), 1)))
    fields = [] if by is None else [PartitionField(by, 1000, IdentityTransform(), "part")]
    return catalog.create_table("db.t", schema, partition_spec=PartitionSpec(*fields))


def commit_by_partition(table: icestats.Table, k: int = 200) -> None:
    compute_here(table, by_partition=True, sizes=Sizes(200, 12, k, 12)).commit()


def test_two_filters_that_are_shown_alike_are_two_questions(catalog, load):
    table = create(catalog, by=1, p=LongType(), v=LongType())
    rows = [p for p in range(12) for _ in range(p + 1)]
    table.append(pa.table({"p": rows, "v": rows}))
    commit_by_partition(load("db.t"))
    loaded = load("db.t")
    for last in (10, 11):
        chosen = In("p", {*range(8), last})
        assert loaded.bind(chosen).text == "p in (0, 1, 2, 3, 4, ... 4 more)"
        expected = 36 + last + 1
        assert loaded.merge_partition_sketches("v", chosen).value_count == expected
        assert loaded.histogram("v", where=chosen).n == expected


def test_two_long_texts_that_are_shown_alike_are_two_questions(catalog, load):
    table = create(catalog, by=1, p=StringType(), v=LongType())
    texts = ["a" * 80 + end for end in ("b", "c", "c")]
    table.append(pa.table({"p": texts, "v": [1, 2, 3]}))
    commit_by_partition(load("db.t"))
    loaded = load("db.t")
    assert [loaded.histogram("v", where=EqualTo("p", text)).n for text in texts] == [1, 2, 2]


def test_nan_is_one_value_to_columns_together_whatever_its_bits(catalog, load):
    table = create(catalog, i=LongType(), d=DoubleType())
    numbers = np.repeat(np.arange(6_000), 4)
    d = np.concatenate([np.repeat(NOT_A_NUMBER, [500, 3]), numbers])
    table.append(pa.table({"i": np.concatenate([np.ones(503, np.int64), numbers % 5]), "d": d}))
    compute_here(load("db.t"), together=[("i", "d")]).commit()
    loaded = load("db.t")
    pair = loaded.columns_together()["common_pairs"][0].as_py()[0]
    assert (pair["second"], pair["rows_at_least"], pair["rows_at_most"]) == ("NaN", 503, 503)
    found = loaded.estimate("i = 1 and d is nan", sources=["frequent-items", "combined"])
    assert [(one.rows_lower, one.rows_upper) for one in found] == [(503, 503)] * 2


def test_what_the_ndv_counts_apart_is_said(catalog, load):
    table = create(catalog, d=DoubleType())
    table.append(pa.table({"d": [*NOT_A_NUMBER, 0.0, -0.0]}))
    compute_here(load("db.t")).commit()
    loaded = load("db.t")
    row = loaded.columns().to_pylist()[0]
    assert row["ndv"] == 4
    assert dict(row["provenance"])["ndv"].endswith("0.0 and -0.0, and NaN of other bits, count as different values")
    joined = loaded.estimate_join(loaded, on="d")["join-theta"]
    assert "the NDV of db.t.d counts 0.0 and -0.0, and NaN of other bits, as different values" in joined.assumes


def test_a_value_that_is_too_rare_has_at_most_what_is_said(catalog, load):
    """The sketches of partitions miss some values, and may expect some as well."""
    table = create(catalog, by=1, p=LongType(), v=DoubleType())
    rng = np.random.default_rng(3)
    v, p = rng.random(16_000), np.repeat(np.arange(4), 4_000)
    v[rng.random(16_000) < 0.05], v[::4_000] = 12.0, 20.0
    table.append(pa.table({"p": p, "v": v}))
    commit_by_partition(load("db.t"), k=32)
    found = load("db.t").estimate("v = 12.0", sources=["kll-by-partition"])[0]
    most = int(found.reason.rpartition("at most ")[2].split()[0].replace(",", ""))
    assert found.rows is None
    # Four partitions, each off by twice the rank error, are off by 1,264 rows.
    assert most > 1_300


def test_a_predicate_that_is_there_twice_is_bounded_by_what_holds_of_each(catalog, load):
    """Taken for independent of itself, it is estimated at 10,000 of 16,000 rows where 8,000 match."""
    table = create(catalog, by=1, p=LongType(), v=DoubleType())
    table.append(pa.table({"p": np.repeat(np.arange(4), 4_000), "v": np.tile(np.arange(4_000.0), 4)}))
    commit_by_partition(load("db.t"), k=200)
    for row_filter in ("v < 2000 or (v < 2000 and p < 2)", "(v < 2000 and p < 2) or (v < 2000 and p >= 0)"):
        found = load("db.t").estimate(row_filter, sources=["kll-by-partition"])[0]
        assert found.rows_lower <= 8_000 <= found.rows_upper, row_filter


def test_rows_that_are_left_of_a_partition_are_not_taken_from_an_earlier_file(catalog, load):
    """The spec lets a writer count them; nothing tells how many there are with the files added since."""
    table = create(catalog, by=1, p=LongType(), v=LongType())
    table.append(pa.table({"p": [1, 1, 2], "v": [1, 2, 3]}))
    load("db.t").compute(partitions=True).commit()
    path = stored_path(load("db.t"))
    stored = pq.read_table(path)
    place = stored.column_names.index("total_record_count")
    pq.write_table(stored.set_column(place, stored.schema.field(place), pa.array([2, 1], pa.int64())), path)
    table.refresh().append(pa.table({"p": [1], "v": [4]}))
    found = load("db.t").compute(partitions=True)
    assert "added to the file of snapshot" in repr(found)
    found.commit()
    rows = load("db.t").partition_statistics()
    assert rows["data_record_count"].to_pylist() == [3, 1]
    assert rows["total_record_count"].to_pylist() == [None, None]


def test_another_spec_is_said_to_make_some_partitions(catalog, load):
    """Two days a year apart are two partitions, and bounds cannot tell."""
    table = create(catalog, d=DateType(), s=StringType())
    days = pa.array([20_000] * 50 + [20_365] * 50, pa.int32()).cast(pa.date32())
    table.append(pa.table({"d": days, "s": ["a"] * 50 + ["z"] * 50}))
    change = load("db.t").layout().what_if(["s = 'a'"], partition_by="day(d), s").change
    assert "at least" not in change
    assert "some 100 partitions" in change


@pytest.mark.parametrize("by", [None, 1], ids=["by bounds", "by partition"])
@pytest.mark.parametrize("row_filter", ["f = 0.1", "f in (0.1, 7.3)", "f <= 0.1", "not f > 0.1", "f = 0.1 or f = 9"])
def test_a_float_is_counted_as_the_nearest_one_whatever_file_it_is_in(catalog, load, by, row_filter):
    """PyIceberg plans by the literal as given, which no file of floats has between its bounds, and loses the row."""
    table = create(catalog, by=by, f=FloatType())
    for value in (0.1, 0.5):
        table.append(pa.table({"f": pa.array([value], pa.float32())}))
    compute_here(load("db.t")).commit()
    loaded = load("db.t")
    found = loaded.estimate(row_filter, actual=True)
    assert found.actual == found["frequent-items"].rows_lower == 1
    assert loaded.plan(row_filter, rows=True).steps[-1].kept == 1
    assert loaded.estimate_workload([row_filter]).answers[0].actual == 1
    assert loaded.estimate_join(loaded, "f", row_filter=row_filter, actual=True).actual == 1
    assert loaded.estimate_groups(["f"], row_filter, actual=True).actual == 1


def test_a_part_of_a_float_column_is_cut_at_its_own_values(catalog, load):
    table = create(catalog, f=FloatType())
    table.append(pa.table({"f": pa.array([0.1] * 10 + [0.2] * 5, pa.float32())}))
    compute_here(load("db.t")).commit()
    loaded = load("db.t")
    for upper in (0.1, "0.1"):
        found = loaded.histogram("f", upper=upper)
        assert (sum(found.counts), found.above) == (10, 5)


def test_bounds_by_what_committed_statistics_said_first_say_so_for_good(catalog, load):
    """A blob that hides equality deletes has the files and rows of the manifest list."""
    table = create(catalog, i=LongType(), b=LongType())
    table.append(pa.table({"i": range(100), "b": [1] * 100}))
    delete_equal(table, pa.table({"b": pa.array([1], pa.int64())}), list_data_files(table)[0])
    loaded = load("db.t")
    rollups = loaded._reader.rollups
    names = rollups.manifests.column_names
    hidden = rollups.manifests
    for name, other in (("equality", "position"), ("position", "equality")):
        place = names.index(f"{name}_delete_file_count")
        hidden = hidden.set_column(place, hidden.schema.field(place), rollups.manifests[f"{other}_delete_file_count"])
    lying = replace(rollups, manifests=hidden)
    blob = build_manifest_statistics_blob(loaded.snapshot, loaded.manifest_files(), lying, loaded.schema.columns)
    nothing = TableStatistics(loaded.snapshot.snapshot_id, loaded.snapshot.sequence_number, None, 0, 0, {}, {})
    Statistics(loaded._source, nothing, MetadataStatistics((blob,), lines=("made",))).commit()
    loaded = load("db.t")
    loaded.estimate("i < 50", sources=["data-files"])
    bounds = {one.source: one.bound for one in loaded.read().estimate("i < 500")}
    assert bounds["data-files"].startswith("certain if the statistics file is right:")
    assert bounds["combined"].startswith("certain if the statistics file is right:")


def test_a_number_of_live_rows_that_rests_on_a_sketch_says_so(catalog, load):
    table = create(catalog, i=LongType())
    table.append(pa.table({"i": range(100)}))
    found = compute_here(load("db.t")).found
    delete_equal(table, pa.table({"i": pa.array([100], pa.int64())}), list_data_files(table)[0])
    assert str(load("db.t").reported_statistics()).startswith(
        "db.t: about 99 live rows (0 to 100) of 100 in data files\n"
    )
    loaded = load("db.t")
    number = loaded.snapshot.sequence_number
    Statistics(loaded._source, replace(found, snapshot_id=loaded.snapshot.snapshot_id, sequence_number=number)).commit()
    reported = load("db.t").reported_statistics()
    assert reported.row_count_bounds == (100, 100)
    assert str(reported).startswith("db.t: 100 live rows, if the statistics file is right\n")


def commit_lying_booleans(load) -> None:
    loaded = load("db.t")
    found = compute_here(loaded).found
    column = found.columns["b"]
    lie = KllSketch(column.item_type)
    lie.update(pa.array([1] * 7, pa.int64()))
    Statistics(
        loaded._source, replace(found, columns=found.columns | {"b": replace(column, kll=lie.to_bytes())})
    ).commit()


def test_counts_of_booleans_that_manifests_refute_are_not_exported(catalog, load):
    table = create(catalog, i=LongType(), b=BooleanType())
    table.append(pa.table({"i": range(100), "b": [i % 4 == 0 for i in range(100)]}))
    commit_lying_booleans(load)
    script = load("db.t").export("impala", name="a.b")
    assert "'numTrues'" not in script
    assert "left out: numTrues is unknown, numFalses is unknown" in script


def test_a_damaged_sketch_takes_no_export_and_no_workload_with_it(catalog, load):
    table = create(catalog, i=LongType(), b=BooleanType())
    table.append(pa.table({"i": range(100), "b": [i % 4 == 0 for i in range(100)]}))
    compute_here(load("db.t")).commit()
    path, blob = next(
        (one.statistics_path, one.blob)
        for one in load("db.t")._reader.blobs
        if one.blob.field_ids == (2,) and "kll" in one.blob.type
    )
    with Path(path.removeprefix("file://")).open("r+b") as file:
        file.seek(blob.offset)
        file.write(b"\xff" * blob.length)
    for engine in ("hive", "impala", "spark", "trino"):
        assert load("db.t").export(engine, name="a.b")
    found = load("db.t").estimate_workload(n=3)
    assert len(found.answers) == 3
    assert all(one.findings[-1].title == "committed statistics are not used" for one in found.answers)
