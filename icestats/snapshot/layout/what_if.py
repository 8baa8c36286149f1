"""What maintenance would do, from metadata alone: files regrouped in manifests, or sorted; a workload's funnels then.

Source: Iceberg's Spark actions `rewrite_manifests` (range partitioning by partition values, then manifests of a target
size) and `rewrite_data_files` with a sort order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icestats.answers.arrays import to_numpy
from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.schemas import MANIFEST_REWRITE, WHAT_IF
from icestats.answers.text import printable_lines
from icestats.errors import CallError
from icestats.iceberg.metadata import PartitionSpec
from icestats.iceberg.value_order import Keys, Longs, Mask
from icestats.snapshot.evaluation.column_metrics import MISSING, ColumnMetrics
from icestats.snapshot.evaluation.evaluator import evaluate
from icestats.snapshot.layout.clustering import FieldLayout
from icestats.snapshot.layout.file_set import FileSet
from icestats.snapshot.layout.maintenance import NEXT
from icestats.snapshot.layout.value_places import find_places
from icestats.snapshot.pruning.funnel import BOUNDS, ROLLUPS, SUMMARIES, TUPLES, Unit

if TYPE_CHECKING:
    from icestats.iceberg.filters.row_filter import RowFilter

AS_IF = f"{ROLLUPS} as if their statistics were committed"
"""Without these no manifest is skipped by the bounds of columns, now or then."""
_POINTS = 8
"""The rows of a file are taken to lie at this many places, evenly from its lower to its upper bound."""
_GOLDEN = 0.6180339887498949


def regroup_files(
    files: FileSet, manifest_size_bytes: int, by: str | None = None, spec: PartitionSpec | None = None
) -> FileSet:
    """Return the files as `rewrite_manifests` would group them.

    Parameters
    ----------
    files : FileSet
        As they are.
    manifest_size_bytes : int
        The size that manifests are to have.
    by : str, optional
        A partition field to cluster by; by default all of them, in the spec's order.
    spec : PartitionSpec, optional
        The one whose manifests are rewritten: Spark rewrites those of the table's current spec. By default all, each
        by itself.

    Notes
    -----
    Files of equal keys stay together, as in Spark's range partitioning, whose
    boundaries are sampled: the number of manifests and what each holds may differ a little. Files of a table without
    partitions are dealt out one by one.
    """
    keys = files.partitions if by is None else _partition_keys(files, by, spec)
    count, groups = 0, np.zeros(len(files), np.int64)
    bytes_by_spec = _manifest_bytes(files)
    for spec_id in np.unique(files.spec_ids).tolist():
        rows = np.flatnonzero(files.spec_ids == spec_id)
        if spec is not None and spec_id != spec.spec_id:
            there, found = np.unique(files.manifest_index[rows], return_inverse=True)
            groups[rows] = count + found
            count += len(there)
            continue
        wanted = max(1, -(-bytes_by_spec[spec_id] // manifest_size_bytes))
        order = rows[np.argsort(keys[rows], kind="stable")]
        first = np.searchsorted(keys[order], keys[order], side="left")
        # Without partitions Spark deals files out to as many manifests as their bytes ask for.
        is_dealt = spec is not None and not spec.is_partitioned
        chosen = np.arange(len(rows)) % wanted if is_dealt else first * wanted // len(rows)
        found = np.unique(chosen, return_inverse=True)[1]
        groups[order] = count + found
        count += int(found.max(initial=-1)) + 1
    return _with_groups(files, groups, count)


def _partition_keys(files: FileSet, name: str, spec: PartitionSpec | None) -> Longs:
    fields = [field for field in files.partition_fields if spec is None or field in spec.fields]
    field = next((field for field in fields if isinstance(name, str) and field.name == name), None)
    if field is None:
        known = ", ".join(field.name for field in fields) or "none"
        raise CallError(f"no partition field {name!r:.80}: the table has {known}")
    metrics = files.partition_metrics[field.field_id]
    ranks = metrics.lower.ranks()[0]
    return np.where(metrics.lower.known, ranks, ranks.min(initial=0) - 1)


def _manifest_bytes(files: FileSet) -> dict[int, int]:
    lengths = to_numpy(files.manifests["manifest_length"])
    spec_ids = to_numpy(files.manifests["partition_spec_id"])
    return {int(spec_id): int(lengths[spec_ids == spec_id].sum()) for spec_id in np.unique(spec_ids)}


def _with_groups(files: FileSet, groups: Longs, count: int) -> FileSet:
    """Return the files in other manifests, each as long as its share of the entries."""
    total = sum(_manifest_bytes(files).values())
    members = np.bincount(groups, minlength=count)
    spec_ids = np.zeros(count, np.int32)
    spec_ids[groups] = files.spec_ids
    manifests = pa.table(
        {
            "manifest_length": pa.array(members * total // max(len(files), 1)),
            "partition_spec_id": pa.array(spec_ids, pa.int32()),
        }
    )
    return replace(files, manifests=manifests, manifest_index=groups)


def sort_files(files: FileSet, field_id: int, manifest_size_bytes: int) -> FileSet:
    """Return the files as if each partition were sorted by a column, then cut into as many files as it has.

    Parameters
    ----------
    files : FileSet
        As they are.
    field_id : int
        The column.
    manifest_size_bytes : int
        The size that manifests are to have.

    Notes
    -----
    An estimate: the rows of a file are taken to spread evenly between its bounds (`value_places` says what this means
    of text), and the new files to have the same number of rows: what is common, or rare, is not known. Of other columns
    the new files are taken to have the bounds of their whole partition, which is the least favourable case. Files
    without bounds of the column stay as they are.
    """
    metrics = files.column_metrics[field_id]
    usable = np.flatnonzero(metrics.lower.known & metrics.upper.known & (files.record_counts > 0))
    if not usable.size:
        return regroup_files(files, manifest_size_bytes)
    # A partition's files are numbered as they are; its sorted rows are dealt out to those numbers in order.
    partitions = np.unique(files.partitions[usable], return_inverse=True)[1]
    count = int(partitions.max()) + 1
    members = np.argsort(partitions, kind="stable")
    heads = np.flatnonzero(np.diff(partitions[members], prepend=-1))
    whole = metrics.take(usable).roll_up(partitions, count)
    lower, upper = _deal(files, metrics, usable, partitions)
    lower, upper = _put(lower, heads, whole.lower), _put(upper, np.append(heads[1:], len(members)) - 1, whole.upper)
    sorted_metrics = _replace_bounds(metrics, usable[members], lower, upper)
    others = {}
    for other_id, other in files.column_metrics.items():
        whole = other.take(usable).roll_up(partitions, count)
        others[other_id] = _replace_bounds(other, usable, whole.lower.take(partitions), whole.upper.take(partitions))
    new = replace(
        files, column_metrics={**others, field_id: sorted_metrics}, record_counts=_even(files, usable, partitions)
    )
    return regroup_files(new, manifest_size_bytes)


def _even(files: FileSet, usable: Longs, partitions: Longs) -> Longs:
    counts = files.record_counts.copy()
    sums = np.bincount(partitions, weights=files.record_counts[usable])
    counts[usable] = np.rint(sums / np.bincount(partitions))[partitions].astype(np.int64)
    return counts


def _deal(files: FileSet, metrics: ColumnMetrics, usable: Longs, partitions: Longs) -> tuple[Keys, Keys]:
    """Return the bounds of new files of even size, those of each partition in order.

    Between two new files no gap is left where a file that there is may have rows.
    """
    places, back = find_places(metrics.lower.take(usable).join(metrics.upper.take(usable)), metrics.type)
    low, high = np.split(places, 2)
    # Inner points of files with the same bounds lie at different places: rows do.
    phases = np.arange(len(usable)) * _GOLDEN % 1.0 - 0.5
    steps = np.clip(np.arange(_POINTS) + phases[:, None], 0.0, _POINTS - 1.0) / (_POINTS - 1.0)
    steps[:, 0], steps[:, -1] = 0.0, 1.0
    points = (low[:, None] + (high - low)[:, None] * steps).ravel()
    parts, ends = np.ones(_POINTS), np.zeros(_POINTS, np.int64)
    parts[[0, -1]], ends[[0, -1]] = 0.5, (1, -1)
    owner = np.repeat(partitions, _POINTS)
    order = _order_within(owner, points)
    points, owner = points[order], owner[order]
    weights = (files.record_counts[usable, None] * parts).ravel()[order]
    # How many files that there are reach beyond each point.
    spanning = np.cumsum(np.tile(ends, len(usable))[order])
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    after = np.cumsum(weights)
    after -= np.repeat((after - weights)[starts], np.diff(np.append(starts, len(owner))))
    counts, totals = np.bincount(partitions), np.add.reduceat(weights, starts)
    first = (np.cumsum(counts) - counts)[owner]
    begun, ended = ((rows * counts[owner] / totals[owner]) for rows in (after - weights, after))
    most = counts[owner] - 1
    numbers = np.arange(len(usable))
    begin = np.searchsorted(first + np.clip(np.ceil(ended).astype(np.int64) - 1, 0, most), numbers, "left")
    end = np.searchsorted(first + np.clip(np.floor(begun).astype(np.int64), 0, most), numbers, "right") - 1
    is_gap = (begin > np.append(-1, end[:-1])) & (spanning[begin - 1] > 0)
    return back(points[begin - is_gap]), back(points[end])


def _order_within(groups: Longs, values: npt.NDArray[np.float64]) -> Longs:
    """Return the order of values by group, then by value; groups are small numbers, not negative.

    Examples
    --------
    >>> _order_within(np.array([1, 0, 1]), np.array([5.0, 9.0, 2.0])).tolist()
    [1, 2, 0]
    """
    order = np.argsort(values)
    chosen = groups[order]
    # Numbers of 16 bits are sorted by counting.
    narrow = chosen.astype(np.uint16) if int(chosen.max(initial=0)) < 1 << 16 else chosen
    return order[np.argsort(narrow, kind="stable")]


def _replace_bounds(metrics: ColumnMetrics, rows: Longs, lower: Keys, upper: Keys) -> ColumnMetrics:
    """Return the metrics with other bounds in some rows, where counts of nulls and NaN are no longer known."""
    kept = np.ones(len(metrics.valueless), np.bool_)
    kept[rows] = False
    return replace(
        metrics,
        value_counts=np.where(kept, metrics.value_counts, MISSING),
        null_counts=np.where(kept, metrics.null_counts, MISSING),
        nan_counts=np.where(kept, metrics.nan_counts, MISSING),
        lower=_put(metrics.lower, rows, lower),
        upper=_put(metrics.upper, rows, upper),
        valueless=metrics.valueless & kept,
    )


def _put(keys: Keys, rows: Longs, new: Keys) -> Keys:
    places = np.arange(len(keys.known))
    places[rows] = len(places) + np.arange(len(rows))
    return keys.join(new).take(places)


@dataclass(frozen=True, slots=True)
class Count:
    """What a step leaves of a filter's scan."""

    step: str
    unit: Unit
    total: int
    kept: int
    kept_bytes: int
    kept_rows: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """One filter's funnel, now and then."""

    row_filter: str
    now: tuple[Count, ...]
    then: tuple[Count, ...]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a workload would read after maintenance: a prediction from metadata alone."""

    change: str
    """What is supposed to be done."""
    statement: str
    """The statement that does it."""
    assumes: str
    comparisons: tuple[Comparison, ...]

    def to_arrow(self) -> pa.Table:
        """Return the counts.

        Returns
        -------
        pyarrow.Table
            `WHAT_IF`: one row a filter and step.
        """
        counts = ("total", "kept", "kept_bytes", "kept_rows")
        rows = [
            {"row_filter": comparison.row_filter, "step": now.step, "unit": now.unit}
            | {f"{name}_now": getattr(now, name) for name in counts}
            | {f"{name}_then": getattr(then, name) for name in counts}
            for comparison in self.comparisons
            for now, then in zip(comparison.now, comparison.then, strict=True)
        ]
        return pa.Table.from_pylist(rows, WHAT_IF)

    def __repr__(self) -> str:
        lines = [f"if {self.change} ({self.assumes})"]
        for comparison in self.comparisons:
            lines.append(f"  {comparison.row_filter}")
            lines += [f"    {step}: {now}, then {then}" for step, now, then in _texts(comparison)]
        return printable_lines([*lines, f"  {self.statement.replace(NEXT, '; ')}"])

    def _repr_html_(self) -> str:
        rows = [(comparison.row_filter, *texts) for comparison in self.comparisons for texts in _texts(comparison)]
        table = build_table(("filter", "step", "now", "then"), rows)
        return build_answer(f"If {self.change}", table, element("pre", self.statement), about=[self.assumes])


def _texts(comparison: Comparison) -> list[tuple[str, str, str]]:
    pairs = zip(comparison.now, comparison.then, strict=True)
    return [(now.step, f"{now.kept:,} of {now.total:,}", f"{then.kept:,} of {then.total:,}") for now, then in pairs]


def compare(filters: Sequence[RowFilter], now: FileSet, then: FileSet) -> tuple[Comparison, ...]:
    """Count for each filter what each step leaves, of the files as they are and as they would be."""
    return tuple(Comparison(found.text, _count_steps(found, now), _count_steps(found, then)) for found in filters)


def _count_steps(row_filter: RowFilter, files: FileSet) -> tuple[Count, ...]:
    """Run the funnel over files in memory, with manifest-level statistics rolled up from the files themselves.

    Parameters
    ----------
    row_filter : RowFilter
        The filter.
    files : FileSet
        The files, with the statistics of the filter's columns.
    """
    manifest_count = files.manifests.num_rows
    summaries = {
        field_id: found.roll_up(files.manifest_index, manifest_count)
        for field_id, found in files.partition_metrics.items()
    }
    by_summary = _judge_partitions(row_filter, files, summaries, files.manifest_index, manifest_count)
    columns = {i: f for i, f in files.column_metrics.items() if i in row_filter.field_ids}
    rolled = {field_id: f.roll_up(files.manifest_index, manifest_count) for field_id, f in columns.items()}
    by_rollup = by_summary & evaluate(row_filter.condition, rolled, manifest_count).kept
    opened = by_rollup[files.manifest_index]
    by_tuple = opened & _judge_partitions(row_filter, files, files.partition_metrics, np.arange(len(files)), len(files))
    matching = evaluate(row_filter.condition, columns, len(files)).kept & (files.record_counts > 0)
    return (
        _count_manifests(SUMMARIES, files, manifest_count, np.flatnonzero(by_summary)),
        _count_manifests(ROLLUPS, files, int(by_summary.sum()), np.flatnonzero(by_rollup)),
        _count_files(TUPLES, files, int(opened.sum()), np.flatnonzero(by_tuple)),
        _count_files(BOUNDS, files, int(by_tuple.sum()), np.flatnonzero(by_tuple & matching)),
    )


def _judge_partitions(
    row_filter: RowFilter, files: FileSet, metrics: Mapping[int, ColumnMetrics], groups: Longs, count: int
) -> Mask:
    """Say which groups of files the projected filters keep; each group is of one spec."""
    kept = np.ones(count, np.bool_)
    for spec_id in np.unique(files.spec_ids).tolist():
        found = evaluate(row_filter.by_spec[spec_id], metrics, count).kept
        mine = np.zeros(count, np.bool_)
        mine[groups[files.spec_ids == spec_id]] = True
        kept[mine] = found[mine]
    return kept


def _count_manifests(step: str, files: FileSet, total: int, kept: Longs) -> Count:
    within = np.isin(files.manifest_index, kept)
    lengths = to_numpy(files.manifests["manifest_length"])
    return Count(step, "manifest", total, len(kept), int(lengths[kept].sum()), int(files.record_counts[within].sum()))


def _count_files(step: str, files: FileSet, total: int, kept: Longs) -> Count:
    return Count(step, "file", total, len(kept), int(files.sizes[kept].sum()), int(files.record_counts[kept].sum()))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One figure, before, as predicted, and after; None: not run, or others have changed what it is about."""

    subject: str
    """A filter, or a partition field."""
    figure: str
    before: float
    predicted: float
    after: float | None


