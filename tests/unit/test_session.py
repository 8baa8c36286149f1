from __future__ import annotations

import subprocess
import sys

import pytest

from icestats.spark.session import spark_catalog_properties


def test_importing_the_session_loads_no_pyspark_and_starts_no_jvm():
    code = "import sys, icestats.spark.session; sys.exit('pyspark' in sys.modules or 'py4j' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("pyiceberg", "spark"),
    [
        (
            {"type": "sql", "uri": "sqlite:////my data/c.db", "warehouse": "file:///my data/w"},
            {
                "type": "jdbc",
                "uri": "jdbc:sqlite:/my data/c.db",
                "jdbc.schema-version": "V1",
                "warehouse": "file:///my data/w",
            },
        ),
        (
            {"uri": "sqlite+pysqlite:///c.db?timeout=5"},
            {"type": "jdbc", "uri": "jdbc:sqlite:c.db", "jdbc.schema-version": "V1"},
        ),
        (
            {"uri": "http://localhost:8181", "credential": "a:b", "warehouse": "w", "py-io-impl": "x.Y"},
            {"type": "rest", "uri": "http://localhost:8181", "credential": "a:b", "warehouse": "w"},
        ),
        (
            {"type": "rest", "uri": "https://h", "token": "t", "s3.region": "eu-west-1"},
            {"type": "rest", "uri": "https://h", "token": "t", "client.region": "eu-west-1"},
        ),
        ({"type": "glue", "warehouse": "s3://b/w"}, {"type": "glue", "warehouse": "s3://b/w"}),
        ({"uri": "thrift://m:9083"}, {"type": "hive", "uri": "thrift://m:9083"}),
    ],
)
def test_catalogs_of_pyiceberg_are_translated_for_spark(pyiceberg, spark):
    assert spark_catalog_properties(pyiceberg) == spark


@pytest.mark.parametrize(
    "pyiceberg",
    [
        {},
        {"type": "in-memory", "warehouse": "file:///w"},
        {"type": "sql", "uri": "sqlite:///:memory:"},
        {"type": "sql", "uri": "postgresql+psycopg2://u:p@h/db"},
        {"type": "dynamodb"},
        {"py-catalog-impl": "my.Catalog", "uri": "http://h"},
    ],
)
def test_catalogs_that_spark_cannot_open_have_no_translation(pyiceberg):
    assert spark_catalog_properties(pyiceberg) is None
