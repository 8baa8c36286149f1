"""Metadata of few bytes takes little memory and time, whatever it counts, nests, names or repeats."""

from __future__ import annotations

import gzip
import json
from contextlib import ExitStack
from pathlib import Path

import lz4.frame
import pyarrow as pa
import pytest
import zstandard
from pyiceberg.expressions import And, In, LessThan, Not, Or
from pyiceberg.table.name_mapping import NameMapping

import icestats
from icestats.commit.puffin_writer import CarriedBlob, write_puffin
from icestats.errors import FilterError, PuffinFormatError
from icestats.iceberg import storage
from icestats.iceberg.filters.row_filter import MAX_PARTITION_SPECS
from icestats.iceberg.metadata import Field, Schema
from icestats.iceberg.partition_columns import MAX_PARTITION_FIELDS
from icestats.iceberg.storage import Storage, local_path
from icestats.read.avro.decoding_program import Capture, compile_program
from icestats.read.manifests import group_store, manifest_files, manifest_rollup
from icestats.read.manifests.row_store import RowStore
from icestats.read.puffin import statistics_files
from icestats.read.puffin.committed_sketches import find_nearest
from icestats.read.puffin.puffin import MAX_BLOBS, PuffinBlob, read_blob, read_puffin_footer
from icestats.read.puffin.statistics_files import CommittedBlobs
from icestats.read.rollups import committed_rollups
from icestats.scan import arrow_files
from icestats.scan.actual_rows import explained_reading
from icestats.spark import spark_scan
from icestats.spark.spark_scan import open_in_spark
from icestats.spark.versions import Version
from icestats.stats.theta import ThetaSketch
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("no_cache")


def test_gzipped_metadata_of_a_catalog_does_not_inflate_without_end(small_table, catalog, load):
    stored = local_path(small_table.metadata_location)
    path = stored.with_name("1.gz.metadata.json")
    path.write_bytes(gzip.compress(stored.read_bytes()))
    catalog.drop_table("db.small")
    catalog.register_table("db.small", path.as_uri())
    assert load().manifest_files().num_rows == 2
    path.write_bytes(gzip.compress(bytes(80 << 20)))
    refused(load, "inflate to more than 67,108,864")


def test_a_spec_of_thousands_of_fields_of_one_column_is_planned(document, changed):
    fields = [
        {"source-id": 1, "field-id": 2_000 + i, "name": f"p{i}", "transform": f"truncate[{i + 1}]"}
        for i in range(3_000)
    ]
    document["partition-specs"].append({"spec-id": 1, "fields": fields})
    table = icestats.load(changed())
    assert table.plan("id = 1").partition_filters[1] == "true"


def test_the_fields_of_many_specs_take_no_gigabytes_for_a_few_files():
    """Each row has room for the partition fields of all specs."""
    rows = RowStore(["int"] * 100_000).rows
    assert rows.numbers.nbytes + rows.lengths.nbytes < 1 << 27


def test_partition_fields_without_end_are_refused(document, changed):
    """A manifest of 8 kB, of 100,000 files, was decoded for hours: each file has room for the fields of all specs."""
    fields = [
        {"source-id": 1, "field-id": 2_000 + i, "name": f"p{i}", "transform": "identity"}
        for i in range(MAX_PARTITION_FIELDS + 1)
    ]
    document["partition-specs"].append({"spec-id": 1, "fields": fields})
    table = icestats.load(changed())
    for ask in (table.manifests, table.files, lambda: table.plan("id = 1")):
        refused(ask, "fields, expected 10,000 at most")


def test_partition_specs_without_end_are_no_wait_for_a_filter(document, changed):
    """100,000 specs without a field, 3 MB of metadata, made each plan and each estimate take minutes."""
    document["partition-specs"] += [{"spec-id": i, "fields": []} for i in range(1, MAX_PARTITION_SPECS + 1)]
    table = icestats.load(changed())
    assert table.columns().num_rows
    for ask in (lambda: table.plan("id = 1"), lambda: table.estimate("id = 1")):
        refused(ask, "10,001 partition specs, expected 10,000 at most")


