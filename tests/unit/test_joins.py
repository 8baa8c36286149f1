from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import expressions as e
from pyiceberg import types as t
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import DayTransform, IdentityTransform, TruncateTransform

import icestats
from icestats.commit.puffin_writer import created_by, write_puffin
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.estimation.joins import JoinSide, estimate_join_by_ndv, estimate_join_by_theta
from icestats.iceberg.storage import Storage, local_path
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.stats.hashing import hash_values
from icestats.stats.theta import ThetaSketch, estimate_common_values
from tests.committed_statistics import blob, commit, register, write_foreign
from tests.computed_statistics import compute_here

WIDE = Context(prec=40)


def theta(values: range, type_text: str = "long") -> ThetaSketch:
    sketch = ThetaSketch()
    sketch.update(hash_values(pa.array(values, pa.int64() if type_text == "long" else pa.int32()), type_text))
    return sketch


def side(values: range, *, rows_a_key: int = 1, type_text: str = "long") -> JoinSide:
    return JoinSide("t.id", type_text, float(len(values) * rows_a_key), theta(values, type_text))


def test_the_intersection_knows_that_few_keys_are_common() -> None:
    """Where a tenth of the keys is on both sides, the classic estimate is tenfold off and the intersection is not."""
    left, right = side(range(100_000), rows_a_key=2), side(range(90_000, 190_000), rows_a_key=3)
    actual = 10_000 * 2 * 3
    classic, better = estimate_join_by_ndv(left, right), estimate_join_by_theta(left, right)
    assert classic.with_actual(actual).q_error == pytest.approx(10, rel=0.1)
    assert better.with_actual(actual).q_error < 1.2
    # How many rows a key has is assumed: what a sketch promises of the keys is no promise of the rows.
    assert (better.rows_lower, better.rows_upper) == (None, None)
    said = re.search(r"\(([\d,]+) to ([\d,]+) at 95.4% confidence, of the rows that were counted\)", better.assumes)
    low, high = said.groups()
    slack = int(high.replace(",", "")) - int(low.replace(",", ""))
    assert int(low.replace(",", "")) - slack <= 10_000 <= int(high.replace(",", "")) + slack


@pytest.mark.parametrize(("one", "other", "common"), [((0, 50), (25, 75), 25), ((0, 50), (60, 70), 0)])
def test_small_sets_are_counted_exactly(one: tuple[int, int], other: tuple[int, int], common: int) -> None:
    """While both sketches hold every value, the number of common values is exact."""
    found = estimate_common_values(theta(range(*one)), theta(range(*other)))
    assert (found.estimate, found.lower, found.upper) == (common, common, common)


def test_keys_of_different_types_are_not_compared() -> None:
    """An int and a long of the same value have different hashes: unknown, not an empty join."""
    found = estimate_join_by_theta(side(range(100)), side(range(100), type_text="int"))
    assert found.rows is None
    assert "Theta hashes values of each type its own way" in found.reason


