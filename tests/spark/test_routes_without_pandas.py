"""Tables that Spark has written are read, planned and estimated without pandas."""

from __future__ import annotations

import pytest

import icestats
from icestats.iceberg.storage import local_path

pytestmark = pytest.mark.spark
NAMESPACE = "icestats.unimported"


def location(name: str) -> str:
    return str(local_path(icestats.load(name)._source.metadata_location))


def test_the_demo_tables_with_their_sketches(demo_statistics, check_routes):
    check_routes(
        [
            location("demo.events"),
            "event_time >= '2026-01-01T00:00:00+00:00' and price < 5.0 and country = 'DE'",
            location("demo.flights"),
            "carrier = 'UA' and month = 3",
        ]
    )


def test_vectors_and_equality_deletes_of_partitions_by_time(spark, namespace, delete_equal, check_routes):
    """Format 3, later partitioned by a timestamp of a zone: delete files go by its values."""
    name = f"{namespace}.deleted"
    spark.sql(
        f"create table {name} (id bigint, at timestamp, name string) using iceberg "
        "tblproperties ('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    rows = "id, timestamp '2026-09-01' + make_dt_interval(cast(id % 3 as int)) as at, concat('n', id) as name"
    spark.sql(f"insert into {name} select {rows} from range(60)")
    delete_equal(name, "name", ["n5", "n6"])
    spark.sql(f"alter table {name} add partition field at")
    spark.sql(f"insert into {name} select {rows} from range(60, 90)")
    spark.sql(f"delete from {name} where id % 10 = 3")
    row_filter = "at > '2026-09-01T12:00:00+00:00' and id < 80"
    table = icestats.load(name)
    assert set(table.files()["content"].to_pylist()) == {"data", "position_deletes", "equality_deletes"}
    assert any(table.plan(row_filter).files()["delete_files"].to_pylist())
    check_routes([location(name), row_filter])
