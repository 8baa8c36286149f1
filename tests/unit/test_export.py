"""What engines are told: figures with their provenance, nothing unknown, and no word of a table as a statement."""

from __future__ import annotations

import datetime as dt
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pytest
import sqlglot
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimeType,
    UUIDType,
)
from sqlglot import exp

import icestats
from icestats.answers.text import can_stand
from tests.computed_statistics import compute_here
from tests.written_deletes import delete_positions, list_data_files

DIALECTS = {"hive": "hive", "impala": "hive", "spark": "spark", "trino": "trino"}
ODD = {
    1: "it's `q`",
    2: 'say "b"',
    3: "über\u00e9😀",
    4: "two\nlines",
    5: "a;b",
    6: "+ straight_join",
    7: "a--b",
    8: "q`",
}


def commit_statistics(table: icestats.Table) -> None:
    compute_here(table).commit()


@pytest.fixture
def typed(catalog, load):
    """A table of many types, with its statistics committed."""
    types = [
        BooleanType(), IntegerType(), DoubleType(), DecimalType(9, 2), DateType(), TimestampType(), StringType(),
        TimeType(), UUIDType(), FixedType(3), ListType(99, LongType()),
    ]  # fmt: skip
    names = ["flag", "n", "x", "amount", "day", "at", "name", "clock", "id", "code", "tags"]
    schema = Schema(*(NestedField(i, name, kind) for i, (name, kind) in enumerate(zip(names, types, strict=True), 1)))
    table = catalog.create_table("db.typed", schema)
    rows = [
        {
            "flag": i % 4 == 0,
            "n": i,
            "x": i / 2,
            "amount": Decimal(f"{i}.25"),
            "day": dt.date(2020, 1, 1) + dt.timedelta(days=i),
            "at": dt.datetime(1969, 12, 31, 23, 59, 59, 500_000) + dt.timedelta(seconds=i),
            "name": None if i == 3 else "é" * (i % 3),
            "clock": dt.time(1, 2, 3),
            "id": bytes([i] * 16),
            "code": b"abc",
            "tags": [i],
        }
        for i in range(100)
    ]
    table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))
    commit_statistics(load("db.typed"))
    return load("db.typed")


def statements(script: str) -> list[str]:
    lines = [line for line in script.split("\n") if line and not line.startswith("--")]
    assert all(line.endswith(";") for line in lines)
    return lines


def comment_on(script: str, column: str) -> str:
    return next(line for line in script.split("\n") if line.startswith(f"-- column {column}:"))


def test_hive_gets_what_its_types_take(typed):
    """Days for dates and whole seconds for timestamps, as Hive's `ColumnStatsUpdateTask` reads them."""
    script = typed.export("hive")
    found = statements(script)
    assert found[:2] == ["USE `db`;", "ALTER TABLE `typed` UPDATE STATISTICS SET ('numRows'='100');"]
    sets = {re.search(r"COLUMN `(\w+)`", line)[1]: dict(re.findall(r"'(\w+)'='([^']*)'", line)) for line in found[2:]}
    assert sets == {
        "flag": {"numTrues": "25", "numFalses": "75", "numNulls": "0"},
        "n": {"numDVs": "100", "numNulls": "0", "lowValue": "0", "highValue": "99"},
        "x": {"numDVs": "100", "numNulls": "0", "lowValue": "0.0", "highValue": "49.5"},
        "amount": {"numDVs": "100", "numNulls": "0", "lowValue": "0.25", "highValue": "99.25"},
        "day": {"numDVs": "100", "numNulls": "0", "lowValue": "18262", "highValue": "18361"},
        "at": {"numDVs": "100", "numNulls": "0", "lowValue": "-1", "highValue": "98"},
        "name": {"numDVs": "2", "numNulls": "1", "maxColLen": "4", "avgColLen": sets["name"]["avgColLen"]},
        "id": {"numDVs": "100", "numNulls": "0", "maxColLen": "36", "avgColLen": "36"},
        "code": {"numNulls": "0", "maxColLen": "3", "avgColLen": "3"},
    }
    assert "no statistics of type time" in comment_on(script, "clock")
    assert "no statistics of type list" in comment_on(script, "tags")
    assert "cut to seconds" in comment_on(script, "at")


@pytest.mark.parametrize("engine", ["hive", "impala"])
def test_counts_of_an_earlier_snapshots_booleans_are_not_called_exact(catalog, load, engine):
    rows = pa.table({"flag": [True] * 9})
    table = catalog.create_table("db.flags", rows.schema)
    table.append(rows)
    commit_statistics(load("db.flags"))
    assert "numTrues, numFalses: exact: this snapshot" in comment_on(load("db.flags").export(engine), "flag")
    catalog.load_table("db.flags").append(rows)
    said = comment_on(load("db.flags").export(engine), "flag")
    assert re.search(r"numTrues, numFalses: estimate: exact over the live rows of snapshot \d+, 1 commit behind", said)


