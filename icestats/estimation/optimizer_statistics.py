"""What a snapshot's statistics tell an optimizer: figures of the table and of each column, brought to today's rows."""

from __future__ import annotations

import math
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.text import counted
from icestats.errors import IcestatsError, MetadataError, StatisticsMissingError
from icestats.estimation.evidence import Evidence
from icestats.estimation.formulas.sketch_sources import IF_RIGHT, Distribution, count_live
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import MAX_LONG_PRECISION, decode_value, has_lengths, parse_type
from icestats.read.puffin.committed_sketches import find_nearest
from icestats.read.puffin.statistics_age import THETA
from icestats.read.puffin.statistics_files import FREQUENT_ITEMS, KLL
from icestats.stats.column_accumulator import can_sketch
from icestats.stats.equi_height import (
    EquiHeightBins,
    build_around_common,
    build_equi_height,
    find_deviation,
    place_between,
)
from icestats.stats.kll_items import item_beside, item_type_of, to_item
from icestats.stats.reported_statistics import ReportedColumn, ReportedStatistics

_WIDTHS = {"boolean": 1, "int": 4, "float": 4, "date": 4, "long": 8, "double": 8, "timestamptz": 8, "uuid": 36}
_UNKNOWN_LENGTH = 20
"""Spark's own guess of a string's length."""
_FEW_ADDED = 64
"""Into how many values rows beyond a sketch's ends are spread."""
_KEY_LIKE = 0.1
"""The share of rows from which on distinct values are taken to grow and shrink with them."""
_STANDS_OUT = 2
"""A value with more than so many times the rows of an average one is not as common as the others."""
_NOT_TAKEN = {
    "timestamp": "Spark's estimates fail on statistics of timestamps without a zone",
    "timestamp_ns": "Spark has no such type",
    "timestamptz_ns": "Spark has no such type",
    "time": "Spark has no such type",
}


def build_reported_statistics(evidence: Evidence, *, with_common: bool = True) -> ReportedStatistics:
    """Build what Spark's optimizer is told of a snapshot. Reads manifests' roll-ups and statistics files, no data.

    Parameters
    ----------
    evidence : Evidence
        The snapshot.
    with_common : bool
        Whether committed common values have bins of their own.
    """
    return _Builder(evidence, with_common).build()


