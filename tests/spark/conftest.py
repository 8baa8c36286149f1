"""What Spark's tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

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


@pytest.fixture(scope="session")
def delete_equal(spark: Any) -> Callable[[str, str, list[str]], None]:
    """Commit an equality delete, as a streaming writer does: by Iceberg's own Java classes, in Spark's JVM."""

    return partial(delete_equal_in_java, spark)
