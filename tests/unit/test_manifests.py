"""Roll-ups and files of manifests: one rule of Iceberg a test."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import math
import struct
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from icestats.errors import MetadataError, UnsupportedError
from icestats.metadata import TableMetadata
from icestats.metadata_json import build_metadata
from icestats.read import row_store
from icestats.read.manifests import ManifestToRead, partition_type, read_files, read_rollups
from icestats.storage import Storage

METRICS = {
    "column_sizes": (108, 117, "long"),
    "value_counts": (109, 119, "long"),
    "null_value_counts": (110, 121, "long"),
    "nan_value_counts": (137, 138, "long"),
    "lower_bounds": (125, 126, "bytes"),
    "upper_bounds": (128, 129, "bytes"),
}
IDENTITY = [(1000, 1, "key", "identity")]


def table(*columns: tuple[int, str], specs: dict[int, list[Any]] | None = None, **more: Any) -> TableMetadata:
    """Metadata of a table with columns (id, type) named c<id>, and specs of (field id, source id, name, transform)."""
    keys = ("field-id", "source-id", "name", "transform")
    return build_metadata(
        {
            "format-version": 2,
            "location": "s3://bucket/table",
            "schemas": [{"fields": [{"id": i, "name": f"c{i}", "type": t, "required": False} for i, t in columns]}],
            "partition-specs": [
                {"spec-id": spec_id, "fields": [dict(zip(keys, field, strict=True)) for field in fields]}
                for spec_id, fields in (specs or {0: []}).items()
            ],
            **more,
        },
        "v1.metadata.json",
    )


def named(name: str, avro: Any, field_id: int) -> dict[str, Any]:
    return {"name": name, "type": avro, "field-id": field_id}


def entry_schema(partition: Iterable[tuple[int, Any]] = (), *, version: int = 3) -> dict[str, Any]:
    """The schema as Java writes it."""

    def option(name: str, avro: Any, field_id: int) -> dict[str, Any]:
        return named(name, ["null", avro], field_id)

    def metric(name: str) -> dict[str, Any]:
        field_id, key_id, value = METRICS[name]
        item = {"type": "record", "name": f"k{key_id}", "fields": [named("key", "int", key_id)]}
        item["fields"].append(named("value", value, key_id + 1))
        return option(name, {"type": "array", "items": item, "logicalType": "map"}, field_id)

    values = [named(f"p{i}", ["null", avro], i) for i, avro in partition]
    files = [
        named("file_path", "string", 100),
        named("file_format", "string", 101),
        named("partition", {"type": "record", "name": "r102", "fields": values}, 102),
        named("record_count", "long", 103),
        named("file_size_in_bytes", "long", 104),
        *(metric(name) for name in METRICS),
        option("split_offsets", {"type": "array", "items": "long"}, 132),
        option("sort_order_id", "int", 140),
    ]
    entries = [named("status", "int", 0), option("snapshot_id", "long", 1)]
    if version > 1:
        files.insert(0, named("content", "int", 134))
        files.append(option("equality_ids", {"type": "array", "items": "int"}, 135))
        entries += [option("sequence_number", "long", 3), option("file_sequence_number", "long", 4)]
    if version > 2:
        files += [option("first_row_id", "long", 142), option("referenced_data_file", "string", 143)]
        files += [option("content_offset", "long", 144), option("content_size_in_bytes", "long", 145)]
    entries.append(named("data_file", {"type": "record", "name": "r2", "fields": files}, 2))
    return {"type": "record", "name": "manifest_entry", "fields": entries}


def entry(partition: dict[int, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An entry of a data file with metrics given as dicts; `status` and the like are the entry's own."""
    own = {name: more.pop(name) for name in ("status", "snapshot_id", "sequence_number") if name in more}
    data_file = {
        "content": 0,
        "file_path": "f",
        "file_format": "PARQUET",
        "record_count": 10,
        "file_size_in_bytes": 100,
    }
    for name in METRICS:
        if name in more:
            more[name] = [{"key": key, "value": value} for key, value in more[name].items()]
    data_file |= more | {"partition": {f"p{i}": value for i, value in (partition or {}).items()}}
    return {"status": 1, "data_file": data_file} | own


