"""Fixtures of the whole suite: the demo warehouse, built once a session, and one Spark session; how a run ended."""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from sqlalchemy import Engine, event
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# jsonschema checks IRIs where this is installed, and takes a second for its grammars. None: it is not there.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

FUZZ = "ICESTATS_FUZZ" in os.environ
"""Whether properties are tried on new examples each time (`make fuzz`), or on the same ones."""
settings.register_profile("icestats", deadline=None, derandomize=not FUZZ, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("icestats")


@event.listens_for(Engine, "connect")
def _wait_for_no_disk(connection: Any, _record: Any) -> None:
    """Of a commit to a SQLite catalog half the time is waiting for the disk, in case of a power cut."""
    connection.execute("pragma synchronous = off")


def pytest_configure(config: pytest.Config) -> None:
    """Show where each thread is when the run is ended from outside; pytest captures stderr only later."""
    faulthandler.register(signal.SIGTERM, file=os.dup(2), chain=True)
    # Shells start what is to run in the background with the signal ignored, and so would be all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Thousands of tests and their modules stay to the end: looking through them more rarely takes 8 % off the CPU.
    gc.set_threshold(20_000)
    # From scripts/warm_up.py: a session starts with half of the CPU. Where there is none, Java does without.
    archive = f"-XX:SharedArchiveFile={sys.prefix}/spark.jsa"
    options = (
        # JVMs of tests are over before Java's second compiler pays off: without it each takes a third less CPU.
        "-XX:TieredStopAtLevel=1",
        f'"{archive}"',
        # So are the executors of a cluster.
        f'"-Dspark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {archive}"',
        # By default a query of a small table shuffles into 200 partitions, which takes half of its CPU.
        "-Dspark.sql.shuffle.partitions=4",
    )
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(options))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first: Spark; then what needs no demo warehouse, while that is built; then the browser."""
    order = ("spark", "docs", "property", "commit", "browser", "notebooks")
    folders = [Path(item.nodeid).parts[1] for item in items]
    places = [order.index(folder) if folder in order else len(order) for folder in folders]
    items[:] = [items[at] for at in sorted(range(len(items)), key=places.__getitem__)]


class OneSessionAWorker(LoadScopeScheduling):
    """On one worker of xdist: each half of what shares a Spark session, and all of the browser; the rest by module."""

    def _split_scope(self, nodeid: str) -> str:
        path, folder = nodeid.partition("::")[0], Path(nodeid).parts[1]
        if "own_jvms" in path:
            return path
        half = "spark" if Path(path).name < "test_m" else "spark, second half"
        return {"spark": half, "docs": half, "browser": "browser", "notebooks": nodeid}.get(folder, path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneSessionAWorker:
    """Take the place of `--dist`."""
    return OneSessionAWorker(config, log)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say, as the last thing of a run, how a JVM of Spark has ended that nobody has stopped."""
    if "icestats.spark.jvm" not in sys.modules:
        return
    from icestats.spark.jvm import read_ended

    for jvm in read_ended():
        said = f"Spark's JVM {jvm.process.pid} was not stopped and ended, exit code {jvm.process.returncode}; its log:"
        tail = jvm.log.read_text(errors="replace").splitlines()[-20:]
        print("", said, *tail, sep="\n", file=sys.stderr)  # noqa: T201


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of roll-ups of the run's own: nothing is known before, and the user's is not filled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ICESTATS_CACHE", str(_of_all_workers(tmp_path_factory.getbasetemp()) / "cache"))
        yield


def _of_all_workers(folder: Path) -> Path:
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo warehouse with its statistics, built by PySpark once for all workers; ICESTATS_HOME points to it."""
    from icestats.cli.command_line import cli

    home = _of_all_workers(tmp_path_factory.getbasetemp()) / "demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ICESTATS_HOME", str(home))
        with home.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            CliRunner().invoke(cli, ["demo"], catch_exceptions=False)
        yield home


@pytest.fixture(scope="session")
def spark(demo_home: Path) -> Iterator[Any]:
    """A Spark session that knows the demo catalog."""
    from icestats.iceberg.catalog import DEMO_CATALOG, demo_catalog_properties
    from icestats.spark.session import get_session, spark_catalog_properties, stop_session

    properties = spark_catalog_properties(demo_catalog_properties(demo_home))
    yield get_session({DEMO_CATALOG: properties or {}})
    stop_session()


@pytest.fixture
def catalog_properties(tmp_path: Path) -> dict[str, str]:
    """A SQLite catalog and its warehouse, in a folder of its own."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path / 'catalog.db'}",
        "warehouse": f"file://{tmp_path / 'warehouse'}",
    }


@pytest.fixture
def catalog(catalog_properties: dict[str, str]) -> Iterator[SqlCatalog]:
    catalog = SqlCatalog("catalog", **catalog_properties)
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


@pytest.fixture
def renamed_fields(catalog: SqlCatalog) -> Table:
    """A table whose first partition field was renamed and removed; its name is that of another field now."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = catalog.create_table("db.renamed", schema, properties={"format-version": "2"})
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["x", "x"]})
    table.update_spec().add_field("id", IdentityTransform(), "p").commit()
    table.append(rows)
    table.update_spec().rename_field("p", "q").commit()
    table.update_spec().remove_field("q").commit()
    table.update_spec().add_field("name", IdentityTransform(), "p").commit()
    table.append(rows)
    return table
