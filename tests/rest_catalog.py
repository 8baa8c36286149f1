"""A REST catalog for one table, over PyIceberg's SQL catalog."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableRequest


class Rest(BaseHTTPRequestHandler):
    """As much of the REST catalog protocol as a commit takes, over PyIceberg's SQL catalog."""

    catalog: SqlCatalog
    requirements: list
    config: dict
    taken_and = 0
    """The status that says that a commit was not taken, though it was; 0: the truth."""

    def log_message(self, *_):
        return

    def answer(self, status, document):
        body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_table(self, metadata, location):
        document = {"metadata-location": location, "metadata": json.loads(metadata.model_dump_json()), "config": {}}
        self.answer(200, document)

    def do_GET(self):
        if self.path.startswith("/v1/config"):
            self.answer(200, {"defaults": {}, "overrides": {}, **self.config})
            return
        if "%1Ft/tables/" in self.path:
            # Java asks for the namespace `db.t` too, before it takes `db.t.snapshots` for a metadata table.
            self.answer(404, {"error": {"message": self.path, "type": "NoSuchTableException", "code": 404}})
            return
        table = self.catalog.load_table("db.t")
        metadata = table.metadata
        if self.path.endswith("snapshots=refs"):
            named = {ref.snapshot_id for ref in metadata.refs.values()}
            known = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in named]
            metadata = metadata.model_copy(update={"snapshots": known})
        self.answer_table(metadata, table.metadata_location)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Java leaves out what the path says.
        identifier = {"namespace": ["db"], "name": "t"}
        request = CommitTableRequest.model_validate({"identifier": identifier, **json.loads(body)})
        self.requirements.append([r.type for r in request.requirements])
        table = self.catalog.load_table("db.t")
        try:
            updates = tuple(update for update in request.updates if not is_void(table.metadata, update))
            response = self.catalog.commit_table(table, request.requirements, updates)
        except CommitFailedException as error:
            self.answer(409, {"error": {"message": str(error), "type": "CommitFailedException", "code": 409}})
            return
        if self.taken_and:
            self.answer(self.taken_and, {"error": {"message": "changed", "type": "Error", "code": self.taken_and}})
            return
        self.answer_table(response.metadata, response.metadata_location)


def is_void(metadata, update):
    """Whether it takes out an entry that is not there: Iceberg's Java servers take it, PyIceberg's catalog does not."""
    listed = {
        "remove-statistics": metadata.statistics,
        "remove-partition-statistics": metadata.partition_statistics,
    }.get(update.action)
    return listed is not None and all(entry.snapshot_id != update.snapshot_id for entry in listed)


@contextmanager
def serve(backend, **config):
    """Serve `db.t` of a catalog for the time of a block, with `defaults` or `overrides`; gives the server's URI."""
    handler = type("Handler", (Rest,), {"catalog": backend, "requirements": [], "config": config})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = False
        with answering(server):
            yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def answering(server):
    """Have a server answer, in a thread of its own, for the time of a block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
