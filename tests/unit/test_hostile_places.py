"""What a table's metadata points to is read only where it is a regular file of this table, and never shown."""

from __future__ import annotations

import gzip
import json
import os
import socket
import traceback
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

import icestats
from icestats.errors import IcestatsError, MetadataError
from icestats.estimation import engines
from icestats.iceberg import storage
from icestats.iceberg.storage import Storage, check_local, local_path
from icestats.scan.scan_job import Sizes
from icestats.scan.scan_plan import prepare_scan, scan_here
from icestats.snapshot.pruning.plan import Plan
from icestats.spark.spark_scan import open_in_spark
from icestats.spark.versions import Version
from tests.added_rows import numbers
from tests.parquet_footers import build_empty_file
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("no_cache")
SECRET = b"mallory:x:0:0:hidden"


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
