"""Tables of catalogs that only a Spark session knows are opened and committed to as those of PyIceberg's catalogs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from pyspark import SparkContext

import icestats
from icestats import writers
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.errors import CallError, CatalogError, CommitError, MetadataError, TableNotFoundError, UnsupportedError
from icestats.iceberg.catalog import load_iceberg_table as load
from icestats.iceberg.storage import local_path
from icestats.spark import session_catalog
from icestats.spark.java_file_io import JavaFileIO
from icestats.spark.session import ICEBERG_CATALOG, active
from icestats.spark.session_catalog import SessionCatalog
from icestats.spark.table_writes import run_rewrite_manifests
from tests.committed_statistics import ROWS, listed, open_catalog, theta
from tests.rest_catalog import Rest, serve
from tests.spark_versions import to_arrow

pytestmark = pytest.mark.spark

CATALOGS = ("hadoop", "jdbc", "viewed", "memory")
LOCAL = CATALOGS[:2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("catalogs")


@pytest.fixture(scope="module")
def session(spark, folder):
    """A session of the user's: two catalogs of local files, two of files that only Java opens."""
    (folder / "viewed").mkdir()
    session = spark.newSession()
    properties = {
        "hadoop": {"type": "hadoop", "warehouse": f"file://{folder}/hadoop"},
        "jdbc": {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/jdbc.db", "warehouse": f"file://{folder}/jdbc"},
        "viewed": {
            "type": "hadoop",
            "warehouse": "viewfs://cluster/data",
            "hadoop.fs.viewfs.mounttable.cluster.link./data": f"file://{folder}/viewed",
        },
        "memory": {"catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog", "warehouse": "memory://warehouse"},
        "closed": {"type": "rest", "uri": "http://me:open-sesame@127.0.0.1:9/"},
        "missing": {"catalog-impl": "no.such.Catalog"},
    }
    for name, own in properties.items():
        session.conf.set(f"spark.sql.catalog.{name}", ICEBERG_CATALOG)
        for key, value in own.items():
            session.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    for name in CATALOGS:
        session.sql(f"create namespace {name}.db")
    return session


@pytest.fixture
def make(session):
    """Make a table of 1,000 rows in two files, partitioned by `part`; dropped afterwards."""
    made = []

    def make(catalog, name="t", version=2):
        full = f"{catalog}.db.{name}"
        session.sql(
            f"create table {full} (id bigint, price double, part int) using iceberg partitioned by (part) "
            f"tblproperties ('format-version' = '{version}')"
        )
        made.append(full)
        insert(session, full, 0, 1000)
        return icestats.load(full, spark=session)

    yield make
    for full in made:
        session.sql(f"drop table if exists {full}")


def insert(session, name, begin, end):
    session.sql(f"insert into {name} select id, id / 10, cast(id % 2 as int) from range({begin}, {end}, 1, 1)")


def in_java(session, table):
    """The table as Iceberg's Java library loads it for Spark."""
    loaded = session.sparkContext._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        session._jsparkSession, table.name
    )
    loaded.refresh()
    return loaded


def registered(session, table):
    """The paths of the table's statistics files and of its partition statistics files."""
    loaded = in_java(session, table)
    return [one.path() for one in loaded.statisticsFiles()], [one.path() for one in loaded.partitionStatisticsFiles()]


def ndv(session, table):
    """What metadata.json lists: the NDV of each field."""
    (file,) = in_java(session, table).statisticsFiles()
    return {int(blob.fields()[0]): int(blob.properties()["ndv"]) for blob in file.blobMetadata()}


def version_count(session, table):
    return in_java(session, table).operations().current().previousFiles().size()


