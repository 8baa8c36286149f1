"""What engines get of a table's statistics: the facts are whole, and a table's rows follow from its metadata."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, DoubleType, ListType, LongType, NestedField, StringType

import icestats
from icestats.cli.command_line import cli
from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.errors import CallError
from icestats.estimation import engine_statistics
from icestats.estimation.coverage import name_state, render_coverage
from icestats.estimation.engine_statistics import LEVELS, list_engines, read_engine_facts
from icestats.iceberg.metadata import BlobMetadata, StatisticsFile
from icestats.read.puffin.statistics_files import HIVE_COLUMNS
from icestats.scan.scan_job import Sizes
from icestats.stats.hashing import hash_values
from icestats.stats.theta import ThetaSketch
from icestats.table.table import Table
from tests.committed_statistics import as_of_others
from tests.computed_statistics import compute_here

SIZES = Sizes(200, 12, 200, 12)
THETA = "apache-datasketches-theta-v1"
ROOT = Path(icestats.__file__).parents[1]
SCHEMA = Schema(
    NestedField(1, "a", LongType(), required=False),
    NestedField(2, "flag", BooleanType(), required=False),
    NestedField(3, "price", DoubleType(), required=False),
    NestedField(4, "name", StringType(), required=False),
    NestedField(5, "tags", ListType(6, StringType(), element_required=False), required=False),
)
ROWS = pa.table(
    {
        "a": pa.array(range(10), pa.int64()),
        "flag": pa.array([True] * 10),
        "price": [0.5] * 10,
        "name": ["x"] * 10,
        "tags": pa.array([["t"]] * 10, pa.list_(pa.string())),
    }
)

PLACES = {
    "snapshot summary",
    "manifest list",
    "manifests",
    "Theta sketch",
    "KLL sketch",
    "column statistics",
    "partition statistics",
    "partition sketches",
    "Presto's blobs",
    "Hive's blobs",
    "Hive's blobs by partition",
}
"""Where a table can have a statistic."""


@pytest.fixture(autouse=True)
def configured(catalog_properties, monkeypatch):
    """PyIceberg's configuration knows the catalog, as the default one: the command line finds its tables."""
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "catalog")
    for name, value in catalog_properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__CATALOG__{name.upper()}", value)


@pytest.fixture
def table(catalog):
    table = catalog.create_table("db.t", SCHEMA)
    table.append(ROWS)
    return table


def open_table(table, **options):
    return icestats.load("db.t", catalog=table.catalog.properties, **options)


def theta(snapshot, *field_ids):
    sketch = ThetaSketch()
    sketch.update(hash_values(pa.array(range(10), pa.int64()), "long"))
    return NewBlob(
        THETA, field_ids, snapshot.snapshot_id, snapshot.sequence_number, sketch.to_bytes(), {"ndv": str(sketch.ndv)}
    )


def commit(table, **options):
    commit_statistics(prepare_commit(table, [theta(table.refresh().current_snapshot(), 1)], **options))


def rows(table, level, statistic, column=None):
    """Row by engine."""
    found = (table if isinstance(table, Table) else open_table(table)).coverage().to_pylist()
    chosen = [r for r in found if (r["level"], r["statistic"], r["column"]) == (level, statistic, column)]
    return {row["engine"]: row for row in chosen}


def states(*args):
    return {engine: name_state(row) for engine, row in rows(*args).items()}


def test_each_statistic_of_each_engine_and_level_stands_in_one_fact():
    document = tomllib.loads(Path(engine_statistics.__file__).with_suffix(".toml").read_text())
    stands = Counter(
        (engine["name"], fact["level"], statistic)
        for engine in document["engine"]
        for fact in engine["fact"]
        for statistic in fact["statistics"]
    )
    engines = ("Spark", "Trino", "Presto", "Hive", "Impala", "DuckDB", "icestats")
    expected = {(e, level, name) for e in engines for level, names in LEVELS.items() for name in names}
    assert list_engines() == engines
    assert set(stands) == expected
    assert set(stands.values()) == {1}