@dataclass(frozen=True, slots=True)
class ManifestRewrite:
    """A rewrite of manifests, planned or done."""

    table: str
    statements: tuple[str, ...]
    is_done: bool
    rewritten_manifest_count: int | None
    added_manifest_count: int | None
    outcomes: tuple[Outcome, ...]

    def to_arrow(self) -> pa.Table:
        """Return the figures.

        Returns
        -------
        pyarrow.Table
            `MANIFEST_REWRITE`: one row a figure.
        """
        return pa.Table.from_pylist([asdict(outcome) for outcome in self.outcomes], MANIFEST_REWRITE)

    def __repr__(self) -> str:
        statements = (statement.replace(NEXT, "; ") for statement in self.statements)
        return printable_lines([self._head(), *(f"  {line}" for line in self._lines()), *statements])

    def _repr_html_(self) -> str:
        lines = element("ul", *(element("li", line) for line in self._lines()))
        return build_answer(self._head(), lines, element("pre", NEXT.join(self.statements)))

    def _head(self) -> str:
        if not self.is_done:
            return f"{self.table}: nothing has been changed; dry_run=False runs"
        return (
            f"{self.table}: {self.rewritten_manifest_count:,} manifests rewritten, {self.added_manifest_count:,} made "
            "of them"
        )

    def _lines(self) -> list[str]:
        return [
            f"{o.subject}, {o.figure}: {o.before:,.6g} before, {o.predicted:,.6g} predicted"
            + ("" if o.after is None else f", {o.after:,.6g} after")
            for o in self.outcomes
        ] + [AS_IF] * any(o.figure.startswith(ROLLUPS) for o in self.outcomes)