@pytest.mark.parametrize("catalog", CATALOGS)
def test_statistics_are_computed_committed_read_brought_up_to_date_and_taken_back(session, make, catalog):
    table = make(catalog, "whole")
    assert table.partitions()["data_record_count"].to_pylist() == [500, 500]
    assert len(table.manifests()) == 1
    assert len(table.plan("part = 1 and price < 20").kept_file_paths()) == 1
    assert table.plan("price < 20", rows=True).steps[-1].kept == 200
    assert table.estimate("price < 20", actual=True)["actual"].rows == 200
    assert table.sql("select sum(record_count) as n from files")["n"].to_pylist() == [1000]

    computed = table.compute(table=True, partitions=True, manifests=True)
    assert computed.found.scanned_by == ("PyIceberg" if catalog in LOCAL else "Spark")
    preview = computed.commit(dry_run=True)
    assert registered(session, table) == ([], [])
    before = version_count(session, table)
    report = computed.commit()
    assert version_count(session, table) == before + 1
    assert [len(file["blobs"]) for file in preview.files] == [len(file["blobs"]) for file in report.files]
    assert registered(session, table) == ([report.files[1]["path"]], [report.files[0]["path"]])
    assert ndv(session, table) == {1: 1000, 2: 1000, 3: 2}

    table = table.refresh()
    assert sum(table.histogram("price", bins=4).counts) == 1000
    assert table.partition_statistics()["data_record_count"].to_pylist() == [500, 500]
    insert(session, table.name, 1000, 1200)
    refreshed = table.refresh().refresh_statistics()
    assert set(refreshed.added_to) == ({"id", "price", "part"} if catalog in LOCAL else set())
    assert refreshed.commit().committed
    current = table.refresh()
    assert ndv_of_current(session, current) == {1: 1200, 2: 1200, 3: 2}

    current.remove_statistics()
    assert ndv(session, table) == {1: 1000, 2: 1000, 3: 2}
    table.remove_statistics(table.snapshot.snapshot_id)
    assert registered(session, table) == ([], [])
    if catalog == "memory":
        with pytest.raises(UnsupportedError, match="InMemoryFileIO of Spark's catalog lists no files"):
            table.orphans()
    else:
        assert sorted(table.orphans()["kind"].to_pylist()) == ["partition statistics"] + 2 * ["table statistics"]
        assert table.remove_orphans(dry_run=True)["kept_because"].to_pylist() == 3 * ["it is younger than 1 day"]


def ndv_of_current(session, table):
    loaded = in_java(session, table)
    (file,) = (f for f in loaded.statisticsFiles() if f.snapshotId() == loaded.currentSnapshot().snapshotId())
    return {int(blob.fields()[0]): int(blob.properties()["ndv"]) for blob in file.blobMetadata()}


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_commit_keeps_what_others_commit_in_between(session, make, catalog):
    table = make(catalog)
    other = table.compute(columns=["price"])
    done = []

    def interfere(step):
        if step == "committing" and not done:
            done.append(step)
            insert(session, table.name, 1000, 1100)
            other.commit()

    mine = table.compute(columns=["id"])
    mine.commit(on_step=interfere)
    assert ndv(session, table) == {1: 1000, 2: 1000}
    assert session.table(table.name).count() == 1100


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_commit_between_reading_and_swapping_the_metadata_fails_and_is_tried_again(
    session, make, catalog, monkeypatch
):
    table = make(catalog)
    other = table.compute(columns=["price"])
    opened = SessionCatalog._open
    calls = []

    def open_late(self, identifier):
        found = opened(self, identifier)
        calls.append(identifier)
        # The first is of the plan, the second of its renewal, the third of the commit itself.
        if len(calls) == 3:
            monkeypatch.setattr(SessionCatalog, "_open", opened)
            other.commit()
        return found

    mine = table.compute(columns=["id"])
    monkeypatch.setattr(SessionCatalog, "_open", open_late)
    steps = []
    mine.commit(on_step=steps.append)
    assert steps.count("committing") == 2
    assert ndv(session, table) == {1: 1000, 2: 1000}


def test_a_commit_that_gets_no_answer_names_the_file_that_it_leaves(session, make, folder):
    table = make("jdbc", "unanswered")
    computed = table.compute(columns=["id"])
    with sqlite3.connect(folder / "jdbc.db") as lock:

        def block(step):
            if step == "committing":
                lock.execute("begin exclusive")

        with pytest.raises(
            CommitError, match=r"no answer to the commit of db\.unanswered: .*left on storage"
        ) as caught:
            computed.commit(on_step=block)
        lock.rollback()
    lock.close()
    assert "\n" not in str(caught.value)
    assert registered(session, table) == ([], [])
    (path,) = table.orphans()["path"].to_pylist()
    assert path in str(caught.value)


