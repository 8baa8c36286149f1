"""A storage that does not answer is an error in one line, soon."""

from __future__ import annotations

import socket
import subprocess
import sys

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


def test_google_cloud_storage_that_does_not_answer_is_an_error_soon():
    """Arrow would try for 15 minutes; what the user has set, here the host, stays."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        command = [sys.executable, "-c", UNREACHED, str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert "Google Cloud Storage was not reached, tried for 1 s: " in line
    assert "gs://bucket/metadata/v1.metadata.json" in line
