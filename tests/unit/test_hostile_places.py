"""What a table's metadata points to is read only where it is a regular file, no more of it than the limits allow."""

from __future__ import annotations

import gzip
import json
import os
import socket
import traceback
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import lz4.frame
import pyarrow as pa
import pytest
import zstandard
from pyiceberg.expressions import And, In, LessThan, Not, Or
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import write_manifest_list
from pyiceberg.table.name_mapping import NameMapping

import icestats
from icestats.commit.preview_manifest_list import build_preview_manifest_list, read_proposal_fields
from icestats.commit.puffin_writer import CarriedBlob, write_puffin
from icestats.errors import FilterError, IcestatsError, MetadataError, PuffinFormatError
from icestats.estimation import engines
from icestats.iceberg import storage
from icestats.iceberg.filters.row_filter import MAX_PARTITION_SPECS
from icestats.iceberg.metadata import Field, Schema, Snapshot
from icestats.iceberg.partition_columns import MAX_PARTITION_FIELDS
from icestats.iceberg.storage import Storage, check_local, local_path
from icestats.read.avro import avro_records
from icestats.read.avro.avro_file import MAX_SCHEMA_SIZE
from icestats.read.avro.avro_records import MAX_RECORDS, read_records
from icestats.read.avro.decoding_program import Capture, compile_program
from icestats.read.manifests import group_store, manifest_files, manifest_rollup
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.row_store import RowStore
from icestats.read.partitions.partition_statistics import _ICEBERG, _own_id, read_partition_statistics
from icestats.read.puffin import statistics_files
from icestats.read.puffin.puffin import MAX_BLOBS, PuffinBlob, read_blob, read_puffin_footer
from icestats.read.puffin.statistics_files import CommittedBlobs, find_nearest
from icestats.read.rollups import committed_rollups
from icestats.scan import arrow_files
from icestats.scan.actual_rows import explained_reading
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import prepare_scan, scan_here
from icestats.snapshot.pruning.plan import Plan
from icestats.spark import spark_scan
from icestats.spark.spark_scan import open_in_spark
from icestats.spark.versions import Version
from icestats.stats.theta import ThetaSketch
from tests.added_rows import numbers
from tests.parquet_footers import build_empty_file

pytestmark = pytest.mark.usefixtures("no_cache")
SECRET = b"mallory:x:0:0:hidden"


@pytest.fixture
def document(read_table) -> dict:
    return json.loads(local_path(read_table.metadata_location).read_bytes())


@pytest.fixture
def changed(document, tmp_path: Path) -> Callable[[], str]:
    """Write the document as it is now; return its location."""

    def write() -> str:
        path = tmp_path / "changed.metadata.json"
        path.write_text(json.dumps(document))
        return str(path)

    return write


def places(folder: Path):
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
    return {
        "pipe": folder / "pipe",
        "folder": folder / "folder",
        "socket": folder / "socket",
        "device": Path("/dev/zero"),
    }


def refused(ask: Callable[[], object], *words: str) -> None:
    with pytest.raises(IcestatsError) as caught:
        ask()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 1_000
    for word in words:
        assert word in text


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "device"])
def test_what_is_no_regular_file_is_refused_without_waiting_for_it(kind, tmp_path, monkeypatch, document, changed):
    monkeypatch.chdir(tmp_path)
    place = places(Path())[kind]
    what = f"a {kind}, expected a regular file"
    refused(lambda: Storage().read(str(place)), str(place), what)
    refused(lambda: Storage().size(str(place)), str(place), what)
    if kind != "folder":
        refused(lambda: icestats.load(str(place.absolute())), what)
    snapshot = document["snapshots"][-1]
    entry = {"snapshot-id": snapshot["snapshot-id"], "statistics-path": str(place), "file-size-in-bytes": 100}
    document["statistics"] = [{**entry, "file-footer-size-in-bytes": 20, "blob-metadata": []}]
    document["partition-statistics"] = [entry]
    table = icestats.load(changed())
    refused(table.partition_statistics, what)
    refused(lambda: table.histogram("id"), what)
    snapshot["manifest-list"] = str(place.absolute())
    refused(icestats.load(changed()).manifest_files, what)


