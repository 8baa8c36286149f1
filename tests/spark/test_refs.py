"""A branch is read with the current schema, a tag, an id and a time with the snapshot's own: as Spark reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import icestats
from icestats.cli.command_line import cli
from icestats.iceberg.types import encode_value
from tests.spark_versions import SPARK, to_arrow

pytestmark = pytest.mark.spark

NAMESPACE = "icestats.refs"


def evolve(spark: Any, name: str) -> dict[str, int]:
    """Tag, branch off, write to the branch; then add, rename and drop a column. Return the snapshot ids by ref."""
    spark.sql(f"alter table {name} create tag tagged")
    spark.sql(f"alter table {name} create branch `it's`")
    spark.sql(f"insert into {name}.`branch_it's` values (3, 'z', 30), (4, 'x', 40)")
    spark.sql(f"alter table {name} add column added int")
    spark.sql(f"alter table {name} rename column name to title")
    spark.sql(f"alter table {name} drop column gone")
    return {row.name: row.snapshot_id for row in spark.sql(f"select name, snapshot_id from {name}.refs").collect()}


@pytest.fixture(scope="module")
def partitioned(spark, namespace):
    """PyIceberg reads it; the renamed column is that of the partitions."""
    name = f"{namespace}.partitioned"
    spark.sql(f"create table {name} (id bigint, name string, gone int) using iceberg partitioned by (name)")
    spark.sql(f"insert into {name} values (1, 'x', 10), (2, 'y', 20)")
    return name, evolve(spark, name)


@pytest.fixture(scope="module")
def with_equality_deletes(spark, namespace, delete_equal):
    """Spark's own scan reads it."""
    name = f"{namespace}.equality"
    spark.sql(f"create table {name} (id bigint, name string, gone int) using iceberg")
    spark.sql(f"insert into {name} values (1, 'x', 10), (2, 'y', 20), (0, 'removed', 0)")
    delete_equal(name, "name", ["removed"])
    return name, evolve(spark, name)


def versions(name: str, ids: dict[str, int]) -> list[tuple[str, dict[str, Any]]]:
    """What Spark reads, and how `load` names it."""
    return [
        (name, {}),
        (f"{name} version as of 'main'", {"ref": "main"}),
        (f"{name} version as of 'it\\'s'", {"ref": "it's"}),
        (f"{name} version as of 'tagged'", {"ref": "tagged"}),
        (f"{name} version as of {ids['main']}", {"snapshot": ids["main"]}),
        (f"{name} version as of {ids['it' + chr(39) + 's']}", {"snapshot": ids["it's"]}),
        (f"{name} timestamp as of timestamp '2100-01-01'", {"as_of": "2100-01-01T00:00Z"}),
    ]


def test_columns_and_filters_are_those_that_spark_has(spark, partitioned):
    """Schema, roll-ups, SQL views, plan, estimates and counted rows follow one rule."""
    for relation, pin in versions(*partitioned):
        rows = spark.sql(f"select * from {relation}")
        table = icestats.load(partitioned[0], **pin)
        names = rows.columns
        assert [field.name for field in table.schema.top_level] == names, relation
        assert table.columns()["name"].to_pylist() == names, relation
        assert table.sql("select name from columns")["name"].to_pylist() == names, relation
        renamed = "title" if "title" in names else "name"
        row_filter = f"{renamed} = 'x' and {names[2]} is {'null' if names[2] == 'added' else 'not null'}"
        # Iceberg 1.12 fails on filters of columns that the snapshot has by another name: Python filters the rows.
        truth = sum(row[renamed] == "x" and (row[2] is None) == (names[2] == "added") for row in rows.collect())
        assert truth == (2 if pin.get("ref") == "it's" or pin.get("snapshot") == partitioned[1]["it's"] else 1), (
            relation
        )
        assert table.plan(row_filter, rows=True).steps[-1].kept == truth, relation
        assert table.plan(f"{renamed} = 'x'").steps[-1].kept_rows == truth, relation
        assert table.estimate(row_filter, actual=True).actual == truth, relation
        assert table.estimate_workload([row_filter]).answers[0].actual == truth, relation


