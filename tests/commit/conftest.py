"""A catalog in a folder of its own, and the table `db.t` of two rows."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.committed_statistics import ROWS, open_catalog
from tests.rest_catalog import serve


@pytest.fixture
def catalog(tmp_path):
    with open_catalog(tmp_path) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
        yield catalog


@pytest.fixture
def table(catalog):
    return catalog.load_table("db.t")


@pytest.fixture
def rest_table(table, tmp_path):
    """The same table through a REST catalog."""
    backend = open_catalog(tmp_path, "?check_same_thread=false")
    with backend, serve(backend) as uri, RestCatalog("r", uri=uri) as rest:
        yield rest.load_table("db.t")
