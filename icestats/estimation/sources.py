"""Each source of statistics, asked the same question."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from icestats.errors import CallError, MetadataError, check_flags, check_names
from icestats.estimation.evidence import Evidence
from icestats.estimation.formulas.combined import TableSketches, estimate_combined
from icestats.estimation.formulas.frequent_sources import FrequentColumn, estimate_common
from icestats.estimation.formulas.grouped_sources import (
    Basis,
    DeleteShares,
    GroupedEvidence,
    Question,
    build_source_estimate,
    count_live_rows,
    estimate_each,
    estimate_together,
    fit_equality_deletes,
    judge_groups,
    loosen,
)
from icestats.estimation.formulas.joint_sources import JointColumns, group_leaves
from icestats.estimation.formulas.sampled_rows import read_sampled
from icestats.estimation.formulas.selectivity import (
    LeafGroup,
    Selectivity,
    build_selectivity,
    build_unknown,
    combine_leaves,
    estimate_uniform,
)
from icestats.estimation.formulas.sketch_sources import (
    BY_COUNTS,
    BY_RANK,
    IF_RIGHT,
    WIDENED,
    Distribution,
    LiveRows,
    PartitionSketches,
    Sketched,
    SketchedRows,
    count_live,
    estimate_by_sketches,
    estimate_kll,
    estimate_ndv,
)
from icestats.estimation.formulas.source_estimates import SourceEstimate, keep_within, time_estimates
from icestats.iceberg.filters.value_sets import Leaf
from icestats.iceberg.metadata import Field
from icestats.iceberg.value_order import Longs, Mask

_Ask = Callable[[Evidence, Question, str], SourceEstimate]
_DOUBLE = "manifests-double-filtered"
_OF_FILES = ("data-files", "manifests", "manifests-each", "partitions", "table")
_COUNTED = ("frequent-items", "frequent-items-by-partition")
"""The sources whose bounds are certain: of files, and of what has been counted if that is right."""
_OF_PARTITIONS = frozenset({"kll-by-partition", "frequent-items-by-partition", "combined"})
_REFUTABLE = frozenset({"kll", "kll-by-partition", *_COUNTED})
"""The sources whose bounds rest on what statistics files say."""
_OF_STATISTICS_FILES = frozenset({"ndv", "kll", "frequent-items"}) | _OF_PARTITIONS
_BY_PARTITION = frozenset({"partitions"}) | _OF_PARTITIONS


def ask_sources(
    evidence: Evidence, question: Question, sources: Sequence[str] | None, *, double_filtering: bool
) -> list[SourceEstimate]:
    """Ask each source; one that cannot answer says why.

    Parameters
    ----------
    evidence : Evidence
        The snapshot.
    question : Question
        The filter.
    sources : sequence of str, optional
        Which of `SOURCES`; by default all.
    double_filtering : bool
        Whether to show beside `manifests` what it would estimate if partition filters were applied twice.

    Raises
    ------
    CallError
        There is no such source.
    """
    check_names("sources", sources, or_none=True)
    check_flags(double_filtering=double_filtering)
    names = list(SOURCES if sources is None else sources)
    if unknown := [name for name in names if name not in SOURCES]:
        raise CallError(f"no source {unknown[0]!r}: expected some of {', '.join(SOURCES)}")
    if double_filtering:
        place = names.index("manifests") + 1 if "manifests" in names else len(names)
        names.insert(place, _DOUBLE)
    # The roll-ups are everybody's: no source is charged for reading them.
    evidence.fill(question.field_ids, partitions=not _BY_PARTITION.isdisjoint(names))
    asked = _ASKED if "data-files" in names else _ASKED | {"combined": partial(_ask_combined, with_files=False)}
    found = [one for name in names for one in time_estimates(partial(_ask, asked[name], evidence, question, name))]
    table = estimate_each("table", question, evidence.read_table(question.field_ids))
    proven = keep_within(table, [table, *(one for one in found if one.source in _OF_FILES)])
    found = [_refute(one, proven) if one.source in _REFUTABLE else one for one in found]
    if evidence.has_committed_rollups:
        found = [replace(one, bound=one.bound.replace("certain:", f"certain {IF_RIGHT}:")) for one in found]
    return found


def _ask(ask: _Ask, evidence: Evidence, question: Question, name: str) -> list[SourceEstimate]:
    try:
        return [ask(evidence, question, name)]
    except MetadataError as error:
        if name not in _OF_STATISTICS_FILES:
            raise
        # A damaged statistics file is no reason for the others not to answer.
        return [SourceEstimate(name, reason=str(error))]


_SPREAD = "ranges spread evenly between the table's bounds; columns independent"


def _ask_ndv(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped, leaves = evidence.read_table(question.field_ids), question.leaves
    found = {leaf: evidence.read_distinct(_find(evidence, leaf)) for leaf in leaves}

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        return loosen(estimate_ndv(leaf, found[leaf], grouped.groups), _is_rough(leaf, question, grouped))

    selectivity = combine_leaves(question.predicate, 1, estimate_leaf)
    if leaves and not any(leaf.values.points or len(leaf.values.intervals) > 1 for leaf in leaves):
        reason = "no equality, IN, != or NOT IN in the filter: a number of distinct values says nothing of ranges"
        selectivity = replace(selectivity, estimate=np.full(1, np.nan), reasons=(reason,))
    said = [text for leaf in leaves if (one := found[leaf]) for text in one.describe(grouped.groups, leaf)]
    basis = Basis(
        assumes="; ".join(["each distinct value has as many rows as another", _SPREAD, *dict.fromkeys(said)]),
        bound="certain: what the table's bounds and null counts leave possible",
        values_read=1 + 5 * len(leaves),
        bytes_read=sum(one.size_bytes for leaf in leaves if (one := found[leaf])),
        notes=tuple(dict.fromkeys(note for leaf in leaves if (one := found[leaf]) for note in one.notes)),
    )
    return build_source_estimate(name, question, grouped, selectivity, basis)


def _ask_kll(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped = evidence.read_table(question.field_ids)
    found = {leaf: evidence.read_distribution(_find(evidence, leaf)) for leaf in question.leaves}
    known = [one for leaf in question.leaves if (one := found[leaf])]
    live = _count_live(grouped, question, known)

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        return loosen(_rank(leaf, found[leaf], live), _is_rough(leaf, question, grouped))

    selectivity = combine_leaves(question.predicate, 1, estimate_leaf)
    notes = tuple(dict.fromkeys(note for one in known if one.rows for note in one.rows.notes))
    bound = f"{BY_RANK}: the sketches' rank errors at each end of an interval, Fréchet's inequalities"
    basis = Basis(
        assumes="ranks of the table's sketches; columns independent",
        bound=f"{bound}{WIDENED if notes else ''}",
        values_read=sum(one.sketch.retained_count for one in known),
        bytes_read=sum(one.size_bytes for one in known),
        notes=notes,
        rows=live.rows,
    )
    return build_source_estimate(name, question, grouped, selectivity, basis)


def _ask_frequent(evidence: Evidence, question: Question, name: str, *, is_needed: bool = True) -> SourceEstimate:
    """Ask common values; where not all of them are needed, those that are damaged are left out."""
    grouped = evidence.read_table(question.field_ids)
    read_column = evidence.read_frequent if is_needed else partial(evidence.spare, evidence.read_frequent)
    found = {leaf: read_column(_find(evidence, leaf)) for leaf in question.leaves}
    known = [one for leaf in question.leaves if (one := found[leaf])]
    live = count_live(grouped, question.deletes, [one.rows for one in known])
    joints = evidence.read_together([leaf.field_id for leaf in question.leaves], is_needed=is_needed)

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        return loosen(_count_common(leaf, found[leaf], live), _is_rough(leaf, question, grouped))

    def estimate_together(leaves: Sequence[Leaf]) -> list[LeafGroup]:
        sure = [leaf for leaf in leaves if not _is_rough(leaf, question, grouped).any()]
        return group_leaves(sure, joints, estimate_leaf, live.bring_to_today)

    selectivity = combine_leaves(question.predicate, 1, estimate_leaf, estimate_together)
    read: list[FrequentColumn | JointColumns] = [*known, *joints.values()]
    notes = tuple(dict.fromkeys(note for one in read for note in one.rows.notes))
    independent = "columns that have no statistics together independent" if joints else "columns independent"
    basis = Basis(
        assumes="rows of common values as counted; the other values have as many rows as one another; "
        f"ranges by KLL and sampled rows; {independent}",
        bound=f"{BY_COUNTS}, Fréchet's inequalities{WIDENED if notes else ''}",
        values_read=sum(len(one.values.items) for one in known) + sum(len(one.items) for one in joints.values()),
        bytes_read=sum(one.size_bytes for one in read),
        notes=notes,
        rows=live.rows,
    )
    return build_source_estimate(name, question, grouped, selectivity, basis)


def _is_rough(leaf: Leaf, question: Question, table: GroupedEvidence) -> Mask:
    return judge_groups(leaf, table, question.row_filter.schema).is_rough


def _refute(found: SourceEstimate, proven: SourceEstimate) -> SourceEstimate:
    """Return what a statistics file's counts estimate; unknown where they contradict what data files prove."""
    least, most = proven.rows_lower or 0.0, math.inf if proven.rows_upper is None else proven.rows_upper
    low, high = found.find_common(least, most)
    if low <= high:
        return found
    reason = (
        f"the statistics count {found.rows_lower:,.0f} to {found.rows_upper:,.0f} rows, where the bounds, null counts "
        f"and partition values of data files leave {least:,.0f} to {most:,.0f}: compute the statistics anew"
    )
    return SourceEstimate(found.source, reason=reason)


