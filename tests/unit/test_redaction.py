"""Secrets of the user's properties stand in no repr, message or traceback."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import traceback
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import quote, quote_plus

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO

import icestats
from icestats.answers.redaction import HIDDEN_NAMES, hide_secrets
from icestats.answers.text import one_line, printable
from icestats.commit.puffin_writer import NewBlob
from icestats.commit.statistics_commit import commit_statistics, prepare_commit
from icestats.errors import HIDDEN_IN_URLS, MetadataError, hide_in_urls
from icestats.iceberg.catalog import open_source
from icestats.iceberg.storage import Storage
from tests import failing_storage
from tests.failing_storage import Failure
from tests.rest_catalog import Rest, answering, serve

SECRETS = {
    name: f"hidden-{number}"
    for number, name in enumerate(
        (
            "credential",
            "token",
            "s3.access-key-id",
            "s3.secret-access-key",
            "s3.session-token",
            "client.access-key-id",
            "client.secret-access-key",
            "client.session-token",
            "s3.sse.key",
            "header.Cookie",
            "header.X-My-Auth",
            "ugi",
            "adls.account-key",
            "adls.connection-string",
            "adls.connection-string.mine",
            "adls.sas-token",
            "adls.sas-token.mine",
            "adls.client-secret",
            "adls.credential",
            "adls.auth.shared-key.account.key",
            "gcs.oauth2.token",
            "gcs.encryption-key",
            "gcs.decryption-key",
            "hdfs.kerberos_ticket",
            "hf.token",
            "jdbc.password",
            "header.Authorization",
            "header.X-Api-Key",
            "ssl.private-key",
            "rest.access_key",
        )
    )
}
SHOWN = ("uri", "warehouse", "type", "s3.endpoint", "s3.region", "client.region", "adls.account-name", "io-impl")


@pytest.mark.parametrize("name", SECRETS)
def test_names_of_secrets_are_known(name):
    assert re.search(HIDDEN_NAMES, name.lower())


@pytest.mark.parametrize("name", SHOWN)
def test_names_that_say_where_a_catalog_is_are_shown(name):
    assert not re.search(HIDDEN_NAMES, name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jdbc:postgresql://me:p%40ss@host:5432/db", "jdbc:postgresql://***@host:5432/db"),
        ("thrift://:pass@host", "thrift://***@host"),
        ("https://me:a@b@host/x", "https://***@host/x"),
        ("s3://bucket/a@b:c", "s3://bucket/a@b:c"),
        ("https://host:80/a@b", "https://host:80/a@b"),
        ("abfss://container@account.dfs.core.windows.net/a", "abfss://container@account.dfs.core.windows.net/a"),
        ("GET https://h/a?x=1&X-Amz-Signature=ab/c&y=2", "GET https://h/a?x=1&X-Amz-Signature=***&y=2"),
        ("https://h/a?sv=1&sig=ab%2Bc'", "https://h/a?sv=1&sig=***'"),
        ("POST id=me&client_secret=ab%2Bc&scope=all", "POST id=me&client_secret=***&scope=all"),
        ("{'Authorization': 'Bearer a.b-c', 'Accept': '*'}", "{'Authorization': 'Bearer ***', 'Accept': '*'}"),
        ("postgresql+psycopg2://h/db?user=me&password=ab&x=1", "postgresql+psycopg2://h/db?user=me&password=***&x=1"),
        ("GET https://h/?api_key=ab%2B&pwd=c", "GET https://h/?api_key=***&pwd=***"),
        ("authorization: abc", "authorization: ***"),
        ("bad: Bearer ab/c12.d-e=", "bad: Bearer ***"),
        ("Basic authentication failed", "Basic authentication failed"),
        ("no such token: eyJhbGciOi.eyJzdWIi.c2lnbmVk-_", "no such token: ***"),
        ("{'X-Amz-Security-Token': 'a/b'}", "{'X-Amz-Security-Token': '***'}"),
        ("AccountName=a;AccountKey=ab/c==", "AccountName=a;AccountKey=***"),
        ("Authorization failed", "Authorization failed"),
    ],
)
def test_urls_keep_all_but_their_secrets(text, shown):
    assert hide_in_urls(text) == shown
    assert one_line(ValueError(text)) == shown
    assert (re.search(HIDDEN_IN_URLS, text) is None) == ("***@" not in shown)


@pytest.mark.parametrize(
    "text",
    [
        "://" + ":" * 1_000_000,
        "://:" * 200_000,
        "?" + "token" * 200_000,
        "://" + ":@" * 500_000,
        "-eyJaaaaaa" * 100_000,
        "bearer " * 100_000,
    ],
)
def test_a_long_name_is_searched_for_passwords_in_one_pass(text):
    """Each colon was tried with all that follow: an error that names a column of 60,000 took half a minute."""
    assert hide_in_urls(text) == ("://***@" if "@" in text else text)


def test_a_source_shows_no_properties(small_table, catalog_properties):
    for name, own in (("db.small", catalog_properties), (small_table.metadata_location, {})):
        source = open_source(name, own | SECRETS)
        assert "hidden" not in repr(source)
        assert repr(source).startswith("Source(name=")
        assert "hidden" not in repr(source.storage)


@pytest.mark.parametrize(
    "properties",
    [
        {"type": "nothing of the kind"},
        {"py-catalog-impl": "no_such_module.Catalog"},
        {"type": "sql", "uri": "postgresql://me:hidden@127.0.0.1:9/db"},
        {"type": "sql", "uri": "no such dialect://me:hidden@127.0.0.1:9/db"},
        {"type": "rest", "uri": "http://me:hidden@127.0.0.1:9"},
    ],
)
def test_a_catalog_that_cannot_be_opened_tells_no_secret(properties):
    """Nor does the traceback that a notebook shows."""
    with pytest.raises(icestats.CatalogError) as caught:
        icestats.load("db.small", catalog=properties | SECRETS)
    shown = "".join(traceback.format_exception(caught.value))
    assert "hidden-" not in shown
    assert "me:hidden" not in shown


@pytest.mark.parametrize("kind", ["sql", "rest", "hive"])
@pytest.mark.parametrize(
    "password", ["p@ss:hunter2", "hunter2/x", "x/hunter2", "x@hunter2/y", "hun ter2", "hunter2\\x", "hunter2"]
)
@pytest.mark.parametrize("scheme", ["postgresql://", "https://", "jdbc:postgresql://", "thrift:/", ""])
def test_a_password_that_is_not_encoded_is_hidden_where_libraries_take_it_for_a_host_or_a_port(scheme, password, kind):
    with pytest.raises(icestats.IcestatsError) as caught:
        icestats.load("db.small", catalog={"type": kind, "uri": f"{scheme}me:{password}@127.0.0.1:9/db"})
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in shown
    assert "hun ter2" not in shown


@pytest.mark.parametrize(
    "location",
    ["https://host:80/warehouse@b", "abfss://warehouse@account/a", "s3://warehouse/a@b:c@d", "hdfs://h:1/warehouse"],
)
def test_what_is_no_password_of_an_address_is_shown(location):
    assert hide_secrets("the warehouse", {"warehouse": location}) == "the warehouse"


class _Echo(BaseHTTPRequestHandler):
    """A server that repeats what it was sent, in an error."""

    def refuse(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        said = f"no access: {self.headers['Authorization']} {sent.rpartition('client_secret=')[2]}"
        body = json.dumps({"error": {"message": said, "type": "NotAuthorized", "code": 401}}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = refuse  # noqa: N815 - the base class's names

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize(
    "given",
    [
        {"credential": "me:hidden/secret"},
        {"auth": {"type": "oauth2", "oauth2": {"client_id": "me", "client_secret": "hidden/secret"}}},
    ],
    ids=["part of a credential", "nested"],
)
def test_what_a_server_repeats_is_not_told(given):
    with HTTPServer(("127.0.0.1", 0), _Echo) as server:
        uri = f"http://127.0.0.1:{server.server_port}"
        if "auth" in given:
            given["auth"]["oauth2"]["token_url"] = f"{uri}/token"
        with (
            answering(server),
            pytest.raises(icestats.CatalogError, match=r"cannot be opened: .*(401|OAuth)") as caught,
        ):
            icestats.load("db.small", catalog={"type": "rest", "uri": uri, **given})
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


class _Answer(BaseHTTPRequestHandler):
    """A server whose answers lack a part, or are of another kind."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"access_token": "hidden"} if "oauth" in self.path else {"overrides": ["hidden"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815 - the base class's names

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize("given", [{}, {"credential": "me:pass"}], ids=["configuration", "token"])
def test_what_a_server_answers_is_not_told(given):
    """pydantic shows what it was given where a part of it is missing: of an answer to a sign-in, the token."""
    with HTTPServer(("127.0.0.1", 0), _Answer) as server:
        uri = f"http://127.0.0.1:{server.server_port}"
        expected = "it answers otherwise than PyIceberg expects: "
        with answering(server), pytest.raises(icestats.CatalogError, match=expected) as caught:
            icestats.load(
                "db.small", catalog={"type": "rest", "uri": uri, "oauth2-server-uri": f"{uri}/oauth", **given}
            )
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("methods", [["do_POST"], ["do_GET"], ["do_POST", "do_GET"]], ids=" and ".join)
@pytest.mark.parametrize("status", [403, 503])
def test_what_a_server_repeats_at_a_commit_is_not_told(status, methods, small_table, monkeypatch):
    catalog = small_table.catalog
    catalog.rename_table("db.small", "db.t")

    def refuse(request):
        request.answer(status, {"error": {"message": request.headers["Authorization"], "type": "E", "code": status}})

    with serve(catalog) as uri, RestCatalog("r", uri=uri, token="hidden/secret") as rest:
        table = rest.load_table("db.t")
        sketch = NewBlob("any", (1,), table.current_snapshot().snapshot_id, 1, b"any")
        plan = prepare_commit(table, [sketch])
        for name in methods:
            monkeypatch.setattr(Rest, name, refuse)
        with pytest.raises(icestats.CommitError, match=r"\*\*\*") as caught:
            commit_statistics(plan)
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