@pytest.mark.parametrize("fixture", ["partitioned", "with_equality_deletes"])
def test_computed_statistics_are_of_the_columns_that_spark_has(spark, request, fixture):
    """By PyIceberg and by Spark's own scan: the same columns, and each value where it belongs."""
    name, ids = request.getfixturevalue(fixture)
    for relation, pin in versions(name, ids)[2:5]:
        rows = spark.sql(f"select * from {relation}")
        found = icestats.load(name, **pin).compute(spark=spark).found.columns
        assert list(found) == rows.columns, relation
        table = to_arrow(rows)
        for column in rows.columns:
            assert found[column].null_value_count == table[column].null_count, (relation, column)
            greatest = max((value for value in table[column].to_pylist() if value is not None), default=None)
            encoded = None if greatest is None else encode_value(found[column].type, greatest)
            assert found[column].max_value == encoded, (relation, column)


def test_a_branch_is_counted_and_explained_by_spark_with_the_current_schema(spark, with_equality_deletes):
    """Where PyIceberg cannot read, and where Spark's optimizer is asked, the filter's names are the branch's."""
    name, _ = with_equality_deletes
    found = icestats.load(name, ref="it's").estimate("title = 'x'", actual=True, engines=["spark"], spark=spark)
    assert found.actual == 2
    if SPARK >= (4, 1):
        assert "Cannot find field 'title'" in found["spark-cbo-off"].reason, "so it is for whoever asks Spark"
    asked = icestats.load(name, ref="it's").estimate("id < 100", engines=["spark"], spark=spark)
    assert asked["spark-cbo-off"].rows == 5, asked["spark-cbo-off"].reason
    spark.sql(f"alter table {name} add column later int")
    stale = icestats.load(name, ref="it's")
    spark.sql(f"alter table {name} rename column title to caption")
    assert stale.estimate("title = 'x'", actual=True, spark=spark).actual == 2, (
        "the metadata that was loaded, not newer"
    )
    assert icestats.load(name, ref="it's").estimate("caption = 'x'", actual=True, spark=spark).actual == 2
    spark.sql(f"alter table {name} rename column caption to title")


def test_a_branch_whose_name_is_another_snapshots_id_is_that_branch(spark, with_equality_deletes):
    """`version as of '123'` is snapshot 123 to Spark, though a branch is called so."""
    name, ids = with_equality_deletes
    branched = ids["it's"]
    spark.sql(f"alter table {name} create branch `{ids['tagged']}` as of version {branched}")
    table = icestats.load(name, ref=str(ids["tagged"]))
    assert table.estimate("id < 100", actual=True, spark=spark).actual == 4
    asked = table.estimate("id < 100", engines=["spark"], spark=spark)
    assert asked["spark-cbo-off"].rows == 5, asked["spark-cbo-off"].reason
    assert list(table.compute(spark=spark).found.columns)[:3] == ["id", "title", "added"]
    spark.sql(f"alter table {name} drop branch `{ids['tagged']}`")


def test_sketches_of_a_branch_are_committed_and_chosen_by_its_columns(spark, partitioned):
    """A histogram of a part of a branch, by the renamed column of its partitions."""
    name, _ = partitioned
    icestats.load(name, ref="it's").compute(spark=spark, by="partition").commit()
    branch = icestats.load(name, ref="it's")
    assert branch.histogram("id", where="title = 'x'").n == 2
    assert branch.sketches().num_rows
    tagged = icestats.load(name, ref="tagged")
    with pytest.raises(icestats.FilterError, match="title"):
        tagged.plan("title = 'x'")
    with pytest.raises(icestats.FilterError, match="name"):
        branch.plan("name = 'x'")


def test_the_command_line_reads_a_branch_with_the_current_schema(partitioned):
    """`--ref BRANCH` and `--ref TAG` differ in their columns."""
    for ref, names in (("it's", ["id", "title", "added"]), ("tagged", ["id", "name", "gone"])):
        answer = CliRunner().invoke(cli, ["columns", partitioned[0], "--ref", ref, "--format", "json"])
        assert answer.exit_code == 0, answer.output
        assert [column["name"] for column in json.loads(answer.stdout)] == names