@pytest.mark.parametrize("engine", list_engines())
def test_a_fact_has_its_version_its_source_and_known_places(engine):
    for fact in read_engine_facts():
        if fact.engine == engine:
            assert fact.engine_version
            assert fact.source.startswith("https://github.com/") or (ROOT / fact.source).is_file()
            assert "{" not in fact.source
            assert set(fact.reads) <= PLACES
            assert fact.uses or not fact.reads, "what is not used is not read"
            assert "\n" not in fact.says
            assert not fact.says.endswith(".")


def test_without_statistics_engines_have_what_manifests_give(table):
    assert states(table, "table", "num rows") == dict.fromkeys(list_engines(), "fresh")
    of_a = {"Spark": "ignored", "Trino": "fresh", "Presto": "fresh", "Hive": "ignored", "Impala": "ignored"}
    assert states(table, "table-column", "min value", "a") == {**of_a, "DuckDB": "ignored", "icestats": "fresh"}
    ndv = states(table, "table-column", "NDV", "a")
    assert ndv == dict.fromkeys(list_engines(), "missing")
    assert rows(table, "table", "num rows")["Trino"]["source"] == "manifests"
    assert rows(table, "table-column", "NDV", "a")["Spark"]["commits_behind"] is None


def test_an_ndv_is_fresh_then_behind_where_an_engine_falls_back_and_ignored_where_not(table):
    commit(table)
    fresh = dict.fromkeys(list_engines(), "fresh")
    assert states(table, "table-column", "NDV", "a") == {**fresh, "Hive": "ignored", "DuckDB": "ignored"}
    table.append(ROWS)
    table.append(ROWS)
    found = states(table, "table-column", "NDV", "a")
    assert {engine: found[engine] for engine in ("Spark", "Trino", "Presto", "Impala", "icestats")} == {
        "Spark": "ignored",
        **dict.fromkeys(("Trino", "Presto", "Impala", "icestats"), "2 behind"),
    }
    commands = {engine: row["command"] for engine, row in rows(table, "table-column", "NDV", "a").items()}
    assert commands.pop("DuckDB") is None, "nothing gives DuckDB an NDV"
    assert set(commands.values()) == {"icestats compute db.t --table --commit"}


def test_an_ndv_that_is_not_listed_is_ignored_and_a_commit_lists_it(table):
    commit(table, list_ndv=[])
    found = rows(table, "table-column", "NDV", "a")
    assert name_state(found["Trino"]) == "ignored"
    assert name_state(found["Presto"]) == "fresh", "it reads the footer"
    assert found["Trino"]["command"] == "icestats compute db.t --table --commit"


def test_a_statistic_that_does_not_apply_has_no_row(table):
    found = open_table(table).coverage().to_pylist()
    assert {r["level"] for r in found} == {"table", "table-column"}, "the table has no partitions"
    assert {r["column"] for r in found if r["statistic"] == "NaN count"} == {"price"}
    assert {r["column"] for r in found if r["statistic"] == "avg length"} == {"name"}
    assert {r["column"] for r in found if r["statistic"] == "num trues"} == {"flag"}
    assert "tags" not in {r["column"] for r in found}
    by_name = rows(table, "table-column", "min value", "name")
    assert not by_name["Trino"]["uses"], "it has ranges of numbers only"


def test_one_blob_of_two_fields_blinds_presto(table):
    """TableStatisticsMaker.loadStatisticsFile wants one field in each blob of the footer."""
    opened = open_table(table)
    path = with_blobs(opened, theta(opened.snapshot, 1), theta(opened.snapshot, 1, 3))
    found = rows(path, "table", "num rows")["Presto"]
    assert (name_state(found), found["command"]) == ("ignored", None)
    assert found["evidence"].startswith("Presto sees no statistics of the table at all: the blob 'apache-datasketches")
    assert states(path, "table", "num rows")["Trino"] == "fresh"
    fine = with_blobs(opened, theta(opened.snapshot, 1))
    hidden = with_puffin(opened, write_puffin([theta(opened.snapshot, 1), theta(opened.snapshot, 1, 3)]), [])
    assert states(hidden, "table", "num rows")["Presto"] == "fresh", "the kit's own of two fields is hidden"
    assert states(fine, "table", "num rows")["Presto"] == "fresh"