def test_a_table_that_is_missing_tells_no_password_of_the_servers_address(small_table, monkeypatch):
    small_table.catalog.rename_table("db.small", "db.t")

    def refuse(request):
        said = {"message": "no such table", "type": "NoSuchTableException", "code": 404}
        request.answer(404, {"error": said})

    with serve(small_table.catalog) as uri:
        uri = uri.replace("//", "//me:hidden@")
        with RestCatalog("r", uri=uri) as rest:
            table = rest.load_table("db.t")
            plan = prepare_commit(table, [NewBlob("any", (1,), table.current_snapshot().snapshot_id, 1, b"any")])
            get = Rest.do_GET
            monkeypatch.setattr(Rest, "do_GET", lambda own: refuse(own) if "/tables/" in own.path else get(own))
            monkeypatch.setattr(Rest, "do_POST", refuse)
            with pytest.raises(icestats.CommitError, match=r"no such table|no longer in its catalog") as committed:
                commit_statistics(plan)
        with pytest.raises(icestats.TableNotFoundError, match="no ") as loaded:
            icestats.load("db.t", catalog={"type": "rest", "uri": uri})
    for caught in (committed, loaded):
        assert "hidden" not in "".join(traceback.format_exception(caught.value))


def test_what_a_server_repeats_at_a_write_is_not_told(small_table, monkeypatch):
    small_table.catalog.rename_table("db.small", "db.t")

    def refuse(request):
        request.answer(403, {"error": {"message": request.headers["Authorization"], "type": "E", "code": 403}})

    with serve(small_table.catalog) as uri:
        table = icestats.load("db.t", catalog={"type": "rest", "uri": uri, "token": "hidden/secret"})
        monkeypatch.setattr(Rest, "do_POST", refuse)
        with pytest.raises(icestats.CommitError, match=r"took no rows: .*\*\*\*") as caught:
            icestats.writers.append(table, small_table.scan().to_arrow())
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