def test_a_sketch_of_before_a_promotion_shares_no_hashes(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """Of 100 common keys an int's sketch and a long's have none in common: unknown until it is computed again."""
    for name, kind, arrow in (("db.a", t.IntegerType(), pa.int32()), ("db.b", t.LongType(), pa.int64())):
        made = catalog.create_table(name, Schema(t.NestedField(1, "id", kind, required=False)))
        made.append(pa.table({"id": pa.array(range(100), arrow)}))
        commit_sketches(icestats.load(name, catalog=catalog_properties))
    with catalog.load_table("db.a").update_schema() as update:
        update.update_column("id", t.LongType())

    def join() -> SourceEstimate:
        left, right = (icestats.load(name, catalog=catalog_properties) for name in ("db.a", "db.b"))
        return left.estimate_join(right, "id")["join-theta"]

    assert join().rows is None
    assert "the sketch of db.a.id may be of when its type was int, and it is long now" in join().reason
    commit_sketches(icestats.load("db.a", catalog=catalog_properties))
    assert join().rows == 100


def test_a_sketch_may_be_of_a_schema_that_is_forgotten(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> None:
    """Iceberg's expiry forgets schemas that no snapshot names, and early writers named none."""
    made = catalog.create_table("db.a", Schema(t.NestedField(1, "id", t.IntegerType(), required=False)))
    made.append(pa.table({"id": pa.array(range(100), pa.int32())}))
    sketch = theta(range(100), "int").to_bytes()
    commit(made, blob(made, "apache-datasketches-theta-v1", 1, sketch, ndv="100"))
    with made.refresh().update_schema() as update:
        update.update_column("id", t.LongType())
    path = local_path(made.metadata_location)
    document = json.loads(path.read_text())
    del document["schemas"][0], document["snapshots"][0]["schema-id"]
    path.write_text(json.dumps(document))
    opened = icestats.load("db.a", catalog=catalog_properties)
    assert "may be of when its type was int" in opened.estimate_join(opened, "id")["join-theta"].reason


def commit_sketches(opened: icestats.Table) -> None:
    compute_here(opened).commit()


def test_a_sketch_of_days_is_not_one_of_timestamps(catalog: SqlCatalog) -> None:
    """Format version 3 lets a date become a timestamp: the sketch's days would be microseconds."""
    made = catalog.create_table("db.days", Schema(t.NestedField(1, "at", t.DateType(), required=False)))
    made.append(pa.table({"at": pa.array(range(1_000), pa.int32()).cast(pa.date32())}))
    commit_sketches(icestats.load("db.days", catalog=dict(catalog.properties)))
    path = local_path(catalog.load_table("db.days").metadata_location)
    document = json.loads(path.read_text())
    document["schemas"][0]["fields"][0]["type"] = "timestamp"
    promoted = path.with_name("promoted.metadata.json")
    promoted.write_text(json.dumps(document | {"format-version": 3}))
    table = icestats.load(str(promoted))
    found = table.estimate("at >= '1971-01-01T00:00:00'")
    assert (found["kll"].rows, found["kll"].rows_lower, found["kll"].rows_upper) == (None, 0, 1_000)
    assert found["combined"].rows == pytest.approx(635, abs=2)
    with pytest.raises(icestats.StatisticsMissingError, match="of when its type was date, and it is timestamp here"):
        table.histogram("at")


def test_a_sketch_of_timestamps_is_not_one_of_days(catalog: SqlCatalog) -> None:
    """A tag of before the promotion is read as days, and its snapshot's statistics may have been made anew since."""
    fields = [t.NestedField(1, "at", kind, required=False) for kind in (t.DateType(), t.TimestampType())]
    none = {"write.metadata.metrics.default": "none"}
    made = catalog.create_table("db.days", Schema(fields[0]), properties=none)
    made.append(pa.table({"at": pa.array(range(1_000), pa.int32()).cast(pa.date32())}))
    later = catalog.create_table("db.moments", Schema(fields[1]), properties=none)
    later.append(pa.table({"at": pa.array(range(1_000), pa.int32()).cast(pa.date32()).cast(pa.timestamp("us"))}))
    commit_sketches(icestats.load("db.moments", catalog=dict(catalog.properties)))
    path, other = (local_path(catalog.load_table(f"db.{name}").metadata_location) for name in ("days", "moments"))
    document, theirs = json.loads(path.read_text()), json.loads(other.read_text())
    (entry,), snapshot_id = theirs["statistics"], document["current-snapshot-id"]
    footer = read_puffin_footer(Storage(), entry["statistics-path"])
    blobs = [
        blob(made, one.type, one.field_ids[0], read_blob(Storage(), one, entry["statistics-path"]), **one.properties)
        for one in footer.blobs
    ]
    entry |= {"snapshot-id": snapshot_id, "statistics-path": write_foreign(made, *blobs)}
    promoted = theirs["schemas"][0] | {"schema-id": 1}
    document |= {"format-version": 3, "schemas": [*document["schemas"], promoted], "current-schema-id": 1}
    path.write_text(json.dumps(document | {"statistics": [entry]}))
    table = icestats.load(str(path), snapshot=snapshot_id)
    assert icestats.load(str(path)).histogram("at").n == 1_000
    found = table.estimate("at < '1970-07-20'")
    assert all((one.rows_lower, one.rows_upper) == (0, 1_000) for one in found)
    for ask in (table.histogram, table.frequent_values):
        with pytest.raises(icestats.StatisticsMissingError, match="its type was timestamp, and it is date here"):
            ask("at")


@pytest.mark.parametrize("type_text", ["int", "long"])
def test_a_sketch_of_presto_is_compared_only_where_it_hashes_as_the_specification_says(
    catalog: SqlCatalog, catalog_properties: dict[str, str], type_text: str
) -> None:
    """Presto hashes an int as a long. What another file has taken over from one of Presto's cannot be told from it."""
    own, arrow = TYPES[type_text]
    for name in ("db.presto", "db.own"):
        made = catalog.create_table(name, Schema(t.NestedField(1, "id", own), t.NestedField(2, "b", t.LongType())))
        made.append(pa.table({"id": pa.array(range(100), arrow), "b": pa.array(range(100), pa.int64())}))
    commit_sketches(icestats.load("db.own", catalog=catalog_properties))
    theirs = catalog.load_table("db.presto")
    path = write_foreign(
        theirs, blob(theirs, "apache-datasketches-theta-v1", 1, theta(range(100)).to_bytes(), ndv="100")
    )
    file = local_path(path)
    file.write_bytes(file.read_bytes().replace(created_by().encode(), b"presto-0.287".ljust(len(created_by()))))
    register(theirs, path, [1], ndv="100")

    def join(left: str = "db.presto", right: str = "db.own") -> SourceEstimate:
        tables = (icestats.load(name, catalog=catalog_properties) for name in (left, right))
        return next(tables).estimate_join(next(tables), "id")["join-theta"]

    assert join("db.presto", "db.presto").rows == 100
    said = "the sketch of db.presto.id is Presto's, which hashes int values in another form than Iceberg's"
    assert join().rows == (100 if type_text == "long" else None)
    assert type_text == "long" or said in join().reason
    commit(theirs.refresh(), blob(theirs, "apache-datasketches-theta-v1", 2, theta(range(100)).to_bytes(), ndv="100"))
    assert join().rows == (100 if type_text == "long" else None)
    assert type_text == "long" or said in join().reason
    assert join("db.own", "db.own").rows == 100


def test_a_sketch_of_uuids_of_trino_s_is_not_compared_with_one_of_spark_s(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """Trino hashes the 16 bytes of a uuid, Iceberg's Spark procedure its text: no key would be on both sides."""
    ids = [UUID(int=number) for number in range(100)]
    for name in ("db.trino", "db.own"):
        made = catalog.create_table(name, Schema(t.NestedField(1, "id", t.UUIDType())))
        made.append(pa.table({"id": pa.array([one.bytes for one in ids], pa.uuid())}))
    commit_sketches(icestats.load("db.own", catalog=catalog_properties))
    theirs, sketch = catalog.load_table("db.trino"), ThetaSketch()
    sketch.update(hash_values(pa.array([one.bytes for one in ids], pa.binary(16)), "fixed[16]"))
    path = f"{theirs.location()}/metadata/trino.stats"
    made = write_puffin([blob(theirs, "apache-datasketches-theta-v1", 1, sketch.to_bytes(), ndv="100")]).data
    local_path(path).write_bytes(made.replace(created_by().encode(), b"Trino v".ljust(len(created_by()))))
    register(theirs, path, [1], ndv="100")
    said = "the sketch of db.trino.id is Trino's, which hashes uuid values"
    for _ in ("in Trino's file", "carried over within a snapshot", "carried over to a later one"):
        trinos, own = (icestats.load(name, catalog=catalog_properties) for name in ("db.trino", "db.own"))
        assert (own.estimate_join(trinos, "id")["join-theta"].reason or "").startswith(said)
        assert trinos.estimate_join(trinos, "id")["join-theta"].rows == 100
        assert own.estimate_join(own, "id")["join-theta"].rows == 100
        commit(theirs.refresh(), blob(theirs, "x-other", 1, b"other"))
        theirs.append(theirs.scan(limit=0).to_arrow())
    copied = local_path(catalog.load_table("db.own").metadata.statistics[0].statistics_path)
    copied.write_bytes(copied.read_bytes().replace(created_by().encode(), b"Trino v".ljust(len(created_by()))))
    own = icestats.load("db.own", catalog=catalog_properties)
    assert "copied into its file" in (own.estimate_join(trinos, "id")["join-theta"].reason or "")
    assert own.estimate_join(own, "id")["join-theta"].rows == 100


def test_a_join_of_a_table_without_sketches_is_unknown_but_can_be_counted(
    small_table: IcebergTable, catalog_properties: dict[str, str]
) -> None:
    """No Theta sketch is no estimate; the truth is the product of how often each key is on each side, without nulls."""
    table = icestats.load("db.small", catalog=catalog_properties)
    estimates = table.estimate_join(table, "name", row_filter="id < 100", actual=True)
    assert estimates["join-ndv"].rows is None
    assert estimates["join-theta"].reason == "no Theta sketch of db.small.name is committed"
    # 16 of 20 names are not null, 5 rows each on the left, 10 on the right.
    assert estimates.actual == 16 * 5 * 10


@pytest.mark.parametrize("row_filter", ["true", "id is not null", "id > 0", "id is not null and other = 1"])
def test_nulls_that_a_filter_leaves_out_are_not_deducted_again(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], row_filter: str
) -> None:
    made = catalog.create_table("db.halves", pa.schema([("id", pa.int64()), ("other", pa.int64())]))
    made.append(pa.table({"id": [i % 10 + 1 if i % 2 else None for i in range(1_000)], "other": [1] * 1_000}))
    commit_sketches(load("db.halves"))
    table = load("db.halves")
    for found in table.estimate_join(table, "id", row_filter=row_filter):
        assert found.rows == pytest.approx(500 * 500 / 5)


DAY = dt.date(2026, 9, 1)
NOON = dt.datetime(2026, 9, 1)
TYPES = {
    "int": (t.IntegerType(), pa.int32()),
    "long": (t.LongType(), pa.int64()),
    "float": (t.FloatType(), pa.float32()),
    "double": (t.DoubleType(), pa.float64()),
    "decimal": (t.DecimalType(9, 2), pa.decimal128(9, 2)),
    "wide": (t.DecimalType(38, 10), pa.decimal128(38, 10)),
    "date": (t.DateType(), pa.date32()),
    "timestamp": (t.TimestampType(), pa.timestamp("us")),
    "timestamptz": (t.TimestamptzType(), pa.timestamp("us", tz="UTC")),
    "string": (t.StringType(), pa.string()),
    "binary": (t.BinaryType(), pa.binary()),
    "fixed": (t.FixedType(2), pa.binary(2)),
    "uuid": (t.UUIDType(), pa.binary(16)),
    "boolean": (t.BooleanType(), pa.bool_()),
    "nested": (t.StructType(t.NestedField(99, "x", t.LongType())), pa.struct([("x", pa.int64())])),
}
VALUES: dict[str, list[Any]] = {
    "int": [1, 2, 2, None],
    "long": [2, 2**40, 3, None],
    "float": [0.1, 0.5, -0.0, math.nan],
    "double": [0.1, 0.5, 0.0, math.nan],
    "decimal": [Decimal("2.00"), Decimal("0.50"), None, Decimal("-1.25")],
    "wide": [Decimal("2"), Decimal("2.0000000001"), Decimal("9" * 28), Decimal("-1.25")],
    "date": [DAY, DAY, dt.date(1, 1, 1), None],
    "timestamp": [NOON, NOON + dt.timedelta(microseconds=1), None, dt.datetime(1, 1, 1)],
    "timestamptz": [NOON.replace(tzinfo=dt.UTC)] * 4,
    "string": ["2", "a", "", None],
    "binary": [b"ab", b"a", b"", None],
    "fixed": [b"ab", b"ab", b"cd", None],
    "uuid": [bytes(16), bytes(16), b"a" * 16, None],
    "boolean": [True, True, False, None],
    "nested": [{"x": 1}, {"x": 2}, None, None],
}
ARROW = pa.table({name: pa.array(VALUES[name], arrow) for name, (_, arrow) in TYPES.items()})


@pytest.fixture
def typed(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> icestats.Table:
    """A table of a column of each type, four rows."""
    fields = [t.NestedField(i, name, kind, required=False) for i, (name, (kind, _)) in enumerate(TYPES.items(), 1)]
    table = catalog.create_table("db.typed", Schema(*fields))
    table.append(ARROW)
    return icestats.load("db.typed", catalog=catalog_properties)


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [
        ("int", "int", 5),
        ("int", "long", 2),
        # 0.1 as float is another number than 0.1 as double; NaN equals NaN, -0.0 equals 0.0.
        ("float", "double", 3),
        ("double", "double", 4),
        ("int", "double", 0),
        ("int", "decimal", 2),
        ("decimal", "wide", 2),
        ("long", "wide", 1),
        ("decimal", "double", 1),
        ("date", "timestamp", 3),
        ("date", "date", 5),
        ("timestamptz", "timestamptz", 16),
        ("string", "string", 3),
        ("binary", "fixed", 2),
        ("uuid", "uuid", 5),
        ("boolean", "boolean", 5),
    ],
)
def test_keys_are_compared_in_the_type_that_both_have_in_common(
    typed: icestats.Table, one: str, other: str, rows: int
) -> None:
    """Whichever side is left; DuckDB counts the same."""
    with duckdb.connect() as connection:
        connection.register("typed", ARROW)
        query = f'select count(*) from typed a join typed b on a."{one}" = b."{other}"'
        assert connection.execute(query).fetchall() == [(rows,)]
    assert typed.estimate_join(typed, (one, other), actual=True).actual == rows
    assert typed.estimate_join(typed, (other, one), actual=True).actual == rows


@pytest.mark.parametrize(
    ("one", "other", "row_filter", "rows"),
    [
        ("double", "int", "double > 0.1", 0),
        ("double", "int", "double is not nan", 0),
        ("double", "decimal", "double < 0.75 and double > 0.125", 1),
        ("wide", "decimal", "wide != 2.0000000001", 2),
        ("long", "int", "long < 3000000000", 2),
        ("timestamp", "date", "timestamp < '2026-09-01T00:00:00.000001'", 3),
        ("date", "timestamp", "date > '0001-01-01'", 2),
        ("binary", "fixed", e.NotEqualTo("binary", b"a"), 2),
    ],
)
def test_a_filter_of_a_key_may_have_values_that_the_other_keys_type_has_not(
    typed: icestats.Table, one: str, other: str, row_filter: str | e.BooleanExpression, rows: int
) -> None:
    """A fraction beside whole numbers, more digits, a time of a day, other lengths: both sides are estimated still."""
    for found in (
        typed.estimate_join(typed, (one, other), row_filter=row_filter, actual=True),
        typed.estimate_join(typed, (other, one), other_filter=row_filter, actual=True),
    ):
        assert found.actual == rows


DAYS = pa.array([20_697, 20_698, 20_699] * 10, pa.int32())


@pytest.mark.parametrize(
    ("mine", "theirs", "row_filter", "rows"),
    [
        (
            pa.array([0.1] * 100 + [5.0], pa.float32()),
            pa.array([float(np.float32(0.1))] * 100 + [5.0]),
            "key > 0.1",
            10_001,
        ),
        (
            pa.array([float(np.float32(0.1))] * 100 + [0.1] * 900),
            pa.array([0.1] * 100, pa.float32()),
            "key = 0.1",
            10_000,
        ),
        (
            DAYS.cast(pa.date32()).cast(pa.timestamp("us")),
            DAYS.cast(pa.date32()),
            "key = '2026-09-01'",
            100,
        ),
    ],
    ids=["float", "double", "timestamp"],
)
def test_a_filter_of_a_key_says_the_same_of_the_other_keys_type(
    catalog: SqlCatalog,
    load: Callable[..., icestats.Table],
    mine: pa.Array,
    theirs: pa.Array,
    row_filter: str,
    rows: int,
) -> None:
    """A double that no float is, is not the float next to it; and a day is its midnight, not so many microseconds."""
    for name, keys in (("db.mine", mine), ("db.theirs", theirs)):
        catalog.create_table(name, pa.schema([("key", keys.type)])).append(pa.table({"key": keys}))
        compute_here(load(name)).commit()
    found = load("db.mine").estimate_join(load("db.theirs"), "key", other_filter=row_filter, actual=True)
    assert found.actual == rows
    assert min(one.q_error for one in found if one.source != "actual" and one.q_error is not None) < 2


def test_nan_is_one_key_and_one_group_whatever_its_bits(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """Processors make NaN with a sign; zero has one too."""
    bits = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1, 0, 0x8000 << 48], np.uint64)
    for name, kind in (("one", pa.float64()), ("other", pa.float32())):
        rows = pa.table({"key": pa.array(bits.view(np.float64)).cast(kind, safe=False)})
        catalog.create_table(f"db.{name}", rows.schema).append(rows)
        assert load(f"db.{name}").estimate_groups(["key"], actual=True).actual == 2
    one, other = load("db.one"), load("db.other")
    assert one.estimate_join(one, "key", actual=True).actual == 13
    assert one.estimate_join(other, "key", actual=True).actual == 13


@pytest.mark.parametrize(
    "forms", [(pa.string(), pa.large_string()), (pa.large_binary(), pa.binary(), pa.binary_view())]
)
def test_keys_are_counted_in_whichever_forms_files_have_them(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], tmp_path: Path, forms: tuple[pa.DataType, ...]
) -> None:
    table = catalog.create_table("db.forms", pa.schema([("key", forms[0])]))
    for place, form in enumerate(forms):
        path = f"{tmp_path}/{place}.parquet"
        pq.write_table(pa.table({"key": pa.array(["a", "b", None]).cast(form)}), path)
        table.add_files([path])
    found = load("db.forms")
    assert found.estimate_join(found, "key", actual=True).actual == 2 * len(forms) ** 2


