"""A catalog's server that does not answer, answers without end, or sends secrets elsewhere."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icestats
from icestats.iceberg import rest_session
from tests.rest_catalog import Rest, answering, serve

TOKEN = {"access_token": "abcdefgh", "token_type": "bearer", "expires_in": 3600}


class Server(BaseHTTPRequestHandler):
    """Knows no table; what it answers otherwise, each test says."""

    asked: list[tuple[str, str]]
    config: ClassVar[Any] = {"defaults": {}, "overrides": {}}
    listed: ClassVar[Any] = {"identifiers": [], "namespaces": []}
    status = 200

    def do_GET(self) -> None:
        self.asked.append((self.path, ""))
        if self.path.startswith("/v1/config"):
            self.answer(200, self.config)
        elif "/tables/" in self.path:
            self.answer(404, {"error": {"message": "none", "type": "NoSuchTableException", "code": 404}})
        else:
            self.answer(self.status, self.listed)

    def do_POST(self) -> None:
        self.asked.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self.answer(200, TOKEN)

    def answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


def ask(known: dict[str, str] | None = None, **answers: Any) -> tuple[icestats.IcestatsError, list[tuple[str, str]]]:
    """Return how a table that the server lacks is refused, and what the server was asked."""
    handler: Any = type("Handler", (Server,), {"asked": [], **answers})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, answering(server):
        uri = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(icestats.IcestatsError) as caught:
            icestats.load("db.t", catalog={"type": "rest", "uri": uri, **(known or {})})
    return caught.value, handler.asked


def test_a_server_sends_no_secret_to_another_than_the_user_signs_in_with(catalog: SqlCatalog) -> None:
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    handlers: list[Any] = [type("Handler", (Server,), {"asked": []}) for _ in range(2)]
    mine, theirs = (ThreadingHTTPServer(("127.0.0.1", 0), handler) for handler in handlers)
    with mine, theirs, answering(mine), answering(theirs):
        elsewhere = {"oauth2-server-uri": f"http://127.0.0.1:{theirs.server_port}/tokens"}
        own = {"oauth2-server-uri": f"http://127.0.0.1:{mine.server_port}/tokens", "credential": "me:not-for-others"}
        for part in ("defaults", "overrides"):
            with serve(catalog, **{part: elsewhere}) as uri:
                assert icestats.load("db.t", catalog={"type": "rest", "uri": uri, **own}).snapshot is None
    assert [(path, "not-for-others" in body) for path, body in handlers[0].asked] == [("/tokens", True)] * 4
    assert handlers[1].asked == []


@pytest.mark.parametrize("credential", [None, "me:secret"])
def test_a_server_that_does_not_answer_is_not_waited_for_without_end(credential: str | None) -> None:
    """PyIceberg asks without a time limit."""
    is_over = threading.Event()
    waits = {name: lambda _: is_over.wait(20) for name in ("do_GET", "do_POST")}
    handler = type("Handler", (Server,), waits)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, answering(server):
        uri = f"http://127.0.0.1:{server.server_port}"
        known = {"type": "rest", "uri": uri, "rest.client.socket-timeout-ms": "200"}
        if credential is not None:
            known |= {"credential": credential, "oauth2-server-uri": f"{uri}/tokens"}
        with pytest.raises(icestats.CatalogError, match=r"cannot be opened: .*Read timed out"):
            icestats.load("db.t", catalog=known)
        is_over.set()


def test_a_time_limit_that_is_no_number_is_one_line() -> None:
    error, _ = ask({"rest.client.socket-timeout-ms": "soon"})
    assert "cannot be opened: " in str(error)
    assert "soon" in str(error)


def test_a_list_without_end_is_not_read_to_say_what_there_is() -> None:
    """A page that says of itself that another follows was asked for again and again."""
    error, asked = ask(listed={"identifiers": [], "namespaces": [], "next-page-token": "a"})
    assert str(error) == "no table 't' in catalog.db, or one that may not be seen: what is there cannot be listed"
    assert len(asked) < 2 * rest_session.MOST_PAGES + 10


def test_what_may_not_be_listed_is_not_said_to_be_missing() -> None:
    """The namespace was said to be missing, and to be there, in one sentence."""
    forbidden = {"error": {"message": "no", "type": "ForbiddenException", "code": 403}}
    error, _ = ask(status=403, listed=forbidden)
    assert str(error) == "no table 't' in catalog.db, or one that may not be seen: what is there cannot be listed"


def test_answers_are_of_utf8_whatever_the_server_says_of_them(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text of no said encoding was Latin 1, and of no said type was looked through for minutes, and guessed."""
    catalog.create_table("db.t", pa.schema([("größe", pa.int64())])).append(pa.table({"größe": [1, 2]}))

    def answer(request: Any, status: int, document: Any) -> None:
        body = json.dumps(document, ensure_ascii=False).encode()
        request.send_response(status)
        request.send_header("Content-Type", "text/plain")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    monkeypatch.setattr(Rest, "answer", answer)
    with serve(catalog) as uri:
        table = icestats.load("db.t", catalog={"type": "rest", "uri": uri})
        icestats.writers.append(table, pa.table({"größe": [3]}))
    assert catalog.load_table("db.t").scan().to_arrow()["größe"].to_pylist() == [3, 1, 2]


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_session, "MAX_FILE_SIZE_BYTES", 100_000)
    error, _ = ask(config={"defaults": {"a": "b" * 200_000}, "overrides": {}})
    assert str(error).endswith("cannot be opened: the catalog's server answers 200 with more than 100,000 bytes")


def test_an_error_without_end_is_not_read() -> None:
    error, _ = ask(status=500, listed={"error": {"message": "b" * 2_000_000, "type": "Odd", "code": 500}})
    assert "b" * 1_000 not in str(error)


def test_an_address_where_nothing_is_found_is_not_said_to_have_unknown_namespaces() -> None:
    """As a proxy, or a server of something else, answers to everything but the first request."""
    error, _ = ask(status=404, listed="<html>Not Found</html>")
    expected = (
        "no namespace 'db' in catalog 'catalog', and what is there cannot be listed: is the catalog's 'uri' right?"
    )
    assert str(error) == expected
