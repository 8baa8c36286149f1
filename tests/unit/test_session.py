from __future__ import annotations

import subprocess
import sys

import pytest

from icestats.errors import SparkUnavailableError
from icestats.spark.jobs import explain_failure
from icestats.spark.jvm import JAR_SHA256, find_aws_bundle, find_runtime
from icestats.spark.session import is_on_aws, spark_catalog_properties

VENDED = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}


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
            {"type": "rest", "uri": "http://localhost:8181", "credential": "a:b", "warehouse": "w", **VENDED},
        ),
        (
            {"type": "rest", "uri": "https://h", "token": "t", "s3.region": "eu-west-1"},
            {"type": "rest", "uri": "https://h", "token": "t", "client.region": "eu-west-1", **VENDED},
        ),
        (
            {"type": "rest", "uri": "https://h", "header.X-Iceberg-Access-Delegation": "remote-signing"},
            {"type": "rest", "uri": "https://h", "header.X-Iceberg-Access-Delegation": "remote-signing"},
        ),
        (
            {"uri": "thrift://m", "s3.endpoint": "http://s", "client.access-key-id": "a", "client.region": "r"},
            {"type": "hive", "uri": "thrift://m", "s3.endpoint": "http://s", "s3.access-key-id": "a"}
            | {"client.region": "r", "s3.path-style-access": "true"},
        ),
        (
            {"uri": "thrift://m", "s3.endpoint": "http://s", "s3.force-virtual-addressing": "true"}
            | {"client.access-key-id": "of AWS", "s3.access-key-id": "of S3"},
            {"type": "hive", "uri": "thrift://m", "s3.endpoint": "http://s", "s3.access-key-id": "of S3"}
            | {"s3.path-style-access": "false"},
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


def test_the_runtime_is_that_of_spark_and_scala_and_other_sparks_are_refused_by_name() -> None:
    runtime = "org.apache.iceberg:iceberg-spark-runtime-"
    found = [find_runtime("3.5.0"), find_runtime("3.5.9", "2.13.8"), find_runtime("4.0.5"), find_runtime("4.1.4")]
    assert found == [
        f"{runtime}{name}" for name in ("3.5_2.12:1.12.0", "3.5_2.13:1.11.0", "4.0_2.13:1.11.0", "4.1_2.13:1.12.0")
    ]
    for version, scala in (("4.2.1", ""), ("3.4.4", ""), ("4.10.0", ""), ("4.1.4", "2.12.18")):
        with pytest.raises(
            SparkUnavailableError, match=rf"for Spark {version}.*known are those for 3\.5, 4\.0 and 4\.1"
        ):
            find_runtime(version, scala)


@pytest.mark.parametrize(
    ("location", "catalogs", "expected"),
    [
        (None, {}, False),
        ("s3://bucket/t/metadata/1.metadata.json", {}, True),
        ("file:///t/metadata/1.metadata.json", {"rest": {"type": "rest", "uri": "https://h"}}, False),
        (None, {"hive": {"type": "hive", "warehouse": "s3a://bucket/w"}}, True),
        (None, {"local": {"type": "hadoop"}, "rest": {"type": "rest", "s3.access-key-id": "a"}}, True),
        (None, {"glue": {"type": "glue"}}, True),
    ],
)
def test_a_new_session_has_the_jar_for_s3_where_it_is_known_to_need_it(location, catalogs, expected):
    assert is_on_aws(location, catalogs) == expected


def test_each_known_runtime_has_a_jar_for_s3_of_its_own_version():
    runtimes = [coordinate for coordinate in JAR_SHA256 if "spark-runtime" in coordinate]
    assert {find_aws_bundle(runtime) for runtime in runtimes} <= set(JAR_SHA256)
    assert len({find_aws_bundle(runtime) for runtime in runtimes}) == 2


def test_a_failure_in_java_is_told_by_what_java_says():
    java = "org.apache.iceberg.exceptions.RESTException: code: 404"
    said = f"An error occurred while calling o48.sql.\n: {java}\n\tat a.B"
    assert str(explain_failure("the job", said)) == f"the job failed: {java}"


def test_a_file_that_arrow_cannot_open_is_told_by_what_arrow_says():
    arrow = "pyarrow.lib.ArrowInvalid: Could not open Parquet input source: Parquet magic bytes not found in footer."
    said = f"\n  An exception was thrown from the Python worker.\nTraceback (most recent call last):\n{arrow}\n"
    assert str(explain_failure("the job", said)) == f"the job failed: {arrow}"
