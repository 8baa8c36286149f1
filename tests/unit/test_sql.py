"""DuckDB over a table's metadata: the views are the tables of the same names, read no further than a query needs."""

from __future__ import annotations

import json
import socket
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DecimalType, IntegerType, LongType, NestedField, StringType

import icestats
from icestats.cli.command_line import cli
from icestats.iceberg.storage import local_path
from icestats.snapshot import sql as sql_module
from icestats.snapshot.sql import LazyView, run_query


@pytest.fixture
def table(read_table):
    return icestats.load(str(local_path(read_table.metadata_location)))


def test_the_views_are_the_tables_of_the_same_names(table):
    for name in ("manifests", "partitions", "columns"):
        assert table.sql(f"select * from {name}").to_pylist() == getattr(table, name)().to_pylist()
    names = [field.name for field in table.schema.columns]
    assert table.sql("select * from files").to_pylist() == table.files(columns=names).to_pylist()


def test_snapshots_and_refs_are_those_of_the_metadata(table):
    assert table.sql("select count(*) as n from snapshots").to_pylist() == [{"n": 2}]
    refs = [{"name": "main", "type": "branch", "snapshot_id": table.snapshot.snapshot_id}]
    assert table.sql("select * from refs").to_pylist() == refs


def test_a_partition_filter_reads_only_the_manifests_it_must(small_table):
    """With the other manifest gone, a query about its days fails and one about the rest answers."""
    table = icestats.load(str(local_path(small_table.metadata_location)))
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


@pytest.mark.parametrize(
    "query",
    [
        "select a.* from files a, files b, files c, files d",
        "select * from range(10000000000)",
        "from range(10000000000)",
    ],
)
def test_an_answer_that_memory_does_not_hold_is_one_line(query, table, monkeypatch):
    """A join without its condition took all memory, and the process with it: DuckDB's limit is for its own."""
    monkeypatch.setattr(sql_module, "_SETTINGS", {"memory_limit": "400 MiB", **sql_module._SETTINGS})
    with pytest.raises(icestats.CallError, match="the answer has more than 104,857,600 bytes, a quarter of"):
        table.sql(query)


def test_what_fails_after_the_first_rows_is_one_line(table):
    with pytest.raises(icestats.CallError, match=r"the query failed: .*late; the views are"):
        table.sql("select case when i = 5000000 then error('late') else i end from range(6000000) t(i)")


def test_local_variables_are_no_views(table):
    """Names in the caller's Python are not reachable from a query."""
    refs_of_mine = table.sql("select * from refs")
    assert refs_of_mine.num_rows == 1
    with pytest.raises(icestats.CallError):
        table.sql("select * from refs_of_mine")


@pytest.mark.parametrize(
    "query",
    [
        "copy (select 1 as a) to '{}'",
        "copy (pivot files on content using count(*)) to '{}'",
        "attach '{}'",
        "create table mine as select 1",
        "drop view files",
        "select 1; select 2",
        "select 1; copy (select 1) to '{}'",
        "",
        "-- nothing",
        "explain analyze copy (select 1) to '{}'",
        "explain (analyze, format json) copy (select 1) to '{}'",
        "explain analyze copy (pivot files on content using count(*)) to '{}'",
        "explain create table mine as select 1",
        "update extensions",
        "\ud800",
        "select '\ud800'",
    ],
)
def test_a_query_does_no_more_than_read(table, tmp_path, query):
    """What would write a file, change the views or run several statements is refused before it runs."""
    target = tmp_path / "written"
    with pytest.raises(icestats.CallError, match=r"^the query ['\"].*expected (a|one) SELECT$"):
        table.sql(query.format(target))
    assert not target.exists()


@pytest.mark.parametrize(
    "query", ["from read_csv('.tmp/secret.csv')", "from read_text('{}/.tmp/secret.csv')", "from glob('{}/.tmp/*')"]
)
def test_the_folder_that_duckdb_would_spill_to_is_closed_too(table, tmp_path, monkeypatch, query):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "secret.csv").write_text("a\nnot for queries\n")
    with pytest.raises(icestats.CallError, match="disabled by configuration"):
        table.sql(query.format(tmp_path))


