"""What a committed statistics file makes engines do differently."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from icestats.iceberg.metadata import StatisticsFile

if TYPE_CHECKING:
    from icestats.commit.statistics_plan import Column

# Spark asks whether a literal lies between a column's min and max, except for strings and binaries; without min and
# max the answer is no (SPARK-52868, SPARK-56485). A boolean's equality is rewritten before.
_TRAPPED_TYPES = re.compile(r"int|long|float|double|decimal.*|date|timestamp.*")


def explain_effects(after: StatisticsFile, columns: Mapping[int, Column]) -> tuple[str, ...]:
    """Return what engines do differently once an entry stands in metadata.json.

    Parameters
    ----------
    after : StatisticsFile
        The entry.
    columns : mapping of int to Column
        The fields of the current schema, by id.

    Returns
    -------
    tuple of str
        A line an engine or a trap.

    Notes
    -----
    Source: Spark 4.1 with Iceberg 1.12, and Trino 476, as they were seen to plan.
    """
    listed = [columns[entry.field_ids[0]] for entry in after.blobs]
    if not listed:
        return (
            "nothing is listed in metadata.json: Spark plans as before, Trino finds no NDV in this file and looks "
            "no further",
        )
    names = ", ".join(column.name for column in listed)
    trapped = ", ".join(column.name for column in listed if _TRAPPED_TYPES.fullmatch(column.type))
    effects = [
        f"Spark with spark.sql.cbo.enabled=true plans with the NDV of {names}, for exactly this snapshot: "
        "the next commit of data leaves it without",
        f"Trino plans with the NDV of {names}, for this snapshot and those that descend from it",
        f"drop one of {names} only after remove_statistics: Spark's joins fail on a listed column that is gone",
    ]
    if trapped:
        effects.append(
            f"Spark with spark.sql.cbo.enabled=true estimates 0 rows for an equality on {trapped} (an NDV without "
            "bounds, SPARK-52868): leave them out with list_ndv where that matters"
        )
    return tuple(effects)
