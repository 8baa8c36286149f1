"""Everything that icestats raises on purpose.

    IcestatsError
    ├── CallError                  the call is wrong: correct it and try again
    │   ├── ColumnNotFoundError    the schema has no such column
    │   ├── FilterError            the row filter cannot be read or bound
    │   └── SnapshotNotFoundError  the table has no such snapshot, branch or tag
    ├── CatalogError               no such catalog, or it cannot be opened
    ├── TableNotFoundError         the catalog or the location has no such table
    ├── MetadataError              a metadata file is missing, truncated or damaged
    │   └── PuffinFormatError      a Puffin file is truncated or damaged
    ├── StatisticsMissingError     the requested statistic was never committed
    ├── UnsupportedError           the table has something that icestats cannot read or write
    ├── SparkUnavailableError      Java, the Iceberg runtime or a Spark session is missing, or Spark's JVM has ended
    └── CommitError                the catalog did not accept the commit

Each message is one line: what failed, the value, what was expected, what to do.
"""

from __future__ import annotations

import copyreg
import operator
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import SupportsIndex

__all__ = [
    "CallError",
    "CatalogError",
    "ColumnNotFoundError",
    "CommitError",
    "FilterError",
    "IcestatsError",
    "MetadataError",
    "PuffinFormatError",
    "SnapshotNotFoundError",
    "SparkUnavailableError",
    "StatisticsMissingError",
    "TableNotFoundError",
    "UnsupportedError",
]


_MOST_LENGTH = 2000
"""Of a message, in characters: what is in the middle of a longer one is left out."""
_MOST_PATH_LENGTH = 1000
"""In a message, in characters: metadata may give paths of any length."""


