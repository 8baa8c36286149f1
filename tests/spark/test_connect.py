"""Through Spark Connect a scan, a refresh and roll-ups give what a classic session gives; the rest is refused."""

from __future__ import annotations

import collections
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import pyspark
import pytest

import icestats
from icestats.iceberg.catalog import DEMO_CATALOG, demo_catalog_properties
from icestats.spark.java import find_java
from icestats.spark.jvm import ICEBERG_EXTENSIONS, SQLITE_DRIVER, find_runtime
from icestats.spark.session import ICEBERG_CATALOG, spark_catalog_properties
from tests.bare_python import make_bare_python
from tests.committed_statistics import ROWS, open_catalog
from tests.spark_versions import since

pytestmark = [pytest.mark.spark, since("4.0", "PySpark 3.5 brings no server of Spark Connect")]

NAMESPACE = "icestats.connect"
KEPT = 8192
"""Of a KLL sketch that keeps all the values of these tables, so that its bytes do not depend on chance."""


@pytest.fixture(scope="module")
def server(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that knows the demo catalog, and whose Python has no icestats."""
    folder = tmp_path_factory.mktemp("server")
    packages = make_bare_python(folder)
    (packages / "numba").symlink_to(Path(numba.__file__).parent)
    catalog = f"spark.sql.catalog.{DEMO_CATALOG}"
    properties = spark_catalog_properties(demo_catalog_properties(demo_home)) or {}
    settings = {
        "spark.master": "local[2]",
        "spark.jars.packages": f"{find_runtime(pyspark.__version__)},{SQLITE_DRIVER}",
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        catalog: ICEBERG_CATALOG,
        f"{catalog}.cache-enabled": "false",
        **{f"{catalog}.{name}": value for name, value in properties.items()},
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.progress.reportInterval": "100ms",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
    }
    spark_submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [spark_submit, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    variables = {
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(folder / "bare" / "bin" / "python"),
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    process = subprocess.Popen(
        [*command, "spark-internal"], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        # What it says later is read too, so that it never waits for a reader.
        rest = threading.Thread(target=collections.deque, args=(process.stdout, 0), daemon=True)
        ports = (re.search(rb"Connect server started at: .*:(\d+)$", line.strip()) for line in process.stdout)
        port = next(found[1].decode() for found in ports if found)
        rest.start()
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)
        rest.join()
        process.stdout.close()


@pytest.fixture(scope="module")
def tables(spark: Any, namespace: str, delete_equal: Any) -> None:
    """Of 6,000 rows: `plain`, in partitions, with position deletes; `equal`, with equality deletes; and `growing`."""
    for name in ("plain", "equal", "growing"):
        table = f"{NAMESPACE}.{name}"
        spark.sql(
            f"create table {table} (id bigint, name string, price double, paid decimal(12, 2), at timestamp) "
            f"using iceberg {'' if name == 'equal' else 'partitioned by (bucket(4, id))'} "
            "tblproperties ('write.delete.mode'='merge-on-read')"
        )
        spark.sql(
            f"insert into {table} select id, concat('n', id % 50), if(id % 11 = 0, double('nan'), id / 7), id * 1.25, "
            "timestamp '2026-09-01' + make_dt_interval(0, 0, 0, id) from range(6000)"
        )
    spark.sql(f"delete from {NAMESPACE}.plain where id % 10 = 3")
    delete_equal(f"{NAMESPACE}.equal", "name", ["n5"])


CLIENT = f"""
import pickle, sys
from dataclasses import fields
from pathlib import Path
from pyspark.sql import SparkSession
import icestats
from icestats.errors import IcestatsError
from icestats.read.manifests.manifests import RollUps, manifests_to_read, read_rollups
from icestats.spark.manifest_rollups import read_rollups_with_spark
from icestats.spark.session import get_session

url, out = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
assert get_session() is spark
table = icestats.load("{NAMESPACE}.plain")
seen = []
found = {{}}
found["table"] = table.compute(k={KEPT}, progress=lambda *counts: seen.append(counts)).found
found["partitions"] = table.compute(k={KEPT}, by="partition", spark=spark).found
found["equal"] = icestats.load("{NAMESPACE}.equal").compute(k={KEPT}, spark=spark).found
found["progress"] = seen
manifests = manifests_to_read(table.manifest_files())
rest = manifests, table.metadata, table._source.storage, table.schema
by_spark, here = read_rollups_with_spark(spark, *rest), read_rollups(*rest)
found["rollups"] = {{one.name: getattr(by_spark, one.name).equals(getattr(here, one.name)) for one in fields(RollUps)}}
places = spark.range(1).mapInArrow(lambda batches: (__import__("pyarrow").record_batch(
    [[__import__("icestats").__file__]], ["place"]) for _ in batches), "place string")
found["places"] = {{row.place for row in places.collect()}}

refused = {{
    "load": lambda: icestats.load("{NAMESPACE}.plain", spark=spark),
    "to_spark": lambda: table.to_spark(),
    "catalogs": lambda: get_session({{"other": {{"type": "rest"}}}}),
    "scan": lambda: icestats.load(icestats.load("{NAMESPACE}.equal")._source.metadata_location).compute(),
}}
for name, call in refused.items():
    try:
        call()
    except IcestatsError as error:
        found[name] = str(error)
found["optimizer"] = table.estimate("id < 9", engines=["spark"])["spark-cbo-off"].reason
Path(out).write_bytes(pickle.dumps(found))
"""


def run(code: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def through_connect(server: str, tables: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("client") / "found.pickle"
    run(CLIENT, server, out)
    found: dict[str, Any] = pickle.loads(out.read_bytes())
    return found


@pytest.mark.parametrize(("name", "what"), [("plain", "table"), ("equal", "equal")])
def test_a_scan_equals_the_classic_one_byte_for_byte(spark, through_connect, name, what):
    """By PyIceberg on the executors, and by Spark's own scan of what PyIceberg cannot read."""
    expected = icestats.load(f"{NAMESPACE}.{name}").compute(k=KEPT, spark=spark).found
    found = through_connect[what]
    assert found.scanned_by == expected.scanned_by == ("PyIceberg" if name == "plain" else "Spark")
    assert found.row_count == expected.row_count == (5_400 if name == "plain" else 5_880)
    assert found.columns == expected.columns
    assert all(column.theta for column in found.columns.values())


def test_sketches_of_partitions_equal_the_classic_ones_byte_for_byte(spark, through_connect):
    expected = icestats.load(f"{NAMESPACE}.plain").compute(k=KEPT, by="partition", spark=spark).found
    found = through_connect["partitions"]
    assert len(found.by_partition.columns["id"]) == 4
    assert {name: set(keys) for name, keys in found.by_partition.columns.items()} == {
        name: set(keys) for name, keys in expected.by_partition.columns.items()
    }
    for name, columns in expected.by_partition.columns.items():
        for key, column in columns.items():
            assert found.by_partition.columns[name][key].theta == column.theta


def test_rollups_are_those_of_one_machine(through_connect):
    assert len(through_connect["rollups"]) > 1
    assert all(through_connect["rollups"].values())


def test_progress_is_heard_of_and_ends_with_all_tasks(through_connect):
    seen = through_connect["progress"]
    assert seen[-1][0] == seen[-1][1] > 1


def test_executors_are_sent_this_icestats(through_connect):
    (place,) = through_connect["places"]
    assert place != icestats.__file__
    assert place.endswith("icestats/__init__.py")


def test_what_needs_the_jvm_is_refused_in_one_line_that_names_the_way(through_connect):
    said = {
        "load": "give the session to what computes, such as compute(spark=spark)",
        "to_spark": "read the table without statistics, by spark.table(",
        "catalogs": "unset SPARK_REMOTE, or work in a process without Spark Connect",
        "scan": "give a classic session, or let the server know the table's catalog by its name here",
        "optimizer": "give a classic session",
    }
    for name, way in said.items():
        text = through_connect[name]
        assert "needs Spark's JVM, which a session of Spark Connect does not reach: " in text
        assert way in text
        assert "\n" not in text


REFRESH = f"""
import sys
# `pyspark-client` has neither.
sys.modules["py4j"] = sys.modules["pyspark.core"] = None
import icestats
from icestats.spark.session import get_session
table = icestats.load("{NAMESPACE}.growing")
print(table.compute(columns=["id", "name"], progress=lambda *_: None).commit().committed)
get_session().sql("insert into {NAMESPACE}.growing select * from {NAMESPACE}.plain where id = 5")
found = table.refresh().refresh_statistics(spark=get_session())
print(found.commit().committed, found.found.row_count, found.found.file_count)
"""


def test_spark_remote_and_pyspark_client_are_enough_and_a_refresh_reads_what_was_added(tables, server):
    done = run(REFRESH, SPARK_REMOTE=server)
    assert done.stdout.splitlines() == ["True", "True 6001 1"]


RESTARTED = f"""
import sys
from pyspark.sql import SparkSession
import icestats
from icestats.errors import IcestatsError
from icestats.spark.session import get_session

table = icestats.load("{NAMESPACE}.plain")
old = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
# As PySpark does where the server answers that it knows no such session.
old.client._closed = True
for compute in (lambda: table.compute(spark=old), table.compute):
    try:
        compute()
    except IcestatsError as error:
        assert "spark=" in str(error) or "NO_ACTIVE_SESSION" in str(error), error
new = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert get_session() is new
print(table.compute(columns=["id"]).found.row_count)
"""


def test_a_session_that_is_made_after_its_server_s_restart_is_the_one_that_is_used(tables, server):
    assert run(RESTARTED, server).stdout.splitlines() == ["5400"]


CANCEL = """
import icestats
from icestats.errors import IcestatsError
from icestats.spark.jobs import cancel_jobs, explained_errors, watch_jobs
from icestats.spark.session import get_session

spark = get_session()
def stop(done, total):
    cancel_jobs(spark, "endless, and more")
try:
    with explained_errors(spark, "the endless job"), watch_jobs(spark, "endless, and more", stop):
        spark.range(0, 10**15, 1, 2).selectExpr("sum(hash(id))").collect()
except IcestatsError as error:
    print(error)
print(spark.range(3).count(), spark.getTags())
"""


def test_a_job_is_cancelled_by_its_tag(server):
    done = run(CANCEL, SPARK_REMOTE=server)
    assert done.stdout.splitlines() == ["the endless job was cancelled: nothing has been changed", "3 set()"]


UNANSWERED = f"""
import socket, sys, threading, time
from contextlib import suppress
from pathlib import Path
from pyspark.sql import SparkSession
import icestats
from icestats.errors import CommitError, SparkUnavailableError

begun, go = (Path(sys.argv[2], name) for name in ("begun", "go"))
ends = []

def pump(source, target):
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)

def serve():
    with suppress(OSError):
        while True:
            client, server = listener.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            ends.extend((client, server))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

def cut_once_begun():
    while not begun.exists():
        time.sleep(0.05)
    for end in (listener, *ends):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()

def wait(batches, begun=str(begun), go=str(go)):
    import os, time
    open(begun, "w").close()
    while not os.path.exists(go):
        time.sleep(0.05)
    yield from batches

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, daemon=True).start()
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{{listener.getsockname()[1]}}").getOrCreate()
spark.client.set_retry_policies([])
table = icestats.load("{NAMESPACE}.awaited")
frame = spark.range(1).mapInArrow(wait, "id long")
threading.Thread(target=cut_once_begun, daemon=True).start()
try:
    icestats.writers.append_dataframe(table, frame)
except CommitError as error:
    print(error)
try:
    icestats.load("{NAMESPACE}.plain").compute(spark=spark)
except SparkUnavailableError as error:
    print(error)
go.touch()
# The server goes on without its client.
while not table.refresh().metadata.snapshots:
    time.sleep(0.05)
"""


def test_a_server_that_gives_no_answer_is_said_and_that_it_may_still_write(spark, server, tables, tmp_path):
    spark.sql(f"create table {NAMESPACE}.awaited (id bigint) using iceberg")
    written, read = run(UNANSWERED, server.rpartition(":")[2], tmp_path).stdout.splitlines()
    no_answer = "no answer from the server of Spark Connect (UNAVAILABLE: "
    assert written.startswith("no answer to the write to ")
    assert no_answer in written
    assert written.endswith("but may still arrive: look before you write again")
    assert read.startswith("the scan of ")
    assert no_answer in read
    assert spark.table(f"{NAMESPACE}.awaited").count() == 1


def test_an_interrupt_ends_a_scan_though_its_server_does_not_answer(tmp_path):
    """PySpark itself asks a server that is gone for ten minutes, and as long again to interrupt, and when it ends."""
    with open_catalog(tmp_path) as catalog:
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", schema=ROWS.schema)
        made.append(ROWS)
    command = [sys.executable, "-m", "icestats", "compute", made.metadata_location.removeprefix("file://"), "--table"]
    variables = os.environ | {"SPARK_REMOTE": "sc://127.0.0.1:9"}
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert "an interrupt (Ctrl-C) stops it" in process.stderr.readline()
        with suppress(subprocess.TimeoutExpired):
            process.wait(8)
        process.terminate()
        try:
            assert process.wait(120) == 143
        finally:
            process.kill()
