"""A progress bar on the terminal; nothing where stderr is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def terminal_progress(description: str, *, after_s: float = 0.0) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback of finished and total tasks that draws a bar on stderr, or None without a terminal.

    What is done within `after_s` seconds draws nothing.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(description, total=None)
    begin = time.monotonic() + after_s

    def show(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if time.monotonic() >= begin:
            bar.start()

    try:
        if not after_s:
            bar.start()
        yield show
    finally:
        bar.stop()
