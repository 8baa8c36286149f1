"""Writing DataFrames to Iceberg tables through Spark's own writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from icestats.errors import CommitError, UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.spark.job_errors import explained_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["append", "overwrite partitions"]


def write_dataframe(frame: DataFrame, source: Source, mode: Mode) -> None:
    """Write a DataFrame to a table: one commit of data.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Its session has the table's catalog, under the same name.
    source : Source
        The table.
    mode : {"append", "overwrite partitions"}
        Whether to add rows, or to replace the partitions that the rows are of.

    Raises
    ------
    UnsupportedError
        The session does not know the table's catalog.
    CommitError
        Spark could not write.
    SparkUnavailableError
        The session's JVM has ended: whether the rows were committed is not known.
    """
    name = source.catalog_name
    if source.identifier is None or name is None:
        raise UnsupportedError(f"{source.name} is a metadata file: open the table through its catalog to write")
    identifier = ".".join(f"`{part}`" for part in (name, *source.identifier))
    doing = f"the write to {source.name} (its snapshots say whether the rows were committed)"
    failed = f"Spark could not write to {source.name}"
    with explained_errors(frame.sparkSession, doing, lambda said: CommitError(f"{failed}: {said}")):
        if frame.sparkSession.conf.get(f"spark.sql.catalog.{name}", None) is None:
            raise UnsupportedError(
                f"the DataFrame's session does not know the catalog {name!r}: get the session by "
                "icestats.spark.session.get_session with it, or set spark.sql.catalog." + name
            )
        writer = frame.writeTo(identifier)
        writer.append() if mode == "append" else writer.overwritePartitions()
