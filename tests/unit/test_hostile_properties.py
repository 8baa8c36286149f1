"""What stands in a table chooses neither code nor endpoints nor credentials, and no files but those of the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner
from pyiceberg.io.pyarrow import PyArrowFileIO

import icestats
from icestats import writers
from icestats.cli.command_line import cli
from icestats.commit.table_state import find_refusal
from icestats.iceberg.catalog import load_iceberg_table, open_source
from icestats.iceberg.confined_io import ConfinedFileIO
from icestats.iceberg.foreign_catalog import ForeignCatalog
from icestats.iceberg.reach import check_reach
from icestats.iceberg.storage import local_path
from icestats.spark.session import spark_catalog_properties
from tests.rest_catalog import Rest, serve

pytestmark = pytest.mark.usefixtures("no_cache")

MARKS: list[Any] = []


class Mark:
    """A class that a table names; it leaves a mark where it is made an object of."""

    def __init__(self, *arguments: Any) -> None:
        MARKS.append(arguments)


CODE = dict.fromkeys(
    (
        "py-io-impl",
        "py-catalog-impl",
        "io-impl",
        "s3.retry-strategy-impl",
        "write.py-location-provider.impl",
        "write.location-provider.impl",
        "encryption.kms-impl",
    ),
    f"{__name__}.Mark",
)
ENDPOINTS = {
    "s3.endpoint": "http://127.0.0.1:9",
    "s3.proxy-uri": "http://127.0.0.1:9",
    "s3.signer.uri": "http://127.0.0.1:9",
    "s3.access-key-id": "theirs",
    "client.region": "theirs",
    "adls.account-host": "theirs",
    "gcs.service.host": "http://127.0.0.1:9",
    "hdfs.host": "theirs",
    "token": "theirs",
    "credential": "theirs",
    "uri": "http://127.0.0.1:9",
    "warehouse": "s3://theirs",
}

CALLS: dict[str, Callable[[icestats.Table], Any]] = {
    "estimate": lambda t: t.estimate("price < 3", actual=True),
    "workload": lambda t: t.estimate_workload(["price < 3"]),
    "join": lambda t: t.estimate_join(t, on="id", actual=True),
    "plan": lambda t: t.plan("price < 3", rows=True),
    "sql": lambda t: t.sql("from files"),
    "row groups": lambda t: t.row_groups(t.files()),
    "layout": lambda t: t.layout(),
    "orphans": lambda t: t.orphans(),
    "remove orphans": lambda t: t.remove_orphans(),
    "manifests": lambda t: t.compute(manifests=True),
    "partitions": lambda t: t.compute(partitions=True),
    "refresh": lambda t: t.refresh().manifests(),
}


@pytest.fixture(autouse=True)
def no_marks() -> Iterator[None]:
    MARKS.clear()
    yield
    assert MARKS == []


@pytest.fixture
def rewrite(small_table: Any) -> Callable[..., Path]:
    """Give a function that changes what stands in the table's metadata.json, and returns its path."""
    path = local_path(small_table.metadata_location)
    assert path is not None

    def rewrite(properties: dict[str, str], **members: Any) -> Path:
        document = json.loads(path.read_text())
        document["properties"] |= properties
        path.write_text(json.dumps(document | members))
        return path

    return rewrite


@pytest.mark.parametrize("by", ["location", "catalog"])
def test_no_answer_runs_code_of_a_table(rewrite, load, by):
    path = rewrite(CODE | ENDPOINTS)
    for name, call in CALLS.items():
        call(icestats.load(str(path)) if by == "location" else load())
        assert MARKS == [], name


@pytest.mark.parametrize(
    "verb",
    [
        ("estimate", "price < 3", "--actual"),
        ("orphans",),
        ("show",),
        ("plan", "price < 3"),
        ("columns",),
    ],
    ids=lambda verb: verb[0],
)
def test_no_verb_runs_code_of_a_table(rewrite, verb):
    path = rewrite(CODE | ENDPOINTS)
    answer = CliRunner().invoke(cli, [verb[0], str(path), *verb[1:]])
    assert answer.exit_code == 0, answer.output


