"""Estimates of an equi-join's rows, with the truth beside them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from icestats.estimation.evidence import Evidence
from icestats.estimation.formulas.common_keys import JoinKey, KeyCounts, count_key, estimate_join_rows
from icestats.estimation.formulas.filtered_keys import SampledKeys, correct_join, thin_keys
from icestats.estimation.formulas.frequent_sources import estimate_common
from icestats.estimation.formulas.grouped_sources import Question
from icestats.estimation.formulas.sampled_rows import read_sampled
from icestats.estimation.formulas.sketch_sources import estimate_ndv
from icestats.estimation.formulas.source_estimates import SourceEstimate, build_counted
from icestats.estimation.sources import ask_sources
from icestats.iceberg.filters.row_filter import carry_over
from icestats.iceberg.filters.value_sets import NUMBERS, All, Leaf
from icestats.iceberg.metadata import Field
from icestats.iceberg.types import parse_type
from icestats.read.puffin.statistics_age import HASHED_ALIKE
from icestats.scan.actual_rows import count_join_rows, find_key_type
from icestats.stats.theta import ThetaSketch, describe_counting, estimate_common_values


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of an equi-join."""

    name: str
    """Of the key column, for messages."""
    type: str
    """Iceberg's, of the key column."""
    row_count: float | None
    """Rows whose key is neither null nor filtered out; None: unknown."""
    theta: ThetaSketch | None
    """Of the key column; None: none is committed."""
    theta_size_bytes: int = 0
    value_count: float = math.inf
    """Values of the key that are not null, filtered out or not, as far as known."""
    age_notes: tuple[str, ...] = ()
    """What a reader must know of the sketch's age."""
    earlier_type: str = ""
    """Another type of the key that the sketch may be of; nothing: there is none."""
    hashing: str = "Iceberg"
    """In whose form the sketch's values were hashed, as `CommittedBlob` has it."""
    is_merged: bool = False
    """Likewise: whether the sketch may lack values."""
    key: JoinKey | None = None
    """The key's common values; None: none are committed."""

    share_of_keys: float = 1.0
    """How many of the distinct keys are left by what the filter says of the key itself."""
    sampled: SampledKeys | None = None
    """The keys of sampled rows; None: there are none, they are cut, or the filter's columns were not sampled too."""

    @property
    def every_key(self) -> float:
        """The number of distinct keys, no more than there are values; NaN without a sketch."""
        return math.nan if self.theta is None else min(self.theta.estimate(), self.value_count)

    @property
    def distinct(self) -> float:
        """The number of those that the filter may leave."""
        return max(self.every_key * self.share_of_keys, min(self.every_key, 1.0))

    @property
    def notes(self) -> tuple[str, ...]:
        """The sketch's age, what the number of distinct keys leaves out, and whether it is cut."""
        is_cut = self.theta is not None and self.every_key < self.theta.estimate()
        return (
            *self.age_notes,
            *describe_counting(self.name, self.type),
            *([f"that of {self.name} is cut to the number of values that are not null"] if is_cut else []),
        )


def build_side(evidence: Evidence, question: Question, key: Field, name: str) -> JoinSide:
    """Build a side of a join: rows as `combined` estimates them, less the key's nulls; the key's Theta sketch."""
    combined = ask_sources(evidence, question, ["data-files", "combined"], double_filtering=False)[1]
    table = evidence.read_table([key.field_id]).groups
    column = table.columns.get(key.field_id)
    nulls = 0.0 if column is None else float(np.nan_to_num(column.null_share[0]))
    # A fraction of a row would make the other side's rows a fraction of theirs: a row may be there, so there is one.
    rows = None if combined.rows is None else max(combined.rows, min(combined.rows_upper or 0.0, 1.0))
    if rows is not None and not _leaves_out_null(question, key):
        rows *= 1.0 - nulls
    distinct = evidence.spare(evidence.read_distinct, key)
    if distinct is None:
        return JoinSide(f"{name}.{key.name}", key.type, rows, None)
    notes = tuple(f"{name}: {note}" for note in distinct.notes)
    common, leaf = evidence.spare(evidence.read_frequent, key), find_leaf(question, key)
    counted, share = None, 1.0
    if leaf is not None:
        share = float(np.nan_to_num(estimate_ndv(leaf, distinct, table).estimate[0], nan=1.0))
    if common is not None and rows is not None:
        counts = _thin(evidence, question, key, count_key(common, None if leaf is None else leaf.values))
        counted = JoinKey(counts.scale_to(rows), distinct.theta)
        share = min(counts.distinct / max(common.ndv, 1.0), 1.0)
    value_count = float(table.row_counts.sum()) * (1.0 - nulls)
    return JoinSide(
        f"{name}.{key.name}",
        key.type,
        rows,
        distinct.theta,
        distinct.size_bytes,
        value_count,
        notes,
        distinct.earlier_type,
        distinct.hashing,
        distinct.is_merged,
        counted,
        share,
        _sample_keys(evidence, question, key),
    )


