"""Each source of statistics, asked the same question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from icestats.errors import CallError, MetadataError
from icestats.estimation.evidence import Evidence
from icestats.estimation.formulas.grouped_sources import (
    Basis,
    Question,
    build_source_estimate,
    estimate_each,
    estimate_together,
)
from icestats.estimation.formulas.selectivity import Selectivity, combine_leaves, estimate_uniform
from icestats.estimation.formulas.sketch_sources import (
    estimate_by_sketches,
    estimate_combined,
    estimate_kll,
    estimate_ndv,
)
from icestats.estimation.formulas.source_estimates import SourceEstimate, time_estimates
from icestats.iceberg.metadata import Field
from icestats.plan.filters.value_sets import Leaf

_DOUBLE = "manifests-double-filtered"
_OF_STATISTICS_FILES = frozenset({"ndv", "kll", "kll-by-partition", "combined"})
_BY_PARTITION = frozenset({"partitions", "kll-by-partition", "combined"})


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
        names.insert(place, _DOUBLE)
    # The roll-ups are everybody's: no source is charged for reading them.
    evidence.fill(question.field_ids, partitions=not _BY_PARTITION.isdisjoint(names))
    return [one for name in names for one in time_estimates(partial(_ask, evidence, question, name))]


def _ask(evidence: Evidence, question: Question, name: str) -> list[SourceEstimate]:
    try:
        return [_ASKED[name](evidence, question, name)]
    except MetadataError as error:
        if name not in _OF_STATISTICS_FILES:
            raise
        # A damaged statistics file is no reason for the others not to answer.
        return [SourceEstimate(name, reason=str(error))]


_SPREAD = "ranges spread evenly between the table's bounds; columns independent"


def _ask_ndv(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped, leaves = evidence.read_table(question.field_ids), question.leaves
    found = {leaf: evidence.read_distinct(_find(evidence, leaf)) for leaf in leaves}
    selectivity = combine_leaves(question.predicate, 1, lambda leaf: estimate_ndv(leaf, found[leaf], grouped.groups))
    if leaves and not any(leaf.values.points or len(leaf.values.intervals) > 1 for leaf in leaves):
        reason = "no equality, IN, != or NOT IN in the filter: a number of distinct values says nothing of ranges"
        selectivity = replace(selectivity, estimate=np.full(1, np.nan), reasons=(reason,))
    said = [text for leaf in leaves if (one := found[leaf]) for text in one.describe(grouped.groups, leaf)]
    basis = Basis(
        assumes="; ".join(["each distinct value has as many rows as another", _SPREAD, *dict.fromkeys(said)]),
        bound="certain: what the table's bounds and null counts leave possible",
        values_read=1 + 5 * len(leaves),
        bytes_read=sum(one.size_bytes for leaf in leaves if (one := found[leaf])),
    )
    return build_source_estimate(name, question, grouped, selectivity, basis)


def _ask_kll(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped = evidence.read_table(question.field_ids)
    found = {leaf: evidence.read_distribution(_find(evidence, leaf)) for leaf in question.leaves}
    selectivity = combine_leaves(question.predicate, 1, lambda leaf: estimate_kll(leaf, [found[leaf]]))
    known = [one for leaf in question.leaves if (one := found[leaf])]
    basis = Basis(
        assumes="ranks of the table's sketches; columns independent",
        bound="99 % confidence for each end of an interval (the sketches' rank error), Fréchet's inequalities",
        values_read=sum(one.sketch.retained_count for one in known),
        bytes_read=sum(one.size_bytes for one in known),
        of_live_rows=True,
    )
    return build_source_estimate(name, question, grouped, selectivity, basis)


def _ask_combined(evidence: Evidence, question: Question, name: str) -> SourceEstimate:
    grouped, table = evidence.read_partitions(question.field_ids), evidence.read_table(question.field_ids).groups
    size = 0

    def estimate_leaf(leaf: Leaf) -> Selectivity:
        nonlocal size
        column = _find(evidence, leaf)
        distribution, distinct = evidence.read_distribution(column), evidence.read_distinct(column)
        size += (distribution.size_bytes if distribution else 0) + (distinct.size_bytes if distinct else 0)
        for found in (estimate_kll(leaf, [distribution]), estimate_ndv(leaf, distinct, table)):
            if not np.isnan(found.estimate).any():
                return found
        return estimate_uniform(leaf, table)

    found = estimate_combined(name, question, grouped, evidence.estimate_in_partitions, estimate_leaf)
    return replace(found, bytes_read=found.bytes_read + size)


def _find(evidence: Evidence, leaf: Leaf) -> Field:
    return evidence.reader.schema.find(leaf.column)


_ASKED: dict[str, Callable[[Evidence, Question, str], SourceEstimate]] = {
    "data-files": lambda e, q, name: estimate_each(name, q, e.read_files(q)),
    "manifests": lambda e, q, name: estimate_together(name, q, e.read_manifests(q.field_ids)),
    _DOUBLE: lambda e, q, name: estimate_together(name, q, e.read_manifests(q.field_ids), double_filtering=True),
    "manifests-each": lambda e, q, name: estimate_each(name, q, e.read_manifests(q.field_ids)),
    "partitions": lambda e, q, name: estimate_each(name, q, e.read_partitions(q.field_ids)),
    "table": lambda e, q, name: estimate_each(name, q, e.read_table(q.field_ids)),
    "ndv": _ask_ndv,
    "kll": _ask_kll,
    "kll-by-partition": lambda e, q, name: estimate_by_sketches(
        name, q, e.read_partitions(q.field_ids), e.estimate_in_partitions
    ),
    "combined": _ask_combined,
}
SOURCES = tuple(name for name in _ASKED if name != _DOUBLE)
"""The sources of statistics, in the order in which they are listed."""