def _count_common(leaf: Leaf, column: FrequentColumn | None, live: LiveRows) -> Selectivity:
    found = estimate_common(leaf, column)
    return found if column is None else live.bring_to_today(found, column.rows)


def _narrow(common: Selectivity, ranked: Selectivity) -> Selectivity:
    estimate = np.where(np.isnan(common.estimate), ranked.estimate, common.estimate)
    lower, upper = np.maximum(common.lower, ranked.lower), np.minimum(common.upper, ranked.upper)
    return build_selectivity(estimate, lower, upper, common.reasons)


def _narrow_in_partitions(evidence: Evidence, leaf: Leaf, places: Longs) -> Sketched:
    reason = f"{leaf.text}: the sketches of {leaf.column} by partition are damaged"
    unknown = Sketched(build_unknown(reason, len(places)))
    asked = (evidence.estimate_in_partitions, evidence.count_common_in_partitions)
    ranked, common = (evidence.spare(ask, leaf, places) or unknown for ask in asked)
    found = _narrow(common.selectivity, ranked.selectivity)
    return Sketched(found, ranked.values_read + common.values_read, ranked.bytes_read + common.bytes_read)


def _count_live(table: GroupedEvidence, question: Question, known: Sequence[Distribution]) -> LiveRows:
    return count_live(table, question.deletes, [one.rows for one in known if one.rows])