@pytest.mark.parametrize("part", ["manifest list", "manifest", "data file"])
def test_what_is_read_of_rows_is_no_pipe(part, small_table, load):
    """PyIceberg, which reads these, would wait for ever."""
    snapshot = small_table.current_snapshot()
    manifest = snapshot.manifests(small_table.io)[0]
    data_file = manifest.fetch_manifest_entry(small_table.io)[0].data_file.file_path
    path = {"manifest list": snapshot.manifest_list, "manifest": manifest.manifest_path, "data file": data_file}[part]
    local_path(path).unlink()
    os.mkfifo(local_path(path))
    for table in (load(), icestats.load(small_table.metadata_location)):
        source = table._source

        def scan(source=source) -> object:
            plan = prepare_scan(source, source.metadata.find_snapshot(), source.metadata.schema)
            return scan_here(plan, Sizes(200, 12, 200, 12))

        refused(scan, path, "a pipe, expected a regular file")
        refused(lambda table=table: table.estimate("id >= 0", actual=True), path, "a pipe, expected a regular file")


def data_file_of(table) -> str:
    manifest = table.current_snapshot().manifests(table.io)[0]
    return manifest.fetch_manifest_entry(table.io)[0].data_file.file_path


def test_duckdb_opens_no_pipe(small_table):
    path = data_file_of(small_table)
    local_path(path).unlink()
    os.mkfifo(local_path(path))
    found = icestats.load(small_table.metadata_location).estimate("id >= 0", sources=["table"], engines=["duckdb"])
    assert found["duckdb"].reason == f"{path}: a pipe, expected a regular file"


def test_what_duckdb_says_of_a_file_need_not_be_text(small_table):
    """Its error names the columns that the file has, and one of them is no UTF-8."""
    for task in small_table.scan().plan_files():
        path = local_path(task.file.file_path)
        path.write_bytes(path.read_bytes().replace(b"\x04name", b"\x04\xffame"))
    found = icestats.load(small_table.metadata_location).estimate("name >= 'a'", engines=["duckdb"])
    assert found["data-files"].rows is not None
    assert found["duckdb"].reason.startswith("DuckDB cannot plan it: ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("http://127.0.0.1:9/a.parquet", "names a file on http, which is not opened"), ("{}/*.parquet", "No files found")],
)
def test_duckdb_looks_for_no_file_elsewhere_and_in_no_folder(name, reason, small_table, monkeypatch, tmp_path):
    """It would ask any host where it has its extension for that, and go through all folders for a pattern."""
    named = name.format(local_path(data_file_of(small_table)).parent)
    monkeypatch.setattr(Plan, "kept_file_paths", lambda _: [named])
    monkeypatch.setattr(engines, "check_footers", lambda *_: None)
    found = icestats.load(small_table.metadata_location).estimate("id >= 0", sources=["table"], engines=["duckdb"])
    assert reason in found["duckdb"].reason


def test_duckdb_makes_no_room_for_what_a_footer_says_that_it_has(small_table):
    """A footer of a hundred bytes that said it had a hundred million row groups took 9 GB."""
    path = data_file_of(small_table)
    damaged = build_empty_file([], 1).replace(b"\x09\x08\xfc\x00", b"\x09\x08\xfc\xff\xff\xff\xff\x07")
    footer = damaged[4:-8]
    local_path(path).write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    found = icestats.load(small_table.metadata_location).estimate("id >= 0", sources=["table"], engines=["duckdb"])
    assert found["duckdb"].reason.startswith(f"{path} at byte ")
    assert (
        "the Parquet footer cannot be read: a length of 2,147,483,647 where 1 bytes are left" in found["duckdb"].reason
    )


@pytest.mark.parametrize("part", ["manifest list", "manifest"])
def test_avro_blocks_that_pyiceberg_reads_do_not_inflate_without_end(part, small_table, load):
    snapshot = small_table.current_snapshot()
    manifests = snapshot.manifests(small_table.io)
    path = local_path(snapshot.manifest_list if part == "manifest list" else manifests[0].manifest_path)
    stored, body = path.read_bytes(), zlib.compress(bytes(80 << 20), wbits=-15)
    assert b"\x0edeflate" in stored
    sync = stored[-16:]
    data = stored[: stored.index(sync) + 16] + long(2) + long(len(body)) + body + sync
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


def test_what_a_catalog_says_is_metadata_has_the_same_limits(small_table, load):
    path = local_path(small_table.metadata_location)
    path.write_bytes(SECRET * 10)
    refused(load, "not a metadata.json: Expecting value: line 1")
    with pytest.raises(IcestatsError) as caught:
        load()
    assert not any(part in "".join(traceback.format_exception(caught.value)) for part in ("mallory", "hidden", ":x:"))
    with path.open("wb") as file:
        file.truncate(storage.MAX_FILE_SIZE_BYTES + 1)
    refused(load, "268,435,457 bytes to read, expected 268,435,456 at most")
    path.unlink()
    os.mkfifo(path)
    refused(load, "a pipe, expected a regular file")