def test_a_dropped_column_hinders_no_commit_and_is_not_listed(session, make):
    table = make("hadoop")
    computed = table.compute(columns=["id", "price"])
    session.sql(f"alter table {table.name} drop column price")
    computed.commit()
    assert ndv(session, table) == {1: 1000}


def test_a_table_that_is_dropped_and_made_anew_takes_no_commit(session, make):
    table = make("hadoop")
    computed = table.compute(columns=["id"])

    def drop(step):
        if step == "committing":
            session.sql(f"drop table {table.name}")

    def make_anew(step):
        if step == "prepared":
            drop("committing")
            make("hadoop")

    with pytest.raises(CommitError, match=r"db\.t took no commit: .*what was written is removed"):
        computed.commit(on_step=drop)
    table = make("hadoop")
    computed = table.compute(columns=["id"])
    with pytest.raises(CommitError, match="is another table now, dropped and made anew"):
        computed.commit(on_step=make_anew)
    assert registered(session, table) == ([], [])


OWN_WORDS = """
package icestats.tests;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

public class OwnWords extends org.apache.iceberg.hadoop.HadoopFileIO {
  public OwnWords(org.apache.hadoop.conf.Configuration conf) { super(conf); }

  public InputFile newInputFile(String path) {
    final InputFile file = super.newInputFile(path);
    return new InputFile() {
      public boolean exists() { return file.exists(); }
      public String location() { return file.location(); }
      public SeekableInputStream newStream() { return file.newStream(); }
      public long getLength() {
        if (!file.exists()) throw new IllegalStateException("(Service: S3, Status Code: 404)");
        return file.getLength();
      }
    };
  }

  public Iterable listPrefix(String prefix) {
    throw new IllegalStateException("(Service: S3, Status Code: 403) for hidden-key");
  }
}
"""
"""As `S3FileIO`, which raises AWS's own errors, not Iceberg's: for the length of a file that is gone, for a list."""


@pytest.fixture
def told(session):
    """Give a session a secret that is in none of a catalog's properties."""

    @contextmanager
    def told(secret):
        session.conf.set("spark.hadoop.fs.s3a.secret.key", secret)
        try:
            yield
        finally:
            session.conf.unset("spark.hadoop.fs.s3a.secret.key")

    return told


def test_what_a_storage_says_in_its_own_words_is_understood(session, make, monkeypatch, told):
    jvm = session.sparkContext._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(OWN_WORDS)
    (maker,) = compiler.getClassLoader().loadClass("icestats.tests.OwnWords").getConstructors()
    arguments = session.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)

    class OwnWords(JavaFileIO):
        def __init__(self, session, java):
            arguments[0] = java.conf()
            super().__init__(session, maker.newInstance(arguments))

    monkeypatch.setattr(session_catalog, "JavaFileIO", OwnWords)
    table = make("viewed", "own_words")
    path = table.compute(columns=["id"]).commit().files[0]["path"]
    insert(session, table.name, 1000, 1010)
    table = table.refresh()
    table._source.catalog.file_io.delete(path)
    (warning,) = [one for one in table.compute(columns=["price"]).commit().warnings if path in one]
    assert warning == f"an ancestor's statistics are not carried forward: {path}: no such file"
    said = r"metadata: cannot be read: .*Status Code: 403\) for \*\*\*"
    with told("hidden-key"), pytest.raises(MetadataError, match=said) as caught:
        table.orphans()
    assert "hidden-key" not in "".join(traceback.format_exception(caught.value))


def test_a_table_of_format_version_3_takes_statistics(session, make):
    table = make("hadoop", version=3)
    table.check_commit()
    table.compute(columns=["id"], table=True, partitions=True).commit()
    assert ndv(session, table) == {1: 1000}
    assert len(registered(session, table)[1]) == 1


def test_restoring_brings_back_the_statistics_before_the_last_commit(session, make):
    table = make("jdbc")
    first = table.compute(columns=["id"]).commit()
    table.compute(columns=["price"]).commit()
    assert ndv(session, table) == {1: 1000, 2: 1000}
    report = table.remove_statistics(restore=True)
    [path] = registered(session, table)[0]
    assert path == report.entries[0]["restored_path"]
    assert ndv(session, table) == {1: 1000}
    files = [local_path(one).read_bytes() for one in (path, first.files[0]["path"])]
    assert files[0] == files[1]


