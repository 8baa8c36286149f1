"""Estimates of the number of groups of a GROUP BY, with the truth beside them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from icestats.errors import MetadataError
from icestats.estimation.evidence import Evidence
from icestats.estimation.formulas.common_keys import count_key
from icestats.estimation.formulas.frequent_sources import FrequentColumn
from icestats.estimation.formulas.group_shares import MOST_GROUPS, GroupShares, build_shares
from icestats.estimation.formulas.grouped_sources import Question
from icestats.estimation.formulas.joint_sources import JointColumns, holds
from icestats.estimation.formulas.source_estimates import SourceEstimate, build_counted
from icestats.estimation.joins import find_leaf
from icestats.estimation.sources import ask_sources
from icestats.iceberg.filters.value_sets import Leaf
from icestats.iceberg.metadata import Field
from icestats.snapshot.pruning.counted_rows import count_matching_groups
from icestats.stats.joint_statistics import list_trees

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Joints = Mapping[tuple[int, int], JointColumns]


def estimate_groups(evidence: Evidence, question: Question, fields: Sequence[Field]) -> list[SourceEstimate]:
    """Estimate how many groups the rows of a filter have: columns independent, then by what is known of them together.

    Parameters
    ----------
    evidence : Evidence
        The snapshot.
    question : Question
        The filter.
    fields : sequence of Field
        The columns.
    """
    names = ("groups-independent", "groups-together")
    try:
        columns = {field.field_id: one for field in fields if (one := evidence.read_frequent(field)) is not None}
    except MetadataError as error:
        return [SourceEstimate(name, reason=str(error)) for name in names]
    if unknown := [f.name for f in fields if f.field_id not in columns or math.isnan(columns[f.field_id].ndv)]:
        reason = f"no Theta sketch and frequent items of {', '.join(unknown)} are committed"
        return [SourceEstimate(name, reason=reason) for name in names]
    rows = ask_sources(evidence, question, ["data-files", "combined"], double_filtering=False)[1].rows
    if rows is None:
        return [SourceEstimate(name, reason="how many rows the filter leaves is unknown") for name in names]
    leaves = {field.field_id: leaf for field in fields if (leaf := find_leaf(question, field)) is not None}
    shares = {field_id: _share_column(column, leaves.get(field_id)) for field_id, column in columns.items()}
    joints = evidence.read_together([field.field_id for field in fields], is_needed=False)
    total = float(max((column.row_count for column in columns.values()), default=0))
    found = []
    none: Joints = {}
    for name, known in zip(names, (none, joints), strict=True):
        blocks = _list_blocks(shares, known, leaves)
        every = reduce(GroupShares.spread_over, blocks)
        is_known = len(blocks) == 1 and rows >= total
        used = f"{len(known)} pairs of columns as counted together" if known else "columns independent"
        read: list[FrequentColumn | JointColumns] = [*columns.values(), *known.values()]
        notes = dict.fromkeys(note for one in read for note in one.rows.notes)
        found.append(
            SourceEstimate(
                name,
                rows=min(every.group_count, rows) if is_known else every.count_met(rows),
                assumes="; ".join([used, "the filter leaves the same share of each group", *notes]),
                values_read=sum(len(column.values.items) for column in columns.values()),
                bytes_read=sum(one.size_bytes for one in read),
            )
        )
    return found


def _share_column(column: FrequentColumn, leaf: Leaf | None) -> GroupShares:
    key = count_key(column, None if leaf is None else leaf.values)
    nulls = column.null_count if leaf is None or leaf.values.has_null else 0
    nans = column.nan_count if leaf is None or leaf.values.has_nan else 0
    others = [float(count) for count in (nulls, nans) if count]
    return build_shares([*key.counted.values(), *others], key.rest, key.rest_distinct)


def _share_pair(found: JointColumns, leaves: Mapping[int, Leaf]) -> GroupShares:
    one, other = (leaves.get(field_id) for field_id in found.statistics.field_ids)
    kept = [
        (item.lower + item.upper) / 2.0
        for (first, second), item in found.items
        if (one is None or holds(one.values, first)) and (other is None or holds(other.values, second))
    ]
    every, total = len(found.items), found.statistics.row_count
    share = len(kept) / every if every else 1.0
    rest = max(total - sum(item.lower for item in found.statistics.items), 0) * share
    return build_shares(kept, rest, max(found.statistics.ndv - every, 0) * share)


def _list_blocks(shares: Mapping[int, GroupShares], joints: Joints, leaves: Mapping[int, Leaf]) -> list[GroupShares]:
    """Return groups by columns that are taken for independent: those of each tree of pairs, then single columns."""
    pairs = {pair: _share_pair(found, leaves) for pair, found in joints.items()}
    counts = {field_id: max(one.group_count, 1.0) for field_id, one in shares.items()}
    factors = {p: max(one.group_count, 1.0) / (counts[p[0]] * counts[p[1]]) for p, one in pairs.items()}
    trees = list_trees({pair: abs(math.log(factor)) for pair, factor in factors.items()})
    blocks = [_join_tree(tree, pairs, counts, factors) for tree in trees]
    joined = {field_id for tree in trees for pair in tree for field_id in pair}
    return blocks + [one for field_id, one in shares.items() if field_id not in joined]


def _join_tree(
    tree: Sequence[tuple[int, int]],
    pairs: Mapping[tuple[int, int], GroupShares],
    counts: Mapping[int, float],
    factors: Mapping[tuple[int, int], float],
) -> GroupShares:
    largest = max(tree, key=lambda pair: pairs[pair].group_count)
    members, counted = {field_id for pair in tree for field_id in pair}, max(pairs[largest].group_count, 1.0)
    # As logarithms: the product alone may be too large for a float.
    every = sum(math.log(counts[field_id]) for field_id in members) + sum(math.log(factors[pair]) for pair in tree)
    more = math.exp(min(max(every - math.log(counted), 0.0), math.log(MOST_GROUPS)))
    return pairs[largest].spread_over(build_shares([], 1.0, more)) if more > 1.0 else pairs[largest]


def count_actual_groups(
    evidence: Evidence, question: Question, fields: Sequence[Field], spark: SparkSession | None
) -> tuple[int, SourceEstimate]:
    """Count the groups of the rows that satisfy a filter."""
    begin = time.perf_counter()
    groups, by = count_matching_groups(evidence.reader, question.row_filter, fields, spark)
    return groups, build_counted(groups, f"counted by {by}; deletes applied", begin)
