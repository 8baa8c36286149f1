"""Queries that an interrupt ends for certain: they run in a thread of their own, and the calling thread waits.

DuckDB forgets an interrupt that comes before a query has begun, and Python gives one to its main thread alone, where an
extension module that calls Python back may take it for an error of that call.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

_WAIT_S = 0.02


class CallingThread:
    """The thread that waits for a query, and does for it meanwhile what an interrupt should reach, such as reading."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._is_interrupted = Event()

    def ask(self, call: Callable[[], Result]) -> Result:
        """Have the waiting thread call something, and return what it gives; called by the query's threads.

        Raises
        ------
        InterruptedError
            The waiting thread was interrupted, perhaps after it had taken this up.
        """
        answer: Future[Result] = Future()
        self._work.put((call, answer))
        while not wait([answer], _WAIT_S).done:
            if self._is_interrupted.is_set():
                raise InterruptedError("interrupted")
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
            After the query has ended; further interrupts until then change nothing.
        """
        result: Future[Result] = Future()
        has_ended = Event()
        thread = Thread(target=self._run, args=(query, result, has_ended), name="icestats-query", daemon=True)
        try:
            thread.start()
            while (work := self._work.get()) is not None:
                self._do(*work)
        except BaseException:
            # People interrupt twice where the first takes a moment.
            is_over = False
            while not is_over:
                try:
                    self._end(thread, has_ended, interrupt)
                    is_over = True
                except KeyboardInterrupt:
                    continue
            raise
        return result.result()

    def _end(self, thread: Thread, has_ended: Event, interrupt: Callable[[], None]) -> None:
        self._is_interrupted.set()
        # Python 3.11 takes a thread for ended where an interrupt comes while it is joined.
        while thread.is_alive() and not has_ended.is_set():
            interrupt()
            has_ended.wait(_WAIT_S)

    def _run(self, query: Callable[[], Result], result: Future[Result], has_ended: Event) -> None:
        # An interrupt while the thread is started leaves it unknown whether it was.
        if self._is_interrupted.is_set():
            return
        try:
            result.set_result(query())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            result.set_exception(error)
        finally:
            has_ended.set()
            self._work.put(None)

    @staticmethod
    def _do(call: Callable[[], Any], answer: Future[Any]) -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
