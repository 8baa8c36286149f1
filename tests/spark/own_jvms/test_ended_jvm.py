"""What happens when Spark's JVM ends under a running Python: each case in a process of its own, with a real kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

pytestmark = pytest.mark.spark

START = """
import os, signal, sys, warnings
from pyspark import SparkContext
import icestats
from icestats.errors import SparkUnavailableError
from icestats.spark.jobs import explained_errors
from icestats.spark.jobs import cancel_jobs, watch_jobs
from icestats.spark.session import get_session, stop_session

def kill(number=signal.SIGKILL):
    process = SparkContext._gateway.proc
    os.kill(process.pid, number)
    return process

def refusal(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except SparkUnavailableError as error:
        assert "\\n" not in str(error)
        return str(error)
    raise AssertionError(f"{call} did not fail")
"""

KILLED = "Spark's JVM was ended by signal 9 (SIGKILL), as Linux does when memory runs out (log: "

OWN = """
from pyiceberg.catalog.sql import SqlCatalog
import pyarrow as pa
from icestats.spark.table_writes import write_dataframe
from icestats.spark.optimizer import count_with_spark
from icestats.spark.session import spark_catalog_properties

properties = {"type": "sql", "uri": f"sqlite:///{sys.argv[1]}/c.db", "warehouse": f"file://{sys.argv[1]}/w"}
catalog = SqlCatalog("catalog", **properties)
catalog.create_namespace("db")
rows = pa.table({"x": pa.array(range(100), pa.int64())})
catalog.create_table("db.t", rows.schema).append(rows)
catalog.close()
table = icestats.load("db.t", catalog=properties)

dead = get_session({"catalog": spark_catalog_properties(properties)})
frame = dead.range(3)
through = icestats.load("catalog.db.t", spark=dead)
assert dead.range(4).mapInArrow(lambda batches: batches, "id long").count() == 4

def run_endless():
    with explained_errors(dead, "the job"), watch_jobs(dead, "endless", lambda done, total: kill()):
        dead.range(0, 10**15, 1, 2).selectExpr("sum(hash(id))").collect()

said = refusal(run_endless)
assert said.startswith(f"the job failed: {sys.argv[2]}"), said
log = said.partition("(log: ")[2].partition(")")[0]
assert os.path.getsize(log) >= 0
end = said.removeprefix("the job failed: ")
assert "get_session()" in end
name = table.name
for call, doing in [
    (lambda: table.compute(spark=dead), f"the scan of {name}"),
    (lambda: table.read_with_spark(dead), "the Spark job that reads the manifests"),
    (lambda: table.rewrite_manifests(dry_run=False, spark=dead), "the Spark job that rewrites manifests"),
    (
        lambda: count_with_spark(dead, table._source, table.snapshot, table.schema, ["x > 3"]),
        f"counting the rows of {name}",
    ),
    (
        lambda: write_dataframe(frame, table._source, "append", {}, lambda *_, **__: None),
        f"the write to {name} (its snapshots say whether the rows were committed)",
    ),
]:
    said = refusal(call)
    assert said == f"{doing} failed: {end}", said
estimates = table.estimate("x > 3", engines=["spark"], spark=dead).to_arrow().to_pylist()
reasons = {row["reason"] for row in estimates if row["source"].startswith("spark-")}
assert reasons == {f"asking Spark's optimizer about {name} failed: {end}"}, reasons
cancel_jobs(dead, "endless")

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert table.compute().found.row_count == 100
warned = [str(one.message) for one in caught if one.category is RuntimeWarning]
assert warned == [end.partition(";")[0] + ": a new session is started"], warned
assert refusal(table.compute, spark=dead).startswith(f"the scan of {name} failed: its Spark session has been stopped")
assert refusal(through.refresh).startswith("loading db.t failed: its Spark session has been stopped")
assert get_session().range(3).count() == 3

get_session()
kill(signal.SIGTERM).wait()
said = refusal(table.compute, spark=get_session.__globals__["_own"])
assert "Spark's JVM was ended by signal 15 (SIGTERM) (log: " in said, said
stop_session()
stop_session()
assert (SparkContext._active_spark_context, SparkContext._gateway) == (None, None)
"""

WRITTEN = """
from pathlib import Path
import pyarrow as pa
from icestats import writers
from icestats.errors import CommitError
from tests.committed_statistics import ROWS, open_catalog
from tests.rest_catalog import Rest, serve

commit = Rest.do_POST

def commit_and_kill(request):
    request.answer = lambda *_: None
    commit(request)
    kill().wait()

Rest.do_POST = commit_and_kill
with open_catalog(Path(sys.argv[1]), "?check_same_thread=false") as backend, serve(backend) as uri:
    backend.create_namespace("db")
    backend.create_table("db.t", schema=ROWS.schema).append(ROWS)
    session = get_session({"served": {"type": "rest", "uri": uri}})
    if sys.argv[3] == "by Spark's writer":
        table = icestats.load("db.t", catalog={"name": "served", "type": "rest", "uri": uri})
        said = refusal(writers.append_dataframe, table, session.sql("select 7L a, 'x' b, 0.5D c"))
    else:
        try:
            writers.append(icestats.load("served.db.t", spark=session), ROWS)
        except CommitError as error:
            said = str(error)
    made = backend.load_table("db.t").metadata.current_snapshot_id
    assert len(backend.load_table("db.t").snapshots()) == 2
if sys.argv[3] == "by Spark's writer":
    assert said.startswith(f"no answer to the write to db.t: {sys.argv[2]}"), said
    assert said.endswith(f"; its rows are in snapshot {made}: do not write them again"), said
else:
    assert said.startswith("no answer to the write to served.db.t: "), said
    assert "whether its rows were written is unknown" in said, said
    assert said.endswith("look before you write again"), said
assert "run it again" not in said, said
"""

ASKED = """
import threading, time
from pyiceberg.catalog.sql import SqlCatalog
import pyarrow as pa
from icestats.spark.session import spark_catalog_properties

properties = {"type": "sql", "uri": f"sqlite:///{sys.argv[1]}/c.db", "warehouse": f"file://{sys.argv[1]}/w"}
catalog = SqlCatalog("catalog", **properties)
catalog.create_namespace("db")
catalog.create_table("db.t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [0]}))
computed = icestats.load("db.t", catalog=properties).compute(manifests=True)
get_session({"catalog": spark_catalog_properties(properties)}).sql("select * from catalog.db.t").collect()
process = SparkContext._gateway.proc
# It has no answer for a second, as where memory runs out, and then ends.
os.kill(process.pid, signal.SIGSTOP)
threading.Timer(1, kill).start()
report = computed.commit()
assert report.committed and "Spark" not in str(report), report
"""

THEIRS = """
from pyspark.sql import SparkSession
theirs = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
kill().wait()
said = refusal(get_session)
assert said.startswith("the active Spark session is dead: Spark's JVM was ended by signal 9 (SIGKILL)"), said
assert "icestats did not start it" in said and "stop_session()" in said, said
assert refusal(get_session) == said
stop_session()
assert get_session().range(3).count() == 3
assert get_session().sparkContext.appName == "icestats"
stop_session()
"""


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START + code, *map(str, arguments)]
    environment = os.environ | {"ICESTATS_CACHE": "off"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)


def test_each_verb_says_in_one_line_that_the_jvm_has_ended_and_the_next_session_is_a_new_one(tmp_path: Path):
    done = run(OWN, tmp_path, KILLED)
    assert [line for line in done.stderr.splitlines() if not line.endswith("an interrupt (Ctrl-C) stops it")] == []
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("way", ["by Spark's writer", "through the session's catalog"])
def test_rows_that_are_committed_before_the_jvm_ends_are_not_to_be_written_again(way: str, tmp_path: Path):
    done = run(WRITTEN, tmp_path, KILLED, way)
    assert done.returncode == 0, done.stderr


def test_a_commit_is_reported_where_the_jvm_ends_while_it_is_told_of_it(tmp_path: Path):
    done = run(ASKED, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_dead_session_of_somebody_else_is_refused_until_it_is_cleared_away():
    done = run(THEIRS)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


STOPPED_BUILD = """
from pathlib import Path
from icestats.spark.demo.demo_warehouse import build_demo

def stop(line):
    if "commit 1 of" in line:
        kill(signal.SIGTERM).wait()
        raise KeyboardInterrupt

try:
    build_demo(Path(sys.argv[1]), progress=stop)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_that_ends_the_jvm_too_interrupts_the_build_of_the_demo(tmp_path: Path):
    """As `timeout` and terminals send theirs: to all processes of a group."""
    done = run(STOPPED_BUILD, tmp_path)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


INTERRUPTED = """
import sys, time
import psutil
from icestats.spark.session import get_session

sleep = time.sleep

def interrupt(seconds):
    # PySpark alone waits so long, for its JVM.
    if seconds == 0.1:
        raise {error}
    sleep(seconds)

time.sleep = interrupt
try:
    get_session()
except BaseException as error:
    print(type(error).__name__, [process.name() for process in psutil.Process().children(recursive=True)])
"""


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("SystemExit", "SystemExit"),
        ("TimeoutError", "SparkUnavailableError"),
    ],
)
def test_an_interrupted_start_leaves_no_jvm_and_no_log(tmp_path, error, raised):
    """The log stays where an error, as of a time limit, may be explained by it."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    script = INTERRUPTED.format(error=error)
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert found.stdout == f"{raised} []\n", found.stderr
    assert bool(list(tmp_path.glob("icestats-spark-*"))) == (raised != error)


INTERRUPTED_CALL = """
import os, signal, sys
import icestats.cli.entry

where = sys.argv[1]

def interrupt(frame, event, called):
    if event != "c_call" or getattr(called, "__name__", "") != "recv_into":
        return
    while frame is not None:
        if frame.f_code.co_qualname == where:
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)
            return
        frame = frame.f_back

sys.setprofile(interrupt)
sys.argv[1:], sys.argv[0] = ["compute", sys.argv[2], "--table", "--conf", "spark.ui.enabled=false"], "icestats"
icestats.cli.entry.main()
"""


@pytest.mark.parametrize("call", ["SparkContext._initialize_context", "SparkSession.__init__"])
def test_an_interrupt_while_a_session_is_started_ends_the_verb_at_once(tmp_path, call):
    """In the middle of a call to the JVM, where most of the time goes."""
    rows = pa.table({"x": pa.array([1], pa.int64())})
    with SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w") as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", rows.schema)
        table.append(rows)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", INTERRUPTED_CALL, call, table.metadata_location]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")
    assert list(tmp_path.glob("icestats-spark-*")) == []