@pytest.mark.parametrize(
    "query",
    [
        "with x as (copy (select 1) to '{written}') select * from x",
        "explain analyze copy (select 1) to '{written}'",
        "explain analyze copy refs to '{written}' (format parquet)",
        "explain analyze export database '{written}'",
        "explain analyze set threads = 1",
        "from '{secret}'",
        "from read_csv('{secret}')",
        "from read_text('{secret}')",
        "from read_blob('{secret}')",
        "from read_json('{secret}')",
        "from read_parquet('{secret}')",
        "from sniff_csv('{secret}')",
        "from query_table('{secret}')",
        "from query('from read_text(''{secret}'')')",
        "from glob('{folder}/*')",
        "from '{served}'",
        "from read_csv('{served}')",
        "pivot (from read_text('{secret}')) on filename using count(*)",
        "pragma threads = 1",
        "set enable_external_access = true",
        "attach '{written}'",
        "install httpfs",
        "install httpfs from '{served}'",
        "load '{secret}'",
        "from iceberg_scan('{folder}')",
        "from delta_scan('{folder}')",
        "from sqlite_scan('{secret}', 'a')",
        "select getenv('ICESTATS_TEST_SECRET')",
        "from mine",
        "from pandas_scan(1::pointer)",
    ],
)
def test_a_query_reaches_nothing_but_the_views(table, tmp_path, monkeypatch, query):
    """Neither files nor the network, extensions, settings, the environment or the caller's variables."""
    monkeypatch.setenv("ICESTATS_TEST_SECRET", "not for queries")
    secret, written = tmp_path / "secret.csv", tmp_path / "written"
    secret.write_text("a\nnot for queries\n")
    mine = pa.table({"a": ["not for queries"]})
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        served = f"http://127.0.0.1:{server.getsockname()[1]}/a.csv"
        with pytest.raises(icestats.CallError) as caught:
            table.sql(query.format(written=written, secret=secret, folder=tmp_path, served=served))
        with pytest.raises(BlockingIOError):
            server.accept()
    assert str(mine["a"][0]) not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not written.exists()


@pytest.mark.parametrize(
    "query",
    [
        "pivot files on content using count(*)",
        "explain from files",
        "explain analyze from files",
        "EXPLAIN (analyze, FORMAT json) select 1",
        "explain (from files)",
        "explain pivot files on content using count(*)",
        "summarize refs",
        "with big as (from files where record_count > 0) select * from big join manifests using (manifest_path)",
        "describe files",
    ],
)
def test_every_way_to_read_is_one(table, query):
    assert table.sql(query).num_rows > 0


def test_columns_of_one_name_are_told_apart(table):
    """Rows as dictionaries, JSON and CSV would keep one of them and drop the others without a word."""
    assert table.sql("select 1 as a, 2 as a, 3 as a_1, 4 as a").to_pylist() == [{"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}]
    joined = table.sql("from files join manifests using (manifest_path)")
    assert len(joined.to_pylist()[0]) == joined.num_columns


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("from columns", "not applicable"),
        ("select ['infinity'::timestamp] as v", "9223372036854775807"),
        ("select map {'a': {'b': ['infinity'::date]}} as v", "2147483647"),
        ("select ['infinity'::date]::date[1] as v", "2147483647"),
        ("select map {'infinity'::timestamptz: 1} as v", "9223372036854775807: 1"),
        ("select map {} as v", "none"),
        ("select 1 as provenance, null::int as a", "unknown"),
        ("select [1] as provenance, null::int as a", "unknown"),
        ("select [['b'], ['a', null]] as provenance, null::int as a", "unknown"),
        ("select map {1: 2} as provenance, null::int as a", "unknown"),
        ("select [1] as common_values", "1"),
        ("select [{'value': 'x', 'share': 'a'}] as common_values", "value=x"),
    ],
)
def test_what_a_query_returns_is_shown_and_written_in_every_format(read_table, table, query, shown):
    """Whatever its columns are called, and times beyond Python's years in lists and maps too."""
    found = icestats.show(table.sql(query))
    assert shown in repr(found)
    assert shown in found._repr_html_()
    command = ["sql", str(local_path(read_table.metadata_location)), query, "--format"]
    for output_format in ("table", "json", "csv", "parquet"):
        done = CliRunner().invoke(cli, [*command, output_format])
        assert done.exception is None or isinstance(done.exception, icestats.CallError), output_format


def test_an_interrupt_while_a_view_is_read_stops_the_query_as_it_stops_python():
    """DuckDB makes an error of its own of it, which is no wrong query."""

    def read(*_: object) -> pa.Table:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_query("select * from v", {"v": LazyView(pa.schema([("a", pa.int64())]), read)})