@pytest.mark.parametrize("catalog", ["hadoop", "memory"])
def test_rows_are_written_and_manifests_rewritten_through_the_session(session, make, catalog):
    table = make(catalog)
    written = writers.append(table, to_arrow(session.table(table.name).limit(10)))
    assert written.statistics is not None, written.message
    written = writers.append_dataframe(table.refresh(), session.table(table.name).limit(10))
    assert written.statistics is not None, written.message
    assert session.table(table.name).count() == 1020
    assert table.refresh().rewrite_manifests(dry_run=False).added_manifest_count == 1


def test_a_snapshot_that_others_made_since_the_table_was_loaded_is_not_the_writes(session, make, monkeypatch):
    """Or right after the write: Iceberg makes none where there is no partition to replace."""
    table = make("hadoop", "stale")
    insert(session, table.name, 1000, 1010)
    written = writers.overwrite_partitions(table, session.table(table.name).where("false"))
    assert (written.snapshot_id, written.statistics, written.message) == (None, None, "")
    refresh = icestats.Table.refresh

    def refresh_late(shown):
        monkeypatch.undo()
        insert(session, table.name, 1020, 1030)
        return refresh(shown)

    monkeypatch.setattr(icestats.Table, "refresh", refresh_late)
    written = writers.append_dataframe(table, session.table(table.name).limit(7))
    assert written.table.metadata.snapshots[written.snapshot_id].summary["added-records"] == "7"
    assert written.snapshot_id == table.refresh().snapshot.parent_snapshot_id


def test_rows_of_pyiceberg_are_told_from_those_that_follow_before_java_has_read_the_table_again(
    session, make, monkeypatch
):
    table = make("hadoop", "followed")
    commit_table, load_table = SessionCatalog.commit_table, SessionCatalog.load_table

    def load_late(self, name):
        monkeypatch.undo()
        insert(session, table.name, 2000, 2030)
        return load_table(self, name)

    def commit_late(self, *arguments):
        monkeypatch.setattr(SessionCatalog, "load_table", load_late)
        return commit_table(self, *arguments)

    rows = to_arrow(session.table(table.name).limit(10))
    monkeypatch.setattr(SessionCatalog, "commit_table", commit_late)
    written = writers.append(table, rows)
    assert written.table.metadata.snapshots[written.snapshot_id].summary["added-records"] == "10"


def test_rows_are_not_staged_where_the_table_was_loaded_before_it_stages(session, make):
    table = make("hadoop", "staged")
    session.sql(f"alter table {table.name} set tblproperties ('write.wap.enabled' = 'true')")
    session.conf.set("spark.wap.branch", "audit")
    try:
        with pytest.raises(CallError, match=r"the session spark\.wap\.branch, unset it"):
            writers.append_dataframe(table, session.table(table.name).limit(7))
    finally:
        session.conf.unset("spark.wap.branch")
    assert set(table.refresh().metadata.refs) == {"main"}


@pytest.mark.parametrize("write", [writers.append_dataframe, writers.overwrite_partitions])
@pytest.mark.parametrize("blank", ["", " ", "\\u0001"])
def test_no_class_of_a_table_opens_the_files_of_rows_that_are_written(session, make, write, blank):
    """Java's FileHandler makes a file where it is made an object of, as Hadoop does with what it is set to.

    Hadoop takes names without blanks and control characters around them.
    """
    table = make("hadoop", "setting")
    names = (f"{blank}fs.file.impl", f"{blank}fs.file.impl.disable.cache")
    settings = f"'{names[0]}' = 'java.util.logging.FileHandler', '{names[1]}' = 'true'"
    session.sql(f"alter table {table.name} set tblproperties ({settings})")
    home = Path(session.sparkContext._jvm.java.lang.System.getProperty("user.home"))
    before = set(home.glob("java*.log"))
    with pytest.raises(UnsupportedError, match=r"setting has the property .?fs\.file\.impl"):
        write(table, session.table(table.name).limit(7))
    assert set(home.glob("java*.log")) == before
    assert session.table(f"{table.name}.snapshots").count() == 1


