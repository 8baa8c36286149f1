"""The data files that a row filter leaves to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icestats.catalog import Source, load_iceberg_table
from icestats.errors import UnsupportedError
from icestats.metadata import Snapshot
from icestats.plan.filters import parse_row_filter

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


def check_row_filter(source: Source, row_filter: str | BooleanExpression) -> None:
    """Raise FilterError unless the filter can be read and fits the current schema."""
    parse_row_filter(row_filter, load_iceberg_table(source).schema())


def read_kept_file_paths(source: Source, snapshot: Snapshot, row_filter: str | BooleanExpression) -> frozenset[str]:
    """Return the paths of the data files that a scan with the filter would read.

    Parameters
    ----------
    source : Source
        The table.
    snapshot : Snapshot
        The snapshot that is read.
    row_filter : str or pyiceberg.expressions.BooleanExpression
        The filter.

    Raises
    ------
    FilterError
        The filter cannot be read, or does not fit the schema.
    UnsupportedError
        PyIceberg cannot plan the scan: the table has equality deletes.
    """
    table = load_iceberg_table(source)
    scan = table.scan(snapshot_id=snapshot.snapshot_id)
    expression = parse_row_filter(row_filter, scan.projection())
    try:
        return frozenset(task.file.file_path for task in scan.filter(expression).plan_files())
    except (NotImplementedError, ValueError) as error:
        raise UnsupportedError(f"{source.name} cannot be planned: {error}") from error
