"""Rows are counted by reading files: one that is gone, or of another type than the schema says, is named in a line."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, NestedField, StringType
from pyiceberg.utils.concurrent import ExecutorFactory

import icestats
from icestats.iceberg.storage import local_path
from icestats.iceberg.types import decode_value
from icestats.scan import arrow_files
from icestats.snapshot.filter_sql import build_sql
from tests.computed_statistics import scan_table
from tests.written_deletes import list_data_files

ASK = {
    "plan": lambda table: table.plan("id >= 100 and id < 150", rows=True),
    "workload": lambda table: table.estimate_workload(["id >= 100 and id < 150"]),
    "estimate": lambda table: table.estimate("id >= 100 and id < 150", actual=True),
    "join": lambda table: table.estimate_join(table, "id", actual=True),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_a_data_file_that_is_gone_is_named_without_asking_spark(
    small_table: IcebergTable,
    load: Callable[..., icestats.Table],
    ask: Callable[[icestats.Table], object],
) -> None:
    """Spark could not read it either, and takes seconds to start."""
    for file in list_data_files(small_table):
        local_path(file.file_path).unlink()
    with pytest.raises(icestats.MetadataError, match=r"^/[^ ]+\.parquet: no such file$"):
        ask(load())


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[pa.MemoryPool]:
    """Arrow's memory from now on, and two files read at once."""
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "2")
    monkeypatch.setattr(ExecutorFactory, "_instance", None)
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.system_memory_pool())
    pa.set_memory_pool(pool)
    yield pool
    pa.set_memory_pool(before)


def test_rows_of_groups_and_of_keys_are_not_held_together(
    catalog: SqlCatalog, load: Callable[..., icestats.Table], pool: pa.MemoryPool
) -> None:
    """Of 4 million rows of 10 values, 160 MB, those of some files at a time."""
    made = catalog.create_table("db.names", Schema(NestedField(1, "name", StringType())))
    made.append(pa.table({"name": [f"{number:032}" for number in range(10)] * 10_000}))
    path = local_path(list_data_files(made)[0].file_path)
    copies = [path.with_name(f"{number}.parquet") for number in range(39)]
    made.add_files([str(shutil.copyfile(path, copied)) for copied in copies])
    table = load("db.names")
    assert table.estimate_groups(["name"], row_filter="name > '0'", actual=True).actual == 10
    assert table.estimate_join(table, "name", row_filter="name > '0'", actual=True).actual == 10 * 400_000**2
    assert pool.max_memory() < 64 << 20


def test_a_data_file_whose_type_does_not_fit_is_refused_in_one_line(
    small_table: IcebergTable, load: Callable[..., icestats.Table]
) -> None:
    for file in list_data_files(small_table):
        path = local_path(file.file_path)
        rows = pq.read_table(path)
        place = rows.schema.get_field_index("id")
        text = rows.schema.field(place).with_type(pa.string())
        pq.write_table(rows.set_column(place, text, rows["id"].cast(pa.string())), path)
    table = load()
    with pytest.raises(icestats.UnsupportedError, match="cannot be counted by PyIceberg: Cannot promote") as caught:
        table.estimate_join(table, "id", actual=True)
    assert "\n" not in str(caught.value)


def test_timestamps_of_hive_and_impala_are_read_far_beyond_those_of_nanoseconds(catalog: SqlCatalog) -> None:
    """Arrow makes a day of 1816 of 9999-12-31, where it is stored in the 96 bits that Hive and Impala have for it."""
    days = [dt.datetime(1, 1, 1), dt.datetime(2026, 9, 10, 12, 30, 0, 123_456), dt.datetime(9999, 12, 31), None]
    rows = pa.table({"at": pa.array(days, pa.timestamp("us"))})
    made = catalog.create_table("db.visits", rows.schema)
    made.append(rows)
    (file,) = list_data_files(made)
    path = local_path(file.file_path)
    pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=True)
    table = icestats.load(made.metadata_location)
    assert table.estimate("at > '2500-01-01T00:00:00'", actual=True).actual == 1
    assert table.estimate_join(table, "at", row_filter="at < '1500-01-01T00:00:00'", actual=True).actual == 1
    found = scan_table(table).columns["at"]
    ends = [decode_value("timestamp", end) for end in (found.min_value, found.max_value)]
    assert ends == [days[0], days[2]]


