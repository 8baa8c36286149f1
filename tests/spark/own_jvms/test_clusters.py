"""On a cluster a scan gives what it gives here, though a worker dies; what cannot be is said in one line."""

from __future__ import annotations

import collections
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from benchmarks.spark_cluster import Cluster, run_cluster
from icestats.scan.scan_job import Sizes
from icestats.stats.kll import KllSketch
from tests.computed_statistics import scan_table

pytestmark = pytest.mark.spark

KEPT = 8192
"""Of a KLL sketch that keeps all the values of this table, so that they do not depend on chance."""
FILES = 12


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of a core each."""
    with run_cluster(tmp_path_factory.mktemp("cluster"), 2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog and its warehouse, with a table of 6,000 rows."""
    home = tmp_path_factory.mktemp("home")
    with SqlCatalog("default", **properties(home)) as catalog:
        catalog.create_namespace("db")
        rows = pa.table({"id": list(range(500)), "name": [f"n{i % 50}" for i in range(500)]})
        table = catalog.create_table("db.t", rows.schema)
        for number in range(FILES):
            table.append(rows.set_column(0, "id", pa.array(range(500 * number, 500 * number + 500))))
    return home


def properties(home: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{home / 'catalog.db'}", "warehouse": f"file://{home / 'warehouse'}"}


def configure(home: Path) -> dict[str, str]:
    """The environment of a process whose default catalog it is."""
    configured = properties(home).items()
    return os.environ | {f"PYICEBERG_CATALOG__DEFAULT__{name.upper()}": value for name, value in configured}


START = """
import json, os, pickle, signal, sys, threading, time
from pathlib import Path
from click.testing import CliRunner
import psutil
import icestats
from icestats.cli.command_line import cli
from icestats.errors import IcestatsError
from icestats.iceberg.storage import local_path
from icestats.spark.session import get_session, stop_session

home, master, worker, out = sys.argv[1:]

table = icestats.load("db.t")
said, found = {}, {}

def refuse(what, call):
    try:
        call()
    except IcestatsError as error:
        said[what] = [type(error).__name__, str(error)]

def executors():
    listed = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    every = [listed.apply(place) for place in range(listed.size())]
    return [one.id() for one in every if one.id() != "driver" and not one.isActive()]

class StandStill:
    '''A data file that does not come until something has happened to the scan that waits for it.'''

    def __init__(self, act):
        self.path = local_path(table.files()["file_path"].to_pylist()[-1])
        self.act, self.seen = act, []

    def __enter__(self):
        self.kept = self.path.with_suffix(".kept")
        self.path.rename(self.kept)
        os.mkfifo(self.path)
        return self

    def __call__(self, done, total):
        self.seen.append((done, total))
        if done and self.kept.exists():
            assert done < total, (done, total)
            self.act()
            self.free()

    def free(self):
        fifo = self.path.with_suffix(".fifo")
        self.path.rename(fifo)
        self.kept.rename(self.path)
        # Whoever still reads it finds its end.
        os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))

    def __exit__(self, *error):
        if self.kept.exists():
            self.free()
"""

CLUSTER = """
run = CliRunner().invoke(cli, [
    "compute", "db.t", "--columns", "name", "--table", "--commit", "--format", "json",
    "--master", master, "--executor-memory", "512m", "--conf", "spark.executor.cores=1",
    "--conf", "spark.hadoop.fs.s3a.secret.key=geheim", "--conf", "spark.sql.shuffle.partitions=3"])
assert run.exit_code == 0, (run.output, run.exception)
found["committed"] = json.loads(run.stdout)["committed"]
table = table.refresh()
spark = get_session(master=master, executor_memory="512m", conf={"spark.executor.cores": "1"})
assert spark.sparkContext.master == master and spark.sparkContext.appName == "icestats"
assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
assert "geheim" not in str(spark.sql("set").collect())
refuse("another master", lambda: get_session(master="local[2]"))
refuse("another memory", lambda: get_session(executor_memory="3g"))
refuse("another conf", lambda: get_session(conf={"spark.hadoop.fs.s3a.secret.key": "other"}))

found["table"] = table.compute(spark=spark, k=KEPT).found
found["partitions"] = spark.sparkContext.defaultParallelism

def kill():
    chief = psutil.Process(int(worker))
    for process in [*chief.children(recursive=True), chief]:
        process.kill()

with StandStill(kill) as still:
    found["after a kill"] = table.compute(spark=spark, k=KEPT, progress=still).found
found["seen"], found["dead"] = still.seen, executors()

context = spark.sparkContext
kept = context.pythonVer, context.pythonExec
context.pythonVer = "3.10"
refuse("another Python", lambda: table.compute(spark=spark))
context.pythonVer, context.pythonExec = kept[0], "/no/python"
refuse("no Python", lambda: table.compute(spark=spark))
context.pythonExec = kept[1]

with StandStill(lambda: context._jsc.sc().stop()) as still:
    refuse("ended by Spark", lambda: table.compute(spark=spark, progress=still).commit())
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    spark = get_session(master=master, executor_memory="512m", conf={"spark.executor.cores": "1"})
said["warned"] = [str(one.message) for one in caught]
with StandStill(spark.stop) as still:
    refuse("stopped", lambda: table.compute(spark=spark, progress=still).commit())
stop_session()
found["statistics"] = [one.snapshot_id for one in table.refresh().metadata.statistics], table.snapshot.snapshot_id
Path(out).write_bytes(pickle.dumps((said, found)))
"""


@pytest.fixture(scope="module")
def seen(cluster: Cluster, home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict]:
    """What a driver of its own was told, and found: it can end its session."""
    out = tmp_path_factory.mktemp("out") / "seen"
    code = START + CLUSTER.replace("KEPT", str(KEPT))
    arguments = [str(home), cluster.master, str(cluster.workers[0].pid), str(out)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=configure(home), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return pickle.loads(out.read_bytes())


def figures(found: Any) -> list[tuple[Any, ...]]:
    return [
        (name, c.value_count, c.null_value_count, c.min_value, c.max_value, c.avg_length, c.theta, count_items(name, c))
        for name, c in sorted(found.columns.items())
    ]


def count_items(name: str, column: Any) -> collections.Counter[Any]:
    """What a KLL sketch has of each value, in whatever order they came."""
    counts: collections.Counter[Any] = collections.Counter()
    for value, weight in KllSketch.from_bytes({"id": "long", "name": "string"}[name], column.kll).items():
        counts[value] += weight
    return counts


def test_a_scan_on_a_cluster_gives_the_sketches_of_one_machine(seen, home):
    table = icestats.load("db.t", catalog=properties(home) | {"name": "default"})
    here = scan_table(table, sizes=Sizes(KEPT, 12, KEPT, 12))
    assert here.row_count == 6_000
    assert figures(seen[1]["table"]) == figures(here)
    assert seen[1]["committed"] is True


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(seen):
    found = seen[1]
    assert found["dead"]
    assert found["seen"][-1][0] == found["seen"][-1][1]
    assert figures(found["after a kill"]) == figures(found["table"])


def test_options_that_the_active_session_does_not_have_are_refused_without_secrets(seen):
    said = seen[0]
    for what, name in [
        ("another master", "spark.master"),
        ("another memory", "spark.executor.memory"),
        ("another conf", "another spark.hadoop.fs.s3a.secret.key"),
    ]:
        kind, text = said[what]
        assert kind == "CallError"
        assert name in text
        assert "stop_session()" in text
        assert "geheim" not in text
        assert "\n" not in text


def test_executors_with_another_python_or_none_are_said_in_a_line(seen):
    other, none = seen[0]["another Python"], seen[0]["no Python"]
    version = ".".join(map(str, sys.version_info[:2]))
    assert other == [
        "SparkUnavailableError",
        f"the scan of db.t failed: the executors have Python {version} and the driver 3.10: name an interpreter of the "
        "driver's version in PYSPARK_PYTHON",
    ]
    assert none == [
        "SparkUnavailableError",
        "the scan of db.t failed: the executors have no /no/python: name their interpreter in PYSPARK_PYTHON",
    ]


def test_a_session_that_ends_in_the_middle_is_said_in_a_line_and_nothing_is_committed(seen):
    said, found = seen
    kind, text = said["ended by Spark"]
    assert kind == "SparkUnavailableError"
    assert text.startswith("the scan of db.t failed: Spark has ended the application (log: ")
    assert said["warned"] == [
        text.removeprefix("the scan of db.t failed: ").partition(";")[0] + ": a new session is started"
    ]
    kind, text = said["stopped"]
    assert kind == "SparkUnavailableError"
    assert text.startswith("the scan of db.t failed: its Spark session has been stopped")
    committed, current = found["statistics"]
    assert committed == [current]


REFUSED = """
import os, sys
from icestats.errors import IcestatsError
from icestats.spark.session import get_session, stop_session
for options in eval(sys.argv[1]):
    try:
        get_session(**options)
    except IcestatsError as error:
        print(type(error).__name__, error)
print(get_session(master="local[1]").range(7).count())
stop_session()
"""


def test_what_spark_cannot_be_started_with_is_said_in_a_line_and_the_next_start_works():
    secret = {"spark.hadoop.fs.s3a.secret.key": "geheim"}
    refused = [
        (
            {"master": "spark://127.0.0.1:1"},
            "SparkUnavailableError no master of Spark answers at spark://127.0.0.1:1 (",
        ),
        ({"master": "nonsense"}, "SparkUnavailableError Spark did not start: SparkException: "),
        ({"driver_memory": "7z"}, "SparkUnavailableError Spark did not start: Invalid maximum heap size: -Xmx7z"),
        (
            {"master": "local[1]", "conf": {"spark.dynamicAllocation.enabled": "geheim", **secret}},
            "SparkUnavailableError Spark did not start: ",
        ),
        ({"conf": {"executor.memory": "1g"}}, "CallError conf has 'executor.memory': expected a property of Spark's"),
        ({"conf": {"spark.executor.cores": 2}}, "CallError spark.executor.cores is no text"),
        ({"master": ""}, "CallError spark.master is no text, or an empty one: expected one such as 'local[*]'"),
        (
            {"master": "local[1]", "conf": {"spark.master": "local[2]"}},
            "CallError spark.master is 'local[1]', and 'local[2]' in conf: give it once",
        ),
    ]
    command = [sys.executable, "-c", REFUSED, repr([options for options, _ in refused])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    *lines, count = done.stdout.splitlines()
    assert count == "7"
    assert [
        (line, expected) for line, (_, expected) in zip(lines, refused, strict=True) if not line.startswith(expected)
    ] == []
    assert "geheim" not in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (["--table", "--master", "spark://127.0.0.1:1"], 1, "no master of Spark answers at spark://127.0.0.1:1"),
        (["--table", "--conf", "nonsense"], 2, "--conf nonsense: expected KEY=VALUE"),
        (["--table", "--conf", "executor.memory=1g"], 2, "conf has 'executor.memory'"),
        (["--partitions", "--master", "local[1]"], 2, "are of a scan: add --table"),
    ],
)
def test_bad_options_are_a_line_on_the_command_line(home, options, code, line):
    command = [sys.executable, "-m", "icestats", "compute", "db.t", *options]
    done = subprocess.run(command, env=configure(home), capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert line in done.stderr
