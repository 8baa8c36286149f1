"""Partitions of manifests: of every type and spec, one for each value, and their latest snapshot."""

from __future__ import annotations

import copy
import datetime as dt
import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

import icestats
from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.partition_columns import find_partition_columns, struct_type
from icestats.iceberg.storage import local_path
from icestats.read.manifests.manifests import read_files, read_rollups
from icestats.scan.scan_plan import find_partitions
from icestats.snapshot.evaluation.partition_groups import build_partition_keys, group_values
from tests.written_manifests import IDENTITY, Files, entry, entry_schema, named, table


def test_last_updated_is_the_latest_known_snapshot() -> None:
    """Expired snapshots say nothing; a null snapshot_id is the one that added the manifest."""
    snapshots = [{"snapshot-id": 100, "timestamp-ms": 5}, {"snapshot-id": 101, "timestamp-ms": 4}]
    metadata = table((1, "int"), specs={0: IDENTITY}, snapshots=snapshots)
    files = Files().add(
        entry({1000: 1}, snapshot_id=101),
        entry({1000: 1}),
        entry({1000: 2}, snapshot_id=101),
        entry({1000: 2}, snapshot_id=102),
        entry({1000: 3}, snapshot_id=102),
        schema=entry_schema([(1000, "int")]),
    )
    rows = read_rollups(files.manifests, metadata, files).partitions.to_pylist()
    assert [row["last_updated_snapshot_id"] for row in rows] == [100, 101, None]
    assert [row["last_updated_at"] and row["last_updated_at"].microsecond for row in rows] == [5000, 4000, None]


