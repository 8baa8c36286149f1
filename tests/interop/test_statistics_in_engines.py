"""What the kit commits, engines read: their optimizers have its figures, plan with them, and lose none of their own."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

import icestats
from icestats.iceberg.storage import Storage
from icestats.iceberg.types import decode_value
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.read.puffin.statistics_age import MERGED
from icestats.read.puffin.statistics_files import (
    COLUMN_STATISTICS,
    FREQUENT_ITEMS,
    KLL,
    MANIFEST_STATISTICS,
    PARTITION_SKETCHES,
    THETA,
)
from icestats.stats.theta import ThetaSketch
from tests.interop.engine_server import TRINO


def has_range(lake, column):
    """Whether the engine knows the column's minimum and maximum."""
    return column != "name" and (column != "paid" or lake.server.engine is TRINO)


def is_same(text, value):
    """Whether SHOW STATS says this value; Presto rounds decimals and doubles to a tenth."""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, int | float | Decimal):
        return math.isclose(float(text), float(value), rel_tol=1e-6, abs_tol=0.051)
    return str(text).startswith(str(value)[:19])


def test_the_optimizer_has_the_committed_figures(lake, orders):
    """SHOW STATS gives the row count, NDV, share of nulls, minimum and maximum."""
    lake.create("orders", orders)
    lake.open("orders").compute().commit(list_ndv=orders.column_names)
    lake.tell_engine("orders")
    row_count, figures = lake.show_stats("orders")
    assert row_count == len(orders)
    columns = lake.open("orders").columns().to_pylist()
    assert [figures[c["name"]].ndv for c in columns] == [c["ndv"] for c in columns]
    for column in columns:
        seen = figures[column["name"]]
        assert seen.nulls_fraction == pytest.approx(column["null_value_count"] / len(orders))
        bounds = [decode_value(column["type"], column[f"{side}_bound"]) for side in ("lower", "upper")]
        ends = [(text, bound) for text, bound in zip((seen.low, seen.high), bounds, strict=True) if text is not None]
        assert len(ends) == 2 * has_range(lake, column["name"])
        assert all(is_same(text, bound) for text, bound in ends), (column["name"], ends)


def test_plans_change_with_a_commit(lake, orders):
    """Equalities and joins are estimated within a factor of 1.5 by the committed NDV, and without it are not."""
    lake.create("orders", orders)
    lake.create("customers", pa.table({"id": orders["customer"].unique()}))
    queries = [
        f"select * from {lake.name('orders')} where customer = 5",
        f"select * from {lake.name('orders')} where name = 'name 7'",
        f"select o.id from {lake.name('orders')} o join {lake.name('customers')} c on o.customer = c.id",
    ]
    actual = [lake.count(query) for query in queries]
    before = [lake.estimate(query) for query in queries]
    for table in ("orders", "customers"):
        lake.open(table).compute().commit()
        lake.tell_engine(table)
    after = [lake.estimate(query) for query in queries]
    assert all(is_near(estimate, rows) for estimate, rows in zip(after, actual, strict=True)), (after, actual)
    assert not any(is_near(estimate, rows) for estimate, rows in zip(before, actual, strict=True)), (before, actual)


def is_near(estimate, rows):
    return estimate is not None and rows / 1.5 <= estimate <= rows * 1.5


def test_analyze_and_the_kits_theta_agree(lake, orders):
    """The engine's own ANALYZE finds the NDVs of icestats, within the error of both sketches."""
    lake.create("orders", orders)
    if lake.server.engine is TRINO:
        lake.server.query(f"analyze {lake.name('orders')}")
        table = lake.tell_catalog("orders")
    else:
        # Presto writes Puffin files where its catalog is no Hive metastore.
        lake.server.query(f"create table {lake.name('orders', 'hadoop')} as select * from {lake.name('orders')}")
        lake.server.query(f"analyze {lake.name('orders', 'hadoop')}")
        table = icestats.load(f"file://{lake.server.folder}/hadoop/{lake.schema}/orders")
    found = table.compute().found
    theirs = {row["columns"][0]: row["ndv"] for row in table.sketches().to_pylist() if row["type"] == THETA}
    assert set(theirs) == set(orders.column_names) - (set() if lake.server.engine is TRINO else {"paid"})
    ours = {name: ThetaSketch.from_bytes(found.find(name).theta) for name in theirs}
    assert all(theirs[name] == pytest.approx(ours[name].ndv, rel=0.06) for name in theirs), (theirs, ours)
    merged = {name: merge_with_engine(table, name, ours[name]) for name in theirs}
    same = {name for name in theirs if merged[name] == pytest.approx(ours[name].ndv, rel=0.06)}
    # Presto hashes other types as whole numbers of 8 bytes.
    assert same == (set(theirs) if lake.server.engine is TRINO else {"id", "name", "price"})
    lake.create("own", orders)
    lake.open("own").compute().commit()
    joins = {name: table.estimate_join(lake.open("own"), name)["join-theta"] for name in theirs}
    assert {name for name, found in joins.items() if found.rows is not None} == same


def merge_with_engine(table, column, ours):
    """The estimate of the kit's sketch with the engine's: that of one alone, if they hash the column's values alike."""
    (path,) = {row["statistics_path"] for row in table.sketches().to_pylist()}
    field_id = table.schema.find(column).field_id
    blobs = read_puffin_footer(Storage(), path).blobs
    (blob,) = (blob for blob in blobs if blob.type == THETA and blob.field_ids == (field_id,))
    union = ThetaSketch.from_bytes(ours.to_bytes())
    union.merge(ThetaSketch.from_bytes(read_blob(Storage(), blob, path)))
    return union.ndv