def test_an_ndv_of_timestamps_without_a_zone_is_for_trino_and_never_for_spark(catalog):
    times = pa.table({"an at": pa.array([1, 2], pa.timestamp("us"))})
    table = catalog.create_table("db.t", times.schema)
    table.append(times)
    missing = rows(table, "table-column", "NDV", "an at")
    assert missing["Trino"]["command"].endswith("--table --list-ndv 'an at' --columns 'an at' --commit")
    assert missing["Spark"]["command"] is None
    assert "Spark 4.1 fails on joins" in missing["Spark"]["evidence"]
    commit(table, list_ndv=["an at"])
    assert states(table, "table-column", "NDV", "an at")["Trino"] == "fresh"
    assert states(table, "table-column", "NDV", "an at")["Spark"] != "fresh"


def test_one_ndv_that_is_no_integer_blinds_trino(table):
    opened = open_table(table)
    odd = replace(theta(opened.snapshot, 1), properties={"ndv": "12.5"})
    found = rows(with_blobs(opened, odd), "table", "num rows")
    assert name_state(found["Trino"]) == "ignored"
    assert "metadata.json lists the ndv '12.5'" in found["Trino"]["evidence"]
    assert name_state(found["Spark"]) == "fresh"


def test_duckdb_counts_no_rows_of_format_version_1(table):
    opened = open_table(table)
    old = Table(replace(opened._source, metadata=replace(opened.metadata, format_version=1)))
    assert states(old, "table", "num rows")["DuckDB"] == "ignored"


def with_blobs(opened, *blobs):
    """Return the table with a statistics file of these blobs, all of them listed, as others write it."""
    return with_puffin(opened, write_puffin([as_of_others(blob) for blob in blobs]), blobs)


def with_puffin(opened, puffin, blobs):
    path = f"{opened.metadata.location}/metadata/{len(blobs)}.stats"
    Path(path.removeprefix("file://")).write_bytes(puffin.data)
    listed = tuple(BlobMetadata(b.type, b.snapshot_id, 1, b.field_ids, b.properties) for b in blobs)
    file = StatisticsFile(opened.snapshot.snapshot_id, path, len(puffin.data), puffin.footer_size_bytes, listed)
    return Table(replace(opened._source, metadata=replace(opened.metadata, statistics=(file,))))


def test_hive_reads_its_own_blobs_of_this_snapshot_in_a_file_without_others(table):
    """IcebergTableUtil.readColStats deserializes each blob of a column as Java's objects, whatever its type is."""
    opened = open_table(table)
    snapshot = opened.snapshot
    own = NewBlob(HIVE_COLUMNS, (1,), snapshot.snapshot_id, snapshot.sequence_number, b"java", {})
    assert states(with_blobs(opened, own), "table-column", "NDV", "a")["Hive"] == "fresh"
    mixed = with_blobs(opened, own, theta(snapshot, 1))
    assert states(mixed, "table-column", "NDV", "a")["Hive"] == "ignored"
    assert states(mixed, "table-column", "null count", "a")["Hive"] == "ignored"


def test_presto_refuses_a_table_with_times_of_a_zone(small_table, load):
    found = {row["engine"]: row for row in load().coverage(engines=["presto"]).to_pylist() if row["uses"]}
    assert not found["Presto"]["read_by_engine"]
    assert "refuses the table: column 'at' is timestamptz" in found["Presto"]["evidence"]


def test_the_partition_statistics_file_of_this_snapshot_is_hives(small_table, load):
    asked = rows(load(), "partition", "num rows")
    name = shlex.split(asked["Hive"]["command"])[2]
    assert name_state(asked["Hive"]) == "ignored", "it does not add up manifests"
    assert asked["Hive"]["command"] == f"icestats compute {name} --partitions --with-column-stats --commit"
    load().compute(partitions=True, with_column_stats=True).commit()
    assert states(load(), "partition", "num rows")["Hive"] == "fresh"
    small_table.refresh().append(small_table.scan().to_arrow())
    assert states(load(), "partition", "num rows")["Hive"] == "ignored"