_CLIENTS = (
    "google.cloud.auth.access.token.provider.impl",
    "juicefs.meta",
    "alluxio.user.x",
    "ozone.om.address.lake",
    "hdds.x509.ca.x",
    "rpc.engine.org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolPB",
    "ipc.client.fallback-to-simple-auth-allowed",
    "net.topology.script.file.name",
)


@pytest.mark.parametrize("name", _CLIENTS)
def test_no_settings_of_a_storages_own_client_are_of_a_table(session, make, name):
    table = make("hadoop", "client")
    session.sql(f"alter table {table.name} set tblproperties ('{name}' = 'a')")
    with pytest.raises(UnsupportedError, match=f"client has the property {re.escape(name)}"):
        writers.append_dataframe(table, session.table(table.name).limit(7))


@pytest.mark.parametrize("write", [writers.append_dataframe, writers.overwrite_partitions])
def test_rows_are_not_sent_to_a_host_that_the_table_names(session, make, write):
    table = make("viewed", "sending")
    for place in ("hdfs://127.0.0.1:9/data", "file:///tmp/data"):
        session.sql(f"alter table {table.name} set tblproperties ('write.data.path' = '{place}')")
        with pytest.raises(MetadataError, match=f"{place}: the table is on viewfs"):
            write(table, session.table(table.name).limit(7))
    assert session.table(f"{table.name}.snapshots").count() == 1


def test_no_manifests_are_opened_at_a_host_that_the_table_names(session, make):
    table = make("hadoop", "listing")
    path = local_path(table._source.metadata_location)
    document = json.loads(path.read_text())
    document["snapshots"][-1]["manifest-list"] = "hdfs://127.0.0.1:9/list.avro"
    path.write_text(json.dumps(document))
    path.with_name(f".{path.name}.crc").unlink()
    for write in (
        lambda: writers.append_dataframe(table, session.range(3).selectExpr("id", "1D price", "1 part")),
        lambda: run_rewrite_manifests(table._source, ["CALL hadoop.system.rewrite_manifests('db.listing')"]),
    ):
        with pytest.raises(MetadataError, match="is not where the table's metadata is"):
            write()


@pytest.mark.parametrize("write", [writers.append_dataframe, writers.overwrite_partitions])
def test_rows_are_not_written_to_another_table_of_the_name(spark, make, tmp_path, write):
    """That of a catalog which another session calls by the same name; nor are its manifests rewritten."""
    table, other = make("hadoop", "twice"), spark.newSession()
    own = {"": ICEBERG_CATALOG, ".type": "hadoop", ".warehouse": f"file://{tmp_path}"}
    for name, value in own.items():
        other.conf.set(f"spark.sql.catalog.hadoop{name}", value)
    other.sql(f"create table {table.name} as select * from range(3), (select 1D price, 1 part)").collect()
    with pytest.raises(UnsupportedError, match=f"has another table db.twice: .*{tmp_path}/db/twice/"):
        write(table, other.table(table.name))
    with pytest.raises(UnsupportedError, match="has another table"):
        table.rewrite_manifests(dry_run=False, spark=other)
    assert other.table(f"{table.name}.snapshots").count() == 1


def test_an_interrupt_ends_a_write_and_its_job(session, make, tmp_path):
    """PySpark sets such a handler, by which the job would go on, and its rows come later."""

    def handle(*_):
        session.sparkContext.cancelAllJobs()
        raise KeyboardInterrupt

    table, waits, done = make("hadoop", "interrupted"), tmp_path / "waits", Event()
    os.mkfifo(waits)

    def wait(batches):
        waits.read_text()
        yield from batches

    def interrupt():
        with waits.open("w"):
            os.kill(os.getpid(), signal.SIGINT)
            done.wait()

    rows = session.table(table.name).limit(7).mapInArrow(wait, "id bigint, price double, part int")
    handle.__module__ = SparkContext.__module__
    before = signal.signal(signal.SIGINT, handle)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt) as raised:
                writers.append_dataframe(table, rows)
        finally:
            done.set()
            signal.signal(signal.SIGINT, before)
    assert raised.value.__notes__[0].endswith("its rows may still arrive, look before writing again")
    assert session.table(table.name).count() == 1000
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert session.sparkContext.statusTracker().getActiveJobsIds() == []
    assert session.table(f"{table.name}.snapshots").count() == 1


