"""A session of Spark is found or started, with jars that are checked; jobs show progress, and end when told to."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import icestats
from icestats.iceberg.catalog import DEMO_CATALOG, demo_catalog_properties
from icestats.spark.jobs import cancel_jobs, explained_errors, list_settings, watch_jobs
from icestats.spark.jvm import SQLITE_DRIVER, find_runtime
from icestats.spark.plain_sql import changed_settings, run_sql
from icestats.spark.session import active, get_session, spark_catalog_properties
from tests.spark_versions import since

pytestmark = pytest.mark.spark

NAMESPACE = "icestats.bare"


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)


def test_a_new_session_says_nothing_on_the_terminal():
    done = run(
        "from icestats.spark.session import get_session\n"
        "spark = get_session()\n"
        "assert spark.range(0, 100, 1, 4).mapInArrow(lambda batches: batches, 'id long').count() == 100\n"
        "assert spark.sparkContext.master == 'local[*]'\n"
        "assert spark.conf.get('spark.sql.session.timeZone') == 'UTC'\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_workers_run_no_code_of_the_current_folder_where_the_caller_does_not(tmp_path: Path):
    (table := tmp_path / "table").mkdir()
    (table / "numbers.py").write_text("open('stranger', 'w').close()\nraise SystemExit\n")
    caller = tmp_path / "caller.py"
    caller.write_text(
        "from icestats.spark.session import get_session\n"
        "assert get_session(master='local[1]').range(9).mapInArrow(lambda batches: batches, 'id long').count() == 9\n"
    )
    done = subprocess.run([sys.executable, caller], capture_output=True, text=True, check=False, timeout=600, cwd=table)
    assert not (table / "stranger").exists()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_other_users_of_the_machine_get_nothing_from_the_ports_of_a_session(spark: Any):
    manager = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().blockManager()
    # Spark's OpenBlocks: who asks, and for which blocks.
    wanted = b"".join(len(text).to_bytes(4, "big") + text for text in (b"", b"", b"broadcast_0_piece0"))
    body = b"\0" + wanted[:8] + (1).to_bytes(4, "big") + wanted[8:]
    request = b"\3" + (1).to_bytes(8, "big") + len(body).to_bytes(4, "big") + body
    with socket.create_connection(("127.0.0.1", manager.blockManagerId().port()), timeout=60) as stranger:
        stranger.sendall((len(request) + 8).to_bytes(8, "big") + request)
        assert b"Expected SaslMessage" in stranger.recv(1 << 16)


SHUFFLE = """
import os, stat, sys, tempfile
from pathlib import Path
from icestats.spark.plain_sql import changed_settings
from icestats.spark.session import get_session, stop_session
os.umask(0o022)
folder = Path(tempfile.gettempdir())
before = set(folder.iterdir())

def others():
    made = [p for p in folder.iterdir() if p not in before and p.suffix != ".log"]
    open_to_all = [p for p in made if p.stat().st_mode & 0o077 and list(p.rglob("shuffle_*"))]
    kept = [p for p in made if p.name.startswith("icestats-spark-")]
    assert not any(p.stat().st_mode & 0o077 for p in kept)
    return len(open_to_all), len(kept), sum(len(list(p.rglob("shuffle_*"))) for p in kept)