def test_impala_gets_what_its_types_take(typed):
    """No ranges, lengths of strings only, no NDV of booleans: `AlterTableSetColumnStats`."""
    script = typed.export("impala")
    found = statements(script)
    assert found[0].startswith("ALTER TABLE `db`.`typed` SET TBLPROPERTIES ('numRows'='100', 'STATS_GENERATED_VIA")
    assert "ALTER TABLE `db`.`typed` SET COLUMN STATS `n` ('numDVs'='100', 'numNulls'='0');" in found
    assert any("`flag` ('numNulls'='0', 'numTrues'='25', 'numFalses'='75')" in line for line in found)
    assert any("`name` ('numDVs'='2', 'numNulls'='1', 'maxSize'='4', 'avgSize'=" in line for line in found)
    assert found[-1] == "SHOW COLUMN STATS `db`.`typed`;"
    for column in ("clock", "id", "code", "tags"):
        assert "Impala has no statistics of type" in comment_on(script, column)


def test_what_is_unknown_is_left_out_and_said(small_table, load):
    """Without committed statistics there is no NDV and no length."""
    hive, impala = load().export("hive"), load().export("impala")
    assert [line for line in statements(hive) if "FOR COLUMN" in line] == []
    assert "left out: numDVs is unknown, and Hive takes numDVs, numNulls together" in comment_on(hive, "id")
    assert "SET COLUMN STATS `id` ('numNulls'='0');" in impala
    assert comment_on(impala, "name").endswith("left out: numDVs is unknown, maxSize is unknown, avgSize is unknown")
    assert "None" not in hive + impala


def test_figures_of_an_earlier_snapshot_say_so(small_table, load):
    """After an append the NDV is old, the counts of nulls are the manifests', and there are no exact bounds."""
    commit_statistics(load())
    small_table.refresh()
    small_table.append(small_table.scan().to_arrow().slice(0, 10))
    script = load().export("hive")
    assert "1 commit behind" in comment_on(script, "id")
    line = next(line for line in statements(script) if "`id`" in line)
    assert "'numDVs'='200', 'numNulls'='0')" in line
    assert "lowValue and highValue are bounds" in comment_on(script, "id")


def test_deletes_that_are_not_applied_make_a_row_count_a_bound(catalog, load, small_table):
    """Counts of nulls of data files are none of the live rows."""
    delete_positions(small_table, [(list_data_files(small_table)[0], 0)])
    script = load().export("hive")
    assert "bound: at most, deletes of 1 file not applied" in script
    assert "numNulls is not exact" in comment_on(script, "id")


def test_nan_and_infinity_have_no_place_in_a_range(catalog, load):
    rows = {"nan": [1.0, float("nan")], "infinite": [1.0, float("inf")]}
    catalog.create_table("db.odd", pa.table(rows).schema).append(pa.table(rows))
    commit_statistics(load("db.odd"))
    script = load("db.odd").export("hive")
    assert "lowValue and highValue have no place for NaN" in comment_on(script, "nan")
    assert "lowValue and highValue have no place for infinity" in comment_on(script, "infinite")
    assert "inf'" not in script.lower()


@pytest.fixture
def odd(catalog, load):
    table = catalog.create_table("db.odd", Schema(*(NestedField(i, name, LongType()) for i, name in ODD.items())))
    table.append(pa.table({name: pa.array([1, 2, 3], pa.int64()) for name in ODD.values()}))
    commit_statistics(load("db.odd"))
    return load("db.odd")


def test_no_name_gets_out_of_its_quotes_or_its_comment(odd):
    """A name of several lines, or one that a shell cuts at, is left out and said; no line begins with what it chose."""
    hive, impala = odd.export("hive"), odd.export("impala")
    assert "COLUMN `q``` SET" in hive
    for name in ("it's `q`", 'say "b"', "a--b"):
        assert "its name cannot stand in a script" in comment_on(hive, name)
    assert "COLUMN `über\u00e9😀` SET" in hive
    for script in (hive, impala):
        assert "its name cannot stand in a script" in comment_on(script, "a;b")
        assert "its name cannot stand in a script" in comment_on(script, "two\N{REPLACEMENT CHARACTER}lines")
        assert not re.search(r"^(lines|-- \+)", script, re.M)
    assert "its name cannot stand in a script" in comment_on(impala, "it's `q`")


