"""What is committed while a Spark session runs is planned with by its next query, also where it keeps tables."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.spark.session import ICEBERG_CATALOG, active, spark_catalog_properties
from icestats.spark.session_catalog import refresh_running_sessions
from tests.spark_versions import since

pytestmark = pytest.mark.spark

SETTINGS = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.planStats.enabled": "true"}
ROWS = pa.table({"id": list(range(1_000)), "name": [f"n{i % 7}" for i in range(1_000)]})


@pytest.fixture
def table(tmp_path):
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path / 'w'}"}
    with SqlCatalog("catalog", **properties) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", ROWS.schema).append(ROWS)
    return icestats.load("db.t", catalog=properties)


@pytest.fixture
def session(spark, table):
    """A session of the user's, whose catalog keeps tables as Iceberg does by default; it has read the table."""
    session = spark.newSession()
    settings = spark_catalog_properties(table._source.catalog_properties)
    session.conf.set("spark.sql.catalog.catalog", ICEBERG_CATALOG)
    for name, value in settings.items():
        session.conf.set(f"spark.sql.catalog.catalog.{name}", value)
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    with active(session):
        assert ndvs(session) == {}
        assert session.table("catalog.db.t").count() == 1_000
        yield session


def ndvs(session):
    """The number of distinct values of each column that a new plan of the table has."""
    statistics = session.table("catalog.db.t")._jdf.queryExecution().optimizedPlan().stats().attributeStats()
    found = {}
    columns = statistics.iterator()
    while columns.hasNext():
        column = columns.next()
        found[column._1().name()] = int(str(column._2().distinctCount().get()))
    return found


def test_a_session_that_has_rewritten_data_files_is_not_said_to_plan_as_before(session, table):
    """Iceberg's procedure leaves a catalog of its own behind, which refuses to read anything anew."""
    session.sql("call catalog.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    report = table.refresh().compute(spark=session).commit()
    assert str(report).splitlines()[-1] == (
        "note: the running Spark session reads the table anew in catalog; make DataFrames of before anew"
    )


def test_the_next_plan_has_the_ndvs_of_a_commit_and_loses_those_that_are_taken_back(session, table):
    report = table.compute(spark=session).commit()
    assert str(report).splitlines()[-1] == (
        "note: the running Spark session reads the table anew in catalog; make DataFrames of before anew"
    )
    assert ndvs(session) == {"id": 1_000, "name": 7}
    removal = table.refresh().remove_statistics()
    assert ndvs(session) == {}
    assert "reads the table anew in catalog" in str(removal)


def test_a_preview_lets_the_session_keep_the_table(session, table):
    report = table.compute(spark=session).commit(dry_run=True)
    assert "reads the table anew" not in str(report)
    assert "a session that has the table in its cache, after REFRESH TABLE" in str(report)


def test_catalogs_of_others_are_left_alone(spark, table):
    """A session that has used no catalog of Iceberg's has nothing to read anew."""
    session = spark.newSession()
    with active(session):
        assert refresh_running_sessions(table._source) == ""


def test_rows_that_a_session_keeps_stay_and_the_plan_of_then_is_said(session, table):
    """REFRESH TABLE would read them again, though no row has changed."""
    session.sql("cache table catalog.db.t")
    try:
        said = str(table.compute(spark=session).commit()).splitlines()[-1]
        assert said.endswith("may plan as before until REFRESH TABLE: its rows are cached in catalog")
        session.sql("refresh table catalog.db.t")
    finally:
        session.sql("uncache table catalog.db.t")
    assert ndvs(session) == {"id": 1_000, "name": 7}


@since("4.0", "a session catalog that does not answer ends every query")
def test_a_catalog_that_cannot_be_told_is_named_and_the_others_are_told(session, table):
    """It was never reached: its server does not answer."""
    session.conf.set("spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog")
    session.conf.set("spark.sql.catalog.spark_catalog.type", "rest")
    session.conf.set("spark.sql.catalog.spark_catalog.uri", "http://127.0.0.1:9/")
    said = str(table.compute(spark=session).commit()).splitlines()[-1]
    assert "reads the table anew in catalog" in said
    assert "; the running Spark session may plan as before until REFRESH TABLE: Spark's catalog 'spark_catalog'" in said
    assert ndvs(session) == {"id": 1_000, "name": 7}