def test_gzipped_metadata_of_a_catalog_does_not_inflate_without_end(small_table, catalog, load):
    stored = local_path(small_table.metadata_location)
    path = stored.with_name("1.gz.metadata.json")
    path.write_bytes(gzip.compress(stored.read_bytes()))
    catalog.drop_table("db.small")
    catalog.register_table("db.small", path.as_uri())
    assert load().manifest_files().num_rows == 2
    path.write_bytes(gzip.compress(bytes(80 << 20)))
    refused(load, "inflate to more than 67,108,864")


def test_metadata_that_is_gzipped_by_its_older_name_takes_a_commit(small_table, catalog, load):
    """Iceberg's Java library reads both names, PyIceberg one."""
    path = local_path(small_table.metadata_location)
    packed = path.rename(path.with_name("1.metadata.json.gz"))
    catalog.drop_table("db.small")
    catalog.register_table("db.small", packed.as_uri())
    packed.write_bytes(gzip.compress(packed.read_bytes()))
    assert load().compute(manifests=True).commit().committed


@pytest.mark.parametrize("place", ["file://[x/a.stats", "s3://[x/a.stats", "hdfs://[/a.stats", "https://[::1"])
def test_a_host_that_is_none_is_refused_in_one_line(place, document, changed, caplog):
    entry = {"snapshot-id": document["current-snapshot-id"], "file-size-in-bytes": 9, "file-footer-size-in-bytes": 9}
    document["statistics"] = [{**entry, "statistics-path": place, "blob-metadata": []}]
    table = icestats.load(changed())
    assert table.columns().num_rows == 4
    refused(table.sketches, place)
    refused(lambda: table.estimate_workload(n=1), "no column of")
    assert f"committed statistics are not used: {place}" in caplog.text
    refused(lambda: icestats.load(place))


@pytest.mark.parametrize("place", ["hdfs:///a.stats", "viewfs:///a.stats", "abfs:///a.stats"])
def test_a_place_without_a_host_takes_no_other_answer_with_it(place, document, changed, tmp_path):
    entry = {"snapshot-id": document["current-snapshot-id"], "file-size-in-bytes": 9, "file-footer-size-in-bytes": 9}
    document["statistics"] = [{**entry, "statistics-path": place, "blob-metadata": []}]
    table = icestats.load(changed())
    assert table.columns().num_rows == 4
    refused(table.sketches, place)
    document["snapshots"][-1]["manifest-list"] = place
    document["metadata-log"] = [{"metadata-file": place, "timestamp-ms": document["last-updated-ms"]}]
    document["location"] = tmp_path.parent.as_uri()
    document["properties"]["write.metadata.path"] = tmp_path.as_uri()
    (tmp_path / "orphan.stats").write_bytes(b"")
    # Older than the log's entry, which else is not read.
    os.utime(tmp_path / "orphan.stats", (0, 0))
    table = icestats.load(changed())
    refused(table.columns, place)
    refused(table.orphans, place)


def test_a_time_beyond_all_years_is_one_line(document, changed):
    document["last-updated-ms"] = 9 * 10**18
    refused(lambda: icestats.load(changed()).orphans(), "9e+18 where milliseconds since 1970 belong")


def test_a_spec_of_thousands_of_fields_of_one_column_is_planned(document, changed):
    fields = [
        {"source-id": 1, "field-id": 2_000 + i, "name": f"p{i}", "transform": f"truncate[{i + 1}]"}
        for i in range(3_000)
    ]
    document["partition-specs"].append({"spec-id": 1, "fields": fields})
    table = icestats.load(changed())
    assert table.plan("id = 1").partition_filters[1] == "true"


@pytest.mark.parametrize("transform", ["identity", "void"])
def test_a_partition_by_a_nested_column_is_of_no_known_type(transform, document, changed):
    nested = {"type": "list", "element-id": 99, "element": "int", "element-required": False}
    document["schemas"][-1]["fields"].append({"id": 98, "name": "tags", "type": nested, "required": False})
    for spec in document["partition-specs"]:
        spec["fields"].append({"source-id": 98, "field-id": 2_000, "name": "p", "transform": transform})
    table = icestats.load(changed())
    assert "unknown" in repr(table.estimate("id < 50"))
    assert table.estimate_groups(["id"])
    assert table.estimate_join(table, on="id")


