"""What a REST catalog's server answers: waited for so long, read so far, listed on so many pages.

PyIceberg 0.12 asks without a time limit, and reads and goes on as long as the server does.
"""

from __future__ import annotations

import functools
from typing import Any

from requests import RequestException, Response, Session

from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES

CONNECT_S = 30
ANSWER_MS = 180_000
"""How long to wait for the next bytes of an answer, by default."""
SOCKET_TIMEOUT = "rest.client.socket-timeout-ms"
"""The property that says otherwise, as Iceberg's Java library names it."""
MOST_PAGES = 100
"""Of a list of tables or namespaces, which is only asked for to say what there is."""
_MOST_OF_ERRORS_BYTES = 1 << 20
_PART_BYTES = 1 << 16


def limit_answers(session: Session, answer_ms: int) -> Session:
    """Have a session end requests that are not answered in time, or without end.

    Parameters
    ----------
    session : requests.Session
        Of a REST catalog.
    answer_ms : int
        How long to wait for the next bytes.
    """
    session.request = functools.partial(session.request, timeout=(CONNECT_S, answer_ms / 1_000))  # type: ignore[method-assign]
    session.hooks["response"] = [_Limit()]
    return session


class _Limit:
    def __init__(self) -> None:
        self._pages = 0

    def __call__(self, response: Response, **_: Any) -> None:
        self._pages = self._pages + 1 if "pageToken=" in response.url else 0
        if self._pages >= MOST_PAGES:
            response.close()
            raise RequestException(f"the catalog's server lists more than {MOST_PAGES} pages")
        limit, data = MAX_FILE_SIZE_BYTES if response.ok else _MOST_OF_ERRORS_BYTES, bytearray()
        for part in response.iter_content(_PART_BYTES):
            data += part
            if len(data) > limit:
                response.close()
                raise RequestException(
                    f"the catalog's server answers {response.status_code} with more than {limit:,} bytes"
                )
        response._content = bytes(data)