def test_a_statistic_that_a_file_lacks_is_missing(catalog, table):
    table.transaction().set_properties({"write.metadata.metrics.column.price": "none"}).commit_transaction()
    table.append(ROWS)
    found = states(table, "table-column", "null count", "price")
    assert (found["Trino"], found["icestats"]) == ("missing", "missing")
    assert states(table, "table-column", "null count", "a")["Trino"] == "fresh"


def test_a_bare_metadata_json_takes_no_commit(table):
    opened = icestats.load(table.metadata_location)
    commands = {row["command"] for row in opened.coverage().to_pylist()} - {None}
    assert not [command for command in commands if command.startswith("icestats compute")]
    assert f"icestats export {shlex.quote(opened.name)} --to hive" in commands
    assert not [command for command in commands if "ANALYZE" in command], "engines know the table by no name"


def test_commands_name_the_columns_and_the_snapshot_that_were_asked_about(table):
    snapshot_id = table.current_snapshot().snapshot_id
    pinned = open_table(table, snapshot=snapshot_id).coverage(columns=["a", "name"], engines=["spark"])
    commands = set(pinned["command"].to_pylist()) - {None}
    assert f"icestats compute db.t --snapshot {snapshot_id} --table --columns a,name --commit" in commands
    assert f"icestats.load('db.t', snapshot={snapshot_id}).to_spark()" in commands
    stated = open_table(table, snapshot=snapshot_id).coverage()["command"].drop_null().to_pylist()
    assert not [command for command in stated if "ANALYZE" in command], "an engine's statement is about another one"


def test_a_name_that_a_shell_or_an_engine_would_read_otherwise_is_quoted(catalog):
    table = catalog.create_table("db.it's; rm", SCHEMA)
    table.append(ROWS)
    opened = icestats.load("db.it's; rm", catalog=table.catalog.properties)
    commands = {row["command"] for row in opened.coverage().to_pylist()} - {None}
    shell = [command for command in commands if command.startswith("icestats ")]
    assert all("db.it's; rm" in shlex.split(command) for command in shell)
    assert not [command for command in commands if "ANALYZE" in command], "a shell of SQL would cut the name"
    catalog.rename_table("db.it's; rm", "db.of it & rm")
    opened = icestats.load("db.of it & rm", catalog=catalog.properties)
    commands = {row["command"] for row in opened.coverage().to_pylist()} - {None}
    assert 'ANALYZE "db"."of it & rm"' in commands
    assert "ANALYZE TABLE `db`.`of it & rm` COMPUTE STATISTICS FOR COLUMNS" in commands
    catalog.rename_table("db.of it & rm", "db.order")
    commands = set(icestats.load("db.order", catalog=catalog.properties).coverage()["command"].to_pylist())
    assert 'ANALYZE "db"."order"' in commands, "a word that engines reserve"
    assert "ANALYZE TABLE `db`.`order` COMPUTE STATISTICS FOR COLUMNS" in commands


def test_commands_are_python_where_the_command_line_does_not_know_the_catalog(small_table, load, monkeypatch):
    """Run as it is shown, with the `catalog` that the table was loaded with, one closes its gap."""
    monkeypatch.delenv("PYICEBERG_CATALOG__CATALOG__URI")
    commands = set(load().coverage()["command"].drop_null().to_pylist())
    assert not [command for command in commands if command.startswith("icestats ")]
    loading = "icestats.load('db.small', catalog=catalog)"
    assert {f"print({loading}.export('hive'))", f"{loading}.compute(table=True).commit()"} <= commands
    (chosen,) = {command for command in commands if "partitions=True" in command}
    eval(chosen, {"icestats": icestats, "catalog": small_table.catalog.properties})
    assert states(load(), "partition", "num rows")["Hive"] == "fresh"


def test_names_that_options_cannot_list_are_in_python(catalog):
    rows = pa.table({"a,b": [1], "c": [2]})
    catalog.create_table("db.commas", rows.schema).append(rows)
    loaded = icestats.load("db.commas", catalog=catalog.properties)
    asked = {name: set(loaded.coverage(columns=[name])["command"].to_pylist()) for name in ("a,b", "c")}
    assert "icestats.load('db.commas').compute(table=True, columns=['a,b']).commit()" in asked["a,b"]
    assert "icestats compute db.commas --table --columns c --commit" in asked["c"]


