"""Hive itself takes the export: its parser and its metastore, both from Spark's own jars (Hive 2.3)."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

import icestats
from icestats.iceberg.catalog import load_iceberg_table
from icestats.spark.hive_bit_vectors import scan_bit_vectors
from icestats.stats.hashing import hash_for_hive
from icestats.stats.hive_sketches import REGISTER_COUNT, update_registers
from tests.computed_statistics import compute_here
from tests.hive_metastore import run_metastore

pytestmark = pytest.mark.spark

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "price", DoubleType()),
    NestedField(3, "amount", DecimalType(9, 2)),
    NestedField(4, "day", DateType()),
    NestedField(5, "name", StringType()),
    NestedField(6, "flag", BooleanType()),
    NestedField(7, "it's \u00e9", LongType()),
    NestedField(8, "at", TimestamptzType()),
)


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory):
    with run_metastore(tmp_path_factory.mktemp("metastore")) as address:
        yield address


@pytest.fixture(scope="module")
def table(metastore, tmp_path_factory):
    """An Iceberg table with its statistics committed; the metastore has one of the same name and columns.

    They are two: statistics go to any table of these columns, whatever catalog theirs is in.
    """
    folder = tmp_path_factory.mktemp("lake")
    HiveCatalog("hive", uri=metastore).create_namespace("shop", {"location": folder.as_uri()})
    HiveCatalog("hive", uri=metastore).create_table("shop.orders", SCHEMA)
    properties = {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": folder.as_uri()}
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("shop")
    # A task of Spark's for each of the two files.
    created = catalog.create_table("shop.orders", SCHEMA, properties={"read.split.target-size": "1"})
    rows = [
        {"id": i, "price": i / 4, "amount": Decimal(i) / 4, "day": dt.date(2020, 1, 1), "name": f"é{i % 7}"}
        | {"flag": i % 4 == 0, "it's é": None if i % 10 == 0 else -i, "at": dt.datetime.fromtimestamp(i, dt.UTC)}
        for i in range(2_000)
    ]
    for half in (rows[:1_000], rows[1_000:]):
        created.append(pa.Table.from_pylist(half, created.schema().as_arrow()))
    catalog.close()
    loaded = icestats.load("shop.orders", catalog=properties)
    compute_here(loaded).commit()
    return loaded.refresh()


def read_back(uri: str, column: str, name: str = "shop.orders") -> dict[str, Any]:
    from icestats.commit.engines.metastore import _connect

    with _connect(uri) as client:
        found = client.get_table_column_statistics(*name.split("."), column).statsObj[0]
    kind = next(value for value in vars(found.statsData).values() if value is not None)
    return {name: value for name, value in vars(kind).items() if value is not None}


def test_a_metastore_takes_the_statistics_of_columns(metastore, table):
    """Hive 2.3 keeps neither bit vector nor histogram, and the column of an odd name like any other."""
    said = table.export("hive", metastore=metastore)
    assert said.startswith(f"-- Statistics of 7 columns of shop.orders, snapshot {table.snapshot.snapshot_id} of ")
    assert f"were written to {metastore}, shop.orders." in said
    assert read_back(metastore, "id") == {"lowValue": 0, "highValue": 1_999, "numNulls": 0, "numDVs": 2_000}
    assert read_back(metastore, "price") == {"lowValue": 0.0, "highValue": 499.75, "numNulls": 0, "numDVs": 2_000}
    assert read_back(metastore, "day")["highValue"].daysSinceEpoch == 18_262
    high = read_back(metastore, "amount")["highValue"]
    assert (high.scale, int.from_bytes(high.unscaled, "big")) == (2, 49_975)
    assert read_back(metastore, "name") == {"maxColLen": 3, "avgColLen": 3.0, "numNulls": 0, "numDVs": 7}
    flags = read_back(metastore, "flag")
    assert flags["numNulls"] == 0
    assert flags["numTrues"] + flags["numFalses"] == 2_000
    assert read_back(metastore, "it's é") == {"lowValue": -1_999, "highValue": -1, "numNulls": 200, "numDVs": 1_800}


def test_a_dry_run_writes_nothing(metastore, table):
    HiveCatalog("hive", uri=metastore).create_table("shop.looked_at", SCHEMA)
    said = table.export("hive", metastore=metastore, dry_run=True, name="shop.looked_at")
    assert "Statistics of 7 columns" in said
    assert "would be written to" in said
    with pytest.raises(icestats.CatalogError):
        read_back(metastore, "id", "shop.looked_at")


def test_a_table_that_the_metastore_does_not_have_is_one_line(metastore, table):
    with pytest.raises(icestats.errors.TableNotFoundError, match=r"has no table shop\.none: give its name"):
        table.export("hive", metastore=metastore, name="shop.none")


def test_hives_parser_takes_each_statement(table, spark):
    """Its whole command line runs them too, but for a jar that Spark lacks (hive-llap-common)."""
    hive = spark.sparkContext._jvm.org.apache.hadoop.hive
    conf = hive.conf.HiveConf()
    for place in ("hdfs", "local"):
        conf.set(f"_hive.{place}.session.path", "/tmp/none")
    context = hive.ql.Context(conf)
    parser = hive.ql.parse.ParseDriver()
    found = cut_by_beeline(spark.sparkContext._gateway, table.export("hive"))
    assert len(found) == 2 + 6
    for statement in found:
        assert parser.parse(statement, context).toStringTree().startswith(("(tok_altertable", "(tok_switchdatabase"))


def cut_by_beeline(gateway: Any, script: str) -> list[str]:
    """Cut a script, whose statements are a line each, by Beeline's own methods, which are not public."""
    java, (client, *kinds) = gateway.jvm.java.lang, ("org.apache.hive.beeline.BeeLine", "java.lang.String", "[I")
    load = java.Thread.currentThread().getContextClassLoader().loadClass
    field = load(client).getDeclaredField("commands")
    field.setAccessible(True)
    commands = field.get(gateway.jvm.org.apache.hive.beeline.BeeLine(True))

    def call(name: str, *given: tuple[Any, Any]) -> Any:
        types, values = gateway.new_array(java.Class, len(given)), gateway.new_array(java.Object, len(given))
        for place, (kind, value) in enumerate(given):
            types[place], values[place] = kind, value
        method = commands.getClass().getDeclaredMethod(name, types)
        method.setAccessible(True)
        return method.invoke(commands, values)

    text, numbers = (java.Class.forName(kind) for kind in kinds)
    found: list[str] = []
    for line in script.splitlines():
        quote = gateway.new_array(gateway.jvm.int, 1)
        quote[0] = -1
        left = call("removeComments", (text, line), (numbers, quote))
        assert not left or left.endswith(";"), f"Beeline reads on behind {left}"
        found.extend(call("getCmdList", (text, left), (java.Boolean.TYPE, False)) if left else ())
    return found


