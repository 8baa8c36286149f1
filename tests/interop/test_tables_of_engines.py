"""Tables that engines have written are opened, planned, computed and committed to, and read again by their engine."""

from __future__ import annotations

import pytest

import icestats
from icestats.read.puffin.statistics_files import THETA
from icestats.spark.session import get_session, spark_catalog_properties
from tests.interop.engine_server import TRINO
from tests.written_deletes import delete_equal_in_java

ROWS = """
select x as id, cast(x % 100 as integer) as customer, date '2026-01-01' + (x % 60) * interval '1' day as day,
  case when x % 10 = 0 then null else 'name ' || cast(x % 500 as varchar) end as name, x / 7.0e0 as price,
  cast(x / 1e2 as decimal(12, 2)) as amount, x % 3 = 0 as paid
from unnest(sequence({}, {})) as numbers (x)
"""
FILTERS = {
    "customer = 5": "customer = 5",
    "day >= '2026-02-01' and price < 100": "day >= date '2026-02-01' and price < 100",
    "title = 'name 7' or title is null": "title = 'name 7' or title is null",
    "id > 9000": "id > 9000",
}
FORMATS = {"Trino": ("PARQUET", "ORC", "AVRO"), "Presto": ("PARQUET", "ORC")}


def make_table(lake, numbers, *options):
    """Have the engine make the table of orders."""
    version = "2" if lake.server.engine is TRINO else "'2'"
    settings = ", ".join([f"format_version = {version}", f"location = '{lake.location('orders')}'", *options])
    lake.server.query(f"create table {lake.name('orders')} with ({settings}) as {ROWS.format(*numbers)}")


def write_table(lake, file_format):
    """Have the engine make a table, change its rows, its columns and how it is partitioned, and analyze it."""
    name, run, is_trino = lake.name("orders"), lake.server.query, lake.server.engine is TRINO
    options = [] if is_trino else ["delete_mode = 'merge-on-read'"]
    make_table(lake, (1, 10_000), f"format = '{file_format}'", "partitioning = array['month(day)']", *options)
    run(f"delete from {name} where id % 50 = 0")
    run(f"alter table {name} rename column name to title")
    if is_trino:
        run(f"alter table {name} set properties partitioning = array['bucket(id, 4)']")
        run(f"insert into {name} {ROWS.format(10_001, 12_000)}")
        run(f"update {name} set price = 0 where customer = 7 and id < 1000")
        run(f"merge into {name} t using (values 3, 20000) s (id) on t.id = s.id when matched then delete")
        run(f"alter table {name} drop column paid")
        run(f"alter table {name} add column note varchar")
    else:
        run(f"alter table {name} add column shop varchar with (partitioning = 'identity')")
        run(f"insert into {name} select *, 'here' from ({ROWS.format(10_001, 12_000)}) as added")
    run(f"delete from {name} where id between 11990 and 11995")
    run(f"analyze {name}")


@pytest.mark.parametrize("file_format", ["PARQUET", "ORC", "AVRO"])
def test_a_table_of_the_engine_is_read_and_committed_to(lake, file_format):
    """A table of the engine with deletes, evolved partitions and columns is planned, computed and committed to."""
    if file_format not in FORMATS[lake.server.engine.name]:
        pytest.skip(f"{lake.server.engine.name} writes no {file_format}")
    write_table(lake, file_format)
    name = lake.name("orders")
    table = lake.tell_catalog("orders")
    row_count = lake.count(f"select * from {name}")
    files = lake.server.query(f'select content, count(*) from "{lake.schema}"."orders$files" group by 1')
    assert sum(table.partitions()["data_file_count"].to_pylist()) == dict(map(tuple, files))[0]
    for ours, theirs in FILTERS.items():
        kept = [row["file_path"] for row in table.plan(ours).files().to_pylist() if row["kept"]]
        read = {path for (path,) in lake.server.query(f'select distinct "$path" from {name} where {theirs}')}
        assert read <= set(kept), ours
    statistics = table.compute(table=True, partitions=True, manifests=True)
    assert statistics.found.row_count == row_count
    columns = ", ".join(f"count(distinct {column})" for column in statistics.found.columns)
    (exact,) = lake.server.query(f"select {columns} from {name}")
    for count, column in zip(exact, statistics.to_arrow().to_pylist(), strict=True):
        assert column["ndv"] == pytest.approx(count, rel=0.06), column["name"]
    statistics.commit()
    lake.tell_engine("orders")
    assert lake.count(f"select * from {name}") == row_count
    figures = lake.show_stats("orders")[1]
    assert {c: seen.ndv for c, seen in figures.items()} == {
        c["name"]: c["ndv"] for c in statistics.to_arrow().to_pylist()
    }
    lake.server.query(f"delete from {name} where id = 1")
    assert lake.tell_catalog("orders").sketches()["commits_behind"].to_pylist().count(1) >= len(figures)
    assert lake.count(f"select * from {name}") == row_count - 1


def test_equality_deletes_count_alike(lake):
    """Rows under equality deletes are counted alike by icestats and the engine."""
    name = lake.name("orders")
    make_table(lake, (1, 2_000))
    lake.tell_catalog("orders")
    spark = get_session({lake.catalog.name: spark_catalog_properties(lake.catalog.properties) or {}})
    delete_equal_in_java(spark, f"{lake.catalog.name}.{lake.schema}.orders", "customer", [5, 6])
    lake.tell_engine("orders")
    assert lake.count(f"select * from {name}") == lake.open("orders").compute(columns=["id"]).found.row_count == 1_960


def test_puffin_files_of_presto_are_opened_and_added_to(lake):
    """A table whose metadata lists Presto's own blobs, which PyIceberg refuses, is opened and committed to."""
    if lake.server.engine is TRINO:
        pytest.skip("Trino writes Theta sketches only")
    name = lake.name("orders", "hadoop")
    lake.server.query(f"create table {name} as {ROWS.format(1, 2_000)}")
    lake.server.query(f"analyze {name}")
    folder = lake.server.folder / "hadoop" / lake.schema / "orders"
    theirs = {(row["type"], *row["columns"]) for row in icestats.load(f"file://{folder}").sketches().to_pylist()}
    assert ("presto-sum-data-size-bytes-v1", "name") in theirs
    assert (THETA, "id") in theirs
    lake.tell_catalog("orders", folder).compute().commit()
    lake.tell_engine("orders")
    row_count, figures = lake.show_stats("orders")
    assert (row_count, figures["id"].ndv) == (2_000, 2_000)
    assert figures["name"].size_bytes == lake.show_stats("orders", "hadoop")[1]["name"].size_bytes
    kept = {(row["type"], *row["columns"]) for row in lake.open("orders").sketches().to_pylist()}
    assert theirs <= kept