class Files:
    """Manifests in memory, read as a storage is."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.manifests: list[ManifestToRead] = []

    def add(self, *entries: dict[str, Any], schema: Any = None, **more: Any) -> Files:
        out = io.BytesIO()
        fastavro.writer(out, schema or entry_schema(), entries, codec="deflate", sync_interval=500)
        path = f"m{len(self.data)}.avro"
        self.data[path] = out.getvalue()
        known = {"length": len(self.data[path]), "spec_id": 0, "content": "data", "sequence_number": 7}
        self.manifests.append(ManifestToRead(path, **(known | {"added_snapshot_id": 100} | more)))
        return self

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.data[location][offset:][:length]

    def size(self, location: str) -> int:
        return len(self.data[location])


def cells(files: Files, metadata: TableMetadata, **more: Any) -> list[dict[str, Any]]:
    return read_rollups(files.manifests, metadata, files, **more).table_cells.to_pylist()


def bounds(type_text: str, *values: bytes) -> tuple[bytes | None, bytes | None, int]:
    """The lower and the upper bound over files that have these as both, and how many count."""
    files = Files().add(*(entry(lower_bounds={1: v}, upper_bounds={1: v}) for v in values))
    cell = cells(files, table((1, type_text)))[0]
    assert cell["lower_bound_file_count"] == cell["upper_bound_file_count"]
    return cell["lower_bound"], cell["upper_bound"], cell["lower_bound_file_count"]


def integer(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little", signed=True)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("type_text", "ascending"),
    [
        ("boolean", [b"\x00", b"\x01"]),
        ("int", [integer(v, 4) for v in (-(2**31), -1, 0, 255, 256, 2**31 - 1)]),
        ("long", [integer(v, 8) for v in (-(2**63), -1, 0, 255, 256, 2**63 - 1)]),
        ("float", [struct.pack("<f", v) for v in (-math.inf, -2.5, -1e-40, -0.0, 0.0, 1e-40, 3.5, math.inf)]),
        ("double", [double(v) for v in (-math.inf, -2.5, -5e-324, -0.0, 0.0, 5e-324, 3.5, math.inf)]),
        ("date", [integer(v, 4) for v in (-719_162, -1, 0, 1)]),
        ("time", [integer(v, 8) for v in (0, 1, DAY - 1)]),
        ("timestamp", [integer(v, 8) for v in (-DAY, 0, 1, 2**62)]),
        ("timestamptz", [integer(v, 8) for v in (-DAY, 0, 1, 2**62)]),
        ("timestamp_ns", [integer(v, 8) for v in (-DAY, 0, 1, 2**62)]),
        ("decimal(38, 2)", [v.to_bytes(16, "big", signed=True).lstrip(b"\x00") for v in (1, 127, 10**37)]),
        ("decimal(38, 2)", [(-(10**37)).to_bytes(16, "big", signed=True), b"\x80\x00", b"\x80", b"\xff", b"\x00"]),
        ("decimal(9, 2)", [b"\xff\x7f", b"\x80", b"\x7f", b"\x00\x80"]),
        ("string", [b"", b"a", b"a\x00", b"ab", "é".encode(), "日".encode(), "😀".encode()]),
        ("string", [b"sixteen bytes ..", b"sixteen bytes ..\x00", b"sixteen bytes ..a", b"sixteen bytes ..b"]),
        ("binary", [b"\x00", b"\x7f", b"\x80", b"\xff" * 16, b"\xff" * 17, b"\xff" * 17 + b"\x00"]),
        ("fixed[3]", [b"\x00\x00\x01", b"\x7f", b"\x80\x00\x00"]),
        ("uuid", [bytes(16), b"\x7f" * 16, b"\x80" + bytes(15), b"\x80" * 15 + b"\x81"]),
    ],
)
def test_bounds_keep_the_order_of_their_type(type_text: str, ascending: list[bytes]) -> None:
    """Of any two values, in either order, the roll-up has the smaller as lower and the larger as upper bound."""
    for low, high in itertools.pairwise(ascending):
        assert bounds(type_text, low, high) == (low, high, 2)
        assert bounds(type_text, high, low) == (low, high, 2)
    assert bounds(type_text, *ascending) == (ascending[0], ascending[-1], len(ascending))


@pytest.mark.parametrize(
    ("type_text", "old", "new"),
    [
        ("long", integer(-5, 4), integer(-5, 8)),
        ("double", struct.pack("<f", -1.5), double(-1.5)),
        ("double", struct.pack("<f", 1e-40), double(struct.unpack("<f", struct.pack("<f", 1e-40))[0])),
        ("timestamp", integer(-1, 4), integer(-DAY, 8)),
        ("timestamp_ns", integer(2, 4), integer(2_000 * DAY, 8)),
        ("decimal(38, 2)", b"\x00\x00\x05", b"\x05"),
        ("decimal(38, 2)", b"\xff" * 20 + b"\x80", b"\x80"),
        ("boolean", b"\x05", b"\x01"),
    ],
)
def test_bounds_of_an_older_type_are_widened(type_text: str, old: bytes, new: bytes) -> None:
    """A bound from before a promotion is returned as a value of the current type."""
    assert bounds(type_text, old) == (new, new, 1)


@pytest.mark.parametrize(
    ("type_text", "wrong"),
    [
        ("int", integer(1, 8)),
        ("long", b"\x01"),
        ("float", double(1.0)),
        ("float", struct.pack("<f", math.nan)),
        ("double", double(math.nan)),
        ("double", double(-math.nan)),
        ("date", b""),
        ("timestamptz", integer(1, 4)),
        ("timestamp", integer(2**31 - 1, 4)),
        ("timestamp_ns", integer(110_000, 4)),
        ("decimal(9, 2)", b""),
        ("decimal(38, 2)", b"\x01" + bytes(16)),
        ("decimal(38, 2)", b"\x00\x80" + bytes(15)),
        ("uuid", bytes(15)),
        ("fixed[3]", bytes(4)),
        ("boolean", b""),
        ("geometry", bytes(16)),
        ("variant", bytes(3)),
    ],
)
def test_what_is_no_bound_counts_as_lacking(type_text: str, wrong: bytes) -> None:
    """NaN, lengths that the type does not have, and types without order are unknown, not wrong."""
    assert bounds(type_text, wrong) == (None, None, 0)


def test_long_bounds_survive_many_winners() -> None:
    """Bounds that outgrow two words are kept whole, however often they are beaten and by whatever length."""
    values = [b"x" * 20 + b"%05d" % i * (1 + i % 50) for i in range(3000)]
    assert bounds("binary", *values) == (min(values), max(values), 3000)


def test_a_column_without_values_needs_no_bounds() -> None:
    """All null, all NaN or no values at all is not a lacking bound; one value more is."""
    metadata = table((1, "double"))
    counts = {"value_counts": {1: 5}}
    assert cells(Files().add(entry(**counts, null_value_counts={1: 5})), metadata)[0]["valueless_file_count"] == 1
    mixed = entry(**counts, null_value_counts={1: 2}, nan_value_counts={1: 3})
    assert cells(Files().add(mixed), metadata)[0]["valueless_file_count"] == 1
    assert cells(Files().add(entry(value_counts={1: 0})), metadata)[0]["valueless_file_count"] == 1
    nan = double(math.nan)
    assert (
        cells(Files().add(mixed | {}, entry(**counts, nan_value_counts={1: 5}, lower_bounds={1: nan})), metadata)[0][
            "valueless_file_count"
        ]
        == 2
    )
    assert cells(Files().add(entry(**counts, null_value_counts={1: 4})), metadata)[0]["valueless_file_count"] == 0
    assert cells(Files().add(entry(null_value_counts={1: 4})), metadata)[0]["valueless_file_count"] == 0
    bounded = entry(**counts, null_value_counts={1: 5}, upper_bounds={1: double(1)})
    assert cells(Files().add(bounded), metadata)[0]["valueless_file_count"] == 0


def test_counts_say_how_many_files_have_them() -> None:
    """Sums are over the live data files that have the statistic; deleted entries and delete files never count."""
    files = Files().add(
        entry(column_sizes={1: 5, 2: 7}, value_counts={1: 10}),
        entry(column_sizes={1: 6}, null_value_counts={1: -1}),
        entry(column_sizes={1: 1000}, status=2),
        entry(column_sizes={1: 1000}, content=1),
        entry(),
    )
    first, second = cells(files, table((1, "long"), (2, "string")))
    assert (first["column_size"], first["column_size_file_count"]) == (11, 2)
    assert (first["value_count"], first["value_count_file_count"]) == (10, 1)
    assert (first["null_value_count"], first["null_value_count_file_count"]) == (0, 0)
    assert (second["column_size"], second["column_size_file_count"]) == (7, 1)


def test_sums_do_not_wrap_around() -> None:
    """A sum beyond 64 bits is an error, in one manifest and over several."""
    half = entry(column_sizes={1: 2**62})
    with pytest.raises(MetadataError, match="exceeds 64 bits"):
        cells(Files().add(half, half, half), table((1, "long")))
    with pytest.raises(MetadataError, match="exceeds 64 bits"):
        cells(Files().add(half).add(half).add(half), table((1, "long")))
    with pytest.raises(MetadataError, match="exceeds 64 bits"):
        cells(Files().add(entry(record_count=2**62), entry(record_count=2**62)), table((1, "long")))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"status": 3}, "a status is none of"),
        ({"content": 3}, "a content is none of"),
        ({"record_count": -1}, "a record count or file size is negative"),
        ({"file_size_in_bytes": -1}, "a record count or file size is negative"),
    ],
)
def test_impossible_entries_are_errors(change: dict[str, int], what: str) -> None:
    """An entry that no writer can mean stops the reading, with the entry's place."""
    files = Files().add(entry(), entry(**change))
    for read in (read_rollups, read_files):
        with pytest.raises(MetadataError, match=what) as caught:
            read(files.manifests, table((1, "long")), files)
        assert (caught.value.path, "entry 1 of the block" in str(caught.value)) == ("m0.avro", True)