class _Builder:
    def __init__(self, evidence: Evidence, with_common: bool) -> None:
        self.evidence, self.reader, self.with_common = evidence, evidence.reader, with_common
        self.notes: list[str] = []
        self.distributions: dict[int, Distribution] = {}
        self.rows_then: dict[int, float] = {}
        """Live rows of earlier snapshots, as sketches have counted them."""

    def build(self) -> ReportedStatistics:
        reader = self.reader
        fields = reader.schema.top_level
        for field in fields:
            if field.is_primitive and item_type_of(field.type) not in (None, "string"):
                self._read_distribution(field)
        table = self.evidence.read_table(())
        live = count_live(table, "deduct", [one.rows for one in self.distributions.values() if one.rows])
        proven = count_live(table, "deduct", []).rows
        is_proven = (proven.least[0], proven.most[0]) == (live.rows.least[0], live.rows.most[0])
        is_proven &= not self.evidence.has_committed_rollups
        records, rows = float(table.groups.row_counts[0]), float(np.nan_to_num(live.rows.estimate[0]))
        # Spark would take a table that is estimated at 0 rows for one that can be sent to each executor.
        self.row_count = max(round(rows), int(live.rows.most[0] >= 1.0))
        known = {row["field_id"]: row for row in reader.read_columns().to_pylist()}
        columns, unknown = [], []
        for field in fields:
            found = self._build_column(field, known.get(field.field_id, {}))
            if isinstance(found, ReportedColumn):
                columns.append(found)
            else:
                unknown.append((field.name, found))
        return ReportedStatistics(
            table_name=reader.source.name,
            snapshot_id=None if reader.snapshot is None else reader.snapshot.snapshot_id,
            row_count=self.row_count,
            row_count_bounds=(math.floor(live.rows.least[0]), math.ceil(live.rows.most[0])),
            row_count_assumes="" if is_proven else IF_RIGHT,
            record_count=round(records),
            columns=tuple(columns),
            unknown=tuple(unknown),
            notes=(*self.notes, *(f"{one.title}: {one.evidence}" for one in reader.findings)),
        )

    def _read_distribution(self, field: Field) -> None:
        try:
            found = self.evidence.read_distribution(field)
        except MetadataError as error:
            self.notes.append(f"no sketch of {field.name} is used: {error}")
            return
        if found is not None and found.sketch.n:
            self.distributions[field.field_id] = found
            if found.rows and found.rows.notes:
                made = find_nearest(self.reader.usable_blobs, KLL, field).blob.snapshot_id
                self.rows_then[made] = float(found.rows.row_counts[0])

    def _build_column(self, field: Field, known: dict[str, Any]) -> ReportedColumn | str:
        """Return a column's figures, or why there are none."""
        kind = parse_type(field.type).name if field.is_primitive else field.type
        if kind in _NOT_TAKEN or not known:
            return _NOT_TAKEN.get(kind, "it is nested")
        if (reason := can_sketch(field)) is not None:
            return reason
        nulls, provenance = self._count_nulls(known), dict(known["provenance"])
        lengths, values = _find_lengths(field.type, known), max(1, self.row_count - (nulls or 0))
        if not self.row_count or (nulls and known["null_value_count"] >= (known["value_count"] or self.row_count)):
            return ReportedColumn(field.name, field.type, 0, nulls, *lengths, None, None, "no value")
        ndv, said = self._bring_to_today(field, known["ndv"], values)
        sources = [f"ndv {provenance['ndv']}{said}"]
        bounds, bins = None, None
        if item_type_of(field.type) not in (None, "string"):
            bounds = _read_bounds(field, known)
            if bounds is None:
                # Spark takes an NDV without bounds for 0 rows with any value.
                return "its bounds are unknown or not finite"
            bins, said = self._build_bins(field, bounds, ndv)
            sources += [f"bounds {provenance['lower_bound']}", said]
        if bins is None and self._has_common(field):
            sources.append("common values are committed, and not said: Spark knows them by a histogram only")
        return ReportedColumn(field.name, field.type, ndv, nulls, *lengths, bounds, bins, "; ".join(sources))

    def _count_nulls(self, known: dict[str, Any]) -> int | None:
        nulls: int | None = known["null_value_count"]
        values: int | None = known["value_count"]
        if nulls is None or not values:
            return None if nulls is None else min(nulls, self.row_count)
        return min(self.row_count, round(nulls * self.row_count / values))

    def _bring_to_today(self, field: Field, ndv: int | None, values: int) -> tuple[int | None, str]:
        """Return a number of distinct values for today's rows, and how it was scaled: by the rows that it was of."""
        if ndv is None:
            return None, ""
        rows = self.rows_then.get(find_nearest(self.reader.usable_blobs, THETA, field).blob.snapshot_id)
        if rows is None or ndv < _KEY_LIKE * rows:
            return max(1, min(ndv, values)), ""
        scaled = max(1, min(round(ndv * self.row_count / rows), values))
        return scaled, f"; scaled from {ndv:,} of {rows:,.0f} rows, as most rows have a value of their own"

    def _build_bins(self, field: Field, bounds: tuple[Any, Any], ndv: int | None) -> tuple[EquiHeightBins | None, str]:
        found = self.distributions.get(field.field_id)
        if found is None or ndv is None:
            return None, "no histogram: Theta and KLL sketches have not both been committed"
        if parse_type(field.type).name == "boolean":
            return None, "no histogram: Spark has none of booleans"
        sketch = found.sketch
        added = self._spread_added(field, found, bounds)
        bins = build_equi_height(sketch, ndv, ends=bounds, added=added)
        is_even = field.type in ("int", "long") and find_deviation(bins) <= max(sketch.rank_error, 1 / len(bins.ndvs))
        common, notes = self._read_common(field, found)
        apart = build_around_common(
            sketch, ndv, ends=bounds, common=common, beside=partial(item_beside, field.type), added=added
        )
        if is_even and not (apart and max(apart.common.values()) * ndv > _STANDS_OUT * len(apart.ndvs)):
            return None, (
                "no histogram: values spread evenly between the bounds, and Spark takes a join of two histograms for "
                "one of unfiltered tables"
            )
        said = [f"histogram from KLL, ranks within {sketch.rank_error:.2%}"]
        if apart:
            share = sum(apart.common.values()) / len(apart.ndvs)
            own = f"{len(apart.common.keys() & common):,} of {counted(len(common), 'common value')}"
            said.append(f"{own} in bins of their own, {share:.1%}")
        elif common:
            said.append("no common value fills half a bin of its own")
        return apart or bins, "; ".join(dict.fromkeys([*said, *(found.rows.notes if found.rows else ()), *notes]))

    def _has_common(self, field: Field) -> bool:
        try:
            return self.with_common and find_nearest(self.reader.usable_blobs, FREQUENT_ITEMS, field) is not None
        except (StatisticsMissingError, MetadataError):
            return False

    def _read_common(self, field: Field, distribution: Distribution) -> tuple[dict[Any, float], tuple[str, ...]]:
        """Return common values, each with how many of a sketch's values it is, and what to know of their age."""
        try:
            found = self.evidence.read_frequent(field) if self.with_common else None
        except MetadataError as error:
            self.notes.append(f"no common values of {field.name} are used: {error}")
            return {}, ()
        if found is None or not found.values.value_count:
            return {}, ()
        scale = distribution.sketch.n / found.values.value_count
        counts = {value: (item.lower + item.upper) / 2 * scale for value, item in found.by_value.items()}
        return counts, found.rows.notes

    def _spread_added(self, field: Field, found: Distribution, bounds: tuple[Any, Any]) -> list[tuple[Any, float]]:
        """Return values for what the sketch does not know: NaN, which Spark orders last, and rows beyond its ends."""
        sketch, nans, nulls = found.sketch, found.nan_share or 0.0, found.null_share or 0.0
        added = [(bounds[1], sketch.n * nans / max(1.0 - nans - nulls, 1e-9))] if nans else []
        rows = found.rows
        new = float(rows.added[0]) if rows is not None else 0.0
        if not new or not math.isfinite(new):
            return added
        parts = self._find_added(field) or [(bounds, new)]
        for (low, high), count in parts:
            for start, end in ((low, min(high, sketch.min_value)), (max(low, sketch.max_value), high)):
                if start < end or low == high == end:
                    pieces = max(1, _FEW_ADDED // len(parts))
                    weight = count * (float(end - start) / float(high - low) if high > low else 1.0) / pieces
                    added += [(place_between(start, end, (i + 1) / pieces), weight) for i in range(pieces)]
                    break
        return added

    def _find_added(self, field: Field) -> list[tuple[tuple[Any, Any], float]]:
        """Return the bounds and rows of the manifests that have come since a column's sketch was made."""
        reader, then = self.reader, find_nearest(self.reader.usable_blobs, KLL, field).blob.snapshot_id
        if reader.snapshot is None:
            return []
        ancestors = [one.snapshot_id for one in reader.source.metadata.ancestors(reader.snapshot)]
        newer = pa.array(takewhile(lambda snapshot_id: snapshot_id != then, ancestors), pa.int64())
        manifests = reader.read_manifests()
        manifests = manifests.filter(pc.is_in(manifests["added_snapshot_id"], newer))
        found = []
        for row in manifests.filter(pc.equal(manifests["content"], "data")).to_pylist():
            ends = {side: dict(row[f"{side}s"] or ()).get(field.field_id) for side in ("lower_bound", "upper_bound")}
            if row["added_rows_count"] and (bounds := _read_bounds(field, ends)) is not None:
                found.append((bounds, float(row["added_rows_count"])))
        return found


def _find_lengths(type_text: str, known: dict[str, Any]) -> tuple[int, int]:
    """Return the average and the largest length of a value in Spark's rows, in bytes."""
    kind = parse_type(type_text)
    if kind.name == "decimal":
        return (8, 8) if kind.precision <= MAX_LONG_PRECISION else (16, 16)
    if not has_lengths(kind.name):
        width = kind.length or _WIDTHS[kind.name]
        return width, width
    average, longest = known["avg_length"], known["max_length"]
    average = _UNKNOWN_LENGTH if average is None else math.ceil(average)
    return average, average if longest is None else max(longest, average)


def _read_bounds(field: Field, known: dict[str, Any]) -> tuple[Any, Any] | None:
    ends = known["lower_bound"], known["upper_bound"]
    if None in ends:
        return None
    try:
        low, high = (to_item(field.type, decode_value(field.type, end)) for end in ends)
    except (ValueError, IcestatsError):
        return None
    return (low, high) if low <= high and math.isfinite(float(high) - float(low)) else None