def test_what_a_storage_repeats_of_what_a_server_lends_is_not_told(small_table, monkeypatch):
    small_table.catalog.rename_table("db.small", "db.t")
    answer, lent = Rest.answer, {"config": {"s3.secret-access-key": "hidden-key"}}
    monkeypatch.setattr(Rest, "answer", lambda own, status, document: answer(own, status, document | lent))
    with serve(small_table.catalog) as uri:
        own = {"type": "rest", "uri": uri, "py-io-impl": "tests.failing_storage.FailingIO"}
        table = icestats.load("db.t", catalog=own)
        failure = Failure(1, for_good=True, error=lambda said: OSError(f"{said}: hidden-key is not known"))
        monkeypatch.setattr(failing_storage, "PLAN", failure)
        with pytest.raises(icestats.CommitError, match=r"took no rows: .*\*\*\*") as caught:
            icestats.writers.append(table, small_table.scan().to_arrow())
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


def test_what_a_server_repeats_of_what_it_lends_is_not_told(small_table, monkeypatch):
    def lend_or_refuse(request):
        if request.path.endswith("/config"):
            request.answer(200, {"defaults": {}, "overrides": {"header.X-Key": "hidden-key"}})
        else:
            said = {"message": request.headers["X-Key"], "type": "BadRequestException", "code": 400}
            request.answer(400, {"error": said})

    with serve(small_table.catalog) as uri:
        monkeypatch.setattr(Rest, "do_GET", lend_or_refuse)
        with pytest.raises(icestats.CatalogError, match=r"cannot load db.small: .*\*\*\*") as caught:
            icestats.load("db.small", catalog={"type": "rest", "uri": uri})
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("given", ["token", "header.X-Api-Key"])
@pytest.mark.parametrize("blank", ["\n", "\r\n", "\nx"], ids=repr)
def test_a_secret_that_was_read_with_the_end_of_its_line_is_not_told(given, blank):
    """Python refuses such a header, and shows it as `b'Bearer hidden\\n'`."""
    own = {"type": "rest", "uri": "http://127.0.0.1:9", given: f"hidden{blank}"}
    with pytest.raises(icestats.CatalogError, match="header value") as caught:
        icestats.load("db.small", catalog=own)
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("secret", ["it's \"a\\b", "a\n\tbcd", "\x1bé€\U0001f511z", "%41+/==", "a  b\x00c"], ids=repr)
def test_a_secret_is_hidden_however_it_is_written(secret):
    said = json.dumps(secret)
    escaped = (repr(secret), repr(secret.encode()), said, json.dumps(said), json.dumps(secret, ensure_ascii=False))
    escaped = (*escaped, secret.encode("latin-1", "replace").decode("latin-1"))
    for form in (secret, *escaped, quote(secret, ""), quote_plus(secret).lower(), one_line(secret), printable(secret)):
        shown = hide_secrets(form, {"token": secret})
        assert shown.replace("\\", "").strip("b\"'") == "***"