def test_a_command_in_a_table_is_not_run(rewrite, tmp_path):
    mark = tmp_path / "mark"
    path = rewrite({"py-io-impl": "subprocess.Popen"})
    table = icestats.load(str(path), catalog={"touch": "", str(mark): ""})
    table.estimate("price < 3", actual=True)
    table.orphans()
    assert not mark.exists()


@pytest.mark.parametrize("by", ["location", "catalog"])
def test_file_io_is_of_the_users_properties_alone(rewrite, catalog_properties, by):
    path = rewrite(CODE | ENDPOINTS)
    own = {"s3.endpoint": "http://localhost:1"}
    source = open_source(str(path), own) if by == "location" else open_source("db.small", catalog_properties | own)
    for properties in (load_iceberg_table(source).io.properties, source.storage.properties):
        assert properties["s3.endpoint"] == own["s3.endpoint"]
        assert "theirs" not in properties.values()
        assert properties.get("uri") == (None if by == "location" else catalog_properties["uri"])


@pytest.mark.parametrize("part", ["defaults", "overrides"])
@pytest.mark.parametrize(
    "named",
    [
        {"py-io-impl": f"{__name__}.Mark"},
        {"auth": {"type": "custom", "impl": f"{__name__}.Mark", "custom": {}}},
        {"auth": {"type": f"{__name__}.Mark"}},
        {"rest.sigv4-enabled": "true"},
        {"ssl": "theirs"},
    ],
    ids=["FileIO", "auth", "type of auth", "AWS", "certificate"],
)
def test_a_server_names_no_class_to_run_and_no_other_way_to_sign_in(catalog, part, named):
    catalog.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2, 3]}))
    with serve(catalog, **{part: {**named, "s3.region": "theirs"}}) as uri:
        table = icestats.load("db.t", catalog={"type": "rest", "uri": uri, "s3.endpoint": "mine"})
        assert table.estimate("id = 1", actual=True).actual == 1
    assert table._source.storage.properties["s3.region"] == "theirs"


def test_a_table_of_which_a_server_does_not_say_where_it_is_is_refused(small_table, monkeypatch):
    """Its metadata could name any file."""
    small_table.catalog.rename_table("db.small", "db.t")
    told = Rest.answer_table
    with serve(small_table.catalog) as uri:
        known = {"type": "rest", "uri": uri}
        statistics = icestats.load("db.t", catalog=known).compute(manifests=True)
        monkeypatch.setattr(Rest, "answer_table", lambda request, metadata, _: told(request, metadata, None))
        for call in (statistics.commit, lambda: icestats.load("db.t", catalog=known)):
            with pytest.raises(icestats.MetadataError, match=r"db\.t: the catalog does not say where the metadata is"):
                call()


