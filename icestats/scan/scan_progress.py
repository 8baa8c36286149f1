"""What a scan says of itself: what it reads, before it begins; then how far it is, and how long it still takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from icestats.answers.text import counted, printable, render_bytes, render_duration

_FIRST_SAID_S = 4.0


def describe_reading(
    name: str, column_count: int, of_columns: int, file_count: int | None, size_bytes: int | None
) -> str:
    """Return in a line what a scan of a table reads, and how to stop it.

    Examples
    --------
    >>> describe_reading("demo.events", 2, 9, 640, 30_000_000)
    'demo.events: reads 2 of 9 columns of 640 data files (30 MB in all); an interrupt (Ctrl-C) stops it'
    """
    files = f"{counted(file_count, 'data file')} ({render_bytes(size_bytes)} in all)"
    columns = f"{column_count:,} of {counted(of_columns, 'column')}"
    return printable(f"{name}: reads {columns} of {files}; an interrupt (Ctrl-C) stops it")


def estimate_seconds_to_go(elapsed_s: float, finished: int, total: int) -> float | None:
    """Return how long the other tasks take if they take as long as those that have finished; None: unknown.

    Examples
    --------
    >>> estimate_seconds_to_go(10.0, 2, 8), estimate_seconds_to_go(10.0, 0, 8)
    (30.0, None)
    """
    return elapsed_s / finished * (total - finished) if finished else None


def render_left(elapsed_s: float, finished: int, total: int) -> str:
    """Return how long the other tasks take, in words; nothing where that is unknown, or none is left.

    Examples
    --------
    >>> render_left(10.0, 2, 8), render_left(10.0, 8, 8)
    ('about 30 seconds to go', '')
    """
    seconds = estimate_seconds_to_go(elapsed_s, finished, total)
    return f"{render_duration(seconds)} to go" if seconds else ""


class SaidProgress:
    """Takes the progress of a scan, and says on stderr how far it is: after 4 s, and each time as long again.

    Parameters
    ----------
    clock : callable
        Gives a time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started: float | None = None
        self._next_s = _FIRST_SAID_S

    def __call__(self, finished: int, total: int) -> None:
        """Take finished and total tasks."""
        now = self._clock()
        self._started = now if self._started is None else self._started
        elapsed_s = now - self._started
        left = render_left(elapsed_s, finished, total)
        if elapsed_s >= self._next_s and left:
            self._next_s = 2 * elapsed_s
            sys.stderr.write(f"{finished:,} of {counted(total, 'task')}, {left}\n")