@pytest.mark.parametrize(
    ("rare", "common", "rows"), [("int32", "int64", 4_000), ("int64", "int32", 5_000), ("float", "double", 4_000)]
)
def test_common_keys_are_looked_for_among_the_others_values_by_its_own_type(
    catalog: SqlCatalog, catalog_properties: dict[str, str], rare: str, common: str, rows: int
) -> None:
    """Of 100 common keys 80 are on the other side, or all; of those that it cannot hold, none."""
    beyond = 3_000_000_000 if rare == "int32" else 0.1 if rare == "float" else 80
    keys = [*range(80), *(beyond + place for place in range(20))] * 50
    for name, values, kind in (("rare", range(3_000), rare), ("common", keys, common)):
        rows_of = pa.table({"key": pa.array(values, kind)})
        catalog.create_table(f"db.{name}", rows_of.schema).append(rows_of)
        compute_here(icestats.load(f"db.{name}", catalog=catalog_properties)).commit()
    one, other = (icestats.load(f"db.{name}", catalog=catalog_properties) for name in ("rare", "common"))
    for found in (one.estimate_join(other, "key", actual=True), other.estimate_join(one, "key", actual=True)):
        assert found.actual == rows
        assert found["join-frequent-items"].rows == pytest.approx(rows, rel=0.01)


