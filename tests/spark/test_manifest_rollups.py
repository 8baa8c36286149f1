"""Spark's executors read manifests to the same answer as one machine, even where they have no icestats."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from dataclasses import fields, replace
from pathlib import Path

import numba
import pytest

import icestats
from benchmarks.spark_cluster import run_cluster
from icestats.read.manifests.manifests import ManifestToRead, RollUps, manifests_to_read, read_rollups
from icestats.spark.java import find_java
from icestats.spark.jobs import cancel_jobs
from icestats.spark.manifest_rollups import bundle_manifests, job_group, read_rollups_with_spark
from tests.bare_python import make_bare_python

pytestmark = pytest.mark.spark


def what_to_read(table):
    return manifests_to_read(table.manifest_files()), table.metadata, table._source.storage, table.schema


def read(spark, table, progress=None, change=lambda manifests: manifests):
    manifests, *rest = what_to_read(table)
    return read_rollups_with_spark(spark, change(manifests), *rest, progress=progress)


def differing(first: RollUps, second: RollUps) -> list[str]:
    return [f.name for f in fields(RollUps) if not getattr(first, f.name).equals(getattr(second, f.name))]


def damaged(folder: Path, manifest: ManifestToRead) -> ManifestToRead:
    """A copy of a manifest that is cut before the end of a block."""
    path = folder / "cut.avro"
    path.write_bytes(Path(manifest.path.removeprefix("file:")).read_bytes()[:-40])
    return replace(manifest, path=str(path), length=path.stat().st_size)


@pytest.mark.parametrize("name", ["demo.events", "demo.flights"])
def test_the_answer_is_that_of_one_machine_row_for_row(spark, demo_home, name):
    table = icestats.load(name)
    assert differing(read(spark, table), read_rollups(*what_to_read(table))) == []


def test_no_manifests_are_no_job(spark, demo_home):
    table = icestats.load("demo.flights")
    before = spark.sparkContext.statusTracker().getJobIdsForGroup(job_group(table.metadata))
    assert read(spark, table, change=lambda _: []).manifests.num_rows == 0
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(job_group(table.metadata)) == before


def test_progress_ends_with_all_tasks(spark, demo_home):
    table = icestats.load("demo.events")
    seen: list[tuple[int, int]] = []
    read(spark, table, lambda done, total: seen.append((done, total)))
    bundles = bundle_manifests(what_to_read(table)[0], 2 * spark.sparkContext.defaultParallelism)
    assert seen == sorted(seen)
    assert seen[-1] == (len(bundles), len(bundles))


def test_a_damaged_manifest_is_the_error_of_one_machine(spark, demo_home, tmp_path):
    table = icestats.load("demo.events")
    manifests, *rest = what_to_read(table)
    manifests[3] = damaged(tmp_path, manifests[3])
    with pytest.raises(icestats.MetadataError) as alone:
        read_rollups(manifests, *rest)
    with pytest.raises(icestats.MetadataError) as caught:
        read_rollups_with_spark(spark, manifests, *rest)
    assert str(caught.value) == str(alone.value)
    assert (caught.value.path, caught.value.offset) == (manifests[3].path, alone.value.offset)
    assert caught.value.offset is not None


class StopReadingError(Exception):
    """What a caller's own progress raises."""


def test_a_job_is_stopped_by_cancelling_and_by_what_progress_raises(spark, demo_home, tmp_path):
    """A manifest that never comes does not keep the call: it ends with one line, and no job goes on."""
    table = icestats.load("demo.events")
    never = tmp_path / "never.avro"
    os.mkfifo(never)

    def with_never(manifests):
        return [*manifests[:-1], replace(manifests[-1], path=str(never), length=0)]

    def cancel(done: int, total: int) -> None:
        cancel_jobs(spark, job_group(table.metadata))

    def stop(done: int, total: int) -> None:
        raise StopReadingError(f"enough after {done} of {total}")

    with pytest.raises(icestats.IcestatsError) as cancelled:
        read(spark, table, cancel, with_never)
    assert str(cancelled.value) == "the Spark job that reads the manifests was cancelled: nothing has been changed"
    with pytest.raises(StopReadingError, match="enough after"):
        read(spark, table, stop, with_never)
    # Spark tells its tracker of a job's end after the caller.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("watch ")]
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
    assert differing(read(spark, table), read_rollups(*what_to_read(table))) == []