def test_the_users_configuration_names_how_to_ask_a_server(catalog, tmp_path, monkeypatch):
    """What is nested there is PyIceberg's to read; a server changes none of it."""
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    with serve(catalog, overrides={"auth": {"type": f"{__name__}.Mark"}}) as uri:
        known = {
            "lake": {"type": "rest", "uri": uri, "auth": {"type": "basic", "basic": {"username": "", "password": ""}}}
        }
        (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": known}))
        monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
        assert icestats.load("lake.db.t").snapshot is None
        table = icestats.load("db.t", catalog=known["lake"])
        assert table.refresh().snapshot is None
        assert "auth" not in table._source.storage.properties
        assert "auth" not in spark_catalog_properties(table._source.catalog_properties)


class _Requests(BaseHTTPRequestHandler):
    """An S3 server that has nothing, and keeps what it was asked."""

    seen: list[str]

    def answer(self) -> None:
        self.seen.append(self.path)
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = answer  # noqa: N815 - the base class's names

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def endpoints() -> Iterator[list[tuple[str, list[str]]]]:
    """Give two servers, each with what it has been asked."""
    servers = []
    for _ in range(2):
        handler = type("Handler", (_Requests,), {"seen": []})
        server = HTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append((server, handler.seen))
    yield [(f"http://127.0.0.1:{server.server_port}", seen) for server, seen in servers]
    for server, _ in servers:
        server.shutdown()
        server.server_close()


def test_requests_go_to_the_users_endpoint(rewrite, endpoints):
    """The table's own would get them signed with the user's keys."""
    (mine, asked_of_mine), (theirs, asked_of_theirs) = endpoints
    path = rewrite({"s3.endpoint": theirs, "s3.region": "us-east-1"})
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.region": "us-east-1", "s3.endpoint": mine}
    source = open_source(str(path), keys)
    io = load_iceberg_table(source).io
    with pytest.raises(OSError, match=r"(?i)not found|not exist|404|HEAD"):
        io.new_input("s3://bucket/t/data/a.parquet").open()
    with pytest.raises(icestats.MetadataError):
        source.storage.read("s3://bucket/t/metadata/m0.avro")
    assert len(asked_of_mine) >= 2
    assert asked_of_theirs == []


def test_a_commit_runs_no_code_of_a_table(rewrite, load):
    rewrite({"py-io-impl": f"{__name__}.Mark"} | ENDPOINTS)
    load().compute(manifests=True).commit()
    rows = load_iceberg_table(load()._source).scan().to_arrow()
    assert writers.append(load(), rows).statistics is not None
    assert load().manifests()["added_files_count"].length() > 2


def test_a_table_that_names_code_for_writers_is_not_written(rewrite, load):
    rows = load_iceberg_table(load()._source).scan().to_arrow()
    path = rewrite({"write.py-location-provider.impl": f"{__name__}.Mark"})
    before = sorted(path.parent.parent.rglob("*"))
    with pytest.raises(icestats.CommitError, match=r"names code to run in its property write\.py-location-provider"):
        load().compute(manifests=True).commit()
    for write in (lambda t: writers.append(t, rows), lambda t: writers.overwrite(t, rows)):
        with pytest.raises(icestats.CommitError, match="names code to run"):
            write(load())
    assert sorted(path.parent.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.page-row-limit", "0"),
        ("write.parquet.page-row-limit", " -1 "),
        ("write.parquet.row-group-limit", "1"),
        ("write.target-file-size-bytes", "-5"),
        ("write.target-file-size-bytes", "soon"),
    ],
)
def test_a_table_whose_rows_would_be_written_in_no_end_of_parts_is_not_written(name, value, rewrite, load):
    """Arrow went on without end over pages of no rows, and ended the process over pages of fewer."""
    rows = load_iceberg_table(load()._source).scan().to_arrow()
    folder = rewrite({name: value}).parent.parent
    before = sorted(folder.rglob("*"))
    for write in (lambda t: writers.append(t, rows), lambda t: writers.overwrite(t, rows)):
        with pytest.raises(icestats.CommitError, match=name):
            write(load())
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("value", ["soon", "1e9", "9" * 5_000])
@pytest.mark.parametrize("name", ["num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms"])
def test_a_table_whose_commits_wait_for_no_number_is_refused_before_anything_is_written(name, value, rewrite, load):
    folder = rewrite({f"commit.retry.{name}": value}).parent
    before = set(folder.iterdir())
    statistics = load().compute(partitions=True, manifests=True)
    with pytest.raises(icestats.CommitError, match=name):
        statistics.commit()
    with pytest.raises(icestats.CommitError, match=name):
        load().check_commit()
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("waits", "is_long"),
    [
        ({"min-wait-ms": "1" + "0" * 12, "max-wait-ms": "1" + "0" * 12}, True),
        ({"num-retries": "1000000", "max-wait-ms": "9" * 18, "total-timeout-ms": "1"}, True),
        ({"num-retries": "1000000", "total-timeout-ms": "9" * 18}, True),
        ({"num-retries": "0", "min-wait-ms": "9" * 18, "max-wait-ms": "9" * 18}, False),
        ({"num-retries": "1000000", "max-wait-ms": "600000"}, False),
        ({"max-wait-ms": "9" * 18, "total-timeout-ms": "9" * 18}, False),
    ],
)
def test_a_table_whose_writes_would_wait_for_days_is_not_written(waits, is_long, rewrite, load):
    """A write that met another slept for 31 years, as PyIceberg and Java do what the table's properties say."""
    rows = load_iceberg_table(load()._source).scan().to_arrow()
    folder = rewrite({f"commit.retry.{name}": value for name, value in waits.items()}).parent.parent
    # The kit's own commits wait for a bounded time.
    assert load().compute(manifests=True).commit().committed
    before = sorted(folder.rglob("*"))
    if not is_long:
        assert writers.append(load(), rows).snapshot_id is not None
        return
    for write in (
        lambda t: writers.append(t, rows),
        lambda t: writers.overwrite(t, rows),
        lambda t: t.rewrite_manifests(dry_run=False),
    ):
        with pytest.raises(icestats.CommitError, match="would have a write wait for days"):
            write(load())
    assert sorted(folder.rglob("*")) == before


