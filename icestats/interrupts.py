"""Queries that an interrupt ends for certain: they run in a thread of their own, and the calling thread waits.

DuckDB forgets an interrupt that comes before a query has begun, and Python gives one to its main thread alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

_WAIT_S = 0.02


class CallingThread:
    """The thread that waits for a query, and does for it meanwhile what an interrupt should reach, such as reading."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()

    def ask(self, call: Callable[[], Result]) -> Result:
        """Have the waiting thread call something, and return what it gives; called by the query's threads."""
        answer: Future[Result] = Future()
        self._work.put((call, answer))
        return answer.result()

    def wait_for(self, query: Callable[[], Result], interrupt: Callable[[], None]) -> Result:
        """Run a query in a thread of its own, and return its result or raise its error.

        Parameters
        ----------
        query : callable
            The query.
        interrupt : callable
            Ends the query, if it runs; called again and again until it has ended, where this thread is interrupted.

        Raises
        ------
        KeyboardInterrupt
            After the query has ended.
        """
        result: Future[Result] = Future()
        thread = Thread(target=self._run, args=(query, result), name="icestats-query", daemon=True)
        try:
            thread.start()
            while (work := self._work.get()) is not None:
                self._do(*work)
        except BaseException:
            while thread.is_alive():
                interrupt()
                self._refuse()
                thread.join(_WAIT_S)
            raise
        return result.result()

    def _run(self, query: Callable[[], Result], result: Future[Result]) -> None:
        try:
            result.set_result(query())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            result.set_exception(error)
        finally:
            self._work.put(None)

    @staticmethod
    def _do(call: Callable[[], Any], answer: Future[Any]) -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)
            if not isinstance(error, Exception):
                raise

    def _refuse(self) -> None:
        """Fail what the query asks for now, so that it does not wait for ever."""
        try:
            while True:
                work = self._work.get_nowait()
                if work is not None:
                    work[1].set_exception(InterruptedError("interrupted"))
        except Empty:
            return