def test_the_fields_of_a_manifest_are_looked_for_without_looking_at_the_others():
    """40,000 partition fields of one manifest were compared with each other, which took minutes."""
    compared = 0

    class Number(int):
        __hash__ = int.__hash__

        def __ne__(self, other):
            nonlocal compared
            compared += 1
            return int(self) != other

        def __eq__(self, other):
            return not self != other

    fields = [{"name": f"p{i}", "type": "int", "field-id": Number(i)} for i in range(1_000)]
    wanted = {i: Capture("number", 27 + i, required=True) for i in range(1_000)}
    compile_program({"type": "record", "name": "r", "fields": fields}, Capture("record", fields=wanted))
    assert compared < 10_000


def test_the_blobs_of_a_column_are_found_without_looking_at_those_of_others():
    """10,000 columns of 500,000 blobs took minutes."""
    looked = 0

    class Blob:
        commits_behind = 0
        is_original = True

        def __init__(self, field_id):
            self._blob = PuffinBlob("apache-datasketches-theta-v1", (field_id,), 1, 1, 0, 0, None, {})

        @property
        def blob(self):
            nonlocal looked
            looked += 1
            return self._blob

    blobs = CommittedBlobs(map(Blob, range(1_000)))
    for field_id in range(1_000):
        field = Field(field_id, "c", "long", required=False, top_level=True)
        assert find_nearest(blobs, statistics_files.THETA, field) is blobs[field_id]
    assert looked < 10_000


@pytest.mark.parametrize("answer", ["manifests", "partitions", "columns"])
def test_partitions_by_columns_are_no_more_than_memory_holds(answer, load, small_table, monkeypatch):
    """A byte of a manifest makes a partition, and each partition has the statistics of each column."""
    for name in ("_WHOLE_SIZE", "LOCAL_SIZE"):
        monkeypatch.setattr(group_store, name, 1)
    monkeypatch.setattr(group_store, "LOCAL_GROUPS", 4)
    monkeypatch.setattr(group_store, "MAX_SIZE", 12_000)
    refused(getattr(load(), answer), "or more manifests and partitions by 4 columns take more than 12 kB")
    monkeypatch.setattr(group_store, "MAX_SIZE", 1_000)
    refused(getattr(load(), answer), "2 or more manifests and partitions by 4 columns take more than 1 kB")
    assert load().files().num_rows == 38


def test_entries_by_columns_and_partition_fields_are_no_more_than_are_gone_through(load, small_table, monkeypatch):
    """A byte of a manifest makes thousands of entries; each takes a look at all columns, and has all fields."""
    monkeypatch.setattr(manifest_rollup, "MOST_CELLS", 100)
    refused(load().columns, "by 4 columns and 2 partition fields are more than 100")
    monkeypatch.setattr(manifest_files, "MOST_CELLS", 75)
    refused(load().files, "files by 2 partition fields are more than 75")
    monkeypatch.setattr(manifest_files, "MOST_CELLS", 76)
    assert load().files().num_rows == 38


def test_rows_that_memory_does_not_hold_are_one_line(load, small_table):
    def count() -> None:
        with explained_reading(load()._source):
            pa.nulls(1 << 40, pa.binary(1 << 16))

    refused(count, "cannot be counted by PyIceberg", "malloc")


def test_a_name_mapping_is_not_parsed_for_each_file(document, changed, monkeypatch):
    """One of 300,000 names took 3.6 s for each file of which rows are read."""
    parsed = []
    parse = NameMapping.model_validate_json
    arrow_files._parse_mapping.cache_clear()
    monkeypatch.setattr(NameMapping, "model_validate_json", lambda text: parsed.append(text) or parse(text))
    document["properties"]["schema.name-mapping.default"] = '[{"field-id": 1, "names": ["id", "key"]}]'
    table = icestats.load(changed())
    assert table.files().num_rows == 38
    assert table.estimate_workload(["id < 3"]).to_arrow()["actual"][0].as_py() == 3
    # Threads that begin at one time may each parse it.
    assert 0 < len(parsed) < 38