def test_hashes_of_bit_vectors_are_hives(spark):
    """Hive's own class is in Spark's jars; the estimate and the merge need a newer metastore."""
    murmur = spark.sparkContext._jvm.org.apache.hive.common.util.Murmur3
    # py4j gives these to Java as long.
    numbers = [2**40, -(2**40), 2**63 - 1, -(2**63)]
    expected = [murmur.hash64(number) for number in numbers]
    assert hash_for_hive(pa.array(numbers, pa.int64()), "long").view(np.int64).tolist() == expected
    texts = ["", "a", "seven77", "eight888", "nine99999", "é€😀" * 9]
    expected = [murmur.hash64(bytearray(text.encode())) for text in texts]
    assert sorted(hash_for_hive(pa.array(texts), "string").view(np.int64).tolist()) == sorted(expected)


def test_the_scan_for_bit_vectors_takes_in_each_value(table, spark):
    """As one batch in this process does."""
    fields = [field for field in table.schema.top_level if field.type != "boolean"]
    found = scan_bit_vectors(spark, table._source, table.snapshot, table.schema, fields)
    rows = load_iceberg_table(table._source).scan().to_arrow()
    for field in fields:
        registers = np.zeros(REGISTER_COUNT, np.uint8)
        update_registers(registers, rows[field.name], field.type)
        assert np.array_equal(found[field.name], registers), field.name


def test_an_export_with_bit_vectors_scans_and_reaches_the_metastore(metastore, table, spark):
    """2.3 keeps what else comes with them."""
    HiveCatalog("hive", uri=metastore).create_table("shop.with_vectors", SCHEMA)
    said = table.export("hive", name="shop.with_vectors", metastore=metastore, bit_vectors=True, spark=spark)
    noted = re.findall(r"^-- column (.+?): .*bit vector \(HyperLogLog of every", said, re.MULTILINE)
    assert noted == ["id", "price", "amount", "day", "name", "it's é"]
    assert read_back(metastore, "name", "shop.with_vectors")["numDVs"] == 7