@pytest.mark.parametrize(("lengths", "least"), [([5] * 40, 4), ([0, 0, 0], 8), ([1 << 30, 1, 1], 2), ([7], 4)])
def test_every_manifest_is_in_one_bundle_and_in_its_order(lengths, least):
    manifests = [ManifestToRead(str(i), length, 0, "data") for i, length in enumerate(lengths)]
    bundles = bundle_manifests(manifests, least)
    assert [manifest for bundle in bundles for manifest in bundle] == manifests
    assert all(bundles)
    assert len(bundles) <= max(least, sum(lengths) >> 20)


DRIVER = """
import sys
from dataclasses import fields, replace
from pathlib import Path

import icestats
from icestats.errors import MetadataError, SparkUnavailableError
from icestats.read.manifests.manifests import RollUps, manifests_to_read, read_rollups
from icestats.spark.manifest_rollups import read_rollups_with_spark
from icestats.spark.session import get_session, stop_session

master, work, packages, numba = sys.argv[1:]
spark = get_session(master=master, conf={
    "spark.executor.memory": "512m", "spark.default.parallelism": "1", "spark.task.maxFailures": "1"})
table = icestats.load("demo.events")
manifests = manifests_to_read(table.manifest_files())
rest = table.metadata, table._source.storage, table.schema
try:
    read_rollups_with_spark(spark, manifests, *rest)
except SparkUnavailableError as error:
    print("missing:", error)
Path(packages, "numba").symlink_to(numba)
found = read_rollups_with_spark(spark, manifests, *rest)
expected = read_rollups(manifests, *rest)
print("equal:", all(getattr(found, f.name).equals(getattr(expected, f.name)) for f in fields(RollUps)))
cut = Path(work, "cut.avro")
cut.write_bytes(Path(manifests[3].path.removeprefix("file:")).read_bytes()[:-40])
manifests[3] = replace(manifests[3], path=str(cut), length=cut.stat().st_size)
try:
    read_rollups_with_spark(spark, manifests, *rest)
except MetadataError as error:
    print("damaged:", error.path == str(cut), error.offset is not None)
computed = icestats.load("demo.flights").compute(columns=["carrier"], spark=spark, by="partition").found
print("computed:", computed.row_count, len(computed.by_partition.columns["carrier"]))
print("shipped:", len(spark.sparkContext.listArchives))
stop_session()
"""


def test_executors_without_icestats_are_sent_it(demo_home, tmp_path):
    """On a master and a worker of their own: what is missing is named, then the answer is that of one machine."""
    packages = make_bare_python(tmp_path)
    python = tmp_path / "bare" / "bin" / "python"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
    }
    check = [python, "-c", "import pyarrow, icestats"]
    absent = subprocess.run(check, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "No module named 'icestats'" in absent.stderr
    with run_cluster(tmp_path, 1, cores=2, environment={"PYSPARK_PYTHON": str(python)}) as cluster:
        command = [sys.executable, "-c", DRIVER, cluster.master, tmp_path, packages, Path(numba.__file__).parent]
        own_path = {"PYTHONPATH": str(Path(icestats.__file__).parent.parent)}
        done = subprocess.run(
            list(map(str, command)),
            env=environment | own_path,
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    missing, *others = done.stdout.splitlines()
    assert re.match(r"missing: the Spark job .* failed: the executors' Python has no 'numba': install .*", missing)
    assert others == ["equal: True", "damaged: True True", "computed: 336776 193", "shipped: 1"]


def test_a_table_answers_the_same_when_spark_has_read_it(spark, demo_home, monkeypatch):
    monkeypatch.setenv("ICESTATS_CACHE", "off")
    seen: list[tuple[int, int]] = []
    read = icestats.load("demo.flights").read_with_spark(spark, progress=lambda *counts: seen.append(counts))
    local = icestats.load("demo.flights").read()
    assert seen
    for name in ("manifests", "partitions", "columns"):
        assert getattr(read, name)().equals(getattr(local, name)())
