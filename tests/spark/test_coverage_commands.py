"""The commands that the matrix shows close the gaps: it is asked, they are run, and it is asked again."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

import icestats
from icestats.cli.command_line import cli
from icestats.estimation.coverage import name_state
from icestats.spark.session import ICEBERG_CATALOG, active
from tests.spark_versions import SPARK

pytestmark = pytest.mark.spark
NAMESPACE = "icestats.coverage"
ROWS = (
    "select id, date_add(date'2026-01-01', cast(id % 3 as int)) as day, id % 7 = 0 as late, id / 4.0 as price, "
    "if(id % 5 = 0, null, concat('n', id % 20)) as name from range({})"
)


@pytest.fixture
def own_session(spark, tmp_path):
    """A session of the user's with a Hadoop catalog, active as long as it is used."""
    session = spark.newSession()
    for key, value in {"": ICEBERG_CATALOG, ".type": "hadoop", ".warehouse": tmp_path.as_uri()}.items():
        session.conf.set(f"spark.sql.catalog.own{key}", value)
    with active(spark), active(session):
        yield session


@pytest.fixture
def table(spark, namespace) -> str:
    spark.sql(f"create or replace table {namespace}.orders using iceberg partitioned by (day) as {ROWS.format(300)}")
    return f"{namespace}.orders"


def read_gaps(name: str) -> dict[str, set[tuple[str, str, str, str | None]]]:
    """The rows of each command."""
    gaps: dict[str, set[tuple[str, str, str, str | None]]] = {}
    for row in icestats.load(name).coverage().to_pylist():
        if row["command"] is not None:
            key = (row["engine"], row["level"], row["statistic"], row["column"])
            gaps.setdefault(row["command"], set()).add(key)
    return gaps


def run_commands(name: str) -> set[str]:
    commands = {command for command in read_gaps(name) if command.startswith("icestats compute")}
    for command in sorted(commands):
        result = CliRunner().invoke(cli, shlex.split(command)[1:], catch_exceptions=False)
        assert result.exit_code == 0, result.output
    return commands


def test_the_commands_of_a_table_that_only_the_session_knows_are_python_and_close_its_gaps(own_session):
    session, name = own_session, "own.db.orders"
    session.sql(f"create table own.db.orders using iceberg partitioned by (day) as {ROWS.format(300)}")

    def read():
        rows = icestats.load(name, spark=session).coverage().to_pylist()
        return {(r["engine"], r["level"], r["statistic"], r["column"]): r for r in rows}

    for command in sorted({row["command"] for row in read().values() if ".compute(" in (row["command"] or "")}):
        eval(command, {"icestats": icestats, "spark": session})
    found = read()
    commands = {row["command"] for row in found.values()} - {None}
    loading = "icestats.load('own.db.orders', spark=spark)"
    assert {one for one in commands if one.startswith(("icestats", "print"))} == {
        f"{loading}.to_spark()", f"print({loading}.export('hive'))", f"print({loading}.export('impala'))",
        f"print({loading}.export('hive', metastore=metastore))",
    }  # fmt: skip
    if SPARK == (4, 1):
        fed = eval(f"{loading}.to_spark()", {"icestats": icestats, "spark": session})
        assert fed.sparkSession is session
    assert name_state(found["Spark", "table-column", "NDV", "name"]) == "fresh"
    assert name_state(found["Hive", "partition", "num rows", None]) == "fresh"
    assert found["Hive", "table-column", "num trues", "late"]["command"] == f"print({loading}.export('hive'))"


def state_of(name: str, engine: str, level: str, statistic: str, column: str | None = None) -> str:
    rows = icestats.load(name).coverage(engines=[engine]).to_pylist()
    return next(name_state(r) for r in rows if (r["level"], r["statistic"], r["column"]) == (level, statistic, column))


def test_the_commands_shown_close_every_gap_that_the_kit_can_close(spark, table, demo_home):
    """Twice: without any statistics, and after an append, which leaves them behind."""
    for expected in ("missing", "ignored"):
        assert state_of(table, "Spark", "table-column", "NDV", "name") == expected
        assert run_commands(table) == {
            f"icestats compute {table} --table --commit",
            f"icestats compute {table} --table --by partition --commit",
            f"icestats compute {table} --partitions --with-column-stats --commit",
        }
        left = read_gaps(table)
        assert not [command for command in left if command.startswith("icestats compute")]
        for engine in ("Spark", "Trino", "Presto", "Impala", "icestats"):
            assert state_of(table, engine, "table-column", "NDV", "name") == "fresh"
        assert state_of(table, "Hive", "partition", "num rows") == "fresh"
        assert state_of(table, "icestats", "partition-column", "histogram", "price") == "fresh"
        spark.sql(f"insert into {table} {ROWS.format(100)}")
    assert state_of(table, "Trino", "table-column", "NDV", "name") == "1 behind"


def test_what_spark_is_said_to_read_is_what_its_plan_has(spark, table, demo_home):
    """Beside the kit's word: with CBO on, an equality is one of the NDV where that is read, else all rows."""
    query = f"explain cost select * from {table} where name = 'n1'"
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        assert state_of(table, "Spark", "table-column", "NDV", "name") == "missing"
        assert "rowCount=300" in spark.sql(query).first()[0].partition("Physical Plan")[0]
        icestats.load(table).compute(columns=["name"]).commit()
        assert state_of(table, "Spark", "table-column", "NDV", "name") == "fresh"
        with active(spark):
            plan = spark.table(table).where("name = 'n1'")._jdf.queryExecution().optimizedPlan()
            assert int(str(plan.stats().rowCount().get())) < 300
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")


def test_spark_takes_each_statement_that_it_is_exported(own_session):
    own_session.sql(f"create table own.db.orders using iceberg as {ROWS.format(10)}")
    lines = icestats.load("own.db.orders", spark=own_session).export("spark").splitlines()
    statements = [line.removesuffix(";") for line in lines if line and not line.startswith("--")]
    assert len(statements) == 3
    for statement in statements:
        own_session.sql(statement).collect()
    assert own_session.conf.get("spark.sql.iceberg.report-column-stats") == "true"
