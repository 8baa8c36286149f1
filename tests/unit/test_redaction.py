"""Secrets of the user's properties stand in no repr, message or traceback."""

from __future__ import annotations

import re
import traceback

import pytest

import icestats
from icestats.answers.redaction import HIDDEN_IN_URLS, HIDDEN_NAMES, hide_in_urls
from icestats.answers.text import one_line
from icestats.iceberg.catalog import open_source

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
    ],
)
def test_urls_keep_all_but_their_secrets(text, shown):
    assert hide_in_urls(text) == shown
    assert one_line(ValueError(text)) == shown
    assert (re.search(HIDDEN_IN_URLS, text) is None) == ("***@" not in shown)


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