@pytest.fixture
def evolved_table(catalog):
    """Specs that call other partition fields by the same name `p`, and source columns that were promoted."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "cat", StringType(), required=False),
        NestedField(3, "n", IntegerType(), required=False),
        NestedField(4, "d", DecimalType(9, 2), required=False),
    )
    table = catalog.create_table("db.evolved", schema)
    first = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "cat": ["a", "b"],
            "n": pa.array([-7, 7], pa.int32()),
            "d": pa.array([Decimal("-1.25"), Decimal("1.25")], pa.decimal128(9, 2)),
        }
    )
    fields = (("id", BucketTransform(4)), ("cat", IdentityTransform()), ("id", BucketTransform(8)))
    for number, (source, transform) in enumerate(fields):
        if number:
            table.update_spec().remove_field("p").commit()
        table.update_spec().add_field(source, transform, "p").commit()
        table.append(first)
    table.update_spec().add_field("n", IdentityTransform(), "n").add_field("d", IdentityTransform(), "d").commit()
    table.append(first)
    table.update_schema().update_column("n", LongType()).update_column("d", DecimalType(20, 2)).commit()
    second = first.cast(pa.schema([*list(first.schema)[:2], ("n", pa.int64()), ("d", pa.decimal128(20, 2))]))
    table.append(second.set_column(2, "n", pa.array([8_000_000_000, None], pa.int64())))
    return icestats.load(str(local_path(table.metadata_location)))


def test_filters_on_partition_fields_of_evolved_specs_find_what_a_look_at_every_file_finds(evolved_table):
    """Whatever a spec called the field, and whatever type its column had then, no manifest with a match is left out."""
    rows = evolved_table.files().to_pylist()
    assert list(rows[0]["partition"]) == ["p_1000", "p_1001", "p", "n", "d"]
    asked = 0
    for name in rows[0]["partition"]:
        values = {row["partition"][name] for row in rows}
        for value in values:
            test = "is null" if value is None else f"= '{value}'"
            expected = sorted(row["file_path"] for row in rows if row["partition"][name] == value)
            query = f'select file_path from files where partition."{name}" {test} order by 1'
            assert [row["file_path"] for row in evolved_table.sql(query).to_pylist()] == expected, query
            asked += 1
    assert asked > 12


def test_the_views_of_an_evolved_table_are_its_tables(evolved_table):
    for name in ("partitions", "files"):
        found = evolved_table.sql(f"select partition, spec_id from {name}").to_pylist()
        assert found == getattr(evolved_table, name)().select(["partition", "spec_id"]).to_pylist()


def test_partition_fields_whose_names_differ_in_case_are_told_apart(catalog, load):
    """DuckDB takes the first one for both."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "ID", LongType()))
    fields = [PartitionField(place, 999 + place, IdentityTransform(), name) for place, name in ((1, "id"), (2, "ID"))]
    made = catalog.create_table("db.cases", schema, partition_spec=PartitionSpec(*fields))
    made.append(pa.table({"id": pa.array([1, 2], pa.int64()), "ID": pa.array([7, 8], pa.int64())}))
    for view in ("files", "partitions"):
        found = load("db.cases").sql(f'select partition."ID" a, partition.id_1000 b from {view} order by all')
        assert found.to_pylist() == [{"a": 7, "b": 1}, {"a": 8, "b": 2}]
        assert load("db.cases").sql(f'select count(*) n from {view} where partition."ID" = 7').to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("summary", ["without contains_null", "null"])
def test_a_summary_that_does_not_say_whether_there_are_nulls_rules_none_out(summary, catalog, load):
    """As `plan` has it; the spec asks for both, and not every writer keeps to it."""
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    made = catalog.create_table("db.nulls", Schema(NestedField(1, "id", LongType())), partition_spec=spec)
    made.append(pa.table({"id": pa.array([5, None], pa.int64())}))
    path = local_path(made.current_snapshot().manifest_list)
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, records = json.loads(json.dumps(reader.writer_schema)), list(reader)
    partitions = next(field["type"] for field in schema["fields"] if field["name"] == "partitions")
    lists = next(one for one in partitions if one != "null")
    item = lists["items"]
    if summary == "null":
        lists["items"] = ["null", item]
    item["fields"] = [field for field in item["fields"] if field["name"] != "contains_null"]
    for record in records:
        record["partitions"] = [None if summary == "null" else one for one in record["partitions"]]
    with path.open("wb") as file:
        fastavro.writer(file, {key: schema[key] for key in ("type", "name", "fields")}, records)
    assert repr(load("db.nulls")).startswith("db.nulls")
    assert load("db.nulls").sql("select count(*) n from files where partition.id is null").to_pylist() == [{"n": 1}]
    assert load("db.nulls").sql("select count(*) n from files where partition.id = 5").to_pylist() == [{"n": 1}]
