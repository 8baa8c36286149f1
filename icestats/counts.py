"""Counts and what is counted, in words."""

from __future__ import annotations


def counted(count: int | None, name: str, names: str | None = None) -> str:
    """Return a count with thousands separators and what is counted, one or many; unknown is said, not shown as 0.

    Parameters
    ----------
    count : int or None
        How many; None where that is unknown.
    name : str
        What one is called.
    names : str, optional
        What many are called; by default `name` with an s.

    Examples
    --------
    >>> counted(1, "file"), counted(2047, "file"), counted(None, "entry", "entries")
    ('1 file', '2,047 files', 'unknown entries')
    """
    text = "unknown" if count is None else f"{count:,}"
    return f"{text} {name if count == 1 else names or f'{name}s'}"