def build_outcomes(
    workload: Sequence[Comparison],
    fields: Sequence[tuple[FieldLayout, FieldLayout]],
    after: tuple[Sequence[Comparison], Sequence[FieldLayout | None]] | None,
) -> tuple[Outcome, ...]:
    """Build the figures of a rewrite.

    Parameters
    ----------
    workload : sequence of Comparison
        Each filter's funnel before, and as predicted.
    fields : sequence of tuple of FieldLayout
        Each partition field's overlap before, and as predicted.
    after : tuple, optional
        The funnels (`now`) and overlaps of the rewritten table; None of a field that no file has any more.
    """
    counts, layouts = ((), ()) if after is None else after
    found = []
    for place, comparison in enumerate(workload):
        for step, (now, then) in enumerate(zip(comparison.now, comparison.then, strict=True)):
            came = counts[place].now[step].kept if after is not None else None
            found.append(Outcome(comparison.row_filter, f"{now.step} kept", now.kept, then.kept, came))
    for place, (before, predicted) in enumerate(fields):
        layout = layouts[place] if after is not None else None
        mean = None if layout is None else layout.manifests.mean
        name = "manifests that a key lies in, mean"
        found.append(Outcome(before.name, name, before.manifests.mean, predicted.manifests.mean, mean))
    return tuple(found)
