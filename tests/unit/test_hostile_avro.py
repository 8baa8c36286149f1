"""Avro files of few bytes take little memory and time, whatever their schemas and blocks say."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.manifest import write_manifest_list

from icestats.commit.preview_manifest_list import build_preview_manifest_list, read_proposal_fields
from icestats.errors import MetadataError
from icestats.iceberg.metadata import Snapshot
from icestats.iceberg.storage import Storage, local_path
from icestats.read.avro import avro_records
from icestats.read.avro.avro_file import MAX_SCHEMA_SIZE
from icestats.read.avro.avro_records import MAX_RECORDS, read_records
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.partitions.partition_statistics import _ICEBERG, _own_id, read_partition_statistics
from icestats.scan.scan_plan import prepare_scan
from tests.avro_bytes import varint
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("no_cache")


@pytest.mark.parametrize("part", ["manifest list", "manifest"])
def test_avro_blocks_that_pyiceberg_reads_do_not_inflate_without_end(part, small_table, load):
    snapshot = small_table.current_snapshot()
    manifests = snapshot.manifests(small_table.io)
    path = local_path(snapshot.manifest_list if part == "manifest list" else manifests[0].manifest_path)
    stored, body = path.read_bytes(), zlib.compress(bytes(80 << 20), wbits=-15)
    assert b"\x0edeflate" in stored
    sync = stored[-16:]
    data = stored[: stored.index(sync) + 16] + varint(2) + varint(len(body)) + body + sync
    path.write_bytes(data)
    if part == "manifest":
        manifests[0]._data[1] = len(data)
        local_path(snapshot.manifest_list).unlink()
        with write_manifest_list(
            2, small_table.io.new_output(snapshot.manifest_list), snapshot.snapshot_id, None, 1, "null"
        ) as writer:
            writer.add_manifests(manifests)
    source = load()._source
    refused(lambda: prepare_scan(source, source.metadata.find_snapshot(), source.metadata.schema), "inflates to more")


def container(schema: dict, body: bytes, count: int) -> bytes:
    """An Avro container of one block; `count` records."""
    text = json.dumps(schema).encode()
    head = varint(1) + varint(11) + b"avro.schema" + varint(len(text)) + text + varint(0)
    return b"Obj\x01" + head + bytes(16) + varint(count) + varint(len(body)) + body + bytes(16)


def record(name: str, kind) -> dict:
    return {"type": "record", "name": name, "fields": [{"name": "a", "type": kind}]}


@pytest.mark.parametrize(
    "items", ["null", {"type": "fixed", "name": "f", "size": 0}, record("e", "null"), record("e", record("f", "null"))]
)
def test_avro_lists_of_items_without_bytes_are_refused(items):
    """A few bytes would be a list of any length."""
    for kind in (
        {"type": "array", "items": items},
        ["null", {"type": "map", "values": {"type": "array", "items": items}}],
    ):
        with pytest.raises(MetadataError, match="a list of items that take no bytes"):
            read_records(container(record("r", kind), b"\xfe\xff\xff\xff\x0f\0", 1), "x.avro")
    assert read_records(container(record("r", items), b"\0", 1), "x.avro")[1]


def test_avro_lists_of_records_inside_of_each_other_are_refused():
    """A byte would be as many Python objects as there are levels."""
    items = record("a", record("b", "long"))
    assert list(read_records(container(record("r", {"type": "array", "items": items}), b"\2\2\0", 1), "x.avro")[1])
    items = record("z", items)
    for kind in ({"type": "array", "items": items}, {"type": "map", "values": ["null", "long", items]}):
        with pytest.raises(MetadataError, match="items of more than 2 values that take no bytes"):
            read_records(container(record("r", kind), b"\0", 1), "x.avro")


LISTED = [("manifest_path", 500, "string"), ("manifest_length", 501, "long"), ("partition_spec_id", 502, "int")]
UNWANTED = {"type": "array", "items": {"type": "map", "values": "string"}}
SUMMARY = [{"name": "contains_null", "field-id": 509, "type": "boolean"}, {"name": "unknown", "type": UNWANTED}]


@pytest.mark.parametrize(
    ("kind", "begin", "end"),
    [
        (UNWANTED, b"", b"\0"),
        ({"type": "array", "items": {"type": "record", "name": "s", "fields": SUMMARY}}, b"\2\0", b"\0\0"),
    ],
    ids=["field", "field of a field"],
)
def test_what_is_not_wanted_of_an_avro_file_does_not_become_python_objects(kind, begin, end, tmp_path: Path):
    """60 kB of maps took 1.4 GB."""
    fields = [{"name": name, "field-id": field_id, "type": of} for name, field_id, of in LISTED]
    fields.append({"name": "partitions", "field-id": 507 if begin else 9_999, "type": kind})
    count = 200_000
    body = varint(1) + b"m" + varint(1) + varint(0) + begin + varint(count) + bytes(count) + end
    file = tmp_path / "list.avro"
    file.write_bytes(container({"type": "record", "name": "r", "fields": fields}, body, 1))
    snapshot = Snapshot(1, None, 1, 0, str(file), (), None, {})
    tracemalloc.start()
    try:
        found = read_manifest_list(Storage(), snapshot).to_pylist()[0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found["manifest_path"], len(found["partitions"] or [])) == ("m", 1 if begin else 0)
    assert peak < 4 << 20


@pytest.mark.parametrize("kind", [UNWANTED, {"type": "map", "values": "string"}, record("s", "string")])
def test_avro_values_that_are_lists_are_refused(kind, tmp_path: Path):
    fields = [{"name": name, "field-id": field_id, "type": of} for name, field_id, of in LISTED]
    fields[0]["type"] = ["null", kind]
    file = tmp_path / "list.avro"
    file.write_bytes(container({"type": "record", "name": "r", "fields": fields}, b"\0\0\0", 1))
    with pytest.raises(MetadataError, match="where a value belongs"):
        read_manifest_list(Storage(), Snapshot(1, None, 1, 0, str(file), (), None, {}))


def test_avro_records_do_not_inflate_as_far_as_what_stays_bytes():
    """Each byte takes up to a microsecond, and deflate has a thousand of them in one."""
    packed = zlib.compress(bytes(9 << 20), wbits=-15)
    file = container(record("r", {"type": "array", "items": "long"}), packed, 1)
    file = file.replace(
        varint(1) + varint(11) + b"avro.schema",
        varint(2) + varint(10) + b"avro.codec" + varint(7) + b"deflate" + varint(11) + b"avro.schema",
    )
    with pytest.raises(MetadataError, match="inflates to more than 8,388,608 bytes"):
        list(read_records(file, "x.avro")[1])


def test_avro_lists_are_of_no_bytes_under_their_full_name_too():
    hidden = {**record("e", "null"), "namespace": "n"}
    schema = record("r", ["null", hidden, {"type": "array", "items": "n.e"}])
    with pytest.raises(MetadataError, match="a list of items that take no bytes"):
        read_records(container(schema, b"\x04\xfe\xff\xff\xff\x0f\0", 1), "x.avro")


def test_avro_records_of_a_million_values_without_bytes_are_refused():
    """Each of 20 types has the one before it twice: forty of them would take years."""
    fields = [{"name": "a0", "type": record("t0", "null")}]
    for i in range(1, 20):
        twice = [{"name": name, "type": f"t{i - 1}"} for name in "bc"]
        fields.append({"name": f"a{i}", "type": {"type": "record", "name": f"t{i}", "fields": twice}})
    wide = [{"name": f"a{i}", "type": "null"} for i in range(101)]
    for chosen in (fields, wide, [{"name": "u", "type": ["null", {"type": "record", "name": "w", "fields": wide}]}]):
        schema = {"type": "record", "name": "r", "fields": chosen}
        with pytest.raises(MetadataError, match="more than 20 values that take no bytes"):
            read_records(container(schema, b"\0", 1), "x.avro")
    assert read_records(container({"type": "record", "name": "r", "fields": wide[:19]}, b"\0", 1), "x.avro")[1]


@pytest.mark.parametrize("kind", [{"type": "bytes"}, {"type": "fixed", "name": "f", "size": 17}])
def test_avro_decimals_of_any_length_are_refused(kind):
    """A megabyte takes minutes, four of them an hour."""
    decimal = {**kind, "logicalType": "decimal", "precision": 38, "scale": 0}
    with pytest.raises(MetadataError, match="a decimal that is no fixed of 16 bytes at most"):
        read_records(container(record("r", decimal), b"\x22" + bytes(17), 1), "x.avro")


def test_avro_types_inside_of_themselves_or_nested_deep_are_refused():
    """fastavro ends the process at some thousand levels: two hundred bytes of a manifest list."""
    within = {"type": "record", "name": "s", "namespace": "n", "fields": [{"name": "a", "type": ["null", "s"]}]}
    row = [{"name": "a0", "type": record("t0", "long")}]
    row += [{"name": f"a{i}", "type": record(f"t{i}", ["null", f"t{i - 1}"])} for i in range(1, 5000)]
    for schema, body in (
        (within, b"\x02" * 5000 + b"\0"),
        (record("r", {"type": "array", "items": within}), b"\x02" * 5000 + b"\0"),
        ({"type": "record", "name": "r", "fields": row}, b"\x02" * 5000),
    ):
        with pytest.raises(MetadataError, match="nests more than 64 types, or one inside of itself"):
            list(read_records(container(schema, body, 1), "x.avro")[1])


def test_avro_files_of_a_million_records_are_refused():
    file = container(record("r", "null"), bytes(MAX_RECORDS + 1), MAX_RECORDS + 1)
    with pytest.raises(MetadataError, match="more than 1,000,000 records"):
        for _ in read_records(file, "x.avro")[1]:
            pass


def test_avro_records_longer_than_their_limit_are_refused(monkeypatch):
    """A byte of a list of booleans is a Python object; a file of a few kilobytes may hold millions of them."""
    monkeypatch.setattr(avro_records, "MAX_RECORD_SIZE", 4096)
    schema = record("r", {"type": "array", "items": "boolean"})

    def body(size: int) -> bytes:
        return varint(size) + bytes(size) + b"\0"

    sizes = [4000, 3, 4000, 2000]
    file = container(schema, b"".join(map(body, sizes)), len(sizes))
    assert [len(row["a"]) for rows in read_records(file, "x.avro")[1] for row in rows] == sizes
    long_one = container(schema, body(12_000), 1)
    with pytest.raises(MetadataError, match="a record cannot be read: it has more than 4,096 bytes"):
        next(read_records(long_one, "x.avro")[1])


def test_avro_schemas_longer_than_their_limit_are_refused():
    schema = {**record("r", "long"), "doc": "x" * MAX_SCHEMA_SIZE}
    with pytest.raises(MetadataError, match=r"avro\.schema has 4,194,389 bytes, expected at most 4,194,304"):
        read_records(container(schema, b"", 0), "x.avro")


def test_avro_types_with_long_names_are_refused():
    """fastavro writes their namespace before the name of each type in it: 1.6 MB took 8 GB."""
    inside = [{"name": f"f{i}", "type": {"type": "fixed", "name": f"t{i}", "size": 1}} for i in range(2_000)]
    for kind in ("record", "error"):
        of_namespace = {"type": kind, "name": "n" * 100_000 + ".r", "fields": inside}
        tracemalloc.start()
        try:
            with pytest.raises(MetadataError, match="a name of more than 1,000 characters"):
                read_records(container(record("r", of_namespace), b"", 0), "x.avro")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 16 << 20


def test_a_manifest_list_does_not_become_python_objects_as_a_whole(tmp_path: Path):
    """They take a hundred times as many bytes as the file."""
    names = ("manifest_path", 500, "string"), ("manifest_length", 501, "long"), ("partition_spec_id", 502, "int")
    fields = [{"name": name, "field-id": field_id, "type": kind} for name, field_id, kind in names]
    paths = [f"{i:08}" for i in range(50_000)]
    body = b"".join(varint(8) + path.encode() + varint(i) + varint(0) for i, path in enumerate(paths))
    file = tmp_path / "list.avro"
    file.write_bytes(container({"type": "record", "name": "r", "fields": fields}, body, len(paths)))
    snapshot = Snapshot(1, None, 1, 0, str(file), (), None, {})
    tracemalloc.start()
    try:
        found = read_manifest_list(Storage(), snapshot)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found["manifest_path"].to_pylist() == paths
    assert peak < 16 << 20


def test_a_preview_does_not_make_python_objects_of_a_whole_manifest_list(tmp_path: Path):
    fields = [{"name": name, "field-id": field_id, "type": of} for name, field_id, of in LISTED]
    paths = [f"{i:08}" for i in range(30_000)]
    body = b"".join(varint(8) + path.encode() + varint(i) + varint(0) for i, path in enumerate(paths))
    file = tmp_path / "list.avro"
    file.write_bytes(container({"type": "record", "name": "r", "fields": fields}, body, len(paths)))
    manifests = pa.table({"manifest_path": paths, "content": ["deletes"] * len(paths)})
    tracemalloc.start()
    try:
        made = build_preview_manifest_list(Storage(), Snapshot(1, None, 1, 0, str(file), (), None, {}), manifests)
        peak = tracemalloc.get_traced_memory()[1]
        (tmp_path / "preview.avro").write_bytes(made)
        tracemalloc.reset_peak()
        found = read_proposal_fields(Storage(), str(tmp_path / "preview.avro"))
        peak = max(peak, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert found["manifest_path"].to_pylist() == paths
    assert peak < 12 << 20


def test_avro_partition_statistics_do_not_become_python_objects_as_a_whole(monkeypatch):
    """Each value of a map takes two bytes there, and hundreds as objects."""
    place = _own_id("value_counts")
    entry = [{"name": name, "field-id": place + i, "type": "long"} for i, name in enumerate(("key", "value"), 1)]
    pair = {"type": "record", "name": "pair", "fields": entry}
    kinds = {"partition": {"type": "record", "name": "p", "fields": []}, **{name: "long" for name, _ in _ICEBERG}}
    fields = [{"name": name, "field-id": number, "type": kind} for number, (name, kind) in enumerate(kinds.items(), 1)]
    fields.append({"name": "m", "field-id": place, "type": {"type": "array", "items": pair}})
    monkeypatch.setattr(avro_records, "BATCH_SIZE", 1 << 16)
    count = 20_000
    body = 30 * (bytes(len(_ICEBERG)) + varint(count) + bytes(2 * count) + b"\0")
    file = container({"type": "record", "name": "r", "fields": fields}, body, 30)
    tracemalloc.start()
    try:
        found = read_partition_statistics(file, "x.avro", (), (), {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.groups) == 30
    assert peak < 64 << 20
