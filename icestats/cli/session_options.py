"""The options of the Spark session that a verb starts, in the words of `get_session`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from icestats.cli.output import Command
from icestats.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StartSpark = Callable[[Table], "SparkSession"]
"""Starts Spark as the options say, with what opens the files of a table."""


def with_spark(command: Command) -> Any:
    """Give a command the options of a Spark session.

    It gets `start_spark`, to be called once the rest is checked; None where no option is given, so that what needs a
    session finds one by itself.
    """

    @click.option("--master", metavar="URL", help="Spark's master, such as spark://host:7077; by default local[*].")
    @click.option("--driver-memory", metavar="SIZE", help="Heap of Spark's driver; by default 2g.")
    @click.option("--executor-memory", metavar="SIZE", help="Heap of each executor on a cluster; by default 1g.")
    @click.option("--conf", metavar="KEY=VALUE", multiple=True, help="A property of Spark's; may be repeated.")
    @functools.wraps(command)
    def run(
        master: str | None, driver_memory: str | None, executor_memory: str | None, conf: tuple[str, ...], **others: Any
    ) -> Any:
        options = {
            "master": master,
            "driver_memory": driver_memory,
            "executor_memory": executor_memory,
            "conf": dict(map(_parse_property, conf)) or None,
        }

        def start_spark(table: Table) -> SparkSession:
            from icestats.spark.session import get_session

            return get_session(location=table.metadata.location, **options)  # type: ignore[arg-type]  # mypy sees one type for all values

        is_asked = any(value is not None for value in options.values())
        return command(start_spark=start_spark if is_asked else None, **others)

    return run


def start_for_scan(start_spark: StartSpark | None, table: Table, scans: bool, asked_by: str) -> SparkSession | None:
    """Start Spark for a scan, or refuse its options where nothing is scanned."""
    if start_spark is None:
        return None
    if not scans:
        raise click.UsageError(f"--master, --driver-memory, --executor-memory and --conf are of a scan: add {asked_by}")
    return start_spark(table)


def _parse_property(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f"--conf {name[:80]}: expected KEY=VALUE, such as spark.executor.cores=2")
    return name.strip(), value