UNKNOWN = {"source-id": 1, "transform": "zorder[3]", "direction": "asc", "null-order": "nulls-first"}
GONE = UNKNOWN | {"source-id": 99, "transform": "identity"}
SPEC = {"spec-id": 7, "fields": [{"source-id": 1, "field-id": 1700, "name": "z", "transform": "zorder[3]"}]}


@pytest.mark.parametrize(
    ("properties", "change", "said"),
    [
        ({"write.metadata.previous-versions-max": "many"}, lambda _: {}, "many"),
        ({"write.object-storage.enabled": "maybe"}, lambda _: {}, "maybe"),
        ({}, lambda old: {"partition-specs": [*old["partition-specs"], SPEC]}, "zorder.*would not keep"),
        ({}, lambda old: {"sort-orders": [*old["sort-orders"], {"order-id": 7, "fields": [UNKNOWN]}]}, "not keep"),
        ({}, lambda _: {"sort-orders": [{"order-id": 7, "fields": [GONE]}], "default-sort-order-id": 7}, "column"),
    ],
)
def test_what_pyiceberg_cannot_write_again_is_refused_before_anything_is_written(
    properties, change, said, small_table, rewrite, load
):
    """It fails over some while it commits, and writes transforms that it does not know as "unknown"."""
    old = json.loads(local_path(small_table.metadata_location).read_text())
    folder = rewrite(properties, **change(old)).parent
    before = set(folder.rglob("*"))
    statistics = load().compute(manifests=True)
    rows = pa.table({"id": [1]})
    assert "cannot be committed" in str(statistics.commit(dry_run=True))
    for call in (lambda: load().check_commit(), statistics.commit, lambda: writers.append(load(), rows)):
        with pytest.raises(icestats.CommitError, match=f"takes no commit of PyIceberg: .*{said}"):
            call()
    assert set(folder.rglob("*")) == before


def test_a_property_that_is_no_boolean_is_not_shown_by_a_warning_of_pyiceberg(rewrite, load, recwarn):
    rewrite({"write.metadata.delete-after-commit.enabled": "\x1b]0;name\x07"})
    assert load().compute(manifests=True).commit().committed
    assert not [one for one in recwarn if "delete-after-commit" in str(one.message)]


def test_a_table_that_names_code_between_loading_and_committing_is_not_written(rewrite, load):
    statistics = load().compute(manifests=True)
    rewrite({"write.py-location-provider.impl": f"{__name__}.Mark"})
    with pytest.raises(icestats.CommitError, match="names code to run"):
        statistics.commit()


def test_a_table_without_a_uuid_takes_a_commit(catalog, load):
    """Format version 1 asks for none. PyIceberg makes one up at each reading: it was another table each time."""
    table = catalog.create_table("db.old", schema=pa.schema([("id", pa.int64())]), properties={"format-version": "1"})
    table.append(pa.table({"id": [1]}))
    path = local_path(table.metadata_location)
    document = json.loads(path.read_text())
    del document["table-uuid"]
    path.write_text(json.dumps(document))
    assert load("db.old").compute(manifests=True).commit().committed
    assert load("db.old").orphans().num_rows == 0


@pytest.mark.parametrize("location", ["C:\\data", "/data\0"])
def test_an_odd_location_has_no_orphans(location, rewrite, load):
    rewrite({}, location=location)
    assert load().orphans().num_rows == 0


