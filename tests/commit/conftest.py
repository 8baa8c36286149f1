"""A catalog in a folder of its own, and the table `db.t` of two rows."""

from __future__ import annotations

import pytest

from tests.committed_statistics import ROWS, open_catalog


@pytest.fixture
def catalog(tmp_path):
    with open_catalog(tmp_path) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", schema=ROWS.schema).append(ROWS)
        yield catalog


@pytest.fixture
def table(catalog):
    return catalog.load_table("db.t")