def test_a_column_of_a_type_that_pyiceberg_does_not_know_is_said_in_one_line(catalog: SqlCatalog) -> None:
    """Some writers store times in milliseconds, whatever column is asked for."""
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "at": pa.array([1, 2, 3], pa.time64("us"))})
    made = catalog.create_table("db.times", rows.schema)
    made.append(rows)
    (file,) = list_data_files(made)
    path = local_path(file.file_path)
    stored = pq.read_table(path)
    times = stored.schema.field("at").with_type(pa.time32("ms"))
    pq.write_table(stored.set_column(1, times, pa.array([1, 2, 3], pa.time32("ms"))), path)
    table = icestats.load(made.metadata_location)
    with pytest.raises(icestats.UnsupportedError, match="by PyIceberg: Column 'at' has an unsupported type"):
        table.estimate_join(table, "id", actual=True)
    with pytest.raises(icestats.UnsupportedError, match=r"data file of .*: Column 'at' has an unsupported type"):
        scan_table(table)


def test_rows_of_orc_files_are_left_to_spark(small_table: IcebergTable, load: Callable[..., icestats.Table]) -> None:
    """As `compute` leaves them; a join is counted by PyIceberg alone."""
    file = list_data_files(small_table)[0]
    path = local_path(file.file_path)
    orc.write_table(pq.read_table(path), path.with_suffix(".orc"))
    file[1], file[2] = file.file_path.replace(".parquet", ".orc"), FileFormat.ORC
    small_table.overwrite(small_table.schema().as_arrow().empty_table())
    with small_table.transaction() as change, _FastAppendFiles(Operation.APPEND, change, small_table.io) as append:
        append.append_data_file(file)
    table = load()
    with pytest.raises(icestats.UnsupportedError, match="cannot be counted without Spark: it has data files in ORC"):
        table.estimate_join(table, "id", actual=True)


@pytest.mark.parametrize("row_filter", ["at >= '1970-01-05T00:00:00'", "at != '1970-01-05T00:00:00'", "id = 3"])
def test_dates_that_have_become_timestamps_are_said_in_one_line(catalog: SqlCatalog, row_filter: str) -> None:
    """Format version 3 has such tables, and PyIceberg reads none of their files."""
    rows = pa.table({"at": pa.array(range(9), pa.int32()).cast(pa.date32()), "id": pa.array(range(9), pa.int64())})
    made = catalog.create_table("db.days", rows.schema)
    made.append(rows)
    path = local_path(made.metadata_location)
    document = json.loads(path.read_text())
    document["schemas"][0]["fields"][0]["type"] = "timestamp"
    promoted = path.with_name("promoted.metadata.json")
    promoted.write_text(json.dumps(document | {"format-version": 3, "next-row-id": 9}))
    table = icestats.load(str(promoted))
    if row_filter == "id = 3":
        assert table.estimate_groups(["id"], row_filter, actual=True).actual == 1
        return
    with pytest.raises(icestats.UnsupportedError, match="cannot be counted by PyIceberg") as caught:
        table.estimate_join(table, "id", row_filter=row_filter, actual=True)
    assert "\n" not in str(caught.value)
    with pytest.raises(icestats.IcestatsError, match="cannot be read: ") as refused:
        scan_table(table)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ns"])
def test_rows_are_not_counted_by_dates_that_have_become_timestamps(catalog: SqlCatalog, kind: str) -> None:
    """Iceberg 1.12 in Spark takes the days of older bounds for microseconds: it would find no row, and say nothing."""
    rows = pa.table({"at": pa.array([20_000, 20_001], pa.int32()).cast(pa.date32())})
    made = catalog.create_table("db.days", rows.schema)
    made.append(rows)
    path = local_path(made.metadata_location)
    document = json.loads(path.read_text())
    later = json.loads(json.dumps(document["schemas"][0])) | {"schema-id": 1}
    later["fields"][0]["type"] = kind
    document |= {"schemas": [*document["schemas"], later], "current-schema-id": 1}
    promoted = path.with_name("promoted.metadata.json")
    promoted.write_text(json.dumps(document | {"format-version": 3, "next-row-id": 2}))
    table = icestats.load(str(promoted))
    row_filter, asks = "at >= '2020-01-01'", ("plan", "estimate", "estimate_workload")
    for ask, options in zip(asks, ({"rows": True}, {"actual": True}, {}), strict=True):
        with pytest.raises(icestats.UnsupportedError, match=f"'at' was promoted from date to {kind}"):
            getattr(table, ask)([row_filter] if ask == asks[2] else row_filter, **options)
    assert len(table.plan(row_filter).kept_file_paths()) == 1