HIDDEN_IN_URLS = r"://[^:/?#\s@]*:[^/\s]*@"
"""A URL's user and password, as in both languages: in one pass, as a table's names are searched for it too."""
HIDDEN = "***"
_IN_URL = re.compile(HIDDEN_IN_URLS)
_SIGNATURE = re.compile(
    r"([?&;](?:sig|signature|pwd|awsaccesskeyid|x-(?:amz|goog)-[a-z-]+|"
    r"[\w.-]{0,30}(?:passw|token|secret|(?:api|access|account)[-_]?key)[\w.-]{0,30})=)[^&\s'\"]+",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(\b(?:authorization|x-amz-security-token)['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic)\s+)?)[^\s'\",;}]+",
    re.IGNORECASE,
)
"""What a request is signed in with, where a server repeats its headers."""
_TOKEN = re.compile(
    r"\b((?:bearer|basic)\s+)(?=[^\s'\"]*[\d=])[\w.~+/=-]{8,}|(?<![\w-])eyJ[\w-]{5,}\.[\w-]+\.[\w-]*", re.IGNORECASE
)
"""Such a header's value without its name, or a JSON Web Token alone."""


def hide_in_urls(text: str) -> str:
    """Replace users with their passwords, and signatures, in the URLs and headers of a text.

    Examples
    --------
    >>> hide_in_urls("no postgresql://me:pass@host/db, nor https://host/a?sv=1&sig=abc")
    'no postgresql://***@host/db, nor https://host/a?sv=1&sig=***'
    """
    for pattern in (_SIGNATURE, _HEADER):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    text = _TOKEN.sub(lambda found: f"{found[1] or ''}{HIDDEN}", text)
    return _IN_URL.sub(f"://{HIDDEN}@", text)


def printable(text: str) -> str:
    r"""Return text from a table for a terminal, in one line: what moves or hides other text is replaced.

    These are control characters, escape sequences, marks of direction, characters without a width, and separators of
    lines.

    Examples
    --------
    >>> printable("a\x1b[2Jb\u202ec")
    'a�[2Jb�c'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


@contextmanager
def said_if_cut(note: str) -> Iterator[None]:
    """Add a note to an interrupt of the block: what was done, or may be, when it came."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(printable(hide_in_urls(note)))
        raise


class IcestatsError(Exception):
    """Root of all errors that icestats raises on purpose."""

    def __init__(self, message: str = "") -> None:
        said = printable(hide_in_urls(message))
        half = _MOST_LENGTH // 2
        super().__init__(said if len(said) <= _MOST_LENGTH else f"{said[:half]} ... {said[-half:]}")

    def __reduce__(self) -> tuple[object, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # pickle's own


class CallError(IcestatsError):
    """The call is wrong, whatever the state of the table: correct it and try again."""


class ColumnNotFoundError(CallError):
    """The table's schema has no column with this name, or none that a pattern matches.

    Attributes
    ----------
    column : str
        The name that was asked for.
    columns : tuple of str
        The names that exist.
    """

    def __init__(self, column: str, columns: tuple[str, ...]) -> None:
        self.column = column
        self.columns = columns
        verb = "matches " if isinstance(column, str) and set("*?[") & set(column) else ""
        missing = f"no column {verb}{column!r:.80}"
        super().__init__(f"{missing}: the table has {', '.join(columns) or 'no columns'}")


class FilterError(CallError):
    """A row filter cannot be read, or does not fit the table's schema.

    Attributes
    ----------
    row_filter : str
        The filter as passed in.
    """

    def __init__(self, message: str, row_filter: str) -> None:
        self.row_filter = row_filter
        super().__init__(message)


class SnapshotNotFoundError(CallError):
    """The table has no snapshot, branch or tag with this name."""


class CatalogError(IcestatsError):
    """A catalog is not configured, or cannot be opened."""


class TableNotFoundError(IcestatsError):
    """A catalog or a location has no such table."""


class MetadataError(IcestatsError):
    """A metadata file is missing, truncated or damaged.

    Attributes
    ----------
    path : str
        The file.
    offset : int or None
        Byte offset at which the file stops making sense; None if that does not apply.
    """

    def __init__(self, message: str, path: str, offset: int | None = None) -> None:
        self.path = path
        self.offset = offset
        shown = path if len(path) <= _MOST_PATH_LENGTH else f"{path[:_MOST_PATH_LENGTH]}..."
        where = shown if offset is None else f"{shown} at byte {offset:,}"
        super().__init__(f"{where}: {message}")


class PuffinFormatError(MetadataError):
    """A Puffin file is truncated or damaged."""


class StatisticsMissingError(IcestatsError):
    """The requested statistic was never committed for this snapshot."""


class UnsupportedError(IcestatsError):
    """The table has something that this operation cannot read or write."""


class SparkUnavailableError(IcestatsError):
    """Java, the Iceberg runtime or a Spark session is missing, or the session's JVM has ended."""


class CommitError(IcestatsError):
    """The catalog did not accept the commit; files written for it were removed, unless the message names them."""


def check_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number as Python's; raise CallError where it is none from `least` to `most`, both included."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool | type):
        # NumPy's arrays have the method, and few of them a number.
        with suppress(TypeError):
            number = operator.index(value)
            if number >= least and (most is None or number <= most):
                return number
    upto = "" if most is None else f" to {most:,}"
    raise CallError(f"{name} is {value!r:.80}: expected a whole number from {least}{upto}")


def check_flags(**flags: object) -> None:
    """Raise CallError where an argument is neither True nor False: None for `dry_run` must not delete."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise CallError(f"{name} is {value!r:.80}: expected True or False")


def read_snapshot_id(snapshot: object) -> int:
    """Return a snapshot's id, which JSON has as text; raise CallError where an argument is none."""
    if isinstance(snapshot, SupportsIndex) and not isinstance(snapshot, bool | type):
        with suppress(TypeError):
            return operator.index(snapshot)
    if isinstance(snapshot, str) and re.fullmatch(r"-?\d{1,20}", snapshot):
        return int(snapshot)
    raise CallError(f"snapshot {snapshot!r:.80} is no snapshot id: expected a whole number; branches and tags are refs")


def check_names(name: str, value: object, *, or_none: bool = False) -> None:
    """Raise CallError where an argument is no collection of names; a text alone is one name, and no collection."""
    if value is None and or_none:
        return
    if isinstance(value, Collection) and not isinstance(value, str):
        # NumPy's arrays without a dimension look like collections.
        with suppress(TypeError):
            if all(isinstance(one, str) for one in value):
                return
    raise CallError(f"{name} is {value!r:.80}: expected names in a list")


def check_filters(name: str, value: object, *, or_none: bool = False) -> None:
    """Raise CallError where an argument is no collection of filters; a text alone would be read letter by letter."""
    if value is None and or_none:
        return
    if not isinstance(value, str):
        # NumPy's arrays without a dimension look like iterables.
        with suppress(TypeError):
            iter(value)  # type: ignore[call-overload]
            return
    raise CallError(f"{name} is {value!r:.80}: expected filters in a list")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise CallError where an argument is none of some texts."""
    if not (isinstance(value, str) and value in choices):
        raise CallError(f"{name} is {value!r:.80}: expected one of {', '.join(choices)}")