@pytest.mark.parametrize("named", ["{}", "file://{}/new?/../../../../../../../..{}/metadata"])
def test_statistics_are_written_below_the_table_alone(named, small_table, rewrite, load, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    rewrite({"write.metadata.path": named.format(elsewhere, local_path(small_table.location()))})
    with pytest.raises(icestats.CommitError, match=r"write\.metadata\.path, which is not where its metadata\.json is"):
        load().compute(manifests=True).commit()
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "place", ["s3://stranger/data", "gs://stranger/data", "abfss://box@stranger.dfs.core.windows.net/"]
)
def test_rows_of_a_local_table_are_not_sent_to_a_storage_that_it_names(place, small_table, rewrite, load):
    """The user's own keys would open it."""
    rows, count = small_table.scan().to_arrow(), len(small_table.snapshots())
    rewrite({"write.data.path": place})
    for write in (writers.append, writers.overwrite):
        with pytest.raises(
            icestats.IcestatsError, match=r"is local and names a place on .* to write to|is not where the"
        ):
            write(load(), rows)
    assert len(small_table.refresh().snapshots()) == count


@pytest.mark.parametrize("properties", [{}, {"write.metadata.path": "file://{}/theirs/metadata"}])
def test_a_location_elsewhere_moves_no_metadata_there(properties, rewrite, load, tmp_path):
    """The next commit would take that folder for the table's own, and delete what a metadata log names there."""
    folder = tmp_path / "theirs" / "metadata"
    folder.mkdir(parents=True)
    theirs = folder / "live.stats"
    theirs.write_bytes(b"another table's")
    location = tmp_path if properties else tmp_path / "theirs"
    rewrite({name: said.format(tmp_path) for name, said in properties.items()}, location=f"file://{location}")
    assert load().orphans().num_rows == 0
    with pytest.raises(icestats.CommitError, match=r"by its location or .*, which is not where its metadata\.json is"):
        load().compute(manifests=True).commit()
    assert list(folder.iterdir()) == [theirs]


def test_an_encoded_slash_leads_nowhere_else(small_table, rewrite, load):
    """FileIO takes `a%2fb` for one folder; as two, the way back from it ended in the table."""
    base = local_path(small_table.location())
    (base / "a%2fb").mkdir()
    elsewhere = base.parent / "elsewhere"
    elsewhere.mkdir()
    theirs = elsewhere / "old.stats"
    theirs.write_bytes(b"another table's")
    rewrite({"write.metadata.path": f"file://{base}/a%2fb/../../elsewhere"})
    assert load().orphans().num_rows == 0
    with pytest.raises(icestats.CommitError, match=r"write\.metadata\.path, which is not where its metadata\.json is"):
        load().compute(manifests=True).commit()
    assert list(elsewhere.iterdir()) == [theirs]


def test_a_file_beside_the_metadata_is_so_as_it_is_named(small_table):
    home = small_table.metadata_location
    folder = local_path(home).parent
    treasure = folder.parent / "treasure.stats"
    treasure.write_bytes(b"")
    (folder / "a%2fb").mkdir()
    up = "/.." * 20
    (folder / "link").symlink_to(folder)
    for named in (
        f"file://{folder}/a%2fb/../../treasure.stats",
        f"file://..{folder}/treasure.stats",
        f"file://{treasure}?{up}{folder}/a.stats",
        f"file://{treasure}#{up}{folder}/a.stats",
        f"file://{folder}/link/../treasure.stats",
    ):
        with pytest.raises(PermissionError, match="is not deleted"):
            ConfinedFileIO(PyArrowFileIO(), home).delete(named)
    assert treasure.exists()


@pytest.mark.parametrize("named", ["{}", "file://{}?/../../../../../../../../..{}/a.json"])
def test_a_commit_deletes_no_file_that_a_metadata_log_names_elsewhere(named, small_table, rewrite, load, tmp_path):
    treasure = tmp_path / "treasure.metadata.json"
    treasure.write_text("{}")
    named = named.format(treasure, local_path(small_table.metadata_location).parent)
    log = [{"metadata-file": named, "timestamp-ms": 1}] * 3
    more = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    rewrite(more, **{"metadata-log": log})
    load().compute(manifests=True).commit()
    assert treasure.exists()


