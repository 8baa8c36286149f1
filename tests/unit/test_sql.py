"""DuckDB over a table's metadata: the views are the tables of the same names, read no further than a query needs."""

from __future__ import annotations

import pytest

import icestats
from icestats.storage import local_path


@pytest.fixture
def table(small_table):
    return icestats.load(str(local_path(small_table.metadata_location)))


def test_the_views_are_the_tables_of_the_same_names(table):
    for name in ("manifests", "partitions", "columns"):
        assert table.sql(f"select * from {name}").to_pylist() == getattr(table, name)().to_pylist()
    names = [field.name for field in table.schema.columns]
    assert table.sql("select * from files").to_pylist() == table.files(columns=names).to_pylist()


def test_snapshots_and_refs_are_those_of_the_metadata(table):
    assert table.sql("select count(*) as n from snapshots").to_pylist() == [{"n": 2}]
    refs = [{"name": "main", "type": "branch", "snapshot_id": table.snapshot.snapshot_id}]
    assert table.sql("select * from refs").to_pylist() == refs


def test_a_partition_filter_reads_only_the_manifests_it_must(table, small_table):
    """With the other manifest gone, a query about its days fails and one about the rest answers."""
    first, second = table.sql(
        "select manifest_path, min(partition.at_day) as d from files group by 1 order by 2"
    ).to_pylist()
    local_path(second["manifest_path"]).unlink()
    query = "select count(*) as n from files where partition.at_day = date '{}'"
    assert table.sql(query.format(first["d"])).to_pylist()[0]["n"] > 0
    with pytest.raises(icestats.MetadataError, match="no such file"):
        table.sql(query.format(second["d"]))
    assert table.sql(f"select count(*) as n from files where manifest_path = '{first['manifest_path']}'").num_rows == 1


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("select * from nothing", "the views are manifests, files, partitions, columns, snapshots, refs"),
        ("selec 1", "syntax error"),
        ("select nope from refs", "nope"),
    ],
)
def test_a_wrong_query_is_one_line(table, query, part):
    with pytest.raises(icestats.CallError) as caught:
        table.sql(query)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_local_variables_are_no_views(table):
    """Names in the caller's Python are not reachable from a query."""
    refs_of_mine = table.sql("select * from refs")
    assert refs_of_mine.num_rows == 1
    with pytest.raises(icestats.CallError):
        table.sql("select * from refs_of_mine")
