"""Small histograms for the heads of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from icestats.errors import CallError, StatisticsMissingError
from icestats.iceberg.metadata import Field
from icestats.stats.histogram import Histogram
from icestats.table.table import Table
from icestats_widgets.axis import brief_label
from icestats_widgets.histogram_part import read_histogram_part

BINS = 18


@dataclass(frozen=True)
class Spark:
    """The shape of a column's values, from its committed sketch."""

    heights: tuple[float, ...]
    """Heights of the bars; the highest is 1."""
    lower_quartile: str
    median: str
    upper_quartile: str
    rank_error: float
    source: str

    @property
    def text(self) -> str:
        """The text for screen readers and the tooltip."""
        return (
            f"median {self.median}, half of the values from {self.lower_quartile} to {self.upper_quartile} "
            f"({self.source} sketch, rank error {self.rank_error:.2%}; without far tails)"
        )


def read_sparks(table: Table, columns: Sequence[Field]) -> dict[str, Spark]:
    """Read the small histograms of the columns that have a sketch.

    Parameters
    ----------
    table : Table
        The table.
    columns : sequence of Field
        Top-level columns.
    """
    found = {}
    for field in columns:
        try:
            part = read_histogram_part(
                partial(_read, table, field.name), bins=BINS, kind="equi-width", whole_range=False
            )
        except (StatisticsMissingError, CallError):
            continue
        spark = build_spark(part.histogram)
        if spark is not None:
            found[field.name] = spark
    return found


def build_spark(histogram: Histogram) -> Spark | None:
    """Build the small histogram; None if there are no values to show."""
    highest = max(histogram.counts, default=0)
    if not highest or 0.5 not in histogram.quantiles:
        return None
    edges = [brief_label(histogram.type, histogram.quantiles[rank]) for rank in (0.25, 0.5, 0.75)]
    heights = tuple(round(count / highest, 3) for count in histogram.counts)
    return Spark(heights, edges[0], edges[1], edges[2], histogram.rank_error, histogram.source.upper())


def _read(table: Table, column: str, bins: int, kind: object) -> Histogram:
    return table.histogram(column, bins=bins, kind="equi-height" if kind == "equi-height" else "equi-width")
