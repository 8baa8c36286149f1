"""What a REST catalog's server answers: waited for so long, read so far, listed on so many pages.

PyIceberg 0.12 asks without a time limit, and reads and goes on as long as the server does.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.utils.properties import property_as_int

from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES

if TYPE_CHECKING:
    from requests import Response, Session

_TIME_LIMITS_MS = {"connection": 30_000, "socket": 300_000}
"""How long a server may take to be reached, and then between two bytes, where a catalog does not say by
`rest.client.connection-timeout-ms` and `rest.client.socket-timeout-ms`, as Iceberg's Java library names them."""
MOST_PAGES = 100
"""Of a list of tables or namespaces, which is only asked for to say what there is."""
_MOST_OF_ERRORS_BYTES = 1 << 20
_PART_BYTES = 1 << 16


def limit_answers(session: Session, properties: Mapping[str, str]) -> None:
    """Have a REST catalog's session end requests that are not answered in time, or are answered without end.

    Parameters
    ----------
    session : requests.Session
        Of the catalog.
    properties : mapping of str to str
        The catalog's.

    Raises
    ------
    ValueError
        A time limit is no number.
    """
    timeout = (_find_limit(properties, "connection"), _find_limit(properties, "socket"))
    session.request = functools.partial(session.request, timeout=timeout)  # type: ignore[method-assign]
    session.hooks["response"] = [_Limit()]


def _find_limit(properties: Mapping[str, str], what: str) -> float | None:
    """Return a limit in seconds, None for no limit."""
    limit_ms = property_as_int(dict(properties), f"rest.client.{what}-timeout-ms", _TIME_LIMITS_MS[what])
    return limit_ms / 1000 if limit_ms else None


class _Limit:
    def __init__(self) -> None:
        self._pages = 0

    def __call__(self, response: Response, **_: Any) -> None:
        self._pages = self._pages + 1 if "pageToken=" in response.url else 0
        if self._pages >= MOST_PAGES:
            response.close()
            raise OSError(f"the catalog's server lists more than {MOST_PAGES} pages")
        limit, data = MAX_FILE_SIZE_BYTES if response.ok else _MOST_OF_ERRORS_BYTES, bytearray()
        for part in response.iter_content(_PART_BYTES):
            data += part
            if len(data) > limit:
                response.close()
                raise OSError(f"the catalog's server answers {response.status_code} with more than {limit:,} bytes")
        response._content = bytes(data)
        # As JSON is: requests looks through all of what no header tells the encoding of, and guesses.
        response.encoding = "utf-8"