def _thin(evidence: Evidence, question: Question, key: Field, counts: KeyCounts) -> KeyCounts:
    """Return what the predicates on other columns leave of the keys, where these have statistics together with it."""
    leaves = {leaf.field_id: leaf for leaf in _list_all(question) if leaf.field_id != key.field_id}
    for pair, found in evidence.read_together([key.field_id, *leaves], is_needed=False).items():
        if key.field_id in pair:
            side = pair.index(key.field_id)
            leaf = leaves[pair[1 - side]]
            column = evidence.spare(evidence.read_frequent, _find(evidence, leaf))
            share = float(estimate_common(leaf, column).estimate[0])
            counts = counts if math.isnan(share) else thin_keys(counts, found, side, leaf, share)
    return counts


def _sample_keys(evidence: Evidence, question: Question, key: Field) -> SampledKeys | None:
    """Return the keys of sampled rows that a filter leaves; None: they are cut, or not sampled with its columns."""
    every = Leaf(key.field_id, key.name, key.type, NUMBERS, f"{key.name} is not null")
    leaves = [every, *_list_all(question)]
    columns = {leaf: evidence.spare(evidence.read_frequent, _find(evidence, leaf)) for leaf in leaves}
    meets, column = read_sampled(columns), columns[every]
    if column is None or not column.samples_are_whole or len(meets) < len(leaves) or set(question.leaves) - set(leaves):
        return None
    kept = np.flatnonzero(np.logical_and.reduce([*meets.values()])).tolist()
    return SampledKeys(column.sampled[: len(meets[every])], kept, column.sample_key)


def _find(evidence: Evidence, leaf: Leaf) -> Field:
    return evidence.reader.schema.find(leaf.column)


def carry_keys(questions: tuple[Question, Question], keys: tuple[Field, Field]) -> tuple[Question, Question]:
    """Return the questions of a join's sides, each with what the filter of the other demands of the key."""
    one, other = (
        replace(mine, row_filter=carry_over(mine.row_filter, theirs.row_filter, key.name, their_key.field_id))
        for mine, theirs, key, their_key in zip(questions, questions[::-1], keys, keys[::-1], strict=True)
    )
    return one, other


def find_leaf(question: Question, field: Field) -> Leaf | None:
    """Return the predicate that every row of a filter meets on a column; None: there is none."""
    return next((one for one in _list_all(question) if one.field_id == field.field_id), None)


def _list_all(question: Question) -> list[Leaf]:
    """The predicates that every row of a filter meets, each on another column."""
    predicate = question.predicate
    parts = predicate.parts if isinstance(predicate, All) else (predicate,)
    return [one for one in parts if isinstance(one, Leaf)]


def _leaves_out_null(question: Question, key: Field) -> bool:
    """Whether no row whose key is null meets the filter."""
    leaf = find_leaf(question, key)
    return leaf is not None and not leaf.values.has_null


def estimate_join_by_ndv(left: JoinSide, right: JoinSide) -> SourceEstimate:
    """Estimate a join's rows by the classic formula: rows x rows / the greater number of distinct keys."""
    pairs, _, reason = _known(left, right)
    if reason:
        return SourceEstimate("join-ndv", reason=reason)
    keys = max(left.distinct, right.distinct)
    assumes = "every key of the side with fewer is on the other, each with as many rows as another"
    return SourceEstimate(
        "join-ndv",
        rows=pairs / keys if keys else 0.0,
        assumes="; ".join((assumes, *_list_notes(left, right))),
        values_read=4,
        bytes_read=left.theta_size_bytes + right.theta_size_bytes,
    )


def estimate_join_by_theta(left: JoinSide, right: JoinSide) -> SourceEstimate:
    """Estimate a join's rows by the keys that both sides have, counted by intersecting their Theta sketches.

    The number of common keys is within its bounds at 95.4 % confidence, where no sketch may lack values. The number of
    rows has no bounds: it rests on each key having as many rows as another.
    """
    pairs, thetas, reason = _known(left, right)
    if not reason and left.type != right.type:
        reason = (
            f"{left.name} is {left.type} and {right.name} {right.type}: Theta hashes values of each type its own way"
        )
    for side in (left, right):
        if not reason and side.earlier_type:
            made = (
                f"the sketch of {side.name} may be of when its type was {side.earlier_type}, and it is {side.type} now"
            )
            reason = f"{made}: Theta hashes values of each type its own way"
    if reason := reason or _explain_hashing(left, right):
        return SourceEstimate("join-theta", reason=reason)
    common, share = estimate_common_values(*thetas), max(left.share_of_keys, right.share_of_keys)
    distinct = left.distinct * right.distinct
    error = f" ({common.lower:,.0f} to {common.upper:,.0f} at 95.4% confidence, of the rows that were counted)"
    known = "" if left.is_merged or right.is_merged else error
    assumes = f"{common.estimate:,.0f} keys{known} are on both sides, each with as many rows as another of its side"
    return SourceEstimate(
        "join-theta",
        rows=pairs / distinct * common.estimate * share if distinct else 0.0,
        assumes="; ".join((assumes, *_list_notes(left, right))),
        values_read=sum(len(theta.hashes) for theta in thetas) + 2,
        bytes_read=left.theta_size_bytes + right.theta_size_bytes,
    )