@pytest.mark.parametrize("precision", [18, 38])
def test_common_decimals_are_looked_for_among_shorter_ones(
    catalog: SqlCatalog, catalog_properties: dict[str, str], precision: int
) -> None:
    """Of 100 common keys 80 are on the other side, which has no room for the others; as after a promotion."""
    cents = [*range(80), *(10 ** (precision - 1) + place for place in range(20))] * 50
    for name, values, kind in (("rare", range(3_000), (9, 2)), ("common", cents, (precision, 2))):
        keys = pa.array([Decimal(one).scaleb(-2, WIDE) for one in values], pa.decimal128(*kind))
        made = catalog.create_table(f"db.{name}", Schema(t.NestedField(1, "key", t.DecimalType(*kind))))
        made.append(pa.table({"key": keys}))
        compute_here(icestats.load(f"db.{name}", catalog=catalog_properties)).commit()
    one, other = (icestats.load(f"db.{name}", catalog=catalog_properties) for name in ("rare", "common"))
    for found in (one.estimate_join(other, "key", actual=True), other.estimate_join(one, "key", actual=True)):
        assert found.actual == 4_000
        assert found["join-frequent-items"].rows == pytest.approx(4_000, rel=0.01)


def test_a_decimal_key_is_the_double_that_is_nearest(catalog: SqlCatalog, catalog_properties: dict[str, str]) -> None:
    """As Spark, Trino and DuckDB have it; 20,000 prices, of which Arrow's cast makes some another double."""
    prices = [Decimal(tenths) / 10 for tenths in range(1, 20_001)]
    keys = {
        "exact": (t.DecimalType(9, 2), pa.array(prices, pa.decimal128(9, 2))),
        "near": (t.DoubleType(), pa.array([float(price) for price in prices])),
    }
    for name, (kind, values) in keys.items():
        catalog.create_table(f"db.{name}", Schema(t.NestedField(1, "price", kind))).append(pa.table({"price": values}))
    one, other = (icestats.load(f"db.{name}", catalog=catalog_properties) for name in keys)
    assert one.estimate_join(other, "price", actual=True).actual == 20_000
    assert other.estimate_join(one, "price", actual=True).actual == 20_000


