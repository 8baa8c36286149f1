"""Fixtures of the whole suite: the demo warehouse, built once a session, and one Spark session; how a run ended."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pyiceberg.catalog.sql import SqlCatalog

FUZZ = "ICESTATS_FUZZ" in os.environ
"""Whether properties are tried on new examples each time (`make fuzz`), or on the same ones."""
settings.register_profile("icestats", deadline=None, derandomize=not FUZZ, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("icestats")


def pytest_configure(config: pytest.Config) -> None:
    """Show where each thread is when the run is ended from outside; pytest captures stderr only later."""
    faulthandler.register(signal.SIGTERM, file=os.dup(2), chain=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say, as the last thing of a run, how a JVM of Spark has ended that nobody has stopped."""
    if "icestats.spark.jvm" not in sys.modules:
        return
    from icestats.spark.jvm import read_ended

    writer = config.get_terminal_writer()
    for jvm in read_ended():
        writer.line()
        writer.line(
            f"Spark's JVM {jvm.process.pid} was not stopped and ended, exit code {jvm.process.returncode}; its log:"
        )
        for line in jvm.log.read_text(errors="replace").splitlines()[-20:]:
            writer.line(line)


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo warehouse, built by PySpark in a folder of its own; ICESTATS_HOME points to it."""
    from icestats.spark.demo.demo_warehouse import build_demo

    home = tmp_path_factory.mktemp("demo")
    before = os.environ.get("ICESTATS_HOME")
    os.environ["ICESTATS_HOME"] = str(home)
    build_demo(home)
    yield home
    if before is None:
        del os.environ["ICESTATS_HOME"]
    else:
        os.environ["ICESTATS_HOME"] = before


@pytest.fixture(scope="session")
def spark(demo_home: Path) -> Iterator[Any]:
    """A Spark session that knows the demo catalog."""
    from icestats.iceberg.catalog import DEMO_CATALOG, demo_catalog_properties
    from icestats.spark.session import get_session, spark_catalog_properties, stop_session

    properties = spark_catalog_properties(demo_catalog_properties(demo_home))
    yield get_session({DEMO_CATALOG: properties or {}})
    stop_session()


@pytest.fixture(scope="session")
def demo_statistics(spark: Any, demo_home: Path) -> Path:
    """The demo warehouse with the statistics of both tables committed."""
    import icestats
    from icestats.cli.workplace_verbs import KLL_K

    for name in ("demo.events", "demo.flights"):
        icestats.load(name).compute(k=KLL_K).commit()
    return demo_home


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
