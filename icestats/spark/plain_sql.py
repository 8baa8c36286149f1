"""SQL whose names and texts come from a table, for Spark to run as it is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icestats.errors import UnsupportedError
from icestats.spark.connect import is_connect
from icestats.spark.jvm import interrupts_first, unless_ended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SUBSTITUTION = "spark.sql.variable.substitute"
_lock = threading.Lock()


def run_sql(spark: SparkSession, statement: str) -> DataFrame:
    """Run a statement in which Spark fills in no variables.

    By default it does, before it parses: a column that is called `${env:NAME}` would be looked for under what the
    environment, or a setting of the session, has there, and an error would tell it.

    Raises
    ------
    UnsupportedError
        The session is one of Spark Connect, which parses late, and its server fills in variables.
    """
    if "${" not in statement:
        return spark.sql(statement)
    with _lock:
        if is_connect(spark) and spark.conf.get(_SUBSTITUTION, "true") != "false":
            raise UnsupportedError(
                f"a name or a text in the table or the filter has '${{', where Spark would fill in a variable: set "
                f"{_SUBSTITUTION} to false in the session"
            )
        with changed_settings(spark, {} if is_connect(spark) else {_SUBSTITUTION: "false"}):
            return spark.sql(statement)


@contextmanager
def changed_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a block."""
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