def test_a_whole_file_has_a_limit(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(storage.MAX_FILE_SIZE_BYTES + 1)
    for location in (str(path), path.as_uri()):
        refused(lambda at=location: Storage().read(at), "268,435,457 bytes to read, expected 268,435,456 at most")
        assert Storage().read(location, 10, 3) == bytes(3)
    refused(lambda: icestats.load(str(path)), "at most")


def test_a_manifest_that_is_longer_than_its_list_says_is_not_read(small_table, load):
    manifest = local_path(load().manifest_files()["manifest_path"][0].as_py())
    with manifest.open("r+b") as file:
        file.truncate(1 << 40)
    refused(lambda: load().manifests(), "1,099,511,627,776 bytes long, the manifest list says")


def test_gzipped_metadata_does_not_inflate_without_end(tmp_path, document):
    path = tmp_path / "v1.gz.metadata.json"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    assert icestats.load(str(path)).manifest_files().num_rows == 2
    path.write_bytes(gzip.compress(bytes(80 << 20)))
    refused(lambda: icestats.load(str(path)), "inflate to more than 67,108,864")


@pytest.mark.parametrize(
    ("compress", "most"), [(bytes, "20,000,000"), (gzip.compress, "4,194,304")], ids=["plain", "gzip"]
)
def test_metadata_of_millions_of_values_is_not_parsed(compress, most, tmp_path, document):
    """As Python's objects they take 25 times the memory of their bytes, and gzip 1,000 times less than these."""
    path = tmp_path / "v1.metadata.json"
    path.write_bytes(compress(json.dumps(document)[:-1].encode() + b', "x": [' + b"{}," * 10_000_000 + b"{}]}"))
    refused(lambda: icestats.load(str(path)), f"values of JSON, expected {most} at most")


def test_statistics_of_very_many_columns_are_not_written(document, changed):
    """100,000 took a minute and 4 GB, and their footer was longer than what is read."""
    added = [{"id": 100 + i, "name": f"c{i}", "type": "long", "required": False} for i in range(20_000)]
    document["schemas"][-1]["fields"] += added
    table = icestats.load(changed())
    made = table.compute(table=False, partitions=True, manifests=True, with_column_stats=True)
    few = table.compute(table=False, partitions=True, manifests=False, with_column_stats=True, columns=["c12*"])
    for what in ("manifests have", "partitions have"):
        assert f"{what} no statistics of columns: those of 20,0" in repr(made)
    assert "too large" in repr(made)
    assert "too large" not in repr(few)


def test_columns_are_found_without_looking_at_the_others():
    """Each of 100,000 was compared with half of the others, two minutes for a report."""
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    fields = [Field(i, Name(f"c{i}"), "long", required=False, top_level=True) for i in range(1_000)]
    schema = Schema(0, tuple(fields))
    assert [schema.find(str(field.name)) for field in fields] == fields == [schema.get(i) for i in range(1_000)]
    assert compared < 10_000


def list_statistics(document, path, count):
    """Name one statistics file by as many entries, each of a snapshot of its own."""
    entry = {"statistics-path": str(path), "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1}
    document["statistics"] = [entry | {"snapshot-id": number, "blob-metadata": []} for number in range(count)]


def record_footers(monkeypatch):
    """Return the list that each reading of a footer is added to."""
    reads = []
    real = statistics_files.read_puffin_footer
    monkeypatch.setattr(statistics_files, "read_puffin_footer", lambda *of: reads.append(of) or real(*of))
    return reads


def test_entries_that_name_one_statistics_file_are_not_read_without_end(
    document, changed, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(statistics_files, "MAX_TABLE_BLOBS", 20)
    blob = PuffinBlob("a", (1,), 1, 1, 0, 0, None, {})
    (tmp_path / "a.stats").write_bytes(write_puffin([CarriedBlob(blob, b"")] * 7).data)
    list_statistics(document, tmp_path / "a.stats", 1_000)
    table = icestats.load(changed())
    assert len(table._reader.usable_blobs) == 21
    assert "other files of the table have 21 blobs, or footers as long, expected 20 at most" in caplog.text


@pytest.mark.parametrize("is_there", [True, False])
def test_statistics_files_without_blobs_or_lost_are_not_looked_for_without_end(
    is_there, document, changed, tmp_path, monkeypatch, caplog
):
    """Each is a request to the storage: a metadata.json of 13 MB took half a minute on a disk."""
    monkeypatch.setattr(statistics_files, "MAX_TABLE_FILES", 20)
    reads = record_footers(monkeypatch)
    if is_there:
        (tmp_path / "a.stats").write_bytes(write_puffin([]).data)
    list_statistics(document, tmp_path / "a.stats", 1_000)
    assert icestats.load(changed()).columns().num_rows == 4
    assert len(reads) == 20
    assert not is_there or "the table has 1,000 statistics files, expected 20 at most" in caplog.text


@pytest.mark.parametrize(
    ("kind", "content", "most"),
    [
        (statistics_files.THETA, ThetaSketch().to_bytes(), 1),
        (statistics_files.THETA, b"damaged", 10),
        (statistics_files.MANIFEST_STATISTICS, b"damaged", 10),
    ],
)
def test_entries_that_name_one_blob_do_not_have_it_read_without_end(
    kind, content, most, document, changed, tmp_path, monkeypatch
):
    """One of 16 MB, named by 1,000 entries, was read 1,000 times."""
    reads = []
    for module in (statistics_files, committed_rollups):
        monkeypatch.setattr(module, "read_blob", lambda *of, **how: reads.append(of) or read_blob(*of, **how))
    snapshot_id = document["current-snapshot-id"]
    blob = PuffinBlob(kind, (1,), snapshot_id, 1, 0, 0, None, {"ndv": "0"})
    (tmp_path / "a.stats").write_bytes(write_puffin([CarriedBlob(blob, content)]).data)
    list_statistics(document, tmp_path / "a.stats", 100)
    assert icestats.load(changed()).columns().num_rows == 4
    assert 0 < len(reads) <= most


@pytest.mark.parametrize("blobs", [[], [{}]])
def test_entries_that_name_one_long_footer_are_not_read_without_end(
    blobs, document, changed, tmp_path, monkeypatch, caplog
):
    """Of no blob, or of one that is none: 16 MB named 1,000 times took hours."""
    monkeypatch.setattr(statistics_files, "MAX_TABLE_BLOBS", 20_000)
    reads = record_footers(monkeypatch)
    payload = json.dumps({"blobs": blobs, "properties": {"a": "b" * (4 << 20)}}).encode()
    stored = lz4.frame.compress(payload, store_size=True)
    tail = len(stored).to_bytes(4, "little") + bytes([1, 0, 0, 0]) + b"PFA1"
    (tmp_path / "a.stats").write_bytes(b"PFA1PFA1" + stored + tail)
    list_statistics(document, tmp_path / "a.stats", 100)
    assert icestats.load(changed()).columns().num_rows == 4
    assert len(reads) <= 2, "each footer once"
    assert "expected 20,000 at most" in caplog.text or blobs


def test_a_footer_of_a_million_blobs_is_refused():
    blob = {"type": "a", "fields": [1], "snapshot-id": 1, "sequence-number": 1, "offset": 4, "length": 0}
    one = json.dumps(blob, separators=(",", ":")).encode()

    def file(count: int) -> bytes:
        payload = b'{"blobs":[' + b",".join([one] * count) + b"]}"
        return b"PFA1PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1"

    assert len(read_puffin_footer(file(MAX_BLOBS), "x.stats").blobs) == MAX_BLOBS
    with pytest.raises(PuffinFormatError, match=r"100,001 blobs, expected 100,000 at most"):
        read_puffin_footer(file(MAX_BLOBS + 1), "x.stats")
    with pytest.raises(PuffinFormatError, match="67108864 at most"):
        read_puffin_footer(file(1_000_000), "x.stats")


def test_many_listed_blobs_are_matched_with_the_footer_once(document, changed, tmp_path):
    """The square of 50,000 would take hours."""
    snapshot_id, count = document["current-snapshot-id"], 50_000
    blob = {"type": "apache-datasketches-theta-v1", "snapshot-id": snapshot_id, "sequence-number": 1}
    listed = [{**blob, "fields": [i], "properties": {"ndv": "1"}} for i in range(count)]
    payload = json.dumps({"blobs": [{**one, "offset": 4, "length": 0} for one in listed]}).encode()
    path = tmp_path / "x.stats"
    path.write_bytes(b"PFA1PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1")
    entry = {"snapshot-id": snapshot_id, "statistics-path": str(path), "file-size-in-bytes": path.stat().st_size}
    document["statistics"] = [{**entry, "file-footer-size-in-bytes": 1, "blob-metadata": listed}]
    found = icestats.load(changed()).sketches()
    assert found.num_rows == count
    assert all(found["listed"].to_pylist())
    assert found["used_by"][3].as_py() == ["Spark", "Trino", "Impala", "icestats"]


def test_two_hundred_thousand_snapshots_are_read(document, changed):
    first, count = document["snapshots"][0], 200_000
    document["snapshots"] = [
        {**first, "snapshot-id": i + 1, "parent-snapshot-id": i or None, "sequence-number": i} for i in range(count)
    ]
    document |= {"current-snapshot-id": count, "refs": {}, "snapshot-log": []}
    table = icestats.load(changed())
    assert table.overview().snapshot_count == count
    assert table.manifests().num_rows == 1


@pytest.mark.parametrize("levels", [50, 200, 100_000])
def test_nested_columns_are_read_or_refused(levels, document, changed, tmp_path):
    struct = '{"type":"struct","fields":[{"name":"f","required":false,"id":'
    deep = "".join(f'{struct}{1_000 + i},"type":' for i in range(levels)) + '"long"' + "}]}" * levels
    document["schemas"][0]["fields"].append({"id": 900, "name": "deep", "type": "DEEP", "required": False})
    location = changed()
    Path(location).write_text(Path(location).read_text().replace('"DEEP"', deep))
    if levels > 50:
        refused(lambda: icestats.load(location), "metadata")
        return
    table = icestats.load(location)
    assert table.columns().num_rows == 5
    assert len(table.plan("deep" + ".f" * levels + " > 3").files()) == 38


@pytest.mark.parametrize("opened_by", ["location", "catalog"])
def test_names_that_every_field_of_a_struct_repeats_are_refused(opened_by, document, changed, small_table, load):
    """A metadata.json of 1.2 MB made full names of 5 GB, in the kit as in PyIceberg."""
    inner = [{"id": 1_000 + i, "name": "f", "type": "long", "required": False} for i in range(5_000)]
    column = {"id": 999, "name": "n" * 1_000_000, "required": False, "type": {"type": "struct", "fields": inner}}
    document["schemas"][0]["fields"].append(column)
    said = "the full names of its columns have more than 268,435,456 characters"
    if opened_by == "location":
        refused(lambda: icestats.load(changed()), said)
    else:
        local_path(small_table.metadata_location).write_text(json.dumps(document))
        refused(load, said)


def test_a_name_without_end_is_refused(document, changed):
    """A column's name of 20 MB took 4 GB in coverage(), which repeats it, and 6 GB in a report."""
    document["schemas"][0]["fields"][3]["name"] = "n" * 9_000_000
    refused(lambda: icestats.load(changed()), "the full names of the columns of a schema have more than 8,388,608")


def chain(levels: int):
    built = LessThan("id", 3)
    for i in range(levels // 2):
        built = And(LessThan("id", 1_000 + i), Or(LessThan("id", -i), built))
    return built


@pytest.mark.parametrize("levels", [90, 200, 2_000])
def test_nested_filters_are_read_or_refused(levels, read_table):
    table, half = icestats.load(read_table.metadata_location), levels // 2
    text = "".join(f"(id < {1_000 + i} and (id < {-i} or " for i in range(half)) + "id < 3" + "))" * half
    for row_filter in (text, chain(levels), Not(chain(levels - 2))):
        if levels < 100:
            assert "id" in repr(table.plan(row_filter))
            assert table.estimate(row_filter).to_json()
        else:
            refused(lambda given=row_filter: table.plan(given), "nested more than 100 levels deep")
            refused(lambda given=row_filter: table.estimate(given), "nested more than 100 levels deep")
    refused(lambda: table.plan("(" * 100_000 + "id < 3"), "the filter")


def test_long_lists_of_values_are_read_or_refused(read_table):
    table = icestats.load(read_table.metadata_location)
    for count in (5_000, 100_000):
        text = f"id in ({','.join(map(str, range(count)))})"
        expression = In("id", set(range(count)))
        if count < 10_000:
            assert len(table.plan(text).files()) == len(table.plan(expression).files())
        else:
            with pytest.raises(FilterError, match=r"expected 100,000 and 10,000 at most"):
                table.plan(text)
            refused(lambda given=expression: table.plan(given), "100,000 values, expected 20,000 at most")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" and ".join(["id < 3"] * 5_002), "5,001"),
        ("(" * 5_001 + "id < 3" + ")" * 5_001, "5,001"),
        (f"id{'.id' * 5_001} < 3", "5,001"),
        ("not " * 5_001 + "id < 3", "5,001"),
    ],
)
def test_a_filter_that_would_be_read_for_a_quarter_of_a_minute_is_refused(read_table, text, words):
    table = icestats.load(read_table.metadata_location)
    with pytest.raises(FilterError, match=f"has {words} words and, or, not, brackets and points in names"):
        table.plan(text)


@pytest.mark.parametrize(("column", "value", "count"), [("name", "'x.y (or not)'", 3_000), ("price", "-1.5", 6_000)])
def test_what_is_quoted_in_a_filter_and_the_point_of_a_number_join_nothing(read_table, column, value, count):
    table = icestats.load(read_table.metadata_location)
    assert len(table.plan(f"{column} in ({','.join([value] * count)})").files()) == 0


def test_a_compressed_blob_does_not_expand_without_end():
    stored = zstandard.ZstdCompressor().compress(bytes(80 << 20))
    blob = PuffinBlob("a", (1,), 1, 1, 4, len(stored), "zstd", {})
    with pytest.raises(PuffinFormatError, match="83886080 bytes of content, expected 67108864 at most"):
        read_blob(b"PFA1" + stored, blob, "x.stats")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("read.split.target-size", "1"),
        ("read.split.planning-lookback", "1000000"),
        ("read.parquet.vectorization.batch-size", "2147483647"),
        ("read.parquet.vectorization.batch-size", "+2147483647"),
        ("read.orc.vectorization.batch-size", "200000"),
    ],
)
def test_no_property_makes_spark_take_all_memory(name, value, document, changed, monkeypatch):
    """Of a file of 9 MB, the first had the driver run out of memory, and the third ended its JVM."""
    monkeypatch.setattr(spark_scan, "_MOST_SPLITS", 1_000)
    document["properties"] |= {name: value}
    source = icestats.load(changed())._source
    version = Version(source.metadata.current_snapshot_id, "", is_snapshot=True, takes_filters=True)
    refused(lambda: ExitStack().enter_context(open_in_spark(None, source, "", version)), f"'{value}' for {name}")
