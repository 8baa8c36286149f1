"""An S3-compatible server on a free loopback port: moto's, with a gate before manifests."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

# Moto's server, with a gate before manifests: GET /gate/N holds requests for them back until N are there at one time,
# and gives the most that there were since the last call.
_SERVER = """
import threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

class Gate:
    def __init__(self, app):
        self.app, self.arrived = app, threading.Condition()
        self.wanted = self.present = self.most = 0

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path.startswith("/gate/"):
            with self.arrived:
                most, self.most, self.wanted = self.most, 0, int(path[6:])
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [str(most).encode()]
        if environ["REQUEST_METHOD"] != "GET" or not path.endswith("-m0.avro"):
            return self.app(environ, start_response)
        with self.arrived:
            self.present += 1
            self.most = max(self.most, self.present)
            self.arrived.notify_all()
            self.arrived.wait_for(lambda: self.most >= self.wanted, timeout=600)
        try:
            return self.app(environ, start_response)
        finally:
            with self.arrived:
                self.present -= 1

class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    def log(self, *arguments): pass

app = Gate(DomainDispatcherApplication(create_backend_app))
server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def run_s3() -> Iterator[str]:
    """Run the server, with a bucket named `bucket`; gives its address, and ends it."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")) as answer:
            assert answer.status == 200
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=30)