def test_partitions_of_every_type_are_sorted_nulls_first() -> None:
    """Partition values have their Iceberg type, and partitions stand in its order."""
    uuid_bytes = bytes(range(16))
    cases: list[tuple[str, Any, list[Any], list[Any]]] = [
        ("boolean", "boolean", [True, None, False], [None, False, True]),
        ("int", "int", [5, -1], [-1, 5]),
        ("long", "int", [5, -1], [-1, 5]),
        ("long", "long", [2**40, -(2**40)], [-(2**40), 2**40]),
        ("float", "float", [0.5, -0.5], [-0.5, 0.5]),
        ("double", "float", [0.5, -0.5], [-0.5, 0.5]),
        ("double", "double", [math.inf, -0.5, None], [None, -0.5, math.inf]),
        ("date", {"type": "int", "logicalType": "date"}, [dt.date(1960, 1, 1)], [dt.date(1960, 1, 1)]),
        ("time", {"type": "long", "logicalType": "time-micros"}, [dt.time(1, 2)], [dt.time(1, 2)]),
        ("timestamp", "long", [1_000_000], [dt.datetime(1970, 1, 1, 0, 0, 1)]),
        ("timestamptz", "long", [0], [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]),
        ("string", "string", ["é", "", "z", None], [None, "", "z", "é"]),
        ("binary", "bytes", [b"\xff", b"\x00"], [b"\x00", b"\xff"]),
        ("fixed[2]", {"type": "fixed", "name": "f", "size": 2}, [b"ab", b"aa"], [b"aa", b"ab"]),
        ("uuid", {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid-16"}, [uuid_bytes], [uuid_bytes]),
        ("decimal(9, 2)", {"type": "fixed", "name": "d", "size": 4}, [b"\xff\xff\xff\x9c"], [Decimal("-1.00")]),
        ("decimal(9, 2)", "bytes", [b"\x64", b"\x9c"], [Decimal("-1.00"), Decimal("1.00")]),
    ]
    for type_text, avro, values, expected in cases:
        metadata = table((1, type_text), specs={0: IDENTITY})
        files = Files().add(*(entry({1000: v}) for v in values), schema=entry_schema([(1000, avro)]))
        found = [
            row["partition"]["key"] for row in read_rollups(files.manifests, metadata, files).partitions.to_pylist()
        ]
        assert found == expected, type_text
        read = [row["key"] for row in read_files(files.manifests, metadata, files)["partition"].to_pylist()]
        assert sorted(read, key=expected.index) == expected, type_text


def test_one_partition_in_two_encodings_is_one() -> None:
    """Writers differ in how they write a partition value: the value decides."""
    metadata = table((1, "long"), specs={0: IDENTITY})
    files = Files()
    for avro in ("int", "long"):
        files.add(entry({1000: 5}, column_sizes={1: 1}), entry({1000: None}), schema=entry_schema([(1000, avro)]))
    rollups = read_rollups(files.manifests, metadata, files)
    assert [row["partition"]["key"] for row in rollups.partitions.to_pylist()] == [None, 5]
    assert rollups.partitions["data_file_count"].to_pylist() == [2, 2]
    assert rollups.partition_cells["column_size"].to_pylist() == [0, 2]


@pytest.mark.parametrize("type_text", ["timestamp", "timestamp_ns"])
def test_dates_are_no_moments_of_a_column_that_has_been_promoted(type_text: str) -> None:
    """Days would be read as microseconds: filters would leave out rows that match."""
    metadata = table((1, type_text), specs={0: IDENTITY})
    avro = {"type": "int", "logicalType": "date"}
    files = Files().add(entry({1000: dt.date(2026, 9, 1)}), schema=entry_schema([(1000, avro)]))
    for read in (read_rollups, read_files):
        with pytest.raises(MetadataError, match=f"its partitions are dates, of a column .* promoted to {type_text} "):
            read(files.manifests, metadata, files)


def test_partition_evolution() -> None:
    """All specs' fields make one struct, by field id, newest names; a field that a spec has not is null."""
    specs: dict[int, list[Any]] = {
        0: [(1000, 1, "old_name", "day"), (1001, 2, "bucket", "bucket[8]")],
        1: [(1000, 1, "day", "day"), (1001, 2, "bucket", "void"), (1002, 3, "letter", "truncate[2]")],
    }
    metadata = table((1, "timestamp"), (2, "long"), (3, "string"), specs=specs)
    files = Files()
    files.add(entry({1000: 3, 1001: 5}), schema=entry_schema([(1000, "int"), (1001, "int")]))
    schema = entry_schema([(1000, "int"), (1001, "int"), (1002, "string")])
    files.add(entry({1000: 3, 1002: "ab"}), schema=schema, spec_id=1)
    rows = read_rollups(files.manifests, metadata, files).partitions.to_pylist()
    day = dt.date(1970, 1, 4)
    assert [(row["partition"], row["spec_id"]) for row in rows] == [
        ({"day": day, "bucket": None, "letter": "ab"}, 1),
        ({"day": day, "bucket": 5, "letter": None}, 0),
    ]
    assert struct_type(find_partition_columns(metadata.specs, [metadata.schema])) == pa.struct(
        [("day", pa.date32()), ("bucket", pa.int32()), ("letter", pa.string())]
    )


def test_each_partition_field_has_a_name_of_its_own() -> None:
    """A later field may be called as an earlier one is told apart from its namesake."""
    specs: dict[int, list[Any]] = {
        0: [(1000, 1, "p", "identity")],
        1: [(1001, 2, "p", "identity"), (1002, 3, "p_1000", "identity")],
    }
    metadata = table((1, "long"), (2, "long"), (3, "long"), specs=specs)
    found = find_partition_columns(metadata.specs, [metadata.schema])
    assert [column.name for column in found] == ["p_1000_1000", "p", "p_1000"]


def test_a_field_that_a_v1_table_has_dropped_is_of_its_source_column_s_type() -> None:
    """Writers give a void value, which is null, the type of the source column: not that of buckets."""
    specs: dict[int, list[Any]] = {0: [(1000, 1, "part", "bucket[8]")], 1: [(1000, 1, "part", "void")]}
    metadata = table((1, "string"), specs=specs)
    files = Files()
    files.add(entry({1000: 5}), schema=entry_schema([(1000, "int")]))
    files.add(entry({1000: None}), schema=entry_schema([(1000, "string")]), spec_id=1)
    rows = read_rollups(files.manifests, metadata, files).partitions.to_pylist()
    assert [(row["partition"], row["spec_id"]) for row in rows] == [({"part": None}, 1), ({"part": 5}, 0)]
    assert read_files(files.manifests, metadata, files)["partition"].to_pylist() == [{"part": 5}, {"part": None}]


def test_a_partition_field_whose_source_is_gone() -> None:
    """Its type is that of an older schema, else what the manifests themselves say."""
    metadata = table((2, "long"), specs={0: IDENTITY})
    date = {"type": "int", "logicalType": "date"}
    files = Files().add(entry({1000: 3}), schema=entry_schema([(1000, date)]))
    assert read_files(files.manifests, metadata, files)["partition"].to_pylist() == [{"key": dt.date(1970, 1, 4)}]
    older = replace(metadata, schemas={**table((1, "long")).schemas, 1: metadata.schema}, current_schema_id=1)
    assert read_files(files.manifests, older, files)["partition"].to_pylist() == [{"key": 3}]


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0},
        {"type": "fixed", "name": "f", "size": 0},
    ],
)
def test_what_a_manifest_says_of_a_partition_field_whose_source_is_gone_may_be_no_type(kind: dict[str, Any]) -> None:
    files = Files().add(entry({1000: b""}), schema=entry_schema([(1000, kind)]))
    for read in (read_rollups, read_files):
        with pytest.raises(MetadataError, match=r"m0\.avro at byte 0: the Avro schema is not a manifest's"):
            read(files.manifests, table((2, "long"), specs={0: IDENTITY}), files)


