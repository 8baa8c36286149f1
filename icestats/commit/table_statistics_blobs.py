"""Computed table statistics -> the blobs of a Puffin file."""

from __future__ import annotations

from icestats.commit.puffin_writer import NewBlob
from icestats.read.statistics_files import COLUMN_STATISTICS, KLL, THETA
from icestats.stats.column_accumulator import ColumnStatistics
from icestats.stats.column_statistics_payload import write_column_statistics
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import TableStatistics
from icestats.stats.theta import ThetaSketch
from icestats.types import decode_json


def build_blobs(statistics: TableStatistics) -> tuple[NewBlob, ...]:
    """Build the blobs: Theta, KLL and column statistics of each column.

    Parameters
    ----------
    statistics : TableStatistics
        What a scan found.
    """
    return tuple(blob for column in statistics.columns.values() for blob in _column_blobs(statistics, column))


def _column_blobs(statistics: TableStatistics, column: ColumnStatistics) -> list[NewBlob]:
    ndv = int(ThetaSketch.from_bytes(column.theta).estimate())
    blobs = [_blob(statistics, THETA, (column.field_id,), column.theta, {"ndv": str(ndv)})]
    if column.kll is not None and column.item_type is not None:
        sketch = KllSketch.from_bytes(column.item_type, column.kll)
        properties = {
            "k": str(sketch.k),
            "n": str(sketch.n),
            "item-type": column.item_type,
            "null-count": str(column.null_value_count),
            "nan-count": str(column.nan_value_count),
        }
        if column.min_value is not None and column.max_value is not None:
            properties["min-value"] = str(decode_json(column.type, column.min_value))
            properties["max-value"] = str(decode_json(column.type, column.max_value))
        blobs.append(_blob(statistics, KLL, (column.field_id,), column.kll, properties))
    blobs.append(_blob(statistics, COLUMN_STATISTICS, (column.field_id,), write_column_statistics([column]), {}))
    return blobs


def _blob(
    statistics: TableStatistics, blob_type: str, field_ids: tuple[int, ...], payload: bytes, properties: dict[str, str]
) -> NewBlob:
    return NewBlob(
        type=blob_type,
        field_ids=field_ids,
        snapshot_id=statistics.snapshot_id,
        sequence_number=statistics.sequence_number,
        payload=payload,
        properties=properties,
    )
