"""Counts, sizes, times and errors as text for a person. An unknown figure is `unknown`, never 0."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Sequence

from icestats.errors import hide_in_urls
from icestats.errors import printable as printable

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def counted(count: int | None, name: str, names: str | None = None) -> str:
    """Return a count with thousands separators, followed by the name of what is counted, singular or plural.

    Parameters
    ----------
    count : int or None
        The count; None if it is unknown.
    name : str
        The singular.
    names : str, optional
        The plural; by default `name` with an s.

    Examples
    --------
    >>> counted(1, "file"), counted(2047, "file"), counted(None, "entry", "entries")
    ('1 file', '2,047 files', 'unknown entries')
    """
    text = "unknown" if count is None else f"{count:,}"
    return f"{text} {name if count == 1 else names or f'{name}s'}"


def render_count(count: int | None) -> str:
    """Return a count with thousands separators, or `unknown`.

    Examples
    --------
    >>> render_count(1234567), render_count(None)
    ('1,234,567', 'unknown')
    """
    return "unknown" if count is None else f"{count:,}"


def render_bytes(size_bytes: int | None) -> str:
    """Return a size in decimal units.

    Examples
    --------
    >>> render_bytes(999), render_bytes(1_234_567), render_bytes(None)
    ('999 B', '1.23 MB', 'unknown')
    """
    if size_bytes is None:
        return "unknown"
    value, unit = float(size_bytes), 0
    while abs(value) >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def render_duration(seconds: float) -> str:
    """Return about how long something takes, in words.

    Examples
    --------
    >>> render_duration(8.2), render_duration(130), render_duration(9000)
    ('about 8 seconds', 'about 2 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        return f"about {counted(max(1, round(seconds)), 'second')}"
    return f"about {round(seconds / 60):,} minutes" if seconds < 5400 else f"about {seconds / 3600:,.1f} hours"


def render_time(timestamp_ms: int) -> str:
    """Return a time in UTC, to the second.

    Examples
    --------
    >>> render_time(0)
    '1970-01-01 00:00:00 UTC'
    """
    return dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def one_line(said: BaseException | str, longest: int = 300) -> str:
    r"""Return a message as one line of at most `longest` characters; an error without a message, by its class name.

    Passwords and signatures in URLs are hidden.

    Examples
    --------
    >>> one_line(ValueError("no such\n  file")), one_line(EOFError())
    ('no such file', 'EOFError')
    """
    return printable(" ".join(hide_in_urls(str(said)).split()))[:longest] or type(said).__name__


def printable_lines(lines: Iterable[str]) -> str:
    r"""Return lines as the text of an answer, each `printable` and thus one line, whatever a table has in it.

    Examples
    --------
    >>> printable_lines(["of a\nb", "  \x1b[2J"])
    'of a�b\n  �[2J'
    """
    return "\n".join(map(printable, lines))


def render_rows(least: int, most: int) -> str:
    """Return a number of rows that lies between two.

    Examples
    --------
    >>> render_rows(1, 1), render_rows(1_000, 1_200)
    ('1 row', '1,000 to 1,200 rows')
    """
    return counted(least, "row") if least == most else f"{least:,} to {most:,} rows"


def align(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Return rows of cells as aligned printable lines: columns in `left` flush left, the others flush right.

    Examples
    --------
    >>> align([("source", "rows"), ("theta", "7")])
    ['source  rows', 'theta      7']
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def quote_name(*parts: str, quote: str = "`") -> str:
    """Return a name of several parts as SQL has it, Spark's where `quote` is not given.

    Examples
    --------
    >>> quote_name("lake", "db", "odd`name")
    '`lake`.`db`.`odd``name`'
    """
    return ".".join(quote + part.replace(quote, 2 * quote) + quote for part in parts)


def quote_text(text: str) -> str:
    r"""Return text as Spark's SQL has it.

    Examples
    --------
    >>> print(quote_text("it's"))
    'it\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


CUTTING = (";", "--", "/*", "'", '"')
"""What a shell of SQL cuts a script at. Spark's and Hive's know no backticks: they take it so within them, too."""


def can_stand(name: str, forbidden: Collection[str] = CUTTING) -> bool:
    """Return whether a name can stand in a script: on one line, without what the engine's shell cuts at or fills in."""
    return bool(name) and name.isprintable() and "${" not in name and not any(one in name for one in forbidden)


def escape_json(character: str) -> str:
    r"""Return a character as an escape of JSON, which Spark's SQL has too.

    Examples
    --------
    >>> print(escape_json(";"), escape_json("\U000e0001"))
    \u003b \udb40\udc01
    """
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
