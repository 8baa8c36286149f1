"""A scan that is interrupted ends, with its job, and has changed nothing; without a listener it says what it reads."""

from __future__ import annotations

import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.errors import IcestatsError
from icestats.iceberg.storage import local_path
from icestats.spark.jobs import explained_errors, watch_jobs

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark, tmp_path):
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": f"file://{tmp_path / 'w'}"}
    with SqlCatalog("catalog", **properties) as catalog:
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
        made.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
        made.append(pa.table({"id": [3], "name": ["c"]}))
    return icestats.load("db.t", catalog=properties)


def test_an_interrupt_ends_a_scan_and_its_job(spark, table, caplog):
    """Of a file that never comes; as Ctrl-C does it, and a notebook's stop button."""
    path = local_path(table.files()["file_path"].to_pylist()[0])
    data = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    interrupts = iter([signal.SIGINT])

    def interrupt(_finished: int, _total: int) -> None:
        for number in interrupts:
            os.kill(os.getpid(), number)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        table.compute(progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is handler
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
    # Spark's scheduler does one thing after the other, and tells its tracker of a job's end after the caller.
    assert spark.range(1).count() == 1
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert table.refresh().metadata.statistics == ()
    path.unlink()
    path.write_bytes(data)
    assert table.compute().found.row_count == 3


class StopComputingError(Exception):
    """What a caller's own progress raises."""


def test_what_progress_raises_ends_the_job_and_comes_to_the_caller(spark, tmp_path):
    """Of a task that would wait for ever; from the thread that hears of progress to that of the block."""
    never = tmp_path / "never"
    os.mkfifo(never)

    def stop(done: int, total: int) -> None:
        raise StopComputingError(f"enough after {done} of {total}")

    def wait(_row: object) -> None:
        never.read_text()

    with (
        pytest.raises(StopComputingError, match="enough after 0 of 1"),
        explained_errors(spark, "the job"),
        watch_jobs(spark, "icestats: never", stop),
    ):
        spark.range(0, 1, numPartitions=1).rdd.foreach(wait)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


def test_a_block_that_is_stopped_leaves_another_of_its_group(spark, tmp_path):
    """As two threads compute statistics of tables of one name."""
    waits = tmp_path / "waits"
    os.mkfifo(waits)

    def wait(_row: object) -> None:
        waits.read_text()

    def work() -> None:
        with watch_jobs(spark, "shared"):
            spark.range(0, 1, numPartitions=1).rdd.foreach(wait)

    def stop(_done: int, _total: int) -> None:
        raise StopComputingError

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(work)
        with waits.open("w"), pytest.raises(StopComputingError), watch_jobs(spark, "shared", stop):
            spark.range(0, 10**15, 1, 1).selectExpr("sum(hash(id))").collect()
        other.result()


def test_what_fails_after_an_interrupt_does_not_hide_it(spark):
    """PySpark calls the JVM once more while it leaves a call that was interrupted, on a connection that may be gone."""

    def call(interrupt: type[BaseException]) -> None:
        with explained_errors(spark, "a scan"), watch_jobs(spark, "a scan"):
            try:
                raise interrupt
            finally:
                raise Py4JNetworkError("no answer")

    with pytest.raises(KeyboardInterrupt):
        call(KeyboardInterrupt)
    with pytest.raises(IcestatsError, match="a scan failed: no answer"):
        call(ValueError)


def test_an_interrupt_that_cuts_the_connection_is_raised_where_no_new_one_comes(spark, monkeypatch):
    client = spark.sparkContext._gateway._gateway_client

    def call() -> None:
        with explained_errors(spark, "a scan"), watch_jobs(spark, "a scan"):
            client.get_thread_connection().close()
            monkeypatch.setattr(client.java_parameters, "auth_token", "not the token of this JVM")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call()
    monkeypatch.undo()
    assert spark.range(1).count() == 1


def test_what_is_read_is_said_before_unless_somebody_listens(table, capsys):
    table.compute(columns=["n*"])
    said = capsys.readouterr().err
    assert "db.t: reads 1 of 2 columns of 2 data files (" in said
    assert "; an interrupt (Ctrl-C) stops it\n" in said
    table.compute(columns=["n*"], progress=lambda finished, total: None)
    assert "reads" not in capsys.readouterr().err
