"""A table on an S3-compatible server is read as PyIceberg reads it, and its statistics are committed there."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import datasketches
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

import icestats
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.commit.table_state import TableFiles
from icestats.iceberg.catalog import load_iceberg_table
from icestats.iceberg.metadata import StatisticsFile
from tests.s3_server import run_s3

pytestmark = pytest.mark.usefixtures("no_cache")

COMMITS = 6
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "price", DoubleType(), required=False),
    NestedField(3, "name", StringType(), required=False),
)
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with run_s3() as url:
        yield url


def file_io(endpoint: str) -> dict[str, str]:
    keys = {"s3.access-key-id": "any", "s3.secret-access-key": "any", "s3.region": "us-east-1"}
    return {"s3.endpoint": endpoint, **keys, "s3.connect-timeout": "2", "s3.request-timeout": "20"}


@pytest.fixture(scope="module")
def properties(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The catalog of a table that PyIceberg wrote to the server: six commits, partitioned by name."""
    folder = tmp_path_factory.mktemp("catalog")
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": "s3://bucket/warehouse"}
    settings |= file_io(endpoint)
    with SqlCatalog("catalog", **settings) as catalog:
        catalog.create_namespace("db")
        spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "name"))
        table = catalog.create_table("db.t", SCHEMA, partition_spec=spec)
        for commit in range(COMMITS):
            ids = range(10 * commit, 10 * commit + 10)
            prices = [None if i % 7 == 0 else float("nan") if i % 5 == 0 else -i / 4 for i in ids]
            names = [None if i % 10 == 9 else f"n{i % 3}" for i in ids]
            table.append(pa.table({"id": pa.array(ids, pa.int64()), "price": prices, "name": names}))
    return settings


@pytest.fixture
def table(properties: dict[str, str]) -> icestats.Table:
    return icestats.load("db.t", catalog=properties)


@pytest.fixture
def theirs(table: icestats.Table) -> Any:
    """The same table as PyIceberg has it."""
    return load_iceberg_table(table._source)


def test_manifests_equal_pyicebergs(table, theirs):
    names = {"path": "manifest_path", "length": "manifest_length", "added_data_files_count": "added_files_count"}
    expected = theirs.inspect.manifests().to_pylist()
    found = table.manifests().to_pylist()
    assert len(found) == COMMITS
    for mine, own in zip(found, expected, strict=True):
        assert {name: mine[names.get(name, name)] for name in (*names, "added_snapshot_id")} == {
            name: own[name] for name in (*names, "added_snapshot_id")
        }
    assert [row["total_record_count"] for row in found] == [10] * COMMITS


def test_files_equal_pyicebergs(table, theirs):
    expected = {row["file_path"]: row for row in theirs.inspect.files().to_pylist()}
    found = {row["file_path"]: row for row in table.files(columns=["id", "price", "name"]).to_pylist()}
    assert found.keys() == expected.keys()
    for path, mine in found.items():
        own = expected[path]
        for name in ("record_count", "file_size_in_bytes", "file_format", "partition"):
            assert mine[name] == own[name], name
        for name in MAPS:
            assert sorted(mine[name]) == sorted(own[name] or []), name


def test_partitions_equal_pyicebergs(table, theirs):
    expected = {row["partition"]["name"]: row for row in theirs.inspect.partitions().to_pylist()}
    found = {row["partition"]["name"]: row for row in table.partitions().to_pylist()}
    assert found.keys() == expected.keys() == {None, "n0", "n1", "n2"}
    for name, mine in found.items():
        own = expected[name]
        assert mine["data_record_count"] == own["record_count"]
        assert mine["data_file_count"] == own["file_count"]
        assert mine["total_data_file_size_in_bytes"] == own["total_data_file_size_in_bytes"]
        assert mine["last_updated_snapshot_id"] == own["last_updated_snapshot_id"]


def test_columns_equal_the_sums_over_pyicebergs_files(table, theirs):
    """A statistic is the sum over the files, and unknown where a file lacks it, as PyIceberg's lack NaN counts."""
    files = theirs.inspect.files().to_pylist()
    for row in table.columns().to_pylist():
        for name in MAPS[: 4 if row["type"] == "double" else 3]:
            known = [dict(file[name])[row["field_id"]] for file in files if row["field_id"] in dict(file[name] or [])]
            expected = sum(known) if len(known) == len(files) else None
            assert row[name[:-1]] == expected, (row["name"], name)
            assert dict(row["missing_files"]).get(name[:-1], 0) == len(files) - len(known)
    by_name = {row["name"]: row for row in table.columns().to_pylist()}
    assert by_name["id"]["lower_bound"] == bytes(8)
    assert by_name["id"]["upper_bound"] == (10 * COMMITS - 1).to_bytes(8, "little")


def test_manifests_are_read_while_others_are_on_their_way(endpoint, table):
    """Six reads are under way at one time, more than this machine has threads that decode."""
    assert table.manifest_files().num_rows == COMMITS
    gate(endpoint, COMMITS)
    try:
        assert table.columns().num_rows == 3
    finally:
        most = gate(endpoint, 0)
    assert most == COMMITS