def test_rows_are_appended_though_a_branch_grows_meanwhile(session, make, monkeypatch):
    """Iceberg numbers all commits of a table in one sequence."""
    table = make("jdbc", "grown")
    session.sql(f"alter table {table.name} create branch other")
    commit_table, done = SessionCatalog.commit_table, []

    def commit_late(self, *arguments):
        if not done:
            done.append(session.sql(f"insert into {table.name}.branch_other values (1, 1.0, 1)"))
        return commit_table(self, *arguments)

    rows = to_arrow(session.table(table.name).limit(10))
    monkeypatch.setattr(SessionCatalog, "commit_table", commit_late)
    writers.append(table.refresh(), rows)
    assert session.table(table.name).count() == 1010


@pytest.mark.parametrize("catalog", LOCAL)
def test_names_with_dots_and_quotes_in_nested_namespaces(session, catalog):
    name = f"{catalog}.outer.`in.ner`.`t.\"u'`"
    session.sql(f"create namespace if not exists {catalog}.outer")
    session.sql(f"create namespace if not exists {catalog}.outer.`in.ner`")
    session.sql(f"create table {name} using iceberg as select id from range(10)")
    table = icestats.load(name, spark=session)
    table.compute().commit()
    assert ndv(session, table) == {1: 10}
    session.sql(f"drop table {name}")


def test_what_is_left_out_of_a_name_is_the_session_s(session, make):
    table = make("hadoop")
    session.sql("use hadoop.db")
    try:
        for name in ("t", "db.t"):
            assert icestats.load(name, spark=session).metadata.table_uuid == table.metadata.table_uuid
        with pytest.raises(TableNotFoundError, match=r"'nowhere.db.t' names no catalog .*hadoop, jdbc.*current one"):
            icestats.load("nowhere.db.t", spark=session)
    finally:
        session.sql("use spark_catalog.default")


def refuse(kind, name, session, text, **options):
    with pytest.raises(kind) as caught:
        icestats.load(name, spark=session, **options)
    said = str(caught.value)
    assert "open-sesame" not in "".join(traceback.format_exception(caught.value))
    assert text in said
    assert "\n" not in said
    assert len(said) < 600


def test_what_cannot_be_opened_is_said_in_one_line(session, make, tmp_path):
    make("hadoop")
    session.sql(f"create table plain using parquet location 'file://{tmp_path}/plain' as select 1 as a")
    refuse(TableNotFoundError, "hadoop.db.u", session, "no table 'u' in hadoop.db: it has t")
    refuse(TableNotFoundError, "hadoop.nope.u", session, "no namespace 'nope' in catalog 'hadoop': it has db")
    refuse(TableNotFoundError, "hadoop.db.`t", session, "is no name of a table in Spark")
    refuse(TableNotFoundError, "", session, "is no name of a table in Spark")
    refuse(TableNotFoundError, "/data/t/metadata/v1.metadata.json", session, "is no name of a table in Spark")
    refuse(UnsupportedError, "default.plain", session, "is no Iceberg table: Spark's catalog has it as a V1Table")
    refuse(CallError, "hadoop.db.t.snapshots", session, "is one of Iceberg's metadata tables")
    refuse(CallError, "hadoop.db.t.branch_main", session, "names a version of a table")
    refuse(CatalogError, "closed.db.t", session, "Spark's catalog 'closed' failed: loading db.t")
    refuse(CatalogError, "missing.db.t", session, "no.such.Catalog")
    refuse(CallError, "hadoop.db.t", "session", "spark is str, expected a SparkSession")
    refuse(CallError, "hadoop.db.t", session, "catalog and spark were given", catalog="lake")
    session.sql("drop table plain")


def test_metadata_that_is_not_where_java_says_is_said_in_one_line(session, make, folder):
    table = make("hadoop")
    (folder / "hadoop/db/t/metadata").rename(folder / "moved")
    try:
        with pytest.raises((TableNotFoundError, UnsupportedError)):
            table.refresh()
    finally:
        (folder / "moved").rename(folder / "hadoop/db/t/metadata")