session = get_session()
session.range(1000).repartition(3).count()
open_to_all, kept, shuffled = others()
assert (open_to_all, kept) == (0, 1) and shuffled, (open_to_all, kept, shuffled)
stop_session()
assert others() == (0, 0, 0), others()
mine = folder / "mine"
session = get_session(conf={"spark.local.dir": str(mine)})
session.range(1000).repartition(3).count()
assert others()[1] == 0 and list(mine.rglob("shuffle_*"))
stop_session()
theirs = folder / "theirs"
(folder / "spark-defaults.conf").write_text(f"spark.local.dir {theirs}\\nspark.redaction.regex mine\\n")
os.environ["SPARK_CONF_DIR"] = str(folder)
session = get_session()
session.range(1000).repartition(3).count()
assert others()[1] == 0 and list(theirs.rglob("shuffle_*"))
hidden = session.sparkContext.getConf().get("spark.redaction.regex")
assert hidden.startswith("mine|") and "credential" in hidden, hidden
stop_session()
del os.environ["SPARK_CONF_DIR"]
get_session().range(3).count()
"""


def test_what_a_local_session_shuffles_is_for_nobody_else(tmp_path: Path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "_JAVA_OPTIONS": f"-Djava.io.tmpdir={tmp_path}"}
    call = [sys.executable, "-c", SHUFFLE]
    ended = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert not list(tmp_path.glob("icestats-spark-*"))


def test_jars_that_cannot_be_had_are_named_in_one_line(tmp_path: Path):
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        f"""<ivysettings><settings defaultResolver="empty"/><resolvers><filesystem name="empty">
        <artifact pattern="{tmp_path}/nothing/[artifact]-[revision].[ext]"/></filesystem></resolvers></ivysettings>"""
    )
    done = run(
        "import sys\n"
        "from icestats.errors import SparkUnavailableError\n"
        "from icestats.spark.session import get_session\n"
        "try:\n"
        "    get_session(conf={'spark.jars.ivy': sys.argv[1], 'spark.jars.ivySettings': sys.argv[2]})\n"
        "except SparkUnavailableError as error:\n"
        "    print(error)\n",
        tmp_path / "ivy",
        settings,
    )
    assert done.stderr == ""
    assert done.stdout.startswith(f"Spark could not get {find_runtime(pyspark.__version__)} and org.x")
    assert done.stdout.count("\n") == 1


WITHOUT_ICEBERG = """
from pyspark.sql import SparkSession
from icestats.errors import SparkUnavailableError
from icestats.spark.plain_sql import changed_settings
from icestats.spark.session import get_session, stop_session
import icestats
def show(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except SparkUnavailableError as error:
        print(error)
theirs = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()
equal, plain = icestats.load('icestats.bare.equal'), icestats.load('icestats.bare.plain')
def ignore(done, total): pass
for spark in (None, theirs):
    assert plain.compute(spark=spark, progress=ignore).found.row_count == 100
    show(equal.compute, spark=spark, progress=ignore)
show(get_session, {'lake': {'type': 'rest', 'uri': 'http://127.0.0.1:9'}})
show(icestats.load, 'lake.db.t', spark=theirs)
stop_session()
assert theirs.range(3).count() == 3
theirs.stop()
show(icestats.load, 'lake.db.t', spark=theirs)
assert get_session().sparkContext.appName == 'icestats'
stop_session()
"""


def test_a_session_without_iceberg_scans_what_needs_none_and_is_refused_for_the_rest(spark, namespace, delete_equal):
    """The same, whether it is the active one or is given."""
    for name in ("plain", "equal"):
        spark.sql(
            f"create table {NAMESPACE}.{name} using iceberg as select id, concat('n', id % 5) name from range(100)"
        )
    delete_equal(f"{NAMESPACE}.equal", "name", ["n3"])
    done = run(WITHOUT_ICEBERG)
    assert done.returncode == 0, done.stderr
    *refused, stopped = done.stdout.splitlines()
    runtime = find_runtime(pyspark.__version__)
    assert (
        refused
        == [
            "the Spark session has no Iceberg runtime on its class path: start it with "
            f"spark.jars.packages={runtime},{SQLITE_DRIVER}, or stop it and let icestats start one"
        ]
        * 4
    )
    assert stopped.startswith("no table is opened by this session: its Spark session has been stopped")


OLD_ICEBERG = """
import sys
from pyspark.sql import SparkSession
import icestats
from icestats.errors import SparkUnavailableError
runtime, warehouse = sys.argv[1:]
builder = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')
builder = builder.config('spark.jars.packages', runtime)
builder = builder.config('spark.sql.catalog.lake', 'org.apache.iceberg.spark.SparkCatalog')
builder = builder.config('spark.sql.catalog.lake.type', 'hadoop').config('spark.sql.catalog.lake.warehouse', warehouse)
theirs = builder.getOrCreate()
try:
    icestats.load('lake.db.t', spark=theirs)
except SparkUnavailableError as error:
    print(error)
theirs.stop()
"""


@since("4.0", "its own Iceberg is the oldest that is known")
def test_an_iceberg_that_is_too_old_is_named_in_one_line_with_the_one_that_fits(tmp_path):
    """One that is made for Spark 3.5 lacks what Spark 4 calls."""
    old = find_runtime("3.5.9", "2.13.8")
    done = run(OLD_ICEBERG, old, f"file://{tmp_path}/warehouse")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"loading db.t failed: the session's Iceberg {old.rpartition(':')[2]} lacks what it needs")
    assert line.endswith(f"start the session with spark.jars.packages={find_runtime(pyspark.__version__)}")


def test_the_active_session_is_used_from_every_thread(spark):
    found = []
    thread = threading.Thread(target=lambda: found.append(get_session()))
    thread.start()
    thread.join()
    assert found[0]._jsparkSession.equals(spark._jsparkSession)


def test_a_session_that_is_active_for_a_block_is_not_so_behind_it(spark):
    """In a new thread none is, so that `getOrCreate` gives the default one there."""

    def work():
        found = [SparkSession.getActiveSession()]
        with active(spark.newSession()):
            found.append(SparkSession.getActiveSession())
        return [*found, SparkSession.getActiveSession()]

    before = SparkSession._activeSession
    with ThreadPoolExecutor(1) as pool:
        none, within, behind = pool.submit(work).result()
    assert (none, behind) == (None, None)
    assert within is not None
    assert SparkSession._activeSession is before


def test_a_catalog_of_the_same_name_and_another_place_gets_a_session_of_its_own(spark, tmp_path):
    other = {DEMO_CATALOG: spark_catalog_properties(demo_catalog_properties(tmp_path))}
    sibling = get_session(other)
    assert sibling is get_session(other)
    assert sibling.sparkContext is spark.sparkContext
    assert sibling.sql(f"SHOW NAMESPACES IN {DEMO_CATALOG}").collect() == []
    assert spark.sql(f"SHOW NAMESPACES IN {DEMO_CATALOG}").collect() != []


def test_a_catalog_can_be_added_to_a_running_session(spark, tmp_path):
    running = get_session()
    added = get_session({"added": spark_catalog_properties(demo_catalog_properties(tmp_path)) or {}})
    assert added._jsparkSession.equals(running._jsparkSession)
    added.sql("CREATE NAMESPACE added.db")
    added.sql("CREATE TABLE added.db.t AS SELECT id FROM range(7)")
    assert added.table("added.db.t").count() == 7


def test_progress_rises_to_the_end_and_begins_anew_for_a_second_run_of_a_group(spark):
    for task_count in (8, 3):
        seen: list[tuple[int, int]] = []
        with watch_jobs(spark, "progress", lambda done, total, seen=seen: seen.append((done, total))):
            assert spark.sparkContext.range(0, 100, 1, task_count).count() == 100
        assert seen[-1] == (task_count, task_count)
        assert seen == sorted(seen)
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_group_of_jobs_can_be_cancelled_while_it_runs(spark):
    from py4j.protocol import Py4JJavaError

    endless = spark.range(0, 10**15, 1, 2).selectExpr("sum(hash(id))")
    seen = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        cancel_jobs(spark, "endless")

    with (
        pytest.raises(Py4JJavaError, match="cancelled part of cancelled job group endless"),
        watch_jobs(spark, "endless", stop),
    ):
        endless.collect()
    assert seen[0][0] == 0


def test_settings_that_two_threads_change_are_put_back(spark):
    name = "spark.sql.session.timeZone"
    before, entered, left = spark.conf.get(name), threading.Event(), threading.Event()

    def change() -> None:
        with changed_settings(spark, {name: "Asia/Tokyo"}):
            entered.set()
            left.wait()

    with ThreadPoolExecutor(1) as pool:
        with changed_settings(spark, {name: "Asia/Tokyo"}):
            other = pool.submit(change)
            is_between = entered.wait(0.2)
        left.set()
        other.result()
    assert (is_between, spark.conf.get(name)) == (False, before)


CHANGED_JAR = """
import sys
from icestats.errors import SparkUnavailableError
from icestats.spark import jvm
jvm.JAR_SHA256[jvm.SQLITE_DRIVER] = "0" * 64
try:
    jvm.start_session({})
except SparkUnavailableError as error:
    print(error)
print(jvm.read_ended())
"""


def test_a_fetched_jar_that_is_not_the_released_one_is_refused_before_spark_starts():
    done = run(CHANGED_JAR, "")
    error, ended = done.stdout.splitlines()
    assert "sqlite-jdbc-3.50.3.0.jar has the SHA-256 a3f53a2a" in error
    assert f"expected {'0' * 64}: it is damaged" in error
    assert ended == "[]"


def test_secrets_of_catalogs_are_hidden_where_spark_shows_its_settings(spark, tmp_path):
    """In the list of settings, in what a query's event says was modified, and in the context's own settings."""
    from pyspark import SparkConf

    own = {"s3.access-key-id": "hidden-1", "credential": "hidden-2", "adls.sas-token.mine": "hidden-3"}
    named = {
        "jdbc.password": "hidden-4",
        "note": "jdbc:postgresql://me:hidden-5@host/db",
        "s3.endpoint": "http://shown",
    }
    properties = spark_catalog_properties(demo_catalog_properties(tmp_path)) or {}
    session = get_session({"hiding": {**properties, **own, **named}})
    assert session.conf.get("spark.sql.catalog.hiding.credential") == "hidden-2"
    listed = str(session.sql("set").collect())
    session.sql("show namespaces in hiding").collect()
    events = session._jsparkSession.sharedState().statusStore().executionsList()
    modified = str(events.last().modifiedConfigs())
    settings = SparkConf(loadDefaults=False, _jvm=spark.sparkContext._jvm).setAll(
        [("spark.redaction.regex", spark.conf.get("spark.redaction.regex"))]
        + [(f"spark.sql.catalog.hiding.{name}", value) for name, value in (own | named).items()]
    )
    for text in (listed, modified, settings.toDebugString()):
        assert "http://shown" in text
        assert "hidden" not in text


def test_secrets_of_catalogs_are_in_no_log_of_what_goes_to_the_jvm(spark, tmp_path, caplog):
    """Which Py4J writes to the logs of a process that shows its finest level."""
    properties = spark_catalog_properties(demo_catalog_properties(tmp_path)) or {}
    with caplog.at_level(logging.DEBUG):
        for key in ("hidden-1", "hidden-2"):
            session = get_session({"logged": {**properties, "s3.secret-access-key": key}})
            with pytest.raises(icestats.IcestatsError):
                icestats.load("logged.db.none", spark=session)
        spark.range(1).count()
    assert "Command to send" in caplog.text
    assert "hidden" not in caplog.text


def test_an_error_in_sql_of_the_kit_is_shown_by_who_catches_it(spark):
    """PySpark shows it on the terminal, with Java's stack, also where the kit only looks whether a table is there."""
    from pyspark.errors import AnalysisException

    # PySpark 3.5 shows nothing.
    shown_by = pytest.importorskip("pyspark.logger").PySparkLogger
    shown = []
    handler = logging.Handler()
    handler.emit = shown.append
    logger = shown_by.getLogger("SQLQueryContextLogger")
    logger.addHandler(handler)
    try:
        with pytest.raises(AnalysisException):
            run_sql(spark, "select * from nothing")
        with pytest.raises(icestats.IcestatsError), explained_errors(spark, "looking"):
            spark.sql("select * from nothing")
        assert shown == []
        with pytest.raises(AnalysisException):
            spark.sql("select * from nothing")
        assert len(shown) == 1
    finally:
        logger.removeHandler(handler)


@pytest.mark.parametrize("enabled", ["true", " TRUE"])
def test_secrets_of_catalogs_are_hidden_in_the_log_of_events(spark, tmp_path, enabled):
    """Which has the settings of a session in each event of a job, however its setting is written."""
    context = spark.sparkContext
    java, conf = context._jvm, context._conf
    properties = spark_catalog_properties(demo_catalog_properties(tmp_path)) or {}
    named = {
        "credential": "unlogged-1",
        "fs.azure.sas.c": "unlogged-2",
        "note": "http://h/?pwd=unlogged-3",
        "uri2": "shown",
    }
    conf.set("spark.eventLog.enabled", enabled)
    before = conf.get("spark.redaction.regex")
    conf.set("spark.redaction.regex", "theirs")
    try:
        session = get_session({"logged": {**properties, **named}})
        folder, nothing = java.java.net.URI(tmp_path.as_uri()), java.scala.Option.apply(None)
        log = java.org.apache.spark.scheduler.EventLoggingListener("app", nothing, folder, conf._jconf)
        event = java.java.util.Properties()
        for name, value in list_settings(session).items():
            event.setProperty(name, value)
        logged = str(log.redactProperties(event))
        assert "unlogged-1" in str(event)
        assert "unlogged" not in logged
        assert "shown" in logged
        # A sibling has the context's settings, but not what stands there for secrets.
        sibling = get_session({"logged": {**properties, "uri2": "other"}})
        assert not [name for name, value in list_settings(sibling).items() if value == "***"]
    finally:
        conf._jconf.remove("spark.eventLog.enabled")
        for name in ("credential", "fs.azure.sas.c", "note"):
            conf._jconf.remove(f"spark.sql.catalog.logged.{name}")
        conf.set("spark.redaction.regex", before)