def gate(endpoint: str, wanted: int) -> int:
    with urllib.request.urlopen(f"{endpoint}/gate/{wanted}") as answer:
        return int(answer.read())


def test_a_location_is_read_with_the_properties_that_are_given(endpoint, table, properties):
    """A bare metadata.json opens with FileIO properties alone, or with those of a whole catalog."""
    location = table._source.metadata_location
    assert location.startswith("s3://bucket/")
    for given in (file_io(endpoint), properties):
        bare = icestats.load(location, catalog=given)
        assert bare.manifests().equals(table.manifests())
        assert bare.columns().equals(table.columns())
        assert bare.refresh().snapshot == table.snapshot
        assert bare.files(row_filter="name = 'n1'").num_rows == COMMITS


def test_a_location_is_read_with_a_configured_catalogs_properties(table, properties, tmp_path, monkeypatch):
    lines = [f"    {name}: {value}" for name, value in properties.items()]
    (tmp_path / ".pyiceberg.yaml").write_text("\n".join(["catalog:", "  remote:", *lines]))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    location = table._source.metadata_location
    assert icestats.load(location, catalog="remote").columns().equals(table.columns())
    with pytest.raises(icestats.CatalogError, match=r"no catalog 'other': PyIceberg's configuration has .*remote"):
        icestats.load(location, catalog="other")


def test_statistics_are_committed_to_the_server(table, theirs):
    """The file lies beside the metadata, PyIceberg reads it, and so does this."""
    snapshot = theirs.current_snapshot()
    theta, kll = datasketches.update_theta_sketch(), datasketches.kll_doubles_sketch(200)
    for value in range(10 * COMMITS):
        theta.update(value)
        kll.update(float(value))
    kinds = {
        "apache-datasketches-theta-v1": (theta.compact().serialize(), {"ndv": "60"}),
        "apache-datasketches-kll-v1": (kll.serialize(), {"k": "200"}),
    }
    blobs = [
        NewBlob(kind, (1,), snapshot.snapshot_id, snapshot.sequence_number, data, more)
        for kind, (data, more) in kinds.items()
    ]
    result = commit_statistics(prepare_commit(theirs, blobs))
    assert result.statistics_path.startswith("s3://bucket/warehouse/")
    own = load_iceberg_table(table._source)
    (entry,) = own.metadata.statistics
    data = own.io.new_input(entry.statistics_path).open().read()
    assert entry.file_size_in_bytes == len(data)
    assert [blob.type for blob in PuffinFile(data).footer.blobs] == list(kinds)
    found = table.refresh().sketches().to_pylist()
    assert [(row["type"], row["columns"], row["ndv"], row["listed"]) for row in found] == [
        ("apache-datasketches-theta-v1", ["id"], 60, True),
        ("apache-datasketches-kll-v1", ["id"], None, False),
    ]
    assert {row["statistics_path"] for row in found} == {result.statistics_path}
    assert table.refresh().orphans().num_rows == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_what_cannot_be_had_is_said_in_one_line(endpoint, table, theirs):
    """A wrong endpoint, a missing bucket, key or manifest: the file, and why, in bounded time."""
    location = table._source.metadata_location
    nobody = f"http://127.0.0.1:{free_port()}"
    cases = [
        (location, nobody, "cannot be read: "),
        ("s3://bucket/none.metadata.json", endpoint, "no such file"),
        ("s3://none/none.metadata.json", endpoint, ""),
    ]
    for where, server, said in cases:
        started = time.monotonic()
        with pytest.raises(icestats.MetadataError) as caught:
            icestats.load(where, catalog=file_io(server))
        assert str(caught.value).startswith(f"{where}: {said}")
        assert "\n" not in str(caught.value)
        assert caught.value.path == where
        assert time.monotonic() - started < 60
    gone = table.manifest_files()["manifest_path"][2].as_py()
    data = theirs.io.new_input(gone).open().read()
    theirs.io.delete(gone)
    try:
        with pytest.raises(icestats.MetadataError) as caught:
            table.columns()
        assert str(caught.value) == f"{gone}: no such file"
    finally:
        with theirs.io.new_output(gone).create() as stream:
            stream.write(data)


@pytest.mark.parametrize("place", ["s3://bucket/warehouse", "s3://bucket", "s3://"])
def test_a_folder_in_the_place_of_statistics_takes_no_other_answer_with_it(table, place, caplog):
    """Arrow knows no length of a folder, which Python says as a TypeError."""
    file = StatisticsFile(table.snapshot.snapshot_id, place, 100, 50, ())
    source = replace(table._source, metadata=replace(table.metadata, statistics=(file,)))
    assert icestats.Table(source).columns().num_rows == 3
    said = f"{place}: a folder, expected a regular file"
    assert said in caplog.text
    with pytest.raises(icestats.MetadataError, match=said):
        TableFiles(load_iceberg_table(source).io).size(place)