def test_statistics_age_when_the_engine_writes(lake, orders):
    """After the engine's INSERT `sketches` says which blobs are old, and a refresh reads the new rows alone."""
    lake.create("orders", orders)
    lake.open("orders").compute().commit()
    lake.tell_engine("orders")
    name = lake.name("orders")
    lake.server.query(
        f"insert into {name} select id + 1000000, customer, price, name, day, at, paid, amount from {name}"
    )
    table = lake.tell_catalog("orders")
    ages = {(row["type"], row["commits_behind"]) for row in table.sketches().to_pylist() if row["commits_behind"] == 0}
    assert ages == ({(THETA, 0)} if lake.server.engine is TRINO else set())
    old = {row["type"] for row in table.sketches().to_pylist() if row["commits_behind"] == 1}
    assert old == {THETA, KLL, COLUMN_STATISTICS, FREQUENT_ITEMS}
    ndv = table.columns().to_pylist()[0]["ndv"]
    assert ndv == pytest.approx((1 + (lake.server.engine is TRINO)) * len(orders), rel=0.06)
    refreshed = table.refresh_statistics()
    assert refreshed.added_row_count == len(orders)
    refreshed.commit()
    lake.tell_engine("orders")
    row_count, figures = lake.show_stats("orders")
    assert (row_count, figures["id"].ndv) == (2 * len(orders), lake.open("orders").columns().to_pylist()[0]["ndv"])
    assert figures["id"].ndv == pytest.approx(2 * len(orders), rel=0.06)


def test_what_the_engine_may_have_merged_is_not_called_exact(lake, orders):
    """After the engine's DELETE, INSERT and ANALYZE of a column `columns` doubts the other NDVs."""
    if lake.server.engine is not TRINO:
        pytest.skip("with a Hive metastore Presto's ANALYZE writes no Puffin file")
    lake.create("orders", orders)
    lake.open("orders").compute().commit()
    lake.tell_engine("orders")
    name = lake.name("orders")
    lake.server.query(f"delete from {name} where customer < 50")
    lake.server.query(f"insert into {name} select * from {name} where customer = 70")
    lake.server.query(f"analyze {name} with (columns = array['paid'])")
    table = lake.tell_catalog("orders")
    assert {column: read_ndv(table, column) for column in ("customer", "paid")} == {
        "customer": (100, MERGED),
        "paid": (2, MERGED),
    }
    lake.server.query(f"delete from {name} where customer = 99")
    lake.server.query(f"analyze {name} with (columns = array['customer'])")
    exact = "still holds every value, so exact but for hash collisions"
    assert read_ndv(lake.tell_catalog("orders"), "customer") == (49, exact)


def read_ndv(table, column):
    """A column's NDV, and what is said of the sketch that it comes from."""
    (row,) = (row for row in table.columns().to_pylist() if row["name"] == column)
    said = dict(row["provenance"])["ndv"].removeprefix("estimate: Theta sketch that ")
    return row["ndv"], said.removesuffix(", this snapshot")


def test_analyze_of_one_column_leaves_the_table_open(lake, orders):
    """After an ANALYZE of one column, which lists all blobs that it keeps, the table opens and is committed to."""
    if lake.server.engine is not TRINO:
        pytest.skip("with a Hive metastore Presto's ANALYZE writes no Puffin file")
    lake.create("orders", orders)
    lake.open("orders").compute().commit()
    lake.tell_engine("orders")
    lake.server.query(f"analyze {lake.name('orders')} with (columns = array['id'])")
    table = lake.tell_catalog("orders")
    assert {row["type"] for row in table.sketches().to_pylist() if row["listed"]} == {THETA}
    table.compute().commit(list_ndv=orders.column_names)
    lake.tell_engine("orders")
    assert all(seen.ndv is not None for seen in lake.show_stats("orders")[1].values())


def test_no_blob_and_no_file_of_the_kit_disturbs(lake, orders):
    """With every kind of blob and file that icestats commits, the engine keeps all its figures and answers queries."""
    table = lake.create("orders", orders, properties={"write.format.default": "parquet"})
    with table.update_spec() as update:
        update.add_identity("day")
    table.append(orders.slice(0, 3_000))
    everything = {"table": True, "by": "partition", "partitions": True, "manifests": True, "with_column_stats": True}
    lake.open("orders").compute(**everything, max_size_bytes=8 << 20).commit(list_ndv=orders.column_names)
    lake.tell_engine("orders")
    committed = lake.open("orders")
    kinds = {row["type"] for row in committed.sketches().to_pylist()}
    assert kinds == {THETA, KLL, COLUMN_STATISTICS, FREQUENT_ITEMS, PARTITION_SKETCHES, MANIFEST_STATISTICS}
    assert len(committed.partition_statistics()) == 31
    name = lake.name("orders")
    row_count, figures = lake.show_stats("orders")
    assert row_count == len(orders) + 3_000
    unknown = [column for column, seen in figures.items() if seen.ndv is None or seen.nulls_fraction is None]
    assert unknown == []
    assert all((seen.low is not None) == has_range(lake, column) for column, seen in figures.items())
    assert (
        lake.count(f"select * from {name} where customer < 50")
        == committed.plan("customer < 50", rows=True).steps[-1].kept_rows
    )
    assert lake.count(f'select * from "{lake.schema}"."orders$files"') == len(committed.files())
    committed.remove_statistics()
    lake.tell_engine("orders")
    assert lake.show_stats("orders")[0] == len(orders) + 3_000