def _rank(leaf: Leaf, distribution: Distribution | None, live: LiveRows) -> Selectivity:
    found = estimate_kll(leaf, [distribution])
    if distribution is None or distribution.rows is None:
        return found
    return live.bring_to_today(found, distribution.rows)


def _ask_combined(evidence: Evidence, question: Question, name: str, *, with_files: bool = True) -> SourceEstimate:
    grouped, table = evidence.read_partitions(question.field_ids), evidence.read_table(question.field_ids)
    size = 0

    @cache
    def sketch_table(leaf: Leaf) -> TableSketches:
        nonlocal size
        column = _find(evidence, leaf)
        distribution = evidence.spare(evidence.read_distribution, column)
        distinct = evidence.spare(evidence.read_distinct, column)
        size += sum(one.size_bytes for one in (distribution, distinct) if one)
        live = _count_live(table, question, [distribution] if distribution else [])
        common = evidence.spare(evidence.read_frequent, column)
        if common is not None:
            size += common.size_bytes
            found = _count_common(leaf, common, count_live(table, question.deletes, [common.rows]))
            found = _narrow(found, _rank(leaf, distribution, live))
            return TableSketches(found, found, live.rows, common.rows.notes)
        values = estimate_ndv(leaf, distinct, table.groups)
        if np.isnan(values.estimate).any():
            values = estimate_uniform(leaf, table.groups)
        notes = () if distribution is None or distribution.rows is None else distribution.rows.notes
        notes += () if distinct is None else distinct.notes
        return TableSketches(_rank(leaf, distribution, live), values, live.rows, notes)

    joints = evidence.read_together([leaf.field_id for leaf in question.leaves], is_needed=False)
    size += sum(one.size_bytes for one in joints.values())

    def group_in_table(leaves: Sequence[Leaf]) -> list[LeafGroup]:
        if not joints:
            return []
        live = count_live(table, question.deletes, [one.rows for one in joints.values()])
        return group_leaves(leaves, joints, lambda leaf: sketch_table(leaf).ranks, live.bring_to_today)

    def sample(leaves: Sequence[Leaf]) -> Mapping[Leaf, Mask]:
        return read_sampled({leaf: evidence.spare(evidence.read_frequent, _find(evidence, leaf)) for leaf in leaves})

    parts = evidence.read_parts(question) if with_files else None
    sketches = PartitionSketches(partial(_narrow_in_partitions, evidence), evidence.count_in_partitions)
    columns = [evidence.spare(evidence.read_distribution, _find(evidence, leaf)) for leaf in question.leaves]
    fit_deletes = partial(_fit_deletes, table, [one.rows for one in columns if one and one.rows])
    found = estimate_combined(
        name, question, grouped, parts, sketches, sketch_table, group_in_table, sample, fit_deletes
    )
    of_files = _OF_FILES if with_files else _OF_FILES[1:]
    proven = [*(_ASKED[source](evidence, question, source) for source in of_files), found]
    of_table, of_partitions = _COUNTED
    asked = [_ask_frequent(evidence, question, of_table, is_needed=False)]
    by_partition = evidence.spare(_ASKED[of_partitions], evidence, question, of_partitions)
    asked += [] if by_partition is None else [by_partition]
    by_files, by_all = keep_within(found, proven), keep_within(found, [*proven, *asked])
    found = replace(by_all, bytes_read=found.bytes_read + size)
    if (by_all.rows_lower, by_all.rows_upper) == (by_files.rows_lower, by_files.rows_upper):
        return replace(found, bound=f"certain: what {', '.join(of_files)} prove together")
    return replace(
        found,
        bound=f"certain {IF_RIGHT}: what {', '.join((*of_files, *_COUNTED))} prove together",
        assumes=f"{found.assumes}; bounds {IF_RIGHT}",
    )