def test_deletes_are_counted_apart() -> None:
    """Position deletes, deletion vectors and equality deletes each have their counts, and none is a data file."""
    files = Files().add(entry(), entry())
    files.add(
        entry(content=1, record_count=3),
        entry(content=1, record_count=4, file_format="puffin"),
        entry(content=2, record_count=5, equality_ids=[1]),
        content="deletes",
    )
    rollups = read_rollups(files.manifests, table((1, "long")), files)
    group = rollups.partitions.to_pylist()[0]
    assert (group["data_file_count"], group["data_record_count"], group["total_data_file_size_in_bytes"]) == (
        2,
        20,
        200,
    )
    assert (group["position_delete_file_count"], group["position_delete_record_count"], group["dv_count"]) == (1, 7, 1)
    assert (group["equality_delete_file_count"], group["equality_delete_record_count"]) == (1, 5)
    deletes = rollups.manifests.to_pylist()[1]
    assert (deletes["live_file_count"], deletes["record_count"], deletes["file_size_in_bytes"]) == (3, 12, 300)
    assert rollups.manifest_cells.num_rows == 2
    contents = read_files(files.manifests, table((1, "long")), files)["content"].to_pylist()
    assert contents == ["data", "data", "position_deletes", "position_deletes", "equality_deletes"]


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
    assert partition_type(metadata.specs, [metadata.schema]) == pa.struct(
        [("day", pa.date32()), ("bucket", pa.int32()), ("letter", pa.string())]
    )


