"""What a commit leaves of a table's entry in a Hive metastore: all by which Hive and Impala read it."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from hive_metastore.ThriftHiveMetastore import Processor
from pyiceberg.catalog import hive
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TFileObjectTransport

import icestats
from icestats.errors import CatalogError, CommitError
from icestats.table import writers
from tests.committed_statistics import ROWS, commit, statistics_files, theta
from tests.rest_catalog import answering

NAMES = {
    "inputFormat": "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "outputFormat": "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
}
SERDE = "org.apache.iceberg.mr.hive.HiveIcebergSerDe"
HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"


class Metastore:
    """As much of a Hive metastore as a commit to one table takes."""

    def __init__(self, table):
        self.table = table

    def lock(self, _):
        return hive.LockResponse(lockid=1, state=hive.LockState.ACQUIRED)

    def unlock(self, _):
        return

    def get_table(self, dbname, tbl_name):
        return self.table

    def alter_table_with_environment_context(self, dbname, tbl_name, new_tbl, environment_context):
        self.table = new_tbl


@contextmanager
def serve(metastore):
    """Serve a metastore's Thrift for the time of a block; gives its address."""
    processor = Processor(metastore)

    class Handler(StreamRequestHandler):
        def handle(self):
            asked, answered = (TBinaryProtocol(TFileObjectTransport(file)) for file in (self.rfile, self.wfile))
            with suppress(EOFError, ConnectionError):
                while True:
                    processor.process(asked, answered)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        with answering(server):
            yield f"thrift://127.0.0.1:{server.server_address[1]}"


@pytest.fixture
def metastore(table):
    """The table `db.t`, as Hive makes one: `stored by iceberg`."""
    columns = [hive.FieldSchema("a", "bigint", "theirs")]
    descriptor = hive.StorageDescriptor(
        columns, table.location(), serdeInfo=hive.SerDeInfo(serializationLib=SERDE), **NAMES
    )
    parameters = {"table_type": "ICEBERG", "metadata_location": table.metadata_location, "storage_handler": HANDLER}
    found = hive.HiveTable(tableName="t", dbName="db", sd=descriptor, parameters=parameters, tableType="EXTERNAL_TABLE")
    return Metastore(found)


@pytest.mark.parametrize("change", ["statistics", "rows"])
def test_hive_and_impala_read_the_table_as_before(change, table, metastore):
    table.transaction().set_properties({"storage_handler": "of.a.Stranger", "numRows": "0"}).commit_transaction()
    metastore.table.parameters["metadata_location"] = table.metadata_location
    with serve(metastore) as uri:
        before = metastore.table
        table = icestats.load("db.t", catalog={"type": "hive", "uri": uri})
        if change == "statistics":
            assert table.compute(manifests=True).commit().committed
        else:
            assert not writers.append(table, ROWS).message
        after = metastore.table
    assert after.parameters["metadata_location"] != before.parameters["metadata_location"]
    moved = {name: after.parameters[name] for name in ("metadata_location", "previous_metadata_location")}
    assert after.parameters == {**before.parameters, **moved}
    assert after.sd == before.sd


def test_figures_of_rows_are_none_of_the_rows_before(table, metastore):
    """Java's and Hive's: how many rows there are, and that the statistics of columns, as `export` writes them, hold."""
    accurate = '{"COLUMN_STATS":{"a":"true"}}'
    figures = {"numRows": "7", "numFiles": "7", "COLUMN_STATS_ACCURATE": accurate, "current-snapshot-id": "7"}
    metastore.table.parameters |= figures
    with serve(metastore) as uri:
        opened = icestats.load("db.t", catalog={"type": "hive", "uri": uri})
        opened.compute(manifests=True).commit()
        assert figures.items() <= metastore.table.parameters.items()
        total = opened.overview().record_count + len(ROWS)
        assert not writers.append(opened.refresh(), ROWS).message
    left = {name: value for name, value in metastore.table.parameters.items() if name in figures}
    assert left == {"numRows": str(total), "numFiles": str(opened.overview().data_file_count + 1)}


@pytest.mark.parametrize("said", ["false", "off"])
def test_a_table_whose_writers_take_no_locks_is_refused(table, metastore, said):
    """A commit that comes in while PyIceberg holds its lock would be lost."""
    table.transaction().set_properties({"engine.hive.lock-enabled": said}).commit_transaction()
    metastore.table.parameters["metadata_location"] = table.metadata_location
    with serve(metastore) as uri:
        statistics = icestats.load("db.t", catalog={"type": "hive", "uri": uri}).compute(manifests=True)
        with pytest.raises(CommitError, match=r"all the same \(engine\.hive\.lock-enabled is not true"):
            statistics.commit()
    assert metastore.table.parameters["metadata_location"] == table.metadata_location


@pytest.mark.parametrize("act", ["commit", "removal", "rows"])
def test_a_lock_that_does_not_go_is_no_commit_of_others(act, table, metastore):
    """A writer that was killed leaves its lock: nobody has changed the table, and each attempt would wait anew."""
    commit(table, theta(table, 1))
    metastore.table.parameters["metadata_location"] = table.catalog.load_table("db.t").metadata_location
    asked = []
    waiting = hive.LockResponse(lockid=1, state=hive.LockState.WAITING)
    metastore.lock = lambda request: asked.append(request) or waiting
    metastore.check_lock = lambda _: waiting
    with serve(metastore) as uri:
        waits = {"lock-check-min-wait-time": "0.01", "lock-check-max-wait-time": "0.01"}
        opened = icestats.load("db.t", catalog={"type": "hive", "uri": uri, **waits})
        acts = {
            "commit": opened.compute(manifests=True).commit,
            "removal": opened.remove_statistics,
            "rows": lambda: writers.append(opened, ROWS),
        }
        with pytest.raises(CommitError, match="Failed to acquire lock") as caught:
            acts[act]()
    assert "others changed" not in str(caught.value)
    assert ("; nothing was written; " in str(caught.value)) == (act == "removal")
    assert len(asked) == 1 or act == "rows"
    assert len(statistics_files(table)) == 1


def test_a_metastore_that_does_not_answer_is_not_waited_for_without_end(metastore):
    ended = threading.Event()
    metastore.get_table = lambda *_: ended.wait(60)
    with serve(metastore) as uri:
        properties = {"type": "hive", "uri": uri, "hive.metastore.client.socket.timeout": "1"}
        with pytest.raises(CatalogError, match="read timeout"):
            icestats.load("db.t", catalog=properties)
        ended.set()