def test_a_commit_deletes_nothing_beside_the_metadata_but_versions_of_it(rewrite, load, caplog):
    more = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    folder = rewrite(more).parent
    treasure = folder / "treasure.txt"
    treasure.write_text("mine")
    log = [treasure, *(folder / f"{place}.metadata.json" for place in range(1_500))]
    rewrite({}, **{"metadata-log": [{"metadata-file": f"file://{path}", "timestamp-ms": 1} for path in log]})
    load().compute(manifests=True).commit()
    assert treasure.exists()
    assert sum("Failed to delete metadata file" in message for message in caplog.messages) == 1_000


@pytest.mark.parametrize(("said", "is_deleted"), [("TRUE", True), ("yes", False), ("1", False)])
def test_earlier_metadata_is_deleted_where_java_deletes_it(rewrite, load, said, is_deleted):
    folder = rewrite({}).parent
    earlier = folder / "earlier.metadata.json"
    earlier.write_text("{}")
    more = {"write.metadata.delete-after-commit.enabled": said, "write.metadata.previous-versions-max": "1"}
    rewrite(more, **{"metadata-log": [{"metadata-file": f"file://{earlier}", "timestamp-ms": 1}]})
    load().compute(manifests=True).commit()
    assert earlier.exists() is not is_deleted


def test_what_pyiceberg_logs_of_metadata_that_is_left_has_no_escape_sequences(rewrite, load, caplog):
    hostile = "file:///elsewhere/\x1b]0;name\x07\u202e\n"
    log = [{"metadata-file": f"{hostile}{place}.metadata.json", "timestamp-ms": 1} for place in range(2)]
    more = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    rewrite(more, **{"metadata-log": log})
    load().compute(manifests=True).commit()
    said = [message for message in caplog.messages if "Failed to delete metadata file" in message]
    assert len(said) == 2
    assert all(message.isprintable() for message in said)


