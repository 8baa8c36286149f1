"""Secrets of a user's properties, kept out of what is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN_NAMES = (
    r"secret|passw|token|credential|access[-._]?key|account[-._]?key|shared[-._]?key|(en|de)cryption[-._]?key|"
    r"sse\.key|private[-._]?key|api[-._]?key|connection[-._]string|authorization|assertion|kerb|"
    r"header\.|\bugi\b"
)
"""Names of properties whose values are secrets: a regular expression of Python's and of Java's, in lower case."""
HIDDEN_IN_URLS = r"://[^:/?#\s@]*:[^/\s]*@"
"""A URL's user and password, as in both languages: in one pass, as a table's names are searched for it too."""
HIDDEN = "***"
_SHORTEST = 4
"""Values shorter than this are parts of too many words."""
_IN_URL = re.compile(HIDDEN_IN_URLS)
_SIGNATURE = re.compile(
    r"([?&;](?:sig|signature|pwd|awsaccesskeyid|x-(?:amz|goog)-[a-z-]+|"
    r"[\w.-]{0,30}(?:passw|token|secret|api[-_]?key|access[-_]?key)[\w.-]{0,30})=)[^&\s'\"]+",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic)\s+)?)[^\s'\",;}]+", re.IGNORECASE)
"""What a request is signed in with, where a server repeats its headers."""


def hide_in_urls(text: str) -> str:
    """Replace users with their passwords, and signatures, in the URLs and headers of a text.

    Examples
    --------
    >>> hide_in_urls("no postgresql://me:pass@host/db, nor https://host/a?sv=1&sig=abc")
    'no postgresql://***@host/db, nor https://host/a?sv=1&sig=***'
    """
    for pattern in (_SIGNATURE, _HEADER):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return _IN_URL.sub(f"://{HIDDEN}@", text)


def hide_secrets(text: str, properties: Mapping[str, Any]) -> str:
    """Replace the secrets that are among some properties, nested ones too, wherever a text has them.

    Examples
    --------
    >>> hide_secrets("{'type': 'rest', 'credential': 'me:pass'}", {"type": "rest", "credential": "me:pass"})
    "{'type': 'rest', 'credential': '***'}"
    """
    secrets = {form for secret in _secrets(properties) for form in (secret, quote(secret, ""), quote_plus(secret))}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return hide_in_urls(text)


def _secrets(properties: Mapping[str, Any]) -> Iterator[str]:
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif re.search(HIDDEN_NAMES, str(name).lower()):
            yield str(value)
            # Of `client:secret` the secret is also sent alone.
            yield str(value).partition(":")[2]