def test_rows_without_a_value_are_no_numbers(catalog: SqlCatalog) -> None:
    """PyIceberg holds `is not nan` for true of a partition whose value is null."""
    by_price = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "price"))
    made = catalog.create_table(
        "db.prices", Schema(NestedField(1, "price", DoubleType(), required=False)), partition_spec=by_price
    )
    made.append(pa.table({"price": [1.5, 2.5, None]}))
    table = icestats.load(made.metadata_location)
    for row_filter, count in {"is not nan": 2, "is nan": 0, "is null": 1, "is not null": 2}.items():
        assert table.estimate(f"price {row_filter}", actual=True).actual == count


def test_partitions_of_doubles_are_planned_by_all_of_their_digits(catalog: SqlCatalog) -> None:
    """PyIceberg reads doubles in manifests as floats, by which no file would have a price of 0.1."""
    by_price = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "price"))
    made = catalog.create_table(
        "db.doubles", Schema(NestedField(1, "price", DoubleType(), required=False)), partition_spec=by_price
    )
    made.append(pa.table({"price": [0.1, 0.1, 16777217.0, 1e300]}))
    table = icestats.load(made.metadata_location)
    for row_filter, count in {"= 0.1": 2, ">= 16777217": 2, "> 16777217": 1, "< 0.1": 0}.items():
        assert table.estimate(f"price {row_filter}", actual=True).actual == count


@pytest.mark.parametrize(
    ("kind", "default"),
    [("timestamp_ns", "2026-01-01T00:00:00.000000001"), ("decimal(5, 2)", "two"), ("long", 1 << 70), ("string", 5)],
)
def test_a_default_that_pyiceberg_does_not_read_is_in_no_way_of_other_columns(
    small_table: IcebergTable, kind: str, default: object
) -> None:
    path = local_path(small_table.metadata_location)
    document = json.loads(path.read_text())
    added = {"id": 99, "name": "late", "required": False, "type": kind, "initial-default": default}
    document["schemas"][0]["fields"].append(added)
    changed = path.with_name("default.metadata.json")
    changed.write_text(json.dumps(document | {"format-version": 3, "next-row-id": 0}))
    table = icestats.load(str(changed))
    assert table.plan("late is null").steps[-1].kept == len(list_data_files(small_table))
    assert table.estimate("id < 100", actual=True).actual == 100
    with pytest.raises(icestats.IcestatsError) as caught:
        table.estimate_join(table, "late", actual=True)
    assert "\n" not in str(caught.value)


def test_rows_whose_struct_is_null_are_null_where_a_file_does_not_count_them(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """As in ORC files: of two rows with a null struct and one with a price, they count one price and no null."""
    rows = pa.table({"item": pa.array([{"price": 1.5}, None, None], pa.struct([("price", pa.float64())]))})
    made = catalog.create_table("db.orders", rows.schema)
    price = made.schema().find_field("item.price").field_id
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in _dataframe_to_data_files(table_metadata=made.metadata, df=rows, io=made.io):
            file.value_counts[price], file.null_value_counts[price] = 1, 0
            append.append_data_file(file)
    table = load("db.orders")
    for row_filter, count in (("item.price is null", 2), ("item.price is not null", 1), ("item.price < 2", 1)):
        estimates = table.estimate(row_filter, actual=True)
        assert estimates.actual == count
        assert estimates["table"].rows_lower <= count <= estimates["table"].rows_upper
        assert table.plan(row_filter, rows=True).steps[-1].kept == count
    assert table.estimate_workload(["item.price is null"]).answers[0].actual == 2
    found = next(row for row in table.columns().to_pylist() if row["name"] == "item.price")
    assert (found["value_count"], found["null_value_count"]) == (3, 2)
    assert "and 2 rows whose struct is null" in dict(found["provenance"])["null_value_count"]


def test_counts_of_values_in_lists_and_maps_are_no_exact_ones(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """Of two values in three lists Parquet, and so the metadata, has four, two of them null."""
    tags = pa.array([["a", "b"], [], None], pa.list_(pa.string()))
    sizes = pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64()))
    rows = pa.table({"id": [1, 2, 3], "tags": tags, "sizes": sizes})
    catalog.create_table("db.lists", rows.schema).append(rows)
    found = {row["name"]: row for row in load("db.lists").columns().to_pylist()}
    assert (found["tags.element"]["value_count"], found["tags.element"]["null_value_count"]) == (4, 2)
    for name in ("tags.element", "sizes.key", "sizes.value"):
        words = dict(found[name]["provenance"])
        for statistic in ("value_count", "null_value_count"):
            assert words[statistic].startswith("estimate: sum over 1 data file")
        assert words["column_size"].startswith("exact")
    assert dict(found["id"]["provenance"])["value_count"] == "exact: sum over 1 data file (values)"


