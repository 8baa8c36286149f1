"""Every type of column: what a compute finds, against Iceberg's own procedure and against the rows themselves."""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, TimeType
from pyspark.errors import PySparkException

import icestats
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.storage import Storage
from icestats.iceberg.types import decode_value
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.read.puffin.statistics_files import THETA
from icestats.spark.session import add_catalogs, spark_catalog_properties
from icestats.stats.theta import ThetaSketch
from tests.typed_rows import ROWS, TYPES, build_values

pytestmark = pytest.mark.spark
NOT_IN_SPARK = "(?s)(does not support|unsupported)"
WITHOUT_KLL = ("fixed", "binary", "uuid")


@pytest.fixture(scope="module")
def properties(tmp_path_factory, demo_home):
    folder = tmp_path_factory.mktemp("types")
    return {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": f"file://{folder / 'w'}"}


@pytest.fixture(scope="module")
def catalog(properties):
    catalog = SqlCatalog("catalog", **properties)
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


@pytest.fixture(scope="module")
def session(spark, properties, catalog):
    return add_catalogs(spark, {"catalog": spark_catalog_properties(properties)})


@pytest.fixture(scope="module")
def typed(spark, session, properties, catalog):
    """The rows; what was computed and committed; and the Theta sketches of Iceberg's procedure, by column."""
    fields = [NestedField(i, name, kind) for i, (name, kind) in enumerate(TYPES.items(), start=1)]
    table = catalog.create_table("db.typed", Schema(*fields))
    schema = table.schema().as_arrow()
    columns = {}
    for place, (name, values) in enumerate(build_values().items()):
        mask = np.arange(ROWS) % 13 == place % 13
        kind = pa.binary(16) if name == "uuid" else schema.field(name).type
        columns[name] = pa.array(values, kind, mask=mask, from_pandas=False)
    rows = pa.table(columns)
    table.append(rows.slice(0, 5_000))
    table.append(rows.slice(5_000))
    session.sql("call catalog.system.compute_table_stats(table => 'db.typed')").collect()
    opened = icestats.load("db.typed", catalog=properties)
    (registered,) = load_iceberg_table(opened._source).metadata.statistics
    footer = read_puffin_footer(Storage(), registered.statistics_path)
    names = {field.field_id: field.name for field in fields}
    theirs = {
        names[blob.field_ids[0]]: (
            ThetaSketch.from_bytes(read_blob(Storage(), blob, registered.statistics_path)),
            blob.properties["ndv"],
        )
        for blob in footer.blobs
        if blob.type == THETA
    }
    computed = opened.compute(spark=spark)
    computed.commit()
    return rows, computed, theirs, opened.refresh()


@pytest.mark.parametrize("name", TYPES)
def test_theta_is_icebergs_own_and_merges_with_it(typed, name):
    """The same hashes below the smaller theta; together they are no more than the one with that theta."""
    _, computed, theirs, _ = typed
    ours = ThetaSketch.from_bytes(computed.found.columns[name].theta)
    their, ndv = theirs[name]
    if ours.is_exact:
        assert ours == their
        assert str(ours.ndv) == ndv
    assert ours.ndv == pytest.approx(int(ndv), rel=0.01)
    theta = min(ours.theta, their.theta)
    shared = ours.hashes[ours.hashes < theta * 2.0**63]
    assert len(shared) >= min(ours.ndv, 3_500)
    assert np.array_equal(shared, their.hashes[their.hashes < theta * 2.0**63])
    for first, second in ((ours, their), (their, ours)):
        merged = ThetaSketch.from_bytes(first.to_bytes())
        merged.merge(second)
        assert np.array_equal(merged.hashes, shared)
    union = datasketches.theta_union(12)
    for sketch in (ours, their):
        union.update(datasketches.compact_theta_sketch.deserialize(sketch.to_bytes()))
    assert np.array_equal(ThetaSketch.from_bytes(union.get_result().serialize()).hashes, shared)


def test_a_uuid_is_counted_as_the_text_that_icebergs_procedure_sees(typed):
    """Not as the 16 bytes of the spec's single value: a sketch of these would share no hash with Iceberg's."""
    rows, computed, theirs, _ = typed
    text = datasketches.update_theta_sketch(12)
    for value in rows["uuid"].drop_null().to_pylist():
        text.update(str(uuid.UUID(bytes=value)))
    expected = ThetaSketch.from_bytes(text.compact().serialize()).hashes[:3_000]
    assert np.array_equal(ThetaSketch.from_bytes(computed.found.columns["uuid"].theta).hashes[:3_000], expected)
    assert np.array_equal(theirs["uuid"][0].hashes[:3_000], expected)


def values_of(rows: pa.Table, name: str) -> tuple[list[Any], int]:
    """The values that have an order, sorted, and the number of NaN."""
    values = rows[name].drop_null().to_pylist()
    ordered = sorted(v for v in values if v == v)
    return ordered, len(values) - len(ordered)


@pytest.mark.parametrize("name", TYPES)
def test_counts_extremes_and_lengths_are_those_of_the_rows(typed, name):
    rows, computed, _, _ = typed
    found = computed.found.columns[name]
    ordered, nan_count = values_of(rows, name)
    assert (found.value_count, found.null_value_count) == (ROWS, rows[name].null_count)
    assert found.nan_value_count == nan_count
    low, high = (decode_value(found.type, end) for end in (found.min_value, found.max_value))
    if name == "uuid":
        low, high = low.bytes, high.bytes
    assert (low, high) == (ordered[0], ordered[-1])
    if name == "zeros":
        assert (found.min_value, found.max_value) == (np.float64(-0.0).tobytes(), np.float64(0.0).tobytes())
    lengths = [len(v.encode() if isinstance(v, str) else v) for v in ordered if name in ("string", "binary")]
    assert found.max_length == max(lengths, default=None)
    assert found.avg_length == (pytest.approx(sum(lengths) / len(lengths)) if lengths else None)


@pytest.mark.parametrize("name", [name for name in TYPES if name not in WITHOUT_KLL])
def test_histograms_and_quantiles_are_in_values_of_the_column(typed, name):
    """Ends exactly, quantiles values that are there, counts and ranks within the error; computed as committed."""
    rows, computed, _, table = typed
    ordered, nan_count = values_of(rows, name)
    for found in (computed.histogram(name, bins=12), table.histogram(name, bins=12)):
        check_histogram(found, [v[:256] if isinstance(v, str) else v for v in ordered])
        assert (found.null_count, found.nan_count) == (rows[name].null_count, nan_count)


def check_histogram(found: icestats.Histogram, ordered: list[Any]) -> None:
    assert found.n == len(ordered)
    assert (found.edges[0], found.edges[-1]) == (ordered[0], ordered[-1])
    assert type(found.edges[0]) is type(ordered[0])
    for rank, value in found.quantiles.items():
        first, last = bisect_left(ordered, value), bisect_right(ordered, value)
        assert first < last, f"{value!r} is not in the column"
        assert first / found.n - 2 * found.rank_error <= rank <= last / found.n + 2 * found.rank_error
    assert (found.quantiles[0.0], found.quantiles[1.0]) == (ordered[0], ordered[-1])
    truth = [bisect_left(ordered, b) - bisect_left(ordered, a) for a, b in pairwise(found.edges)]
    truth[-1] = len(ordered) - bisect_left(ordered, found.edges[-2])
    assert sum(found.counts) == len(ordered)
    assert np.abs(np.subtract(found.counts, truth)).max() <= found.count_error


def test_types_without_an_order_have_no_kll(typed):
    _, computed, _, table = typed
    assert [name for name, column in computed.found.columns.items() if column.kll is None] == list(WITHOUT_KLL)
    for name in WITHOUT_KLL:
        with pytest.raises(icestats.StatisticsMissingError, match="no KLL sketch"):
            computed.histogram(name)
        with pytest.raises(icestats.CallError, match="has no histogram"):
            table.histogram(name)


def hashes_of_longs(values: list[int]) -> np.ndarray:
    """DataSketches' own hashes of whole numbers: what the spec has of times, as 8 bytes."""
    sketch = datasketches.update_theta_sketch(12)
    for value in values:
        sketch.update(value)
    return ThetaSketch.from_bytes(sketch.compact().serialize()).hashes


def test_times_are_computed_where_iceberg_in_spark_refuses_the_table(spark, session, properties, catalog):
    """PyIceberg writes them. Where Spark learns the type, this test says so."""
    table = catalog.create_table("db.timed", Schema(NestedField(1, "clock", TimeType())))
    micros = [None if i % 7 == 0 else i * 20_011 % 86_400_000_000 for i in range(3_000)]
    clock = pa.array(micros, pa.time64("us"))
    table.append(pa.table({"clock": clock}))
    with pytest.raises((PySparkException, Py4JJavaError), match=NOT_IN_SPARK):
        session.sql("call catalog.system.compute_table_stats(table => 'db.timed')").collect()
    opened = icestats.load("db.timed", catalog=properties)
    computed = opened.compute(spark=spark)
    found = computed.found.columns["clock"]
    ordered = sorted(clock.drop_null().to_pylist())
    assert (found.value_count, found.null_value_count) == (3_000, clock.null_count)
    assert (decode_value("time", found.min_value), decode_value("time", found.max_value)) == (ordered[0], ordered[-1])
    expected = hashes_of_longs([v for v in micros if v is not None])
    assert np.array_equal(ThetaSketch.from_bytes(found.theta).hashes, expected)
    computed.commit()
    check_histogram(opened.refresh().histogram("clock", bins=9), ordered)


NANOS = [1_700_000_000_000_000_001 + i * 7 for i in range(900)]


def write_nanoseconds(session: Any) -> None:
    """A v3 table by Iceberg's Java classes, in Spark's JVM: neither PyIceberg nor Spark writes such timestamps."""
    iceberg = session.sparkContext._jvm.org.apache.iceberg
    java = session.sparkContext._jvm.java
    of_nanos, optional = iceberg.types.Types.TimestampNanoType, iceberg.types.Types.NestedField.optional
    columns, version = java.util.ArrayList(), java.util.HashMap()
    columns.add(optional(1, "at", of_nanos.withoutZone()))
    columns.add(optional(2, "zoned", of_nanos.withZone()))
    version.put("format-version", "3")
    schema, unpartitioned = iceberg.Schema(columns), iceberg.PartitionSpec.unpartitioned()
    catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(session._jsparkSession, "catalog")
    table = catalog.createTable(iceberg.catalog.TableIdentifier.parse("db.nanos"), schema, unpartitioned, version)
    builder = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(table)
    writers = builder.dataFileFormat(iceberg.FileFormat.PARQUET).dataSchema(schema).build()
    output = table.io().newOutputFile(f"{table.location()}/data/a.parquet")
    encrypted = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
    writer = writers.newDataWriter(encrypted, table.spec(), None)
    record, times = iceberg.data.GenericRecord.create(schema), iceberg.util.DateTimeUtil
    for nanos in NANOS:
        row = record.copy()
        row.setField("at", times.timestampFromNanos(nanos))
        row.setField("zoned", times.timestamptzFromNanos(-nanos))
        writer.write(row)
        writer.write(record)
    writer.close()
    table.newAppend().appendFile(writer.toDataFile()).commit()


@pytest.fixture(scope="module")
def nanoseconds(spark, session, properties):
    write_nanoseconds(session)
    return icestats.load("db.nanos", catalog=properties).compute(spark=spark)


@pytest.mark.parametrize(("name", "values"), [("at", NANOS), ("zoned", [-v for v in NANOS])])
def test_nanoseconds_that_java_wrote_lose_nothing(nanoseconds, name, values):
    """Whole nanoseconds, as integers: Python's datetime ends at microseconds."""
    found = nanoseconds.found.columns[name]
    ends = [int.from_bytes(end, "little", signed=True) for end in (found.min_value, found.max_value)]
    assert (found.value_count, found.null_value_count, ends) == (1_800, 900, [min(values), max(values)])
    assert np.array_equal(ThetaSketch.from_bytes(found.theta).hashes, hashes_of_longs(values))
    check_histogram(nanoseconds.histogram(name, bins=9), sorted(values))


def test_a_filter_of_nanoseconds_takes_what_it_names(nanoseconds, properties):
    """To the nanosecond: in the plan, the counted rows and the estimates; PyIceberg alone has no such literals."""
    table = icestats.load("db.nanos", catalog=properties)
    half = np.datetime64(NANOS[450], "ns")
    row_filter = f"at > '{half}'"
    assert table.plan(row_filter, rows=True).steps[-1].kept == 449
    assert table.plan(f"at >= {NANOS[450]}", rows=True).steps[-1].kept == 450
    assert table.plan(f"at > '{np.datetime64(NANOS[-1], 'ns')}'").steps[-1].kept_rows == 0, "beyond the upper bound"
    assert table.plan(f"zoned in ('{np.datetime64(-NANOS[3], 'ns')}Z')", rows=True).steps[-1].kept == 1
    found = table.estimate(row_filter, sources=["data-files"], actual=True)
    assert found.actual == 449
    assert found["data-files"].rows == pytest.approx(449, rel=0.1), "as doubles, 256 nanoseconds are one step here"


def test_spark_refuses_nanoseconds(nanoseconds, session):
    """Nothing of Iceberg's stands beside them, and PyIceberg commits to no v3 table: this test says when one does."""
    with pytest.raises(icestats.UnsupportedError, match="format version 3"):
        nanoseconds.commit()
    with pytest.raises((PySparkException, Py4JJavaError), match=NOT_IN_SPARK):
        session.sql("call catalog.system.compute_table_stats(table => 'db.nanos')").collect()
