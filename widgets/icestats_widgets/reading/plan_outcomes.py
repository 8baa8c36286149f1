"""What a plan says of manifests, partitions and files: kept, or skipped at which step. For many at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import join_paths, take_rows, to_values
from icestats.iceberg.filters.predicates import Predicate, find_predicates
from icestats.iceberg.types import decode_value, encode_value
from icestats.iceberg.value_order import rank_values
from icestats.snapshot.evaluation.column_metrics import ColumnMetrics
from icestats.snapshot.evaluation.explanations import explain
from icestats.snapshot.pruning.funnel import StepResult, judge_row_groups
from icestats.snapshot.pruning.plan import Plan
from icestats.table.table import Table
from icestats_widgets.reading.bounds import decode_bound

Numbers = npt.NDArray[np.int64]
_MOST_MANIFESTS = 64
"""Number of manifests whose files are kept, as a list of files shows some rows of each."""


def plan_of_manifests(plan: Plan) -> dict[str, str | None]:
    """Return for each manifest of data with live files, by its path, the step that skips it; None for a kept one."""
    paths = plan.funnel.manifests["manifest_path"].to_pylist()
    return _name_steps(paths, plan.funnel.by_manifest, np.arange(len(paths)), len(paths))


def _name_steps(
    paths: Sequence[str], results: Sequence[StepResult], rows: Numbers, count: int
) -> dict[str, str | None]:
    """Return for some of a table's `count` rows, by their paths, the step that skips each; None for a kept one."""
    steps: list[str | None] = [None, *(result.step.step for result in results)]
    places = np.zeros(count, np.int64)
    for number, result in reversed(list(enumerate(results, 1))):
        is_kept = np.zeros(count, np.bool_)
        is_kept[result.kept] = True
        places[~is_kept] = number
    return {path: steps[place] for path, place in zip(paths, places[rows].tolist(), strict=True)}


class SkippedRows:
    """Which manifests and data files a plan skips, and at which step; None for what is kept, or not planned.

    Parameters
    ----------
    plan : Plan or None
        The plan; of files it is looked up a manifest at a time.
    """

    def __init__(self, plan: Plan | None) -> None:
        self._manifests: dict[str, str | None] = {}
        if plan is not None:
            self._manifests = plan_of_manifests(plan)
            # Of the plan, not of this object: what refers to itself stays in memory for longer, with all that it holds.
            self._files = lru_cache(_MOST_MANIFESTS)(partial(_plan_of_files, plan))

    def of_manifest(self, path: str) -> str | None:
        """Return the step that skips a manifest."""
        return self._manifests.get(path)

    def of_file(self, manifest_path: str, path: str) -> str | None:
        """Return the step that skips a data file, or its manifest."""
        if manifest_path not in self._manifests:
            return None
        return self._manifests[manifest_path] or self._files(manifest_path).get(path)


def _plan_of_files(plan: Plan, manifest_path: str) -> dict[str, str | None]:
    """Return for each live data file of a kept manifest, by its path, the step that skips it; None for a kept one."""
    funnel = plan.funnel
    kept = funnel.manifests["manifest_path"].take(pa.array(funnel.kept_manifests))
    rows = pc.equal(funnel.files["manifest_index"], pc.index(kept, manifest_path)).to_numpy().nonzero()[0]
    paths = join_paths(take_rows(funnel.files.select(["folder", "file_name"]), rows))["file_path"].to_pylist()
    return _name_steps(paths, funnel.by_file, rows, funnel.files.num_rows)


def plan_of_partitions(plan: Plan, partitions: pa.Table) -> list[str | None]:
    """Return for each partition the step that skips the last of its files; None where one is kept.

    Parameters
    ----------
    plan : Plan
        The plan.
    partitions : pyarrow.Table
        Rows with `partition` and `spec_id`, as of `Table.partitions`.
    """
    funnel = plan.funnel
    count = partitions.num_rows
    if not count:
        return []
    groups = group_partitions([partitions, funnel.files])
    of_partition, of_file = groups[:count], groups[count:]
    # A partition whose files have not been read has been skipped with its manifests.
    depth = np.zeros(int(groups.max()) + 1, np.int64)
    depth[of_file] = 1
    for number, result in enumerate(funnel.by_file):
        depth[of_file[result.kept]] = number + 2
    steps = [funnel.by_manifest[-1].step.step, *(result.step.step for result in funnel.by_file), None]
    return [steps[place] for place in depth[of_partition].tolist()]