NUMBERS = [None, math.nan, 0.0, -0.0, 1.5, -2.5]
FILTERS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "x != 1.5": lambda row: row["x"] not in (None, 1.5),
    "not (x > 0)": lambda row: row["x"] is not None and row["x"] <= 0,
    "x in (0.0, 7.0)": lambda row: row["x"] == 0,
    "x not in (0.0, 1.5)": lambda row: row["x"] not in (0.0, 1.5),
    "day != 1 or x is nan": lambda row: row["day"] not in (None, 1) or row["x"] != row["x"],
    "name > 'b'": lambda row: row["name"] is not None and row["name"] > "b",
    "at < '9999-12-31'": lambda row: row["at"] is not None,
    "true": lambda row: True,
    "id = 77": lambda row: False,
}


@pytest.fixture
def divided(catalog: SqlCatalog, load: Callable[..., icestats.Table]) -> tuple[icestats.Table, list[dict[str, Any]]]:
    """A table partitioned by columns with nulls, and its rows."""
    columns = {"id": "long", "day": "int", "x": "double", "name": "string", "at": "date"}
    fields = [
        t.NestedField(i, name, TYPES[kind][0], required=False) for i, (name, kind) in enumerate(columns.items(), 1)
    ]
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "day"),
        PartitionField(4, 1001, TruncateTransform(2), "start"),
        PartitionField(5, 1002, DayTransform(), "at_day"),
    )
    rows = [
        {"id": i % 5 or None, "day": (None, 1, 2)[i % 3], "x": NUMBERS[i % 6], "name": name, "at": (DAY, None)[i % 2]}
        for i, name in enumerate([None, "", "a", "abc", "zz"] * 12)
    ]
    made = catalog.create_table("db.divided", Schema(*fields), partition_spec=spec)
    made.append(pa.Table.from_pylist(rows, made.schema().as_arrow()))
    return load("db.divided"), rows


