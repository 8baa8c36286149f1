"""Small histograms for the heads of the columns: of the whole table, or of the partitions that a filter selects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from icestats.answers.text import counted
from icestats.errors import CallError, StatisticsMissingError
from icestats.iceberg.metadata import Field
from icestats.read.puffin.committed_partitions import MergedSketches
from icestats.stats.histogram import Histogram, build_histogram
from icestats.stats.rollup_cells import limit_ndv
from icestats.table.table import Table
from icestats_widgets.drawing.axis import brief_label
from icestats_widgets.reading.histogram_part import read_histogram_part
from icestats_widgets.reading.selected_part import SelectedPart

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
    quantiles: Mapping[float, Any] = field(default_factory=dict, repr=False, hash=False)
    """Values of the column by their rank."""
    commits_behind: int = 0
    """Commits since the sketch was made."""

    @property
    def text(self) -> str:
        """The text for screen readers and the tooltip."""
        return (
            f"median {self.median}, half of the values from {self.lower_quartile} to {self.upper_quartile} "
            f"({self.source} sketch, rank error {self.rank_error:.2%}, {_name_age(self.commits_behind)}; "
            "without far tails)"
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
    for column in columns:
        try:
            spark = read_spark(partial(table.histogram, column.name))
        except (StatisticsMissingError, CallError):
            continue
        if spark is not None:
            found[column.name] = spark
    return found


@dataclass(frozen=True)
class PartSketches:
    """What the sketches by partition say of the columns of a part of the table."""

    part: SelectedPart
    sparks: Mapping[str, Spark] = field(default_factory=dict)
    """By column; only those whose partitions have sketches."""
    ndvs: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """The number of distinct values by column, and how it is known."""

    def fill(self, columns: pa.Table) -> pa.Table:
        """Return `schemas.COLUMNS` with the numbers of distinct values that they lack."""
        rows = columns.to_pylist()
        for row in rows:
            found = self.ndvs.get(row["name"])
            if row["ndv"] is None and found is not None:
                row["ndv"], about = limit_ndv({**row, "ndv": found[0]}, self.part.record_count, found[1])
                row["provenance"] = list({**dict(row["provenance"]), "ndv": about}.items())
        return pa.Table.from_pylist(rows, columns.schema)


def read_part_sketches(table: Table, part: SelectedPart) -> PartSketches:
    """Read what the sketches by partition say of a part of the table.

    Nothing where no filter can say its partitions: of manifests, odd values, or a selection in one of several partition
    specs.

    Parameters
    ----------
    table : Table
        The table.
    part : SelectedPart
        Some of its partitions.
    """
    if part.where is None:
        return PartSketches(part)
    ndvs: dict[str, tuple[int, str]] = {}
    sparks: dict[str, Spark] = {}
    for column in table.schema.top_level:
        try:
            found = table.merge_partition_sketches(column.name, part.where, partial=part.partial)
        except (StatisticsMissingError, CallError):
            continue
        if part.file_count and not found.partition_count:
            # They are newer than the sketches.
            continue
        ndvs[column.name] = (found.ndv, _explain(found))
        if found.kll is not None:
            read = partial(build_histogram, found.kll, column=column.name, type_text=column.type)
            if (spark := read_spark(read)) is not None:
                sparks[column.name] = replace(spark, commits_behind=found.commits_behind)
    return PartSketches(part, sparks, ndvs)


def _explain(found: MergedSketches) -> str:
    how = "still holds every value" if found.theta.is_exact else f"within {found.theta.relative_error:.1%} at 95%"
    return f"estimate: Theta of {counted(found.partition_count, 'partition')}, {how}, {_name_age(found.commits_behind)}"


def _name_age(commits_behind: int) -> str:
    return f"{counted(commits_behind, 'commit')} behind" if commits_behind else "this snapshot"


def read_spark(read: Callable[..., Histogram]) -> Spark | None:
    """Read a small histogram, as `read_histogram_part` does; None if there are no values to show."""
    histogram = read_histogram_part(read, bins=BINS, kind="equi-width", whole_range=False).histogram
    highest = max(histogram.counts, default=0)
    if not highest or 0.5 not in histogram.quantiles:
        return None
    edges = [brief_label(histogram.type, histogram.quantiles[rank]) for rank in (0.25, 0.5, 0.75)]
    heights = tuple(round(count / highest, 3) for count in histogram.counts)
    source = histogram.source.upper()
    error, age = histogram.rank_error, histogram.commits_behind or 0
    return Spark(heights, edges[0], edges[1], edges[2], error, source, histogram.quantiles, age)