def test_java_deletes_no_metadata_that_lies_elsewhere(session, make, folder):
    table = make("hadoop")
    computed = table.compute(columns=["id"])
    name = table.name
    session.sql(f"alter table {name} set tblproperties ('write.metadata.delete-after-commit.enabled' = 'true')")
    (newest,) = (folder / "hadoop/db/t/metadata").glob("v3.metadata.json")
    newest.write_text(newest.read_text().replace(f"{folder}/hadoop/db/t/metadata/v1.", f"{folder}/precious/v1."))
    (folder / "hadoop/db/t/metadata/.v3.metadata.json.crc").unlink()
    with pytest.raises(CommitError, match="would delete it"):
        computed.commit()


@pytest.mark.parametrize("name", ["mine.db.t", "db.t"])
def test_a_session_that_is_not_the_active_one_opens_its_own_catalog(spark, tmp_path, name):
    """Another session of the process has a catalog of the same name, in another warehouse."""

    def start(folder):
        session = spark.newSession()
        session.conf.set("spark.sql.catalog.mine", ICEBERG_CATALOG)
        session.conf.set("spark.sql.catalog.mine.type", "hadoop")
        session.conf.set("spark.sql.catalog.mine.warehouse", f"file://{tmp_path}/{folder}")
        return session

    for folder in ("theirs", "own"):
        start(folder).sql("create table mine.db.t as select 1 id").collect()
    own = start("own")
    own.conf.set("spark.sql.defaultCatalog", "mine")
    with active(start("theirs")):
        table = icestats.load(name, spark=own)
    assert table.metadata.location == f"file://{tmp_path}/own/db/t"


@contextmanager
def serve_to(session, tmp_path, name):
    """Give a session a REST catalog with a table; the catalog behind the server, and the table through the session."""
    with open_catalog(tmp_path, "?check_same_thread=false") as backend, serve(backend) as uri:
        backend.create_namespace("db")
        backend.create_table("db.t", schema=ROWS.schema).append(ROWS)
        session.conf.set(f"spark.sql.catalog.{name}", ICEBERG_CATALOG)
        session.conf.set(f"spark.sql.catalog.{name}.type", "rest")
        session.conf.set(f"spark.sql.catalog.{name}.uri", uri)
        yield backend, icestats.load(f"{name}.db.t", spark=session)


@pytest.mark.parametrize("write", [writers.append_dataframe, writers.overwrite_partitions])
def test_rows_that_a_server_has_not_taken_are_not_said_to_be_none(session, tmp_path, write, monkeypatch):
    """Java too follows a redirection of a commit by reading the table, and looks for no snapshot in what it gets."""

    def answer_without_doing(request):
        request.rfile.read(int(request.headers["Content-Length"]))
        request.do_GET()

    with serve_to(session, tmp_path, f"passing_{write.__name__}") as (backend, table):
        monkeypatch.setattr(Rest, "do_POST", answer_without_doing)
        with pytest.raises(CommitError, match="without what was committed; its rows are not seen in the table"):
            write(table, session.sql("select 3L a, 'z' b, 2.5D c"))
        assert backend.load_table("db.t").scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("status", [400, 401, 403])
def test_what_a_server_repeats_to_a_session_is_not_told(session, tmp_path, monkeypatch, status):
    secrets = {"header.X-Api-Key": "hidden/1", "token": "hidden/2"}
    for name, value in secrets.items():
        session.conf.set(f"spark.sql.catalog.echo{status}.{name}", value)
    with serve_to(session, tmp_path, f"echo{status}") as (_, table):

        def refuse(request):
            sent = request.headers["X-Api-Key"], request.headers["Authorization"].split()[1]
            request.answer(status, {"error": {"message": f"not for {sent}", "type": "E", "code": status}})

        monkeypatch.setattr(Rest, "do_GET", refuse)
        with pytest.raises(CatalogError, match=r"not for \('\*\*\*', '\*\*\*'\)") as caught:
            table.refresh()
    shown = "".join(traceback.format_exception(caught.value))
    assert not any(value in shown for value in secrets.values())