def test_a_partition_field_whose_source_is_gone() -> None:
    """Its type is that of an older schema, else what the manifests themselves say."""
    metadata = table((2, "long"), specs={0: IDENTITY})
    date = {"type": "int", "logicalType": "date"}
    files = Files().add(entry({1000: 3}), schema=entry_schema([(1000, date)]))
    assert read_files(files.manifests, metadata, files)["partition"].to_pylist() == [{"key": dt.date(1970, 1, 4)}]
    older = replace(metadata, schemas={**table((1, "long")).schemas, 1: metadata.schema}, current_schema_id=1)
    assert read_files(files.manifests, older, files)["partition"].to_pylist() == [{"key": 3}]


def test_conflicting_specs_are_refused() -> None:
    """One field id for two different things, as early v1 writers left it, cannot be one column."""
    specs: dict[int, list[Any]] = {0: [(1000, 1, "a", "day")], 1: [(1000, 2, "b", "bucket[4]")]}
    metadata = table((1, "timestamp"), (2, "long"), specs=specs)
    with pytest.raises(UnsupportedError, match="partition field 1000 is bucket"):
        read_rollups([], metadata, Files())


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
    ("schema", "more", "what"),
    [
        (entry_schema([(1001, "int")]), {}, "no field of id 1000"),
        (entry_schema([(1000, "string")]), {}, "Avro type string, expected a number"),
        (entry_schema([(1000, "int")]), {"spec_id": 4}, "partition spec 4, which the table does not have"),
        ({"type": "record", "name": "r", "fields": []}, {}, "no field of id 0"),
    ],
)
def test_files_that_are_no_manifest_of_the_table(schema: Any, more: dict[str, Any], what: str) -> None:
    """A manifest of another table, or another kind of Avro file, is an error."""
    files = Files().add(schema=schema, **more)
    for read in (read_rollups, read_files):
        with pytest.raises(MetadataError, match=what):
            read(files.manifests, table((1, "int"), specs={0: IDENTITY}), files)


