"""A table chooses no code where Spark, or executors, read and write it; no secret of a user's is told."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo, StartsWith

import icestats
from icestats.iceberg.filters.value_sets import build_tree
from icestats.iceberg.storage import local_path
from icestats.snapshot.filter_sql import build_sql
from icestats.spark.optimizer import count_with_spark
from icestats.spark.plain_sql import changed_settings

pytestmark = pytest.mark.spark

MARKS: list[Any] = []


class Mark:
    """A class that a table names; it leaves a mark where it is made an object of."""

    def __init__(self, *arguments: Any) -> None:
        MARKS.append(arguments)


@pytest.fixture
def hostile(catalog, spark):
    """Give a function that makes a table of 100 rows with some properties, and returns its metadata.json."""

    def write(properties: dict[str, str]) -> str:
        rows = pa.table({"id": pa.array(range(100), pa.int64())})
        table = catalog.create_table("db.hostile", rows.schema)
        table.append(rows)
        path = local_path(table.metadata_location)
        document = json.loads(path.read_text())
        document["properties"] |= properties
        path.write_text(json.dumps(document))
        return str(path)

    return write


def test_a_scan_runs_no_code_of_a_table(hostile):
    table = icestats.load(hostile(dict.fromkeys(("py-io-impl", "io-impl"), f"{__name__}.Mark")))
    assert table.compute(columns=["id"]).found.row_count == 100
    assert table.refresh_statistics(columns=["id"]).found.row_count == 100
    assert MARKS == []


def test_iceberg_in_java_makes_no_object_of_a_class_that_a_table_names(hostile, spark):
    """Java's FileHandler makes a file where it is made an object of."""
    table = icestats.load(hostile({"write.location-provider.impl": "java.util.logging.FileHandler"}))
    home = Path(spark.sparkContext._jvm.java.lang.System.getProperty("user.home"))
    before = set(home.glob("java*.log"))
    with pytest.raises(icestats.UnsupportedError, match=r"names code to run in its property write\.location-provider"):
        count_with_spark(spark, table._source, table.snapshot, table.schema, ["id < 10"])
    assert set(home.glob("java*.log")) == before


def test_spark_fills_in_no_variables_in_names_and_texts_of_a_table(catalog, spark):
    """It would say in an error what the environment has, and count what a filter does not name."""
    name = "${env:PATH}"
    rows = pa.table({name: pa.array([1, 1, 2], pa.int64()), "s": [name, name, "x"]})
    catalog.create_table("db.variables", rows.schema).append(rows)
    table = icestats.load(catalog.load_table("db.variables").metadata_location)
    filters = [table.bind(text).condition for text in (f'"{name}" = 1', f"s = '{name}'")]
    conditions = [build_sql(build_tree(one), table.schema, "spark", exact=True) for one in filters]
    before = spark.conf.get("spark.sql.variable.substitute", None)
    assert count_with_spark(spark, table._source, table.snapshot, table.schema, conditions) == [2, 2]
    assert spark.conf.get("spark.sql.variable.substitute", None) == before


def test_settings_of_the_session_change_no_text_of_a_table(catalog, spark):
    """A legacy setting of Spark's keeps the backslashes that its own escapes begin with."""
    texts = ["it's", "a\\b", "a%"]
    rows = pa.table({"s": texts})
    catalog.create_table("db.escapes", rows.schema).append(rows)
    table = icestats.load(catalog.load_table("db.escapes").metadata_location)
    filters = [EqualTo("s", text) for text in texts] + [StartsWith("s", "a\\"), StartsWith("s", "a%")]
    found = [table.bind(one).condition for one in filters]
    conditions = [build_sql(build_tree(one), table.schema, "spark", exact=True) for one in found]
    names = ("spark.sql.parser.escapedStringLiterals", "spark.sql.parser.quotedRegexColumnNames")
    with changed_settings(spark, dict.fromkeys(names, "true")):
        assert count_with_spark(spark, table._source, table.snapshot, table.schema, conditions) == [1, 1, 1, 1, 1]
        assert spark.conf.get(names[0]) == "true"


def test_what_executors_repeat_of_a_users_secrets_is_not_told(spark, tmp_path):
    """Here it is in a path; storages repeat what they were signed in with."""
    own = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path / 'hidden-key'}"}
    rows = pa.table({"a": [1, 2]})
    with SqlCatalog("catalog", **own) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", rows.schema).append(rows)
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    table = icestats.load("db.t", catalog=own | {"s3.secret-access-key": "hidden-key"})
    with pytest.raises(icestats.IcestatsError, match=r"the scan of db\.t failed: .*\*\*\*") as caught:
        table.compute(spark=spark)
    assert "hidden-key" not in "".join(traceback.format_exception(caught.value))
