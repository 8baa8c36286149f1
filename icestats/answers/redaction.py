"""Secrets of a user's properties, kept out of what is printed."""

from __future__ import annotations

import functools
import re
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from icestats.answers.text import one_line, printable_lines
from icestats.errors import HIDDEN, IcestatsError, hide_in_urls

HIDDEN_NAMES = (
    r"secret|passw|token|credential|access[-._]?key|account[-._]?key|shared[-._]?key|(en|de)cryption[-._]?key|"
    r"sse\.key|private[-._]?key|api[-._]?key|connection[-._]string|authorization|assertion|kerb|"
    r"header\.|\b(ugi|sas|sig|pwd)\b"
)
"""Names of properties whose values are secrets: a regular expression of Python's and of Java's, in lower case."""
_SHORTEST = 4
"""Values shorter than this are parts of too many words."""
_SWITCHES = ("true", "false")
"""Values of settings such as `token-refresh-enabled`."""
_PASSWORD = re.compile(r"(?:jdbc:)?(?:[\w+.-]+:/+)?[^:/?#@]*:(?!/|\d+[/?#])(.*)@", re.DOTALL)
"""The password of a URL, whatever is in it, up to the last @; but not a port with a path that has an @."""
_ENDS_PASSWORD = re.compile(r"[@:/?#\\\s]")
"""Where libraries, each at other characters, take the rest of a password for a host, a port or a path."""


def hide_secrets(text: str, properties: Mapping[str, Any]) -> str:
    """Replace the secrets that are among some properties, nested ones too, wherever a text has them.

    Examples
    --------
    >>> hide_secrets("{'type': 'rest', 'credential': 'me:pass'}", {"type": "rest", "credential": "me:pass"})
    "{'type': 'rest', 'credential': '***'}"
    """
    for secret in sorted(set(map(str.strip, _secrets(properties))), key=len, reverse=True):
        if len(secret) >= _SHORTEST and secret.lower() not in _SWITCHES:
            text = _written(secret).sub(HIDDEN, text)
    return hide_in_urls(text)


def safe_line(error: Exception, properties: Mapping[str, Any] | None = None) -> str:
    """Return what an error says, as one line without the secrets of some properties.

    Examples
    --------
    >>> safe_line(OSError("the key k-12345 is not known"), {"s3.secret-access-key": "k-12345"})
    'the key *** is not known'
    """
    return one_line(hide_secrets(str(error), properties or {}) or error)


def safe_cause(error: Exception, properties: Mapping[str, Any] | None = None) -> Exception:
    r"""Return what to raise another error from: an error, or a stand-in where its traceback would show secrets.

    So it is where a terminal would take what the traceback shows of a table for escape sequences.

    Examples
    --------
    >>> safe_cause(OSError("https://host/a?sig=abc"))
    OSError('OSError: https://host/a?sig=***')
    >>> print(safe_cause(ValueError("no such column: \x1b[2J")))
    ValueError: no such column: �[2J
    """
    shown = "".join(traceback.format_exception(error)).replace("\t", " ")
    if printable_lines(hide_secrets(shown, properties or {}).split("\n")) == shown:
        return error
    kind = next(kind for kind in (FileNotFoundError, OSError, Exception) if isinstance(error, kind))
    said = hide_secrets(f"{type(error).__name__}: {error}", properties or {}).replace("\t", " ")
    return kind(printable_lines(said.split("\n")))


@contextmanager
def explained(explain: Callable[[str], IcestatsError], properties: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Raise what storages and libraries fail with, each with errors of its own, as the error made of its one line.

    The secrets of properties are in neither.

    Examples
    --------
    >>> with explained(lambda said: IcestatsError(f"the file cannot be read: {said}")):
    ...     raise TimeoutError("no answer")
    Traceback (most recent call last):
    icestats.errors.IcestatsError: the file cannot be read: no answer
    """
    try:
        yield
    except IcestatsError:
        raise
    except Exception as error:  # noqa: BLE001 - each storage has its own errors
        raise explain(safe_line(error, properties)) from safe_cause(error, properties)


@functools.lru_cache(maxsize=256)
def _written(secret: str) -> re.Pattern[str]:
    """Return what finds a secret as libraries and servers write it: escaped, encoded, its blanks as one or replaced."""
    return re.compile("".join(map(_forms, re.findall(r"\s+|\\+|\S", secret))))


def _forms(part: str) -> str:
    if part.isspace():
        return r"(?:[\s\ufffd+]|\\{1,8}[nrtfv]|\\{1,8}x[01][0-9a-f]|%[0-2][09A-Da-d])+"
    if part.startswith("\\"):
        return rf"(?:\\{{{len(part)},{8 * len(part)}}}|(?i:(?:%5c){{{len(part)}}}))"
    if part.isascii() and part.isalnum():
        return part
    units = part.encode("utf-16-be", "surrogatepass").hex()
    forms = [
        rf"\\{{0,8}}{re.escape(part)}",
        "".join(rf"\\{{1,8}}u{units[at : at + 4]}" for at in range(0, len(units), 4)),
    ]
    for code in ("utf-8", "latin-1"):
        encoded = part.encode(code, "ignore")
        forms += ["".join(f"{before}{byte:02x}" for byte in encoded) for before in (r"\\{1,8}x", "%") if encoded]
    # Java sends what is not of Latin 1 as `?`.
    replaced = [] if part.isprintable() else [chr(0xFFFD)]
    replaced += [r"\?"] if part > chr(0xFF) else []
    return f"(?i:{'|'.join(forms + replaced)})"


def _secrets(properties: Mapping[str, Any]) -> Iterator[str]:
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
            continue
        if found := _PASSWORD.match(str(value)):
            yield from (found[1], *_ENDS_PASSWORD.split(found[1]))
        if re.search(HIDDEN_NAMES, str(name).lower()):
            yield str(value)
            # Of `client:secret` the secret is also sent alone, of `Bearer token` a server repeats the token.
            yield str(value).partition(":")[2]
            yield str(value).partition(" ")[2]
            yield _encoded(str(value))
    if "password" in properties:
        yield _encoded(f"{properties.get('username', '')}:{properties['password']}")


def _encoded(text: str) -> str:
    """Return text as it is sent where a server asks for a user and a password."""
    return b64encode(text.encode(errors="replace")).decode()
