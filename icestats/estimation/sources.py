"""Each source of statistics, asked the same question."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from icestats.errors import CallError, MetadataError
from icestats.estimation.evidence import Evidence
from icestats.estimation.formulas.grouped_sources import estimate_each, estimate_together
from icestats.estimation.formulas.kept_groups import Basis, build_source_estimate
from icestats.estimation.formulas.questions import Question
from icestats.estimation.formulas.selectivity import Selectivity, combine_leaves
from icestats.estimation.formulas.sketch_sources import choose_best, estimate_kll, estimate_ndv
from icestats.estimation.formulas.sketched_sources import estimate_by_sketches, estimate_combined
from icestats.estimation.formulas.source_estimates import SourceEstimate
from icestats.estimation.formulas.uniform import estimate_uniform
from icestats.iceberg.metadata import Field
from icestats.plan.filters.value_sets import Leaf

SOURCES = (
    "data-files",
    "manifests",
    "manifests-each",
    "partitions",
    "table",
    "ndv",
    "kll",
    "kll-by-partition",
    "combined",
)
"""The sources of statistics, in the order in which they are listed."""

_Asked = Callable[[Evidence, Question, str], SourceEstimate]


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
    names = list(SOURCES if sources is None else sources)
    if unknown := [name for name in names if name not in SOURCES]:
        raise CallError(f"no source {unknown[0]!r}: expected some of {', '.join(SOURCES)}")
    if double_filtering:
        place = names.index("manifests") + 1 if "manifests" in names else len(names)
        names.insert(place, DOUBLE)
    # The roll-ups are everybody's: no source is charged for reading them.
    evidence.fill(question.field_ids, partitions=not _BY_MANIFEST.issuperset(names))
    return [_timed(evidence, question, name) for name in names]


DOUBLE = "manifests-double-filtered"
_OF_STATISTICS_FILES = frozenset({"ndv", "kll", "kll-by-partition", "combined"})
_BY_MANIFEST = frozenset({"data-files", "manifests", DOUBLE, "manifests-each", "table", "ndv", "kll"})


def _timed(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    begin = time.perf_counter()
    try:
        found = _BY_NAME[name](evidence, question, name)
    except MetadataError as error:
        if name not in _OF_STATISTICS_FILES:
            raise
        # A damaged statistics file is no reason for the others not to answer.
        found = SourceEstimate(name, reason=str(error))
    return replace(found, duration_ms=(time.perf_counter() - begin) * 1000.0)


def _data_files(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    return estimate_each(name, question, evidence.read_files(question))


def _manifests(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped = evidence.read_manifests(question.field_ids)
    return estimate_together(name, question, grouped, double_filtering=name == DOUBLE)


def _manifests_each(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    return estimate_each(name, question, evidence.read_manifests(question.field_ids))


def _partitions(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    return estimate_each(name, question, evidence.read_partitions(question.field_ids))


def _table(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    return estimate_each(name, question, evidence.read_table(question.field_ids))


def _ndv(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped = evidence.read_table(question.field_ids)
    size = 0

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        nonlocal size
        distinct = evidence.read_distinct(_field(evidence, leaf))
        size += distinct.size_bytes if distinct else 0
        return estimate_ndv(leaf, distinct, grouped.groups.columns.get(leaf.field_id))

    selectivity = combine_leaves(question.predicate, 1, estimate_leaf)
    leaves = question.leaves
    if leaves and not any(_is_about_points(leaf) for leaf in leaves):
        reason = "no equality, IN, != or NOT IN in the filter: a number of distinct values says nothing of ranges"
        selectivity = Selectivity(np.full(1, np.nan), selectivity.lower, selectivity.upper, (reason,))
    basis = Basis(
        assumes="each distinct value has as many rows as another; ranges spread evenly between the table's bounds; "
        "columns independent",
        bound="certain: what the table's bounds and null counts leave possible",
        values_read=1 + 5 * len(leaves),
        bytes_read=size,
    )
    return build_source_estimate(name, question, grouped, selectivity, basis)


def _kll(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped = evidence.read_table(question.field_ids)
    kept, size = 0, 0

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        nonlocal kept, size
        distribution = evidence.read_distribution(_field(evidence, leaf))
        if distribution is not None:
            kept, size = kept + distribution.sketch.retained_count, size + distribution.size_bytes
        return estimate_kll(leaf, distribution)

    selectivity = combine_leaves(question.predicate, 1, estimate_leaf)
    basis = Basis(
        assumes="ranks of the table's sketches; columns independent",
        bound="99 % confidence for each end of an interval (the sketches' rank error), Fréchet's inequalities",
        values_read=kept,
        bytes_read=size,
        of_live_rows=True,
    )
    return build_source_estimate(name, question, grouped, selectivity, basis)


def _kll_by_partition(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped = evidence.read_partitions(question.field_ids)
    return estimate_by_sketches(name, question, grouped, evidence.partition_distributions.estimate)


def _combined(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped = evidence.read_partitions(question.field_ids)
    table = evidence.read_table(question.field_ids)
    size = 0

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        nonlocal size
        field, column = _field(evidence, leaf), table.groups.columns.get(leaf.field_id)
        distribution, distinct = evidence.read_distribution(field), evidence.read_distinct(field)
        size += (distribution.size_bytes if distribution else 0) + (distinct.size_bytes if distinct else 0)
        candidates = [estimate_kll(leaf, distribution), estimate_ndv(leaf, distinct, column)]
        return choose_best([*candidates, estimate_uniform(leaf, column, 1)])

    found = estimate_combined(name, question, grouped, evidence.partition_distributions.estimate, estimate_leaf)
    return replace(found, bytes_read=found.bytes_read + size)


def _field(evidence: Evidence, leaf: Leaf) -> Field:
    return evidence.reader.schema.find(leaf.column)


def _is_about_points(leaf: Leaf) -> bool:
    return bool(leaf.values.points) or len(leaf.values.intervals) > 1


_BY_NAME: dict[str, _Asked] = {
    "data-files": _data_files,
    "manifests": _manifests,
    DOUBLE: _manifests,
    "manifests-each": _manifests_each,
    "partitions": _partitions,
    "table": _table,
    "ndv": _ndv,
    "kll": _kll,
    "kll-by-partition": _kll_by_partition,
    "combined": _combined,
}
