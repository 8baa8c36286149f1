"""The commands that the matrix shows close the gaps: it is asked, they are run, and it is asked again."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

import icestats
from icestats.cli.command_line import cli
from icestats.estimation.coverage import name_state

pytestmark = pytest.mark.spark
NAMESPACE = "icestats.coverage"
ROWS = (
    "select id, date_add(date'2026-01-01', cast(id % 3 as int)) as day, id % 7 = 0 as late, id / 4.0 as price, "
    "if(id % 5 = 0, null, concat('n', id % 20)) as name from range({})"
)


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
        plan = spark.table(table).where("name = 'n1'")._jdf.queryExecution().optimizedPlan()
        assert int(str(plan.stats().rowCount().get())) < 300
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