@pytest.mark.parametrize("character", ["\\", " ", "a", "+", "\x1b", "%"])
def test_a_long_name_is_searched_for_a_secret_in_one_pass(character):
    text = character * 500_000
    for secret in (character * 50 + "b", f"{character}{character}x" * 9, f"+{character * 9}b", f"a{character * 9}b"):
        assert hide_secrets(text, {"token": secret}) == text


def test_users_and_passwords_are_hidden_as_they_are_sent():
    own = {"credential": "me:pass", "auth": {"basic": {"username": "you", "password": "word"}}}
    sent = [b64encode(pair).decode() for pair in (b"me:pass", b"you:word")]
    assert hide_secrets(f"{sent[0]} or {sent[1]}", own) == "*** or ***"


@pytest.mark.parametrize("name", ["s3.endpoint", "s3.proxy-uri"])
def test_a_password_that_is_not_encoded_in_the_address_of_a_storage_is_not_told(name):
    own = {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key-id": "me", "s3.secret-access-key": "mine"}
    own |= {"s3.region": "us-east-1", name: "http://me:hidden/secret@127.0.0.1:9"}
    with pytest.raises(MetadataError, match=r"cannot be read: .*\*\*\*") as caught:
        icestats.load("s3://bucket/v1.metadata.json", catalog=own)
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


def test_nested_secrets_and_parts_of_credentials_are_hidden():
    own = {"credential": "me:ab cd", "auth": {"basic": {"username": "me", "password": "ef/gh"}}}
    said = hide_secrets("me sent ab cd as ab+cd or ab%20cd, and ef/gh as ef%2Fgh", own)
    assert said == "me sent *** as *** or ***, and *** as ***"


def test_a_switch_is_no_secret():
    switches = {"token-refresh-enabled": "true", "spark.security.credentials.hive.enabled": "False"}
    assert hide_secrets("flag = true is False", switches) == "flag = true is False"


def test_pairs_that_are_no_properties_tell_no_secret():
    with pytest.raises(icestats.CallError, match="catalog is of type list: expected") as caught:
        icestats.load("db.small", catalog=[("credential", "me:hidden")])
    assert "hidden" not in str(caught.value)


BROKEN = {
    "a key twice": "catalog:\n  a:\n    token: hidden-1\n    token: hidden-1\n",
    "a tab": "catalog:\n  a:\n    type: rest\n\ttoken: hidden-1\n",
    "an open quote": 'catalog:\n  a:\n    token: "hidden-1\n',
    "a colon": "catalog:\n  a:\n    token: hidden-1: x\n",
    "an alias": "catalog:\n  a:\n    token: *hidden-1\n",
    "braces": "catalog: {a: {token: hidden-1}}\n",
    "no mapping": "hidden-1\n",
    "a catalog that is a text": "catalog:\n  a: hidden-1\n",
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_configuration_that_cannot_be_read_shows_none_of_its_lines(what, small_table, tmp_path):
    """In a process of its own, as PyIceberg reads it while it is imported."""
    (tmp_path / ".pyiceberg.yaml").write_text(BROKEN[what])
    code = "import sys, icestats; icestats.load(sys.argv[1])"
    for name in ("a.db.t", small_table.metadata_location):
        command = [sys.executable, "-c", code, name]
        found = subprocess.run(command, env={**os.environ, "PYICEBERG_HOME": str(tmp_path)}, capture_output=True)
        said = found.stderr.decode()
        assert "hidden" not in said
        # What is wrong with one catalog is in nobody's way who asks for none.
        if what == "a catalog that is a text" and name != "a.db.t":
            assert found.returncode == 0
        else:
            assert f"CatalogError: PyIceberg's configuration cannot be read: {tmp_path}/.pyiceberg.yaml" in said


@pytest.mark.parametrize(
    "given",
    [
        {"PYICEBERG_CATALOG__A": "hidden-1", "PYICEBERG_CATALOG__A__TOKEN": "hidden-2"},
        {"PYICEBERG_MAX_WORKERS": "hidden-1"},
        {"PYICEBERG_LEGACY_CURRENT_SNAPSHOT_ID": "hidden-1"},
    ],
    ids=" and ".join,
)
def test_variables_that_cannot_be_read_show_none_of_their_values(given, small_table, tmp_path):
    code = "import sys, icestats; icestats.load(sys.argv[1])"
    for name in ("a.db.t", small_table.metadata_location):
        command = [sys.executable, "-c", code, name]
        found = subprocess.run(command, env={**os.environ, **given, "HOME": str(tmp_path)}, capture_output=True)
        said = found.stderr.decode()
        assert "hidden" not in said
        assert "CatalogError: PyIceberg's configuration cannot be read: a variable of the environment" in said


def test_messages_of_errors_hide_passwords_and_have_an_end():
    error = MetadataError(
        f"no such file, nor https://host/a?X-Amz-Signature=abc {'x' * 80_000} at last", "s3://me:TOKEN@host/m"
    )
    text = str(error)
    assert text in "".join(traceback.format_exception(error))
    assert text.startswith("s3://***@host/m: no such file, nor https://host/a?X-Amz-Signature=*** xxx")
    assert text.endswith("xxx at last")
    assert len(text) < 2_010
    assert repr(error) == f"MetadataError({text!r})"


@pytest.mark.parametrize(
    "error",
    [
        MetadataError("cut at s3://me:hidden@host", "a.json", 3),
        icestats.FilterError("no s3://me:hidden@host", "a < 3"),
        icestats.ColumnNotFoundError("s3://me:hidden@host", ("a", "b")),
        icestats.CommitError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_pickled_whole_but_for_passwords(error):
    data = pickle.dumps(error)
    same = pickle.loads(data)
    assert (type(same), str(same)) == (type(error), str(error))
    assert same.__dict__ == error.__dict__
    assert "hidden" not in str(same.args)


@pytest.mark.parametrize(
    ("failure", "kind"), [(OSError, OSError), (FileNotFoundError, FileNotFoundError), (ValueError, OSError)]
)
def test_a_storage_that_says_a_signature_is_no_cause_that_a_traceback_shows(failure, kind, monkeypatch):
    """As Arrow's does of Azure: the URL with the signature that a SAS token is."""

    def fail(self, location):
        raise failure(f"GetProperties for 'https://a.blob.core.windows.net/c/{location[-1]}?sv=1&sig=hidden' failed")

    monkeypatch.setattr(PyArrowFileIO, "new_input", fail)
    with pytest.raises(MetadataError) as caught:
        Storage().read("s3://bucket/m")
    assert "hidden" not in "".join(traceback.format_exception(caught.value))
    assert type(caught.value.__cause__) is kind


def test_a_location_that_names_no_bucket_is_shown_without_its_password():
    with pytest.raises(MetadataError, match=r"s3://\*\*\*@host/v1.metadata.json: .* is no bucket") as caught:
        icestats.load("s3://user:hidden@host/v1.metadata.json")
    assert "hidden" not in str(caught.value)