def test_a_column_whose_name_has_a_full_stop_is_read_by_its_whole_name(
    catalog: SqlCatalog, catalog_properties: dict[str, str]
) -> None:
    """It is no field of a struct: its beginning names no column, or another one."""
    rows = pa.table({"a": [5, 5, 5], "a.b": [1, 2, 2]})
    catalog.create_table("db.stops", rows.schema).append(rows)
    table = icestats.load("db.stops", catalog=catalog_properties)
    assert table.estimate("a.b = 2", actual=True).actual == 2
    assert table.plan("a.b = 2", rows=True).steps[-1].kept == 2
    assert table.estimate_workload(["a.b > 0", "a = 5"]).to_arrow()["actual"].unique().to_pylist() == [3]
    assert build_sql(table._ask("a.b = 2").predicate, table.schema, "spark", exact=True) == "`a.b` = 2"


def test_columns_of_a_file_without_ids_that_the_mapping_does_not_name_are_left_unread(
    catalog: SqlCatalog, load: Callable[..., icestats.Table]
) -> None:
    """As Spark's `add_files` takes files in: what the table does not have, or no longer, is in them still."""
    rows = pa.table({"id": [1, 2, 3], "item": [{"price": 1.5}, None, {"price": 2.5}]})
    catalog.create_table("db.mapped", rows.schema)
    made = catalog.load_table("db.mapped")
    items = [{"price": 1.5, "size": 7}, None, {"price": 2.5, "size": 7}]
    unnamed = {"left": ["x"] * 3, "tags": [["x"]] * 3, "sizes": pa.array([[("x", 1)]] * 3, pa.map_("string", "int32"))}
    path = local_path(made.location()) / "added.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    made.add_files([str(path)])
    pq.write_table(pa.table({**unnamed, "id": [1, 2, 3], "item": items}), path)
    table = load("db.mapped")
    found = scan_table(table)
    assert found.columns["id"].value_count == 3
    for row_filter, count in (("id < 3 and item.price < 9", 1), ("item.price is null", 1), ("item is not null", 2)):
        assert table.estimate(row_filter, actual=True).actual == count
    item = made.schema().find_field("item").field_id
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": item, "names": ["item"]}]
    made.transaction().set_properties({"schema.name-mapping.default": json.dumps(mapping)}).commit_transaction()
    assert load("db.mapped").estimate("item is null and id > 1", actual=True).actual == 2


def test_rows_to_append_with_a_column_that_the_table_does_not_have_are_still_refused(catalog: SqlCatalog) -> None:
    """How files are read here changes nothing of how PyIceberg writes: no column is left out without a word."""
    assert arrow_files.reader.apply_name_mapping.__module__ == arrow_files.__name__
    made = catalog.create_table("db.narrow", pa.schema({"id": pa.int64()}))
    with pytest.raises(ValueError, match="more columns: further"):
        made.append(pa.table({"id": [1], "further": [2]}))


def test_lists_and_maps_of_structs_that_are_null_are_counted_as_null(catalog: SqlCatalog) -> None:
    """PyIceberg reads them as empty ones."""
    place = pa.struct([("x", pa.int64())])
    keys = pa.StructArray.from_arrays([pa.array([b"k" * 16], pa.binary(16)).cast(pa.uuid())], ["key"])
    rows = pa.table(
        {
            "keys": pa.ListArray.from_arrays(pa.array([0, None, 1, 1], pa.int32()), keys),
            "items": pa.array([[{"x": 1}], None, []], pa.list_(place)),
            "by_name": pa.array([[("k", {"x": 1})], None, []], pa.map_(pa.string(), place)),
            "deep": pa.array([{"items": None}, {"items": []}, None], pa.struct([("items", pa.list_(place))])),
        }
    )
    table = catalog.create_table("db.nested", rows.schema)
    path = f"{local_path(table.location())}.parquet"
    pq.write_table(rows, path)
    table.add_files([f"file://{path}"])
    found = icestats.load("db.nested", catalog=dict(catalog.properties))
    filters = [f"{name} is {what}" for name in rows.column_names for what in ("null", "not null")]
    assert [found.estimate(one, actual=True).actual for one in filters] == [1, 2] * 4
    assert [one.actual for one in found.estimate_workload(filters).answers] == [1, 2] * 4
    assert found.plan("items is null", rows=True).steps[-1].kept == 1
