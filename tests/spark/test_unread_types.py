"""Files with columns of types that PyIceberg does not know, as pandas may write them, are read by Spark itself."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.iceberg.types import decode_value
from icestats.spark.session import add_catalogs, spark_catalog_properties

pytestmark = pytest.mark.spark
MOMENT = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
COLUMNS = {
    "zone": ("timestamp", pa.array([MOMENT, None], pa.timestamp("us", "Europe/Berlin")), MOMENT),
    "json": ("string", pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None])), "1"),
}
"""By name: the type of the table's column, what a file has, and its largest value."""


@pytest.mark.parametrize("name", COLUMNS)
def test_a_type_that_pyiceberg_does_not_know_is_read_by_spark(spark: Any, tmp_path: Path, name: str) -> None:
    kind, stored, most = COLUMNS[name]
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path / 'w'}"}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    catalog.close()
    session = add_catalogs(spark, {"catalog": spark_catalog_properties(properties) or {}})
    session.sql(f"create table catalog.db.t (id bigint, x {kind}) using iceberg")
    session.sql("insert into catalog.db.t values (1, null)")
    icestats.load("db.t", catalog=properties).compute().commit()
    (tmp_path / "new").mkdir()
    pq.write_table(pa.table({"id": pa.array([2, 3], pa.int64()), "x": stored}), tmp_path / "new" / "0.parquet")
    added = f"table => 'db.t', source_table => '`parquet`.`{tmp_path / 'new'}`'"
    session.sql(f"call catalog.system.add_files({added})").collect()

    table = icestats.load("db.t", catalog=properties)
    reason = "PyIceberg cannot read a data file of db.t: "
    computed = table.compute()
    assert (computed.found.scanned_by, (computed.found.scan_reason or "").startswith(reason)) == ("Spark", True)
    refreshed = table.refresh_statistics()
    assert refreshed.scanned.keys() == {"id", "x"}
    assert refreshed.scanned["x"].startswith(reason)
    by_spark = table.refresh_statistics(spark=session)
    assert by_spark.scanned == refreshed.scanned
    for one in (computed, refreshed, by_spark):
        column = one.found.find("x")
        assert (column.value_count, column.null_value_count) == (3, 2)
        assert decode_value(column.type, column.max_value or b"") == most
    with pytest.raises(icestats.CallError, match=r"cannot: .*; name the pairs"):
        table.compute(together="auto")
