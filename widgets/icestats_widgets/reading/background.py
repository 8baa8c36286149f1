"""Background work, off the thread that answers the browser. Newer work of a kind replaces older work."""

from __future__ import annotations

import atexit
import ctypes
import logging
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from icestats.errors import IcestatsError

T = TypeVar("T")

_LONGEST_EXIT_SECONDS = 5.0
_logger = logging.getLogger(__name__)


class Background:
    """Runs work in threads and delivers its results one at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._newest: dict[str, int] = {}
        self._threads: dict[threading.Thread, tuple[str, int]] = {}
        _running.add(self)

    def run(
        self, kind: str, work: Callable[[], T], deliver: Callable[[T], object], fail: Callable[[Exception], object]
    ) -> None:
        """Start work. Its result is dropped if newer work of the same kind starts before it ends.

        Parameters
        ----------
        kind : str
            What the work is for.
        work : callable
            Called in its own thread.
        deliver : callable
            Called with the result, in that thread, never at the same time as another delivery.
        fail : callable
            Called with the error instead.
        """
        with self._lock:
            number = self._newest[kind] = self._newest.get(kind, 0) + 1
            thread = threading.Thread(
                target=self._work, args=(kind, number, work, deliver, fail), name=f"icestats {kind}", daemon=True
            )
            self._threads[thread] = (kind, number)
            try:
                thread.start()
            except BaseException:
                # Interrupted, or there are too many: a thread that has not started can never be waited for.
                del self._threads[thread]
                raise

    def drop(self, kind: str) -> None:
        """Drop the running work of a kind: its result is not delivered."""
        with self._lock:
            self._newest[kind] = self._newest.get(kind, 0) + 1

    def deliver_part(self, deliver: Callable[[], object]) -> bool:
        """Deliver partial results; call it from within the work.

        Returns
        -------
        bool
            Whether the work is still wanted: nothing is delivered once newer work of the same kind has started.
        """
        with self._lock:
            if not self.is_wanted():
                return False
            deliver()
            return True

    def is_wanted(self) -> bool:
        """Return whether no newer work of the same kind has started; call it from within the work."""
        with self._lock:
            kind, number = self._threads[threading.current_thread()]
            return self._newest[kind] == number

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until no work is running; return whether that happened in time."""
        # Threads wait no longer than this at once, whatever is asked for.
        end = time.monotonic() + min(timeout_s, threading.TIMEOUT_MAX / 2)
        while True:
            with self._lock:
                thread = next(iter(self._threads), None)
            if thread is None:
                return True
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                return False

    def stop(self, timeout_s: float = 60.0) -> bool:
        """Drop the running work, and wait as `wait` does."""
        with self._lock:
            for kind in self._newest:
                self._newest[kind] += 1
        return self.wait(timeout_s)

    def _work(
        self,
        kind: str,
        number: int,
        work: Callable[[], Any],
        deliver: Callable[[Any], object],
        fail: Callable[[Exception], object],
    ) -> None:
        outcome: Callable[[], object]
        with self._lock:
            # An interrupt may have come just when it had started.
            self._threads[threading.current_thread()] = (kind, number)
        try:
            try:
                outcome = partial(deliver, work())
            except Exception as error:
                _logger.debug("%s failed", kind, exc_info=True)
                outcome = partial(fail, error)
            with self._lock:
                if self._newest[kind] == number:
                    outcome()
        finally:
            with self._lock:
                self._threads.pop(threading.current_thread(), None)
                is_last = not self._threads
            if is_last:
                _release_memory()


def _release_memory() -> None:
    """Give back what Arrow and the GNU C library keep for later: a kernel lives for days."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


_running: weakref.WeakSet[Background] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    # A daemon thread that Python kills inside Arrow or DuckDB takes the process down with an abort.
    for background in list(_running):
        background.stop(_LONGEST_EXIT_SECONDS)


def explain_error(error: Exception) -> str:
    """Return an error as one readable line.

    Examples
    --------
    >>> explain_error(ZeroDivisionError("division by zero"))
    'unexpected ZeroDivisionError: division by zero'
    """
    if isinstance(error, IcestatsError):
        return str(error)
    first = str(error).strip().partition("\n")[0]
    return f"unexpected {type(error).__name__}: {first}" if first else f"unexpected {type(error).__name__}"