def test_counts_of_a_boolean_are_in_its_distribution_and_hive_gets_them_by_an_export(table):
    missing = rows(table, "table-column", "num trues", "flag")["Hive"]
    assert (name_state(missing), missing["command"]) == ("missing", "icestats compute db.t --table --commit")
    opened = open_table(table)
    compute_here(opened).commit()
    known = rows(table, "table-column", "num trues", "flag")["Hive"]
    assert (name_state(known), known["command"]) == ("ignored", "icestats export db.t --to hive")
    assert "'numTrues'='10'" in open_table(table).export("hive")
    histogram = rows(table, "table-column", "histogram", "a")["Hive"]
    assert histogram["command"] == 'icestats export db.t --to hive --metastore "$METASTORE"', "no statement has it"


def test_a_table_without_a_snapshot_has_nothing_and_no_command_helps(empty_table, catalog_properties):
    found = icestats.load("db.empty", catalog=catalog_properties).coverage().to_pylist()
    assert not any(row["available"] or row["read_by_engine"] for row in found)
    assert not [row for row in found if (row["command"] or "").startswith("icestats")]


def test_more_columns_than_have_room_are_refused_until_some_are_chosen(empty_table, tmp_path):
    document = json.loads(empty_table.metadata.model_dump_json())
    fields = [{"id": i, "name": f"c{i}", "type": "long", "required": False} for i in range(1, 10_002)]
    document["schemas"][0]["fields"] = fields
    (tmp_path / "v1.metadata.json").write_text(json.dumps(document | {"last-column-id": len(fields)}))
    wide = icestats.load(str(tmp_path / "v1.metadata.json"))
    with pytest.raises(CallError, match="coverage of 10,001 columns: expected at most 10,000, choose some by columns="):
        wide.coverage()
    assert set(wide.coverage(columns=["c7"])["column"].to_pylist()) == {None, "c7"}
    assert wide.coverage(columns=["c7", "c7"]).equals(wide.coverage(columns=["c7"]))


def test_a_lost_statistics_file_leaves_its_statistics_missing(table):
    commit(table)
    Path(open_table(table).metadata.statistics[0].statistics_path.removeprefix("file://")).unlink()
    assert set(states(table, "table-column", "NDV", "a").values()) == {"missing"}
    assert states(table, "table", "num rows")["Trino"] == "fresh"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"engines": ["mysql"]},
            "no engine 'mysql': expected some of Spark, Trino, Presto, Hive, Impala, DuckDB, icest",
        ),
        ({"columns": ["tags"]}, "column 'tags' is list: expected a primitive top-level column"),
    ],
)
def test_a_wrong_call_says_what_was_expected(table, asked, said):
    with pytest.raises(CallError, match=said):
        open_table(table).coverage(**asked)


def test_the_matrix_counts_columns_together_and_lists_each_command_once(table):
    commit(table)
    lines = render_coverage(open_table(table).coverage()).splitlines()
    assert lines[0].split() == ["level", "statistic", *list_engines()]
    ndv = next(line for line in lines if " NDV " in line)
    assert "1 fresh, 3 missing" in ndv
    assert sum("--table --commit" in line for line in lines) == 1


def test_json_has_the_fields_that_were_agreed(table):
    result = CliRunner().invoke(cli, ["coverage", table.metadata_location, "--engines", "hive", "--format", "json"])
    assert result.exit_code == 0, result.output
    first = json.loads(result.stdout)[0]
    agreed = ("engine", "engine_version", "level", "statistic", "uses", "available", "source", "commits_behind")
    assert {*agreed, "read_by_engine", "command", "evidence", "column"} <= set(first)
    assert (first["engine"], first["level"], first["statistic"]) == ("Hive", "table", "num rows")
    wrong = CliRunner().invoke(cli, ["coverage", table.metadata_location, "--engines", "mysql"])
    assert isinstance(wrong.exception, CallError)