def test_a_transform_that_pyiceberg_takes_for_another_is_one_line(document, changed):
    field = {"source-id": 1, "field-id": 2_000, "name": "p", "transform": "bucketV2[4]"}
    document["partition-specs"].append({"spec-id": 1, "fields": [field]})
    table = icestats.load(changed())
    assert table.columns().num_rows == 4
    assert table.plan("id = 1").partition_filters[1] == "true"
    for ask in (lambda: table.estimate("id = 1", actual=True), table.orphans):
        refused(ask, "bucketV2[4]")


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


def test_what_pyiceberg_fails_on_is_one_line(document, changed):
    document["sort-orders"][0].update(fields=[None])
    table = icestats.load(changed())
    assert table.columns().num_rows == 4
    refused(table.orphans, "PyIceberg, which reads rows, cannot read")


def test_a_column_that_pyiceberg_leaves_out_is_not_scanned(document, changed):
    document["schemas"][0]["fields"][2].update(required="maybe")
    table = icestats.load(changed())
    refused(lambda: prepare_scan(table._source, table.snapshot, table.schema), "PyIceberg reads its schema otherwise")


def test_a_whole_file_has_a_limit(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(storage.MAX_FILE_SIZE_BYTES + 1)
    for location in (str(path), path.as_uri()):
        refused(lambda at=location: Storage().read(at), "268,435,457 bytes to read, expected 268,435,456 at most")
        assert Storage().read(location, 10, 3) == bytes(3)
    refused(lambda: icestats.load(str(path)), "at most")


@pytest.mark.parametrize("name", ["a" * 300 + "%20b", "%61" + "b" * 255])
def test_a_percent_encoded_name_that_is_too_long_is_refused(name, document, changed):
    document["snapshots"][-1]["manifest-list"] = f"file:///{name}"
    table = icestats.load(changed())
    refused(table.manifest_files, "cannot be read", "too long")
    refused(lambda: Storage().size(f"file:///{name}"), "cannot be read", "too long")
    check_local(f"file:///{name}")


def test_a_catalog_opens_no_metadata_but_what_was_looked_at(small_table, load, monkeypatch):
    """A SQL catalog opened it again, by itself: another file may lie there by then, or a pipe."""
    opened = []
    open_input = PyArrowFileIO.new_input

    def count(file_io, location):
        opened.append(location)
        return open_input(file_io, location)

    monkeypatch.setattr(PyArrowFileIO, "new_input", count)
    location = load()._source.metadata_location
    assert opened == [location]


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


def test_no_error_shows_what_a_file_begins_with(tmp_path, document, changed):
    secret = tmp_path / "place"
    secret.write_bytes(SECRET * 10)
    snapshot = document["snapshots"][-1]
    entry = {"snapshot-id": snapshot["snapshot-id"], "statistics-path": str(secret), "file-size-in-bytes": 170}
    document["statistics"] = [{**entry, "file-footer-size-in-bytes": 20, "blob-metadata": []}]
    document["partition-statistics"] = [{**entry, "statistics-path": str(secret)}]
    table = icestats.load(changed())
    snapshot["manifest-list"] = str(secret)
    listed = icestats.load(changed())
    for ask in (table.sketches, table.partition_statistics, listed.manifest_files, lambda: icestats.load(str(secret))):
        with pytest.raises(IcestatsError) as caught:
            ask()
        assert not any(part in str(caught.value) for part in ("mall", "hidden", ":x:", b"mall".hex()))


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


def test_what_a_commit_reads_is_no_pipe_either(small_table, load, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    small_table.append(numbers([1]))
    document = local_path(small_table.metadata_location)
    content = json.loads(document.read_bytes())
    entry = {"snapshot-id": content["current-snapshot-id"], "statistics-path": str(tmp_path / "pipe")}
    sizes = {"file-size-in-bytes": 9, "file-footer-size-in-bytes": 9, "blob-metadata": []}
    document.write_text(json.dumps({**content, "statistics": [{**entry, **sizes}]}))
    found = load().compute(manifests=True, table=False, partitions=False)
    with pytest.raises(MetadataError, match="a pipe, expected a regular file"):
        found.commit()
    assert isinstance(load().manifest_files(), pa.Table)


def long(number: int) -> bytes:
    out, left = b"", number << 1
    while left > 0x7F:
        out, left = out + bytes([left & 0x7F | 0x80]), left >> 7
    return out + bytes([left])


def container(schema: dict, body: bytes, count: int) -> bytes:
    """An Avro container of one block; `count` records."""
    text = json.dumps(schema).encode()
    head = long(1) + long(11) + b"avro.schema" + long(len(text)) + text + long(0)
    return b"Obj\x01" + head + bytes(16) + long(count) + long(len(body)) + body + bytes(16)


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
    body = long(1) + b"m" + long(1) + long(0) + begin + long(count) + bytes(count) + end
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
        long(1) + long(11) + b"avro.schema",
        long(2) + long(10) + b"avro.codec" + long(7) + b"deflate" + long(11) + b"avro.schema",
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
        return long(size) + bytes(size) + b"\0"

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
    body = b"".join(long(8) + path.encode() + long(i) + long(0) for i, path in enumerate(paths))
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
    body = b"".join(long(8) + path.encode() + long(i) + long(0) for i, path in enumerate(paths))
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
    body = 30 * (bytes(len(_ICEBERG)) + long(count) + bytes(2 * count) + b"\0")
    file = container({"type": "record", "name": "r", "fields": fields}, body, 30)
    tracemalloc.start()
    try:
        found = read_partition_statistics(file, "x.avro", (), (), {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.groups) == 30
    assert peak < 64 << 20


IMPOSSIBLE = {
    "a time beyond the year 9999": lambda d: d["snapshots"][0].update({"timestamp-ms": 2**62}),
    "an id of 65 bits": lambda d: d["snapshots"][0].update({"sequence-number": 2**64}),
    "an id that is no number": lambda d: d["refs"].update(b={"snapshot-id": "x", "type": "tag"}),
    "an endless number": lambda d: d["snapshots"][0].update({"sequence-number": float("inf")}),
    "half a character": lambda d: d["properties"].update(a="\ud800"),
    "an unknown type": lambda d: d["schemas"][0]["fields"][0].update(type="truncate[0]"),
    "a transform by 0": lambda d: d["partition-specs"][0]["fields"][1].update(transform="bucket[0]"),
    "digits beyond a decimal's": lambda d: d["schemas"][0]["fields"][0].update(type="decimal(99,2)"),
    "a negative width": lambda d: d["partition-specs"][0]["fields"][1].update(transform="truncate[-1]"),
    "an hour of text": lambda d: d["partition-specs"][0]["fields"][1].update(transform="hour"),
    "more digits after the point than there are": lambda d: d["schemas"][0]["fields"][0].update(type="decimal(5,9)"),
    "values without bytes": lambda d: d["schemas"][0]["fields"][0].update(type="fixed[0]"),
    "values of a gigabyte": lambda d: d["schemas"][0]["fields"][0].update(type="fixed[1000000000]"),
    "fields by name": lambda d: d["schemas"][0].update(fields={}),
    "a partition field twice": lambda d: d["partition-specs"][0]["fields"].append(d["partition-specs"][0]["fields"][0]),
    "two partition fields of a name": lambda d: d["partition-specs"][0]["fields"].append(
        {**d["partition-specs"][0]["fields"][0], "field-id": 1999}
    ),
    "a view": lambda d: d.update({"view-uuid": d["table-uuid"]}),
    "a main branch without a current snapshot": lambda d: d.pop("current-snapshot-id"),
    "a main branch of another snapshot": lambda d: d.update({"current-snapshot-id": d["snapshots"][0]["snapshot-id"]}),
    "two columns of an id": lambda d: d["schemas"][0]["fields"][2].update(id=1),
    "a spec that is not there": lambda d: d.update({"default-spec-id": 77}),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_impossible_values_are_refused_when_the_metadata_is_read(what, document, changed):
    IMPOSSIBLE[what](document)
    with pytest.raises(MetadataError, match="metadata") as caught:
        icestats.load(changed())
    assert "\n" not in str(caught.value)


def test_counts_of_any_length_in_properties_are_unknown(document, changed):
    for snapshot in document["snapshots"]:
        snapshot["summary"] |= {"total-files-size": "9" * 5_000, "added-data-files": "9" * 5_000}
    table = icestats.load(changed())
    assert table.overview().file_size_in_bytes is None
    assert "unknown" in repr(table)


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


def test_spark_reads_no_pipe(small_table):
    data_file = data_file_of(small_table)
    local_path(data_file).unlink()
    os.mkfifo(local_path(data_file))
    source = icestats.load(small_table.metadata_location)._source
    version = Version(source.metadata.current_snapshot_id, "", is_snapshot=True, takes_filters=True)
    refused(
        lambda: ExitStack().enter_context(open_in_spark(None, source, "", version)),
        data_file,
        "a pipe, expected a regular file",
    )
