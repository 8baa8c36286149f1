"""What Spark's tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog import load_catalog

from icestats.iceberg.catalog import DEMO_CATALOG, demo_catalog_properties
from tests.written_deletes import delete_equal_in_java


@pytest.fixture(scope="module")
def namespace(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The namespace that the module names `NAMESPACE`, dropped with its tables behind the module."""
    name = request.module.NAMESPACE
    spark.sql(f"create namespace if not exists {name}")
    yield name
    for row in spark.sql(f"show tables in {name}").collect():
        spark.sql(f"drop table {name}.{row.tableName}")
    spark.sql(f"drop namespace {name}")


LOAD = """
create table {} as
from read_parquet(?, union_by_name = true, hive_partitioning = false, filename = true, file_row_number = true)
"""
DELETE = """
delete from {} where (filename, file_row_number) in (select replace(file_path, 'file:', ''), pos from read_parquet(?))
"""


@pytest.fixture(scope="session")
def live_rows(demo_home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The rows of `events` and `flights` in DuckDB, which reads them with a tenth of Spark's CPU."""
    # With its extension for time zones, DuckDB would take days to begin where this machine's do.
    with (
        duckdb.connect(config={"autoload_known_extensions": "false"}) as connection,
        closing(load_catalog(DEMO_CATALOG, **demo_catalog_properties(demo_home))) as catalog,
    ):
        for name in ("events", "flights"):
            tasks = list(catalog.load_table(("demo", name)).scan().plan_files())
            deletes = {file.file_path for task in tasks for file in task.delete_files}
            connection.execute(LOAD.format(name), [[task.file.file_path for task in tasks]])
            if deletes:
                connection.execute(DELETE.format(name), [list(deletes)])
            for column in ("filename", "file_row_number"):
                connection.execute(f"alter table {name} drop column {column}")
        yield connection


@pytest.fixture(scope="session")
def delete_equal(spark: Any) -> Callable[[str, str, list[str]], None]:
    """Commit an equality delete, as a streaming writer does: by Iceberg's own Java classes, in Spark's JVM."""

    return partial(delete_equal_in_java, spark)