@pytest.mark.parametrize("engine", DIALECTS)
def test_each_statement_is_one_of_the_dialect(typed, odd, engine):
    """sqlglot takes what it does not know, such as UPDATE STATISTICS, as a command: Hive's own parser reads these."""
    for table in (typed, odd):
        name = None if engine in ("hive", "impala") else "lake.db.odd"
        for statement in statements(table.export(engine, name=name)):
            parsed = sqlglot.parse(statement, read=DIALECTS[engine])
            kinds = [type(one) for one in parsed if one is not None]
            assert len(kinds) == 1, statement
            assert kinds[0] in (exp.Set, exp.Use, exp.Alter, exp.Command), statement


def test_spark_and_trino_get_settings_traps_and_a_statement(typed):
    spark, trino = typed.export("spark"), typed.export("trino")
    assert statements(spark) == [
        "SET spark.sql.cbo.enabled=true;",
        "SET `spark.sql.iceberg.report-column-stats`=true;",
        "EXPLAIN COST SELECT * FROM `catalog`.`db`.`typed`;",
    ]
    assert "It finds the NDV of 9 columns, for exactly this snapshot" in spark
    assert "SPARK-52868): here flag, n, x, amount, day." in spark
    assert statements(trino) == [
        'SET SESSION "catalog".statistics_enabled = true;',
        'SHOW STATS FOR "catalog"."db"."typed";',
    ]
    assert "a query that selects code (fixed) has no statistics" in trino


def test_an_export_without_statistics_says_what_to_run(small_table, load):
    assert "It finds no NDV now for exactly this snapshot" in load().export("spark")
    assert "run icestats compute SOURCE --commit" in load().export("trino")


def test_a_table_that_has_no_name_there_needs_one(small_table, load):
    bare = icestats.load(small_table.metadata_location)
    with pytest.raises(icestats.CallError, match=r"a metadata.json has no name in Hive: give one, name='db.table'"):
        bare.export("hive")
    assert "USE `shop`;\n" in bare.export("hive", name="shop.orders")
    for wrong in ("orders", "a.b.c", "a.b;c", "a.b\n", "."):
        with pytest.raises(icestats.CallError, match=r"cannot be named in Hive: expected db\.table"):
            bare.export("hive", name=wrong)


def test_wrong_calls_are_one_line(small_table, load):
    table = load()
    with pytest.raises(icestats.CallError, match="engine is 'presto': expected one of hive, impala, spark, trino"):
        table.export("presto")
    with pytest.raises(icestats.CallError, match="a metastore takes the statistics of hive: 'impala' was given"):
        table.export("impala", metastore="thrift://localhost:1")
    with pytest.raises(icestats.CallError, match="bit_vectors and dry_run are about a metastore"):
        table.export("hive", bit_vectors=True)
    for uri in ("localhost:9083", "http://localhost:9083", "thrift://", "thrift://h:port"):
        with pytest.raises(icestats.CallError, match=r"is no Hive metastore: expected thrift://host:9083"):
            table.export("hive", metastore=uri)


def test_a_metastore_that_does_not_answer_is_one_line(small_table, load):
    """None listens; one hangs up at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"thrift://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(icestats.errors.CatalogError, match=rf"^the Hive metastore {nobody} does not answer"):
        load().export("hive", metastore=nobody)


def test_a_metastore_that_answers_with_other_bytes_is_one_line(small_table, load):
    def answer():
        client, _ = server.accept()
        with client:
            client.recv(4096)
            client.sendall(b"\x80\x01\x00\x02" + b"\x00\x00\x00\x01\xff" + bytes(4))

    compute_here(load()).commit()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        somebody = f"thrift://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(icestats.errors.CatalogError, match=rf"^the Hive metastore {somebody} does not answer"):
            load().export("hive", metastore=somebody)


def test_an_empty_table_has_nothing_to_export(empty_table, load):
    script = load("db.empty").export("hive")
    assert "which has no snapshot yet" in script


@pytest.mark.parametrize("name", ["db.a{}", "db.{0}", "{}.t"])
def test_braces_in_a_name_are_a_part_of_it(small_table, load, name):
    database, table = name.split(".")
    assert f"ALTER TABLE `{table}` UPDATE STATISTICS SET ('numRows'='" in load().export("hive", name=name)
    assert f"ALTER TABLE `{database}`.`{table}` SET TBLPROPERTIES ('numRows'='" in load().export("impala", name=name)


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a;b", "a--b", "a/*b", "it's", 'say "', "\u202eb", "\x1b[2J", "${env:HOME}"]
)
def test_names_that_cannot_stand_in_a_script(name):
    assert not can_stand(name)
