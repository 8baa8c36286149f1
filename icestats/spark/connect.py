"""Sessions of Spark Connect: found, watched, and refused where only a JVM of this process would do."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from icestats.answers.text import one_line
from icestats.errors import SparkUnavailableError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODE = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Variables that PySpark takes for Spark Connect: the first is the user's, the second its own."""
_LONGEST_GOODBYE_S = 5.0


def is_connect(spark: object) -> bool:
    """Say whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def refuse_connect(spark: object, doing: str, instead: str) -> None:
    """Refuse a session of Spark Connect for what needs Spark's JVM.

    Parameters
    ----------
    spark : object
        Any session.
    doing : str
        What would be done, as the subject of the message.
    instead : str
        The way that can.

    Raises
    ------
    UnsupportedError
        The session is one of Spark Connect.
    """
    if is_connect(spark):
        raise UnsupportedError(f"{doing} needs Spark's JVM, which a session of Spark Connect does not reach: {instead}")


def find_connect_session() -> SparkSession | None:
    """Return the Connect session that this process works in, or would by SPARK_REMOTE; None: it works in classic ones.

    Raises
    ------
    SparkUnavailableError
        There is no server, or what Spark Connect needs is not installed.
    """
    if not any(os.environ.get(name) for name in _MODE):
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        known: Any = (ConnectSession.getActiveSession(), ConnectSession._default_session)
        running = next((one for one in known if one is not None and not one.is_stopped), None)
        _forget_stopped()
        return running or SparkSession.builder.getOrCreate()
    except ImportError as error:
        raise SparkUnavailableError(f"Spark Connect: {one_line(error)}: pip install 'icestats[connect]'") from error
    except PySparkException as error:
        way = "make one, or give the one that you have (spark=)"
        raise SparkUnavailableError(f"Spark Connect gives no session: {one_line(error)}; {way}") from error


def _forget_stopped() -> None:
    """Have PySpark take the next session that is made for its default one.

    It keeps one that its server has forgotten, as a restarted one does, and would hand out no other.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    if ConnectSession._default_session is not None and ConnectSession._default_session.is_stopped:
        ConnectSession._default_session = None


def interrupt_operations(spark: SparkSession, group: str) -> None:
    """Interrupt what runs under the name of a group, from any thread."""
    spark.interruptTag(_tag(group))


@contextmanager
def watch_operations(
    spark: SparkSession, group: str, callback: Callable[[int, int], object] | None = None
) -> Iterator[None]:
    """Tag the operations of a block with the name of a group, report their progress, and interrupt them if it fails.

    Parameters
    ----------
    spark : SparkSession
        A session of Spark Connect.
    group : str
        A name, as `interrupt_operations` takes it.
    callback : callable, optional
        Called with the completed and the known tasks whenever one of them changes, and once at the end of a block
        that did not fail. PySpark 3.5 hears of no progress: there only at the end.
    """
    tasks: dict[tuple[str | None, int], tuple[int, int]] = {}
    thread, last = threading.get_ident(), (0, 0)

    def report(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001 - names that PySpark calls it by
        nonlocal last
        # A handler hears of all operations of the session, each in the thread that waits for it.
        if callback is None or threading.get_ident() != thread:
            return
        tasks.update({(operation_id, one.stage_id): (one.num_completed_tasks, one.num_tasks) for one in stages or ()})
        now = _total(tasks.values())
        if now != last:
            last = now
            callback(*now)

    hears = callback is not None and hasattr(spark, "registerProgressHandler")
    spark.addTag(_tag(group))
    if hears:
        spark.registerProgressHandler(report)
    try:
        yield
    except BaseException:
        _interrupt_in_time(spark, group)
        _forget_stopped()
        raise
    finally:
        spark.removeTag(_tag(group))
        if hears:
            spark.removeProgressHandler(report)
    if callback:
        count = max(1, last[1])
        callback(count, count)


def _interrupt_in_time(spark: SparkSession, group: str) -> None:
    """Interrupt what runs under the name of a group, where the server answers.

    PySpark asks one that is gone for ten minutes, and as long again when the process ends.
    """

    def interrupt() -> None:
        with suppress(Exception):
            interrupt_operations(spark, group)

    asking = threading.Thread(target=interrupt, name=f"interrupt {group}", daemon=True)
    asking.start()
    asking.join(_LONGEST_GOODBYE_S)
    if asking.is_alive():
        # PySpark 4.1 registers it; what it would clean up is gone with the server.
        cleanup: Any = getattr(getattr(spark, "client", None), "_cleanup_ml_cache", None)
        atexit.unregister(cleanup)


def _total(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    completed, known = zip((0, 0), *counts, strict=True)
    return sum(completed), sum(known)


def _tag(group: str) -> str:
    # Spark separates tags by commas.
    return group.replace(",", ";")
