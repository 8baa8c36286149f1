"""One engine at a time, and for each test a schema of its own; these tests run only where they are named."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icestats.spark.session import stop_session
from tests.interop.catalog_server import CATALOGS, CatalogServer, fetch_catalog, run_catalog
from tests.interop.engine_server import CATALOG, ENGINES, Server, fetch, run_server
from tests.interop.lake import Lake

HERE = Path(__file__).parent
_numbers = itertools.count()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these tests to those who name them: engines are downloads of 3 GB."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(HERE in (path, *path.parents) for path in named) else True


@pytest.fixture(scope="session", params=ENGINES, ids=str)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    fetch(request.param)
    with run_server(request.param, tmp_path_factory.mktemp(request.param.name)) as server:
        yield server


@pytest.fixture(scope="session", params=CATALOGS, ids=str)
def catalog_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    fetch_catalog(request.param)
    with run_catalog(request.param, tmp_path_factory.mktemp("catalog")) as server:
        # A session of tests before may lack what opens S3.
        stop_session()
        yield server
        stop_session()


@pytest.fixture(scope="session", autouse=True)
def _spark() -> Iterator[None]:
    yield
    stop_session()


@pytest.fixture
def lake(server: Server, tmp_path: Path) -> Iterator[Lake]:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    schema = f"s{next(_numbers)}"
    with SqlCatalog(schema, **properties) as catalog:
        catalog.create_namespace(schema)
        server.query(f"create schema {CATALOG}.{schema}")
        yield Lake(server, catalog, schema, tmp_path / "warehouse")


@pytest.fixture(scope="session")
def orders() -> pa.Table:
    """20,000 rows, with a column of each type that both engines know."""
    random = np.random.default_rng(7)
    numbers = range(20_000)
    start = dt.datetime(2026, 1, 1)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "customer": pa.array(random.integers(0, 100, len(numbers)), pa.int32()),
        "price": pa.array(random.lognormal(3, 1, len(numbers))),
        "name": pa.array([None if i % 10 == 0 else f"name {i % 500}" for i in numbers]),
        "day": pa.array([start.date() + dt.timedelta(days=i % 30) for i in numbers]),
        "at": pa.array([start + dt.timedelta(seconds=i // 2) for i in numbers], pa.timestamp("us")),
        "paid": pa.array([i % 3 == 0 for i in numbers]),
        "amount": pa.array([Decimal(i % 7_000) / 100 for i in numbers], pa.decimal128(12, 2)),
    }
    return pa.table(columns)