def test_no_manifests_and_no_entries() -> None:
    """Nothing gives tables without rows, and cells that nothing has contributed to."""
    metadata = table((1, "long"), (2, "string"), specs={0: [(1000, 1, "key", "identity")]})
    rollups = read_rollups([], metadata, Files())
    assert (rollups.manifests.num_rows, rollups.partitions.num_rows, rollups.table_cells.num_rows) == (0, 0, 2)
    assert read_files([], metadata, Files()).num_rows == 0
    files = Files().add(schema=entry_schema([(1000, "long")]))
    rollups = read_rollups(files.manifests, metadata, files)
    assert rollups.manifests["live_file_count"].to_pylist() == [0]
    assert rollups.manifest_cells["column_size_file_count"].to_pylist() == [0, 0]
    assert (rollups.partitions.num_rows, rollups.partition_cells.num_rows) == (0, 0)


def test_only_what_is_wanted() -> None:
    """`by` leaves tables out; the table's cells are there in any case."""
    files = Files().add(entry(column_sizes={1: 3}))
    metadata = table((1, "long"))
    full = read_rollups(files.manifests, metadata, files)
    for by in ((), ("manifest",), ("partition",)):
        part = read_rollups(files.manifests, metadata, files, by=by)
        assert part.table_cells.equals(full.table_cells)
        assert part.manifest_cells.num_rows == ("manifest" in by)
        assert part.partition_cells.num_rows == ("partition" in by)
    with pytest.raises(ValueError, match="cannot roll up by 'column'"):
        read_rollups(files.manifests, metadata, files, by=["column"])


def test_another_schema() -> None:
    """Columns are those of the schema given, by id: dropped ones are left out, later ones have nothing."""
    files = Files().add(entry(column_sizes={1: 3, 2: 4}))
    metadata = table((1, "long"), (2, "string"))
    assert [c["column_size"] for c in cells(files, metadata, schema=table((2, "string"), (9, "int")).schema)] == [4, 0]
    assert cells(files, metadata, schema=replace(metadata.schema, fields=())) == []


def test_the_length_must_be_that_of_the_list() -> None:
    """A file that is longer or shorter than the manifest list says is an error; an unknown length is not checked."""
    files = Files().add(entry())
    for length in (1, len(files.data["m0.avro"]) + 1):
        with pytest.raises(MetadataError, match="the manifest list says"):
            read_rollups([replace(files.manifests[0], length=length)], table((1, "long")), files)
    assert read_files([replace(files.manifests[0], length=0)], table((1, "long")), files).num_rows == 1


