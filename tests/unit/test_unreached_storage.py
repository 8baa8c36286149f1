"""A storage that does not answer is an error in one line, soon."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

UNREACHED = """
import sys
import icestats
from icestats.iceberg import storage

storage.GCS_RETRY_LIMIT_S = 1
properties = {
    "gcs.service.host": f"http://127.0.0.1:{sys.argv[1]}",
    "gcs.oauth2.token": "token", "gcs.oauth2.token-expires-at": "4102444800000",
}
try:
    icestats.load("gs://bucket/metadata/v1.metadata.json", catalog=properties)
except icestats.MetadataError as error:
    print(error)
"""

NAMED_BY_A_TABLE = """
import logging, sys
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
import icestats
from icestats.iceberg import storage
from tests.committed_statistics import register

logging.disable()
storage.GCS_RETRY_LIMIT_S = 1
settings = {
    "type": "sql", "uri": f"sqlite:///{sys.argv[2]}/catalog.db", "warehouse": f"file://{sys.argv[2]}",
    "gcs.service.host": f"http://127.0.0.1:{sys.argv[1]}",
    "gcs.oauth2.token": "token", "gcs.oauth2.token-expires-at": "4102444800000",
}
with SqlCatalog("catalog", **settings) as catalog:
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    register(table, "gs://bucket/metadata/a.stats", [1], size=9)
try:
    icestats.load("db.t", catalog=settings).compute(manifests=True).commit()
except icestats.CommitError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("script", "location"),
    [(UNREACHED, "gs://bucket/metadata/v1.metadata.json"), (NAMED_BY_A_TABLE, "gs://bucket/metadata/a.stats")],
)
def test_google_cloud_storage_that_does_not_answer_is_an_error_soon(script, location, tmp_path):
    """Arrow would try for 15 minutes; what the user has set, here the host, stays."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        command = [sys.executable, "-c", script, str(port), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert "Google Cloud Storage was not reached, tried for 1 s: " in line
    assert location in line