@pytest.mark.parametrize(
    "location",
    [
        "file://{}/pipe#a",
        "file://{}/pipe?a",
        "\tfile://{}/pipe",
        " file://{}/pipe",
        "fi\nle://{}/pipe",
        " hdfs://theirs/a",
    ],
)
def test_what_pyiceberg_would_open_in_another_place_is_refused(location, small_table, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(icestats.MetadataError, match="another file would be opened"):
        ConfinedFileIO(PyArrowFileIO(), small_table.metadata_location).new_input(location.format(tmp_path))


@pytest.mark.parametrize("what", ["deletes", "writes"])
def test_spark_commits_nothing_where_it_would_write_or_delete_elsewhere(what, rewrite, load, tmp_path):
    elsewhere = str(tmp_path / "treasure.metadata.json")
    if what == "writes":
        rewrite({"write.metadata.path": elsewhere})
    else:
        log = [{"metadata-file": elsewhere, "timestamp-ms": 1}]
        rewrite({"write.metadata.delete-after-commit.enabled": "true"}, **{"metadata-log": log})
    with pytest.raises(icestats.CommitError, match=r"treasure\.metadata\.json.*nothing is committed"):
        load().rewrite_manifests(dry_run=False)


def test_where_spark_would_delete_elsewhere_a_commit_is_refused_before_the_scan(rewrite, load, tmp_path):
    log = [{"metadata-file": str(tmp_path / "treasure.metadata.json"), "timestamp-ms": 1}]
    rewrite({"write.metadata.delete-after-commit.enabled": "true"}, **{"metadata-log": log})
    table = load_iceberg_table(load()._source)
    assert find_refusal(table) is None
    table.catalog = ForeignCatalog("session")
    assert "Spark would delete it" in str(find_refusal(table))


HERE, S3 = "/data/t/metadata/v1.metadata.json", "s3://bucket/t/metadata/v1.metadata.json"
AZURE, HDFS = "abfss://c@mine.dfs.core.windows.net/t/v1.metadata.json", "hdfs://mine:8020/t/v1.metadata.json"


@pytest.mark.parametrize(
    ("location", "home", "properties"),
    [
        ("/data/t/a.parquet", HERE, {}),
        ("file:/elsewhere/a:b.parquet", HERE, {}),
        ("s3a://other/a.parquet", HERE, {}),
        ("s3a://other.bucket_1/a b?c#d", S3, {}),
        ("gs://bucket/a", HERE, {}),
        ("wasbs://d@mine.dfs.core.windows.net/a", AZURE, {}),
        ("abfss://c@mine.dfs.core.windows.net/a", HERE, {"adls.account-name": "mine"}),
        (
            "abfss://c@mine.blob.local/a",
            HERE,
            {"adls.account-name": "mine", "adls.blob-storage-authority": ".blob.local"},
        ),
        ("hdfs://mine:8020/a", HDFS, {}),
        ("hdfs:///a", HDFS, {}),
        ("hdfs://me@[::1]:8020/a", "hdfs://[::1]:8020/t/v1.metadata.json", {}),
        ("abfss://$web@mine.dfs.core.windows.net/a", AZURE, {}),
        ("hdfs://mine:8020/a", HERE, {"hdfs.host": "mine"}),
        ("hdfs://nn1:8020,nn2:8020/a", "hdfs://nn1:8020,nn2:8020/t/v1.metadata.json", {}),
        ("abfss://My%20Space@one.fabric/a", "abfss://My%20Space@one.fabric/t/v1.metadata.json", {}),
        ("alluxio://mine/a", "alluxio://mine/t/v1.metadata.json", {}),
        ("memory://a", HERE, {"py-io-impl": "mine.FileIO"}),
    ],
)
def test_a_table_names_files_where_it_is(location, home, properties):
    check_reach(location, home, properties)


@pytest.mark.parametrize(
    ("location", "home", "properties"),
    [
        ("file:///etc/passwd", S3, {}),
        ("FILE:/etc/passwd", S3, {}),
        ("/etc/passwd", S3, {}),
        ("etc/passwd", AZURE, {}),
        ("http://127.0.0.1:9/a", S3, {}),
        ("http://127.0.0.1:9/a", HERE, {}),
        ("https://169.254.169.254/latest", HERE, {}),
        ("local://a/b", HERE, {}),
        ("gs://bucket/a", S3, {}),
        ("s3:bucket/a", S3, {}),
        ("s3://theirs@bucket/a", S3, {}),
        ("s3://theirs@bucket/a", HERE, {}),
        ("s3://theirs%2e.com/a", S3, {}),
        ("abfss://c@theirs.com/a", AZURE, {}),
        ("abfss://c@theirs.com/a", HERE, {}),
        ("abfss://c@theirs.com/a", HERE, {"adls.account-name": "mine"}),
        ("abfss://c@mine.theirs.com/a", HERE, {"adls.account-name": "mine"}),
        ("hdfs://theirs:8020/a", HDFS, {}),
        ("hdfs://theirs?@mine:8020/a", HDFS, {}),
        ("hdfs://theirs#@mine:8020/a", HDFS, {}),
        ("viewfs://theirs#@mine/a", "viewfs://mine/t/v1.metadata.json", {}),
        ("abfss://c@theirs.com#@mine.dfs.core.windows.net/a", AZURE, {}),
        ("abfss://c@theirs.com?@mine.dfs.core.windows.net/a", HERE, {"adls.account-name": "mine"}),
        ("hdfs://theirs:8020/a", HERE, {"hdfs.host": "mine"}),
    ],
)
def test_other_places_are_refused_in_one_line(location, home, properties):
    with pytest.raises(icestats.MetadataError) as caught:
        check_reach(location, home, properties)
    assert "\n" not in str(caught.value)
    assert location in str(caught.value)


def test_the_users_own_file_io_still_opens_his_tables(rewrite, catalog_properties):
    """PyIceberg's own class, named by the user: what a table may not do, its user may."""
    path = rewrite(CODE)
    own = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    for name, properties in ((str(path), own), ("db.small", catalog_properties | own)):
        assert icestats.load(name, catalog=properties).orphans().num_rows == 0


def test_a_home_that_cannot_be_looked_into_has_no_configuration(catalog, catalog_properties, monkeypatch):
    """As that of another user, whose HOME has been kept: no folder has such a name, and asking for it is an error."""
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    monkeypatch.setenv("HOME", f"/{'x' * 5_000}")
    assert icestats.load("db.t", catalog=catalog_properties).snapshot is None


@pytest.mark.parametrize("home", [None, "# nothing\n"])
def test_a_configuration_in_the_current_folder_is_not_followed(
    catalog: Any,
    catalog_properties: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    home: str | None,
) -> None:
    """PyIceberg looks there where the user has none: a folder that a stranger made may have one."""
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    folders = [tmp_path / "home", tmp_path / "stranger"]
    for folder in folders:
        folder.mkdir()
    if home is not None:
        (folders[0] / ".pyiceberg.yaml").write_text(home)
    (folders[1] / ".pyiceberg.yaml").write_text(
        yaml.safe_dump({"catalog": {catalog.name: {"s3.endpoint": "http://evil"}}})
    )
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(folders[0]))
    monkeypatch.chdir(folders[1])
    for asked in (catalog_properties | {"name": catalog.name}, catalog.name):
        with pytest.raises(icestats.CatalogError, match="set PYICEBERG_HOME to that folder"):
            icestats.load("db.t", catalog=asked)
    monkeypatch.setenv("PYICEBERG_HOME", str(folders[1]))
    assert icestats.load("db.t", catalog=catalog_properties | {"name": catalog.name}).name == "db.t"
    (folders[0] / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"other": {"type": "sql"}}}))
    monkeypatch.delenv("PYICEBERG_HOME")
    assert icestats.load("db.t", catalog=catalog_properties | {"name": catalog.name}).name == "db.t"