def test_progress_counts_manifests_and_may_stop() -> None:
    """Progress ends at all of all; an exception that it raises comes out, and nothing goes on behind it."""
    files = Files()
    for _ in range(20):
        files.add(entry())
    seen: list[tuple[int, int]] = []
    read_rollups(files.manifests, table((1, "long")), files, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 20) for i in range(1, 21)]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_files(files.manifests, table((1, "long")), files, progress=stop)


def test_more_rows_than_are_captured_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows keep their order, and row ids go on, across the captures of one manifest."""
    monkeypatch.setattr(row_store, "CAPACITY", 64)
    rows = [entry(file_path=f"f{i}", lower_bounds={1: b"%d" % i}, record_count=2) for i in range(1000)]
    files = Files().add(*rows, first_row_id=10)
    read = read_files(files.manifests, table((1, "binary")), files, [1])
    assert read["file_path"].to_pylist() == [f"f{i}" for i in range(1000)]
    assert read["first_row_id"].to_pylist() == [10 + 2 * i for i in range(1000)]
    assert read["lower_bounds"].to_pylist() == [[(1, b"%d" % i)] for i in range(1000)]


@pytest.mark.parametrize("version", [1, 2])
def test_manifests_of_pyiceberg(version: int, tmp_path: Path) -> None:
    """What PyIceberg writes reads as PyIceberg reads it."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
        write_manifest,
    )
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, IdentityTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField, StringType

    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(4), "a_bucket"), PartitionField(2, 1001, IdentityTransform(), "b")
    )

    def added_entry(data_file: DataFile) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=55,
            sequence_number=3,
            file_sequence_number=3,
            data_file=data_file,
        )

    path = str(tmp_path / "m.avro")
    with write_manifest(version, spec, schema, PyArrowFileIO().new_output(path), 55, "deflate") as writer:
        for i in range(50):
            data_file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"s3://bucket/{i}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(i % 4, None if i % 5 == 0 else "x"),
                record_count=i,
                file_size_in_bytes=100 + i,
                column_sizes={1: i, 2: 2 * i},
                value_counts={1: i, 2: i},
                null_value_counts={1: 0, 2: i},
                nan_value_counts={},
                lower_bounds={1: integer(i, 8)},
                upper_bounds={1: integer(2 * i, 8)},
                split_offsets=[4],
                sort_order_id=0,
            )
            writer.add_entry(added_entry(data_file))
        written = writer.to_manifest_file()
    metadata = table(
        *((1, "long"), (2, "string")), specs={0: [(1000, 1, "a_bucket", "bucket[4]"), (1001, 2, "b", "identity")]}
    )
    manifest = ManifestToRead(path, written.manifest_length, 0, "data", 3, 55)
    files = read_files([manifest], metadata, Storage(), [1, 2])
    theirs = written.fetch_manifest_entry(PyArrowFileIO())
    assert files["file_path"].to_pylist() == [e.data_file.file_path for e in theirs]
    assert [dict(m) for m in files["column_sizes"].to_pylist()] == [e.data_file.column_sizes for e in theirs]
    assert [dict(m) for m in files["lower_bounds"].to_pylist()] == [e.data_file.lower_bounds for e in theirs]
    assert [tuple(p.values()) for p in files["partition"].to_pylist()] == [
        (e.data_file.partition[0], e.data_file.partition[1]) for e in theirs
    ]
    rollups = read_rollups([manifest], metadata, Storage())
    cell = rollups.table_cells.to_pylist()[0]
    assert (cell["column_size"], cell["lower_bound"], cell["upper_bound"]) == (1225, integer(0, 8), integer(98, 8))
    assert rollups.table_cells["valueless_file_count"].to_pylist() == [0, 50]
    assert sum(rollups.partitions["data_file_count"].to_pylist()) == 50
