"""A workload's funnels as the files are grouped now, and as they would be after maintenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icestats.answers.arrays import to_numpy
from icestats.answers.markup import build_answer, build_table, element
from icestats.answers.schemas import WHAT_IF
from icestats.iceberg.value_order import Longs, Mask
from icestats.plan.evaluation.column_metrics import ColumnMetrics
from icestats.plan.evaluation.evaluator import evaluate
from icestats.plan.filters.row_filter import RowFilter
from icestats.plan.layout.file_set import FileSet
from icestats.plan.pruning.funnel import BOUNDS, ROLLUPS, SUMMARIES, TUPLES, Unit


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
        rows = [
            {
                "row_filter": comparison.row_filter,
                "step": now.step,
                "unit": now.unit,
                "total_now": now.total,
                "kept_now": now.kept,
                "kept_bytes_now": now.kept_bytes,
                "kept_rows_now": now.kept_rows,
                "total_then": then.total,
                "kept_then": then.kept,
                "kept_bytes_then": then.kept_bytes,
                "kept_rows_then": then.kept_rows,
            }
            for comparison in self.comparisons
            for now, then in zip(comparison.now, comparison.then, strict=True)
        ]
        return pa.Table.from_pylist(rows, WHAT_IF)

    def __repr__(self) -> str:
        lines = [f"if {self.change} ({self.assumes})"]
        for comparison in self.comparisons:
            lines.append(f"  {comparison.row_filter}")
            lines += [f"    {step}: {now}, then {then}" for step, now, then in _texts(comparison)]
        return "\n".join([*lines, f"  {self.statement}"])

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
    every = np.arange(manifest_count)
    summaries = {
        field_id: found.roll_up(files.manifest_index, manifest_count)
        for field_id, found in files.partition_metrics.items()
    }
    by_summary = _judge_partitions(row_filter, files, summaries, files.manifest_index, manifest_count)
    columns = {i: f for i, f in files.column_metrics.items() if i in row_filter.field_ids}
    rolled = {field_id: f.roll_up(files.manifest_index, manifest_count) for field_id, f in columns.items()}
    by_rollup = by_summary & evaluate(row_filter.condition, rolled, manifest_count).kept
    opened = by_rollup[files.manifest_index]
    itself = np.arange(len(files))
    by_tuple = opened & _judge_partitions(row_filter, files, files.partition_metrics, itself, len(files))
    matching = evaluate(row_filter.condition, columns, len(files)).kept & (files.record_counts > 0)
    return (
        _count_manifests(SUMMARIES, files, manifest_count, every[by_summary]),
        _count_manifests(ROLLUPS, files, int(by_summary.sum()), every[by_rollup]),
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
