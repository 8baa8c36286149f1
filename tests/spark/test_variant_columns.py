"""A table with columns of type variant, which PyIceberg does not know: Spark reads its other columns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import icestats
from icestats.cli.command_line import cli
from tests.spark_versions import since

pytestmark = [pytest.mark.spark, since("4.0", "Spark 3.5 has no type variant")]
NAMESPACE = "icestats.variants"


@pytest.fixture(scope="module")
def location(spark: Any, namespace: str) -> str:
    """1,000 rows, one of them deleted; a variant at the top, one in a struct, a column renamed."""
    name = f"{namespace}.v"
    spark.sql(
        f"create table {name} (id bigint, any variant, name string, place struct<x: bigint, deep: variant>) "
        "using iceberg tblproperties ('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    spark.sql(
        f"insert into {name} select /*+ repartition(1) */ id, parse_json('{{}}'), concat('n', id % 10), "
        "named_struct('x', id, 'deep', parse_json('1')) from range(1000)"
    )
    spark.sql(f"delete from {name} where id = 7")
    spark.sql(f"alter table {name} rename column name to label")
    return str(spark.sql(f"select file from {name}.metadata_log_entries order by timestamp").collect()[-1][0])


def test_other_columns_get_statistics_and_the_variant_is_named_with_its_reason(location: str) -> None:
    found = icestats.load(location).compute().found
    assert {name: column.value_count for name, column in found.columns.items()} == {"id": 999, "label": 999}
    assert {name: reason.split(":")[0] for name, reason in found.skipped.items()} == {
        "any": "type variant has no single-value form to hash or to compare",
        "place": "type struct is nested",
    }
    assert found.scan_reason == "its column any is of type variant, which PyIceberg cannot read"


def test_rows_are_counted(location: str) -> None:
    table = icestats.load(location)
    assert table.estimate("label = 'n7'", actual=True).actual == 99
    assert table.plan("label = 'n7'", rows=True).steps[-1].kept == 99
    workload = table.estimate_workload(["id < 10", "label = 'n1' or id = 8", "id < 0"])
    assert [answer.actual for answer in workload.answers] == [9, 101, 0]


def test_statistics_of_metadata_are_made_and_orphans_looked_for(location: str) -> None:
    table = icestats.load(location)
    assert len(table.compute(manifests=True).commit(dry_run=True).files) == 1
    assert table.orphans().num_rows == 0


def test_the_command_line_says_what_it_leaves_out(location: str) -> None:
    called = CliRunner().invoke(cli, ["compute", location, "--table", "--format", "json"])
    assert called.exit_code == 0, called.output
    assert json.loads(called.stdout)["committed"] is False


@pytest.mark.parametrize("dropped", [False, True])
def test_columns_beside_shredded_variants_are_read(spark: Any, namespace: str, dropped: bool) -> None:
    name = f"{namespace}.shredded_{dropped}"
    spark.sql(
        f"create table {name} (id bigint, any variant) using iceberg "
        "tblproperties ('format-version'='3', 'write.parquet.shred-variants'='true')"
    )
    spark.sql(f"insert into {name} select id, parse_json(concat('{{\"a\": ', id, '}}')) from range(100)")
    if dropped:
        spark.sql(f"alter table {name} drop column any")
    place = str(spark.sql(f"select file from {name}.metadata_log_entries order by timestamp").collect()[-1][0])
    table = icestats.load(place)
    assert table.compute().found.columns["id"].value_count == 100
    assert table.estimate("id < 7", actual=True).actual == 7
    assert table.plan("id < 7", rows=True).steps[-1].kept == 7
