"""SQL whose names and texts come from a table, for Spark to run as it is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icestats.errors import UnsupportedError
from icestats.spark.connect import is_connect
from icestats.spark.jvm import interrupts_first, unless_ended, unshown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTINGS = {
    "${": "spark.sql.variable.substitute",
    "\\": "spark.sql.parser.escapedStringLiterals",
    "`": "spark.sql.parser.quotedRegexColumnNames",
}
"""By what a statement has: the settings with which Spark would take it for something else."""
_lock = threading.RLock()
"""Of two threads that change a setting of a session, one would take the other's value for the user's."""


@unshown()
def run_sql(spark: SparkSession, statement: str) -> DataFrame:
    """Run a statement in which Spark fills in no variables, and names and texts are what they are.

    By default it fills them in, before it parses: a column that is called `${env:NAME}` would be looked for under what
    the environment, or a setting of the session, has there, and an error would tell it.

    Raises
    ------
    UnsupportedError
        The session is one of Spark Connect, which parses late, and has a setting by which it would read otherwise.
    """
    changed = [name for mark, name in _SETTINGS.items() if mark in statement and spark.conf.get(name) != "false"]
    if not changed:
        return spark.sql(statement)
    if is_connect(spark):
        raise UnsupportedError(
            f"a name or a text in the table or the filter would be read otherwise: set {' and '.join(changed)} to "
            "false in the session"
        )
    with changed_settings(spark, dict.fromkeys(changed, "false")):
        return spark.sql(statement)


@contextmanager
def changed_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a block; a block of another thread waits for its end."""
    with _lock:
        before: dict[str, str | None] = {name: session.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                session.conf.set(name, value)
            yield
        finally:
            with interrupts_first(), unless_ended(session):
                for name, earlier in before.items():
                    if earlier is None:
                        session.conf.unset(name)
                    else:
                        session.conf.set(name, earlier)
