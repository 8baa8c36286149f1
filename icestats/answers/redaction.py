"""Secrets of a user's properties, kept out of what is printed."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, quote_plus

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
_PASSWORD = re.compile(r"(?:jdbc:)?(?:[\w+.-]+:/+)?[^:/?#@]*:(?!/|\d+[/?#])(.*)@", re.DOTALL)
"""The password of a URL, whatever is in it, up to the last @; but not a port with a path that has an @."""
_ENDS_PASSWORD = re.compile(r"[@:/?#\s]")
"""Where libraries, each at other characters, take the rest of a password for a host, a port or a path."""


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
def explained(explain: Callable[[str], IcestatsError]) -> Iterator[None]:
    """Raise what storages and libraries fail with, each with errors of its own, as the error made of its one line.

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
        raise explain(one_line(error)) from safe_cause(error)


def _secrets(properties: Mapping[str, Any]) -> Iterator[str]:
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
            continue
        if found := _PASSWORD.match(str(value)):
            yield from (found[1], *_ENDS_PASSWORD.split(found[1]))
        if re.search(HIDDEN_NAMES, str(name).lower()):
            yield str(value)
            # Of `client:secret` the secret is also sent alone.
            yield str(value).partition(":")[2]