def _fit_deletes(table: GroupedEvidence, sketched: Sequence[SketchedRows], deletes: DeleteShares) -> DeleteShares:
    live = count_live(table, "deduct", sketched).rows.estimate[0]
    is_known = live != count_live_rows(table.groups, table.deletes, "deduct").estimate[0]
    return fit_equality_deletes(deletes, table, live) if is_known and table.deletes.has_equality.any() else deletes


def _find(evidence: Evidence, leaf: Leaf) -> Field:
    return evidence.reader.schema.find(leaf.column)


def _count_by_partition(evidence: Evidence) -> PartitionSketches:
    assumes = (
        "rows of each partition's common values as counted, its other values have as many rows as one another; ranges "
        "by KLL, partition values where they decide; columns independent within it"
    )
    return PartitionSketches(
        evidence.count_common_in_partitions, evidence.count_in_partitions, assumes, is_certain=True
    )


_ASKED: dict[str, _Ask] = {
    "data-files": lambda e, q, name: estimate_each(name, q, e.read_files(q)),
    "manifests": lambda e, q, name: estimate_together(name, q, e.read_manifests(q.field_ids)),
    _DOUBLE: lambda e, q, name: estimate_together(name, q, e.read_manifests(q.field_ids), double_filtering=True),
    "manifests-each": lambda e, q, name: estimate_each(name, q, e.read_manifests(q.field_ids)),
    "partitions": lambda e, q, name: estimate_each(name, q, e.read_partitions(q.field_ids)),
    "table": lambda e, q, name: estimate_each(name, q, e.read_table(q.field_ids)),
    "ndv": _ask_ndv,
    "kll": _ask_kll,
    "frequent-items": _ask_frequent,
    "kll-by-partition": lambda e, q, name: estimate_by_sketches(
        name, q, e.read_partitions(q.field_ids), PartitionSketches(e.estimate_in_partitions, e.count_in_partitions)
    ),
    "frequent-items-by-partition": lambda e, q, name: estimate_by_sketches(
        name, q, e.read_partitions(q.field_ids), _count_by_partition(e)
    ),
    "combined": _ask_combined,
}
SOURCES = tuple(name for name in _ASKED if name != _DOUBLE)
"""The sources of statistics, in the order in which they are listed."""