@pytest.mark.parametrize("row_filter", FILTERS)
def test_a_filter_of_a_join_leaves_the_rows_that_it_leaves_alone(
    divided: tuple[icestats.Table, list[dict[str, Any]]], row_filter: str
) -> None:
    """NaN and null partition values among them, which PyIceberg's own scan loses or keeps wrongly."""
    table, rows = divided
    kept = [row for row in rows if FILTERS[row_filter](row)]
    assert table.estimate(row_filter, actual=True).actual == len(kept)
    for key in ("id", "x"):
        pairs = sum(_is_same(one[key], other[key]) for one in kept for other in rows)
        assert table.estimate_join(table, key, row_filter=row_filter, actual=True).actual == pairs


def _is_same(one: Any, other: Any) -> bool:
    return one is not None and other is not None and (one == other or (one != one and other != other))


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("string", "int", "'string', of type string, cannot be joined with 'int', of type int: expected two numbers"),
        ("date", "timestamptz", "cannot be joined with 'timestamptz'"),
        ("uuid", "binary", "cannot be joined"),
        ("boolean", "int", "cannot be joined"),
        ("nested", "nested", "'nested', of type struct, cannot be the key of a join: expected a top-level column"),
        ("int", "nested.x", "'nested.x', of type long, cannot be the key of a join: expected a top-level column"),
    ],
)
@pytest.mark.parametrize("actual", [False, True])
def test_keys_that_cannot_be_compared_are_a_wrong_call(
    typed: icestats.Table, one: str, other: str, said: str, actual: bool
) -> None:
    for on in ((one, other), (other, one)):
        with pytest.raises(icestats.CallError, match="cannot be") as caught:
            typed.estimate_join(typed, on, actual=actual)
        assert "\n" not in str(caught.value)
    with pytest.raises(icestats.CallError, match=re.escape(said)):
        typed.estimate_join(typed, (one, other), actual=actual)