def test_a_folder_that_is_called_as_a_home_is_none(
    catalog: Any, catalog_properties: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a user without a home folder, as in a container, PyIceberg looks into a folder `~` in the current one."""
    pwd = pytest.importorskip("pwd")

    def find_none(number: int) -> None:
        raise KeyError(number)

    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / ".pyiceberg.yaml").write_text(
        yaml.safe_dump({"catalog": {catalog.name: {"s3.endpoint": "http://evil"}}})
    )
    for name in ("HOME", "PYICEBERG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    given = catalog_properties | {"name": catalog.name}
    assert "s3.endpoint" not in icestats.load("db.t", catalog=given)._source.storage.properties
    monkeypatch.setattr(pwd, "getpwuid", find_none)
    for asked in (given, catalog.name):
        with pytest.raises(icestats.CatalogError, match="set PYICEBERG_HOME to that folder"):
            icestats.load("db.t", catalog=asked)


def test_a_configuration_of_a_folder_that_was_the_current_one_is_forgotten(read_table: Any, tmp_path: Path) -> None:
    """PyIceberg reads it when it is imported, as the first table does that is opened by its location."""
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"catalog": {"s3.endpoint": "http://evil"}}}))
    code = (
        "import json, os, sys, icestats\n"
        "icestats.load(sys.argv[1]).plan('price < 3')\n"
        "os.chdir('/')\n"
        "print(icestats.load('db.small', catalog=json.loads(sys.argv[2]))._source.storage.properties)"
    )
    given = [read_table.metadata_location, json.dumps(read_table.catalog.properties)]
    environment = {name: value for name, value in os.environ.items() if name != "PYICEBERG_HOME"}
    command = [sys.executable, "-c", code, *given]
    environment |= {"HOME": "/", "PYTHONPATH": str(Path(icestats.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "warehouse" in done.stdout, done.stderr
    assert "evil" not in done.stdout


def test_a_configuration_that_is_no_utf_8_is_one_line_at_home_too(
    read_table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule runs in the user's home: there, that of the current folder is the user's own."""
    (tmp_path / ".pyiceberg.yaml").write_bytes("catalog:\n  größe:\n    type: sql\n".encode("latin-1"))
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("db.t", read_table.metadata_location):
        with pytest.raises(icestats.CatalogError, match=r"cannot be read: .*pyiceberg\.yaml"):
            icestats.load(name)


@pytest.mark.parametrize("name", ["t.metadata.json", "{table}", "db.t"])
def test_a_current_folder_that_is_gone_is_said(read_table: Any, tmp_path: Path, monkeypatch: Any, name: str) -> None:
    """PyIceberg looks for its configuration there, whatever is opened, and raises what the system says."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(icestats.CatalogError, match="the current folder is gone, and PyIceberg looks for its"):
        icestats.load(name.format(table=read_table.metadata_location))
