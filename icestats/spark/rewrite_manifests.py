"""Regrouping a table's manifests: Iceberg's own procedure, run by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icestats.errors import CommitError, UnsupportedError
from icestats.iceberg.catalog import Source
from icestats.spark.job_errors import explained_errors
from icestats.spark.session import get_session, spark_catalog_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_rewrite_manifests(
    source: Source, statements: Sequence[str], spark: SparkSession | None = None
) -> tuple[int, int]:
    """Run the statements that rewrite a table's manifests.

    Parameters
    ----------
    source : Source
        The table, in a catalog.
    statements : sequence of str
        Of `Maintenance.rewrite_manifests`: the last one is the call of the procedure.
    spark : pyspark.sql.SparkSession, optional
        A session that knows the catalog by its name; by default the running one, or a new local one.

    Returns
    -------
    tuple of int
        How many manifests were rewritten, and how many were made of them.

    Raises
    ------
    CommitError
        The table is a bare metadata.json, or the rewrite was not committed.
    UnsupportedError
        Spark has no catalog of this kind.
    SparkUnavailableError
        There is no Java 17, or Spark cannot start.
    """
    if source.identifier is None or source.catalog_name is None:
        raise CommitError(
            f"{source.metadata_location} is a metadata file: open the table through its catalog to rewrite"
        )
    session = spark
    if session is None:
        properties = spark_catalog_properties(source.catalog_properties)
        if properties is None:
            raise UnsupportedError(f"Spark has no catalog like {source.catalog_name!r}: give a session that knows it")
        session = get_session({source.catalog_name: properties})
    counts = (0, 0)
    with explained_errors(session, "the Spark job that rewrites manifests"):
        for statement in statements:
            rows = session.sql(statement).collect()
            if statement.startswith("CALL"):
                counts = (int(rows[0][0]), int(rows[0][1]))
    return counts