@pytest.mark.parametrize(
    ("avro", "value", "read"),
    [("string", "abc", "abc"), ({"type": "int", "logicalType": "date"}, 1, dt.date(1970, 1, 2))],
)
def test_a_transform_that_nobody_knows_has_values_of_any_type(avro: Any, value: Any, read: Any) -> None:
    """Java takes them for text, whatever the source column is; the table is read without filtering by the field."""
    metadata = table((1, "decimal(9, 2)"), specs={0: [(1000, 1, "z", "zorder[3]"), (1001, 1, "key", "identity")]})
    decimal = {"type": "fixed", "name": "amount", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    schema = entry_schema([(1000, avro), (1001, decimal)])
    files = Files().add(entry({1000: value, 1001: Decimal("1.50")}), entry({1000: None, 1001: None}), schema=schema)
    rows = read_rollups(files.manifests, metadata, files).partitions.to_pylist()
    assert [row["partition"] for row in rows] == [{"z": None, "key": None}, {"z": read, "key": Decimal("1.50")}]
    assert read_files(files.manifests, metadata, files)["partition"].to_pylist()[0]["z"] == read


def test_conflicting_specs_are_refused() -> None:
    """One field id for two different things, as early v1 writers left it, cannot be one column."""
    specs: dict[int, list[Any]] = {0: [(1000, 1, "a", "day")], 1: [(1000, 2, "b", "bucket[4]")]}
    metadata = table((1, "timestamp"), (2, "long"), specs=specs)
    with pytest.raises(UnsupportedError, match="partition field 1000 is bucket"):
        read_rollups([], metadata, Files())


@pytest.mark.parametrize(("name", "field_id"), [("partition", 102), ("file_path", 100)])
def test_what_each_file_has_is_never_null(name: str, field_id: int) -> None:
    """A key of a partition that is null had the length -1, which made the key before it another one."""
    schema = entry_schema([(1000, "string")])
    files = next(field["type"] for field in schema["fields"] if field["field-id"] == 2)
    field = next(field for field in files["fields"] if field["field-id"] == field_id)
    field["type"] = ["null", field["type"]]
    without = entry({1000: "b"})
    without["data_file"][name] = None
    found = Files().add(entry({1000: "a"}), without, entry({1000: "c"}), schema=schema)
    metadata = table((1, "string"), specs={0: IDENTITY})
    with pytest.raises(MetadataError, match=r"m0\.avro.* is null"):
        read_files(found.manifests, metadata, found)
    if name == "partition":
        with pytest.raises(MetadataError, match=r"m0\.avro.* is null"):
            read_rollups(found.manifests, metadata, found)


def test_partitions_of_two_types_in_one_manifest_are_refused() -> None:
    schema = entry_schema([(1000, "string")])
    files = next(field["type"] for field in schema["fields"] if field["field-id"] == 2)
    field = next(field for field in files["fields"] if field["field-id"] == 102)
    other = {"type": "record", "name": "other", "fields": [named("p", "long", 1), named("p1000", "string", 1000)]}
    field["type"] = [field["type"], other]
    second = entry({1000: "b"})
    second["data_file"]["partition"] = ("other", {"p": 77, "p1000": "b"})
    found = Files().add(entry({1000: "a"}), second, schema=schema)
    with pytest.raises(MetadataError, match="of another type"):
        read_rollups(found.manifests, table((1, "string"), specs={0: IDENTITY}), found)


def test_partition_values_beyond_their_type() -> None:
    """A value that does not fit is an error that names the manifest, never another value."""
    metadata = table((1, "int"), specs={0: IDENTITY})
    files = Files().add(entry({1000: 1}), schema=entry_schema([(1000, "long")]))
    files.add(entry({1000: 2**40}), schema=entry_schema([(1000, "long")]))
    for read in (read_rollups, read_files):
        with pytest.raises(MetadataError, match="too large for type int"):
            read(files.manifests, metadata, files)
    with pytest.raises(MetadataError, match=r"m1\.avro"):
        read_rollups(files.manifests, metadata, files)


@pytest.mark.parametrize(
    ("values", "later_type", "later_filter"),
    [
        (pa.array([Decimal("0.50"), Decimal("3.50")]), "decimal(10, 4)", "i = 3.50"),
        (pa.array([1, 3], pa.int32()), "date", "i = '1970-01-04'"),
        (pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 3)]), "int", "i = 18264"),
        (pa.array(["1", "3"]), "int", "i = 3"),
    ],
    ids=["decimals of another scale", "int, then date", "date, then int", "string, then int"],
)
def test_a_partition_column_has_been_replaced_by_one_of_another_type(
    catalog: SqlCatalog, values: pa.Array, later_type: str, later_filter: str
) -> None:
    """`create or replace table` gives a column its id again, whatever its type; earlier snapshots keep their values."""
    made = catalog.create_table("db.replaced", pa.schema([("i", values.type)]))
    with made.update_spec() as update:
        update.add_field("i", IdentityTransform(), "i")
    made.append(pa.table({"i": values}))
    path = Path(str(local_path(made.metadata_location)))
    content = json.loads(path.read_text())
    later = copy.deepcopy(content["schemas"][-1])
    later["schema-id"] += 1
    later["fields"][0]["type"] = later_type
    content |= {"schemas": [*content["schemas"], later], "current-schema-id": later["schema-id"]}
    path.write_text(json.dumps(content))
    loaded = icestats.load(made.metadata_location, snapshot=made.metadata.current_snapshot_id)
    files, partitions = loaded.files(), loaded.partitions()
    assert [row["partition"]["i"] for row in partitions.to_pylist()] == values.to_pylist()
    assert sorted(row["partition"]["i"] for row in files.to_pylist()) == values.to_pylist()
    widest = {1000: "long"} if pa.types.is_int32(values.type) else {}
    keys = {key.widen(widest) for key in find_partitions(files, loaded.metadata).values()}
    assert keys == set(build_partition_keys(partitions, loaded.metadata, loaded.schema))
    # As a rollback leaves it: rows whose partition values are of another type than the schema's.
    assert icestats.load(made.metadata_location).plan(later_filter).steps


def test_partitions_of_a_spec_are_judged_without_the_fields_of_all_others() -> None:
    """A plan of 1,000 manifests, each of a spec of its own, took more than a minute."""
    rows, names = 1_000, [f"p{number}" for number in range(501)]
    fields = [(1000 + number, 1, name, "identity") for number, name in enumerate(names)]
    metadata = table((1, "long"), specs={0: fields[:1], 1: fields[1:]})
    partitions = pa.StructArray.from_arrays([pa.array(range(rows), pa.int64())] * len(names), names)
    groups = pa.table({"partition": partitions, "spec_id": pa.array([1] + [0] * (rows - 1), pa.int32())})
    pool = pa.default_memory_pool()
    before = pool.total_bytes_allocated()
    found = {one.spec.spec_id: one for one in group_values(groups, metadata, metadata.schema)}
    assert pool.total_bytes_allocated() - before < partitions.nbytes / 4
    assert {number: (len(one.groups), len(one.metrics)) for number, one in found.items()} == {0: (999, 1), 1: (1, 500)}
    assert found[0].metrics[1000].lower.values[:2].tolist() == [1, 2]