def test_what_readers_repeat_of_the_sessions_own_secrets_is_not_told(session, make, folder, told):
    """Here it is in a path; storages repeat what they were signed in with."""
    table = make("viewed", "repeated")
    for file in (folder / "viewed/db/repeated").rglob("*.parquet"):
        file.write_bytes(bytes(file.stat().st_size))
    with told("cluster"), pytest.raises(icestats.IcestatsError, match=r"viewfs://\*\*\*/data") as caught:
        table.compute(spark=session)
    assert "//cluster" not in "".join(traceback.format_exception(caught.value))


def test_through_a_rest_catalog_of_the_session_what_others_commit_in_between_is_put_back(session, tmp_path):
    """Java sends a server no requirement for statistics, so that the last writer wins."""
    with serve_to(session, tmp_path, "served") as (backend, table):
        theirs = backend.load_table("db.t")
        other, mine = (
            prepare_commit(one, [theta(theirs, field_id)]) for one, field_id in ((theirs, 2), (load(table._source), 1))
        )
        opened, calls = SessionCatalog._open, []

        def open_late(self, identifier):
            found = opened(self, identifier)
            calls.append(identifier)
            if len(calls) == 2:
                commit_statistics(other)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SessionCatalog, "_open", open_late)
            assert commit_statistics(mine).attempts == 2
        assert sorted(field_ids for _, field_ids, _ in listed(theirs)) == [(1,), (2,)]
        table.remove_statistics()
        assert listed(theirs) == []


KILLED = """
import os, signal, sys
from pyspark import SparkContext
import icestats
from icestats.spark.session import get_session

properties = {"type": "hadoop", "warehouse": f"file://{sys.argv[1]}", "cache-enabled": "false"}
session = get_session({"lake": properties})
session.sql("create table lake.db.t using iceberg as select id from range(100)")
computed = icestats.load("lake.db.t", spark=session).compute()

def kill(step):
    if step == "committing":
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)

try:
    computed.commit(on_step=kill)
except icestats.CommitError as error:
    said = str(error)
(path,) = icestats.load(f"{sys.argv[1]}/db/t").orphans()["path"].to_pylist()
assert "\\n" not in said and "whether it arrived is unknown" in said, said
assert f"{path} is left on storage in case it still arrives" in said, (path, said)
assert not icestats.load(f"{sys.argv[1]}/db/t").metadata.statistics
print("done")
"""


def test_a_jvm_that_ends_in_a_commit_leaves_the_table_as_it_was(tmp_path):
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.stdout.endswith("done\n"), run.stderr


def test_rows_that_may_still_arrive_are_not_said_to_be_refused(session, tmp_path, monkeypatch):
    """A gateway gives up while the server is still at work: Spark looks, and does not know."""
    monkeypatch.setattr(Rest, "do_POST", lambda own: own.answer(504, {"error": {"message": "late", "type": "E"}}))
    refused = pytest.raises(CommitError, match=r"no answer to the write to .* may still arrive")
    with serve_to(session, tmp_path, "late") as (_, table), refused:
        writers.append_dataframe(table, session.table("late.db.t"))


@pytest.fixture
def breaking(monkeypatch):
    """Have a REST catalog take what is committed, and break the connection."""

    def take_and_break(request):
        request.answer = lambda *_: request.connection.shutdown(socket.SHUT_RDWR)
        commit(request)
        request.close_connection = True

    commit = Rest.do_POST
    monkeypatch.setattr(Rest, "do_POST", take_and_break)


def test_rows_whose_connection_breaks_behind_the_commit_are_found(session, tmp_path, breaking):
    """Iceberg's client does not say that it does not know."""
    with serve_to(session, tmp_path, "broken") as (backend, table):
        with pytest.raises(CommitError, match="do not write them again") as caught:
            writers.append_dataframe(table, session.table("broken.db.t"))
        written = backend.load_table("db.t")
    assert f"its rows are in snapshot {written.metadata.current_snapshot_id}:" in str(caught.value)


def test_a_rewrite_whose_connection_breaks_behind_the_commit_may_be_done(session, tmp_path, breaking):
    with serve_to(session, tmp_path, "rewritten") as (backend, table):
        backend.load_table("db.t").append(ROWS)
        with pytest.raises(CommitError, match=r"rewrites manifests failed: .*; it may be done all the same"):
            table.refresh().rewrite_manifests(dry_run=False)
        assert backend.load_table("db.t").current_snapshot().summary.operation.value == "replace"