def group_partitions(tables: Sequence[pa.Table]) -> Numbers:
    """Number the partitions of several tables one after the other: equal ones of one spec have equal numbers.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        Rows with `partition` and `spec_id`; at least one row in all.
    """
    kind = tables[0].schema.field("partition").type
    chunks = [chunk.cast(kind) for table in tables for chunk in table["partition"].chunks]
    partition = pa.concat_arrays(chunks)
    groups = np.concatenate([table["spec_id"].to_numpy() for table in tables]).astype(np.int64)
    for place in range(kind.num_fields):
        codes = _encode(partition.field(place))
        groups = _encode(pa.array(groups * (int(codes.max(initial=0)) + 1) + codes))
    return groups


def _encode(values: pa.Array) -> Numbers:
    """Number values in the order in which they come; equal ones have equal numbers."""
    if pa.types.is_floating(values.type):
        values = pa.array(rank_values(values))
    codes: Numbers = pc.dictionary_encode(values, null_encoding="encode").indices.to_numpy().astype(np.int64)
    return codes


@dataclass(frozen=True, slots=True)
class Compared:
    """A predicate, and the bounds of one file that it was compared with: values of the type; None is unknown."""

    predicate: str
    operator: str
    type: str
    lower: Any
    upper: Any
    literals: tuple[Any, ...]


def find_compared(plan: Plan, row: int) -> list[Compared]:
    """Return the predicates with literals that decided about a row of `plan.funnel.files`, each with the bounds."""
    for judgement in (one for result in reversed(plan.funnel.by_file) for one in result.judgements):
        place = int(np.searchsorted(judgement.rows, row))
        if place < len(judgement.rows) and judgement.rows[place] == row:
            predicates = find_predicates(judgement.evaluation.condition)
            found = [_compare(one, judgement.evaluation.metrics.get(one.field_id), place) for one in predicates]
            return [one for one in found if one is not None]
    return []


def _compare(predicate: Predicate, metrics: ColumnMetrics | None, place: int) -> Compared | None:
    if metrics is None or not predicate.literals or predicate.transform not in ("identity", "day"):
        return None
    ends = [to_values(values.slice(place, 1))[0] for values in (metrics.lower_bytes, metrics.upper_bytes)]
    if not metrics.is_exact:
        ends = [decode_bound(metrics.type, end) for end in ends]
    literals = [decode_value(predicate.type, encode_value(predicate.type, one)) for one in predicate.literals]
    return Compared(str(predicate), predicate.operator, predicate.type, ends[0], ends[1], tuple(literals))


def read_row_groups(table: Table, plan: Plan, row: int) -> list[dict[str, Any]]:
    """Read the footer of a row of `plan.funnel.files`, and judge each of its row groups by the plan's filter.

    Returns
    -------
    list of dict
        `row_group`, `row_count` and `size_bytes` as of `Table.row_groups`; `is_kept`, and the `reason`.
    """
    fields = table.schema.select(plan.bound.field_ids)
    file = join_paths(plan.funnel.files.slice(row, 1))
    groups = table.row_groups(file, columns=[field.name for field in fields])
    (judgement,) = judge_row_groups(plan.bound, groups, fields, time.perf_counter(), 0).judgements
    found: list[dict[str, Any]] = groups.select(["row_group", "row_count", "size_bytes"]).to_pylist()
    for place, one in enumerate(found):
        one["is_kept"] = bool(judgement.evaluation.kept[place])
        one["reason"] = explain(judgement.evaluation, place).sentence
    return found