def estimate_join_by_items(left: JoinSide, right: JoinSide) -> SourceEstimate:
    """Estimate a join's rows key by key for the common keys of either side, by their Theta sketches for the rest."""
    source = "join-frequent-items"
    for side in (left, right):
        if side.key is None:
            return SourceEstimate(source, reason=f"no frequent items of {side.name} are committed")
    if left.key is None or right.key is None or not _has_same_items(left.type, right.type):
        return SourceEstimate(source, reason=f"{left.name} is {left.type} and {right.name} {right.type}")
    _, thetas, reason = _known(left, right)
    if reason:
        return SourceEstimate(source, reason=reason)
    is_alike = left.type == right.type and not _explain_hashing(left, right)
    common = estimate_common_values(*thetas).estimate if is_alike else min(left.every_key, right.every_key)
    found = estimate_join_rows(left.key, right.key, common)
    if left.sampled and right.sampled and left.row_count and right.row_count:
        found = correct_join(found, (left.row_count, right.row_count), (left.sampled, right.sampled))
    assumes = (
        f"common keys joined one by one; {common:,.0f} keys are on both sides, the rest of each with as many rows as "
        "one another; what filters leave of other columns is the same share of each key, but for what common pairs and "
        "sampled rows say"
    )
    return SourceEstimate(
        source,
        rows=found,
        assumes="; ".join((assumes, *_list_notes(left, right))),
        values_read=sum(len(side.key.counts.counted) for side in (left, right) if side.key),
        bytes_read=sum(side.key.counts.column.size_bytes + side.theta_size_bytes for side in (left, right) if side.key),
    )


def _has_same_items(left: str, right: str) -> bool:
    """Whether equal values of two types are equal items: not where these count other units or digits."""
    kinds = parse_type(left), parse_type(right)
    if left == right or {kind.name for kind in kinds} in ({"int", "long"}, {"float", "double"}, {"binary", "fixed"}):
        return True
    names = [kind.name for kind in kinds]
    return names == ["decimal", "decimal"] and kinds[0].scale == kinds[1].scale


def _explain_hashing(left: JoinSide, right: JoinSide) -> str:
    """Return why the hashes of sketches of one type cannot be compared; nothing where they can."""
    if left.type in HASHED_ALIKE or (left.hashing == right.hashing and left.hashing in ("Iceberg", "Presto")):
        return ""
    if left.hashing == right.hashing == "Trino" and left.theta is not None and right.theta is not None:
        # Its files may have copies of others' sketches. What is in both was hashed in one form.
        if not min(left.theta.ndv, right.theta.ndv) or estimate_common_values(left.theta, right.theta).estimate:
            return ""
        return (
            f"the sketches of {left.name} and {right.name} have no {left.type} in common, or one of them is not "
            "Trino's but copied into its file, and hashed in another form: compute both again"
        )
    side = next(side for side in (left, right) if side.hashing != "Iceberg")
    return (
        f"the sketch of {side.name} {'is' if side.hashing else 'may be'} {side.hashing or 'Presto'}'s, which hashes "
        f"{side.type} values in another form than Iceberg's Spark procedure: compute it again"
    )


def _list_notes(left: JoinSide, right: JoinSide) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*left.notes, *right.notes)))


def _known(left: JoinSide, right: JoinSide) -> tuple[float, list[ThetaSketch], str]:
    """Return the number of pairs of rows, both sides' sketches, and why the join's rows are unknown, if they are."""
    pairs = 1.0
    thetas: list[ThetaSketch] = []
    for side in (left, right):
        if side.theta is None:
            return pairs, thetas, f"no Theta sketch of {side.name} is committed"
        if side.row_count is None:
            return pairs, thetas, f"how many rows of {side.name} are left by its filter is unknown"
        pairs *= side.row_count
        thetas.append(side.theta)
    return pairs, thetas, ""


def count_join(
    left: Evidence, right: Evidence, questions: tuple[Question, Question], keys: tuple[Field, Field]
) -> tuple[int, SourceEstimate]:
    """Count a join's rows from how often each key is on each side."""
    begin = time.perf_counter()
    rows = count_join_rows(
        *(
            (e.reader.source, e.reader.snapshot, e.reader.schema, q.row_filter, k)
            for e, q, k in zip((left, right), questions, keys, strict=True)
        )
    )
    kind = "" if keys[0].type == keys[1].type else f", compared as {find_key_type(*keys)}"
    assumes = f"how often each key is on each side, counted by PyIceberg{kind}; deletes applied"
    return rows, build_counted(rows, assumes, begin)
