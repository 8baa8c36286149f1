"""What predicates on columns say of partitions: which groups may hold matching rows, and which hold no others.

Source: Iceberg spec, "Partition Transforms" and "Scan Planning" (inclusive and strict projections).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.metadata import PartitionSpec, Schema
from icestats.iceberg.partition_values import partition_field_type
from icestats.iceberg.types import encode_value
from icestats.plan.sets.interval_tests import Booleans, Items, covers, meets
from icestats.plan.sets.items import build_items
from icestats.plan.sets.partition_projection import bucket_count, can_project, project_leaf
from icestats.plan.sets.value_predicates import All, Leaf, Tree
from icestats.plan.sets.value_sets import Interval
from icestats.stats.partition_sketches import PartitionKey

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The values of one partition field in each group of a spec."""

    lower: Items
    upper: Items
    has_values: Booleans
    """Whether the bounds mean something."""
    is_known: Booleans
    """False: nothing is known of the values."""
    may_be_null: Booleans
    may_be_nan: Booleans


@dataclass(frozen=True, slots=True)
class SpecRanges:
    """The groups that were written with one spec."""

    spec: PartitionSpec
    groups: Longs
    ranges: tuple[PartitionRange | None, ...]
    """One a field of the spec; None: nothing is known."""


@dataclass(frozen=True, slots=True)
class LeafRanges:
    """What a predicate on a column says of each group by its partition values."""

    may: Booleans
    """Rows may match."""
    must: Booleans
    """All rows match."""
    is_used: Booleans
    """The group's spec has an order-preserving field of the column: the predicate drops groups."""
    bucket_share: npt.NDArray[np.float64]
    """Share of the column's buckets that the group spans; 1.0 where it is not bucketed."""


def build_manifest_ranges(
    manifest_files: pa.Table, specs: Mapping[int, PartitionSpec], schema: Schema
) -> list[SpecRanges]:
    """Build the partition ranges of manifests from `schemas.MANIFEST_FILES`."""
    spec_ids = to_numpy(manifest_files["partition_spec_id"])
    summaries = combine_chunks(manifest_files["partitions"])
    found = []
    for spec_id in np.unique(spec_ids):
        spec, groups = specs[int(spec_id)], np.flatnonzero(spec_ids == spec_id)
        own = summaries.take(pa.array(groups))
        is_whole = bool((to_numpy(pc.list_value_length(own), null=0) >= len(spec.fields)).all())
        ranges = [
            _summary_range(pc.list_element(own, i), partition_field_type(field, schema)) if is_whole else None
            for i, field in enumerate(spec.fields)
        ]
        found.append(SpecRanges(spec, groups, tuple(ranges)))
    return found


def _summary_range(summaries: pa.StructArray, type_text: str | None) -> PartitionRange | None:
    if type_text is None:
        return None
    lower, has_lower = build_items(type_text, pc.struct_field(summaries, "lower_bound"))
    upper, has_upper = build_items(type_text, pc.struct_field(summaries, "upper_bound"))
    nulls = to_numpy(pc.struct_field(summaries, "contains_null"), null=True)
    nans = to_numpy(pc.struct_field(summaries, "contains_nan"), null=type_text in ("float", "double"))
    has_values = has_lower & has_upper
    return PartitionRange(lower, upper, has_values, has_values | nulls | nans, nulls, nans)


def build_value_ranges(
    partitions: pa.StructArray, spec_ids: Longs, specs: Mapping[int, PartitionSpec], schema: Schema
) -> list[SpecRanges]:
    """Build the partition ranges of groups that have one value a field: partitions, data files.

    Parameters
    ----------
    partitions : pyarrow.StructArray
        The partition values, fields by name.
    spec_ids : numpy.ndarray
        The spec of each group.
    specs : mapping of int to PartitionSpec
        The table's specs.
    schema : Schema
        The schema that partition fields get their types from.
    """
    found = []
    for spec_id in np.unique(spec_ids):
        spec, groups = specs[int(spec_id)], np.flatnonzero(spec_ids == spec_id)
        own = partitions.take(pa.array(groups))
        ranges = []
        for field in spec.fields:
            type_text = partition_field_type(field, schema)
            is_there = own.type.get_field_index(field.name) >= 0
            ranges.append(_value_range(pc.struct_field(own, field.name), type_text) if is_there and type_text else None)
        found.append(SpecRanges(spec, groups, tuple(ranges)))
    return found


def _value_range(values: pa.Array, type_text: str) -> PartitionRange:
    return _encoded_range(_encoded(values.dictionary_encode(), type_text), type_text)


def _encoded_range(encoded: pa.Array, type_text: str) -> PartitionRange:
    items, known = build_items(type_text, encoded)
    nulls = to_numpy(pc.is_null(encoded))
    nans = np.isnan(items) if items.dtype == np.float64 else np.zeros(len(items), np.bool_)
    return PartitionRange(items, items, known & ~nans, known | nulls, nulls, nans)


def build_key_ranges(
    keys: Sequence[PartitionKey], specs: Mapping[int, PartitionSpec], schema: Schema
) -> list[SpecRanges]:
    """Build the partition ranges of the partitions that sketches are of; nothing is known of a field without value."""
    spec_ids = np.array([key.spec_id for key in keys], np.int64)
    found = []
    for spec_id in np.unique(spec_ids):
        spec, groups = specs[int(spec_id)], np.flatnonzero(spec_ids == spec_id)
        values = [dict(keys[group].values) for group in groups.tolist()]
        ranges = []
        for field in spec.fields:
            type_text = partition_field_type(field, schema)
            is_there = all(field.field_id in row for row in values)
            encoded = pa.array([row.get(field.field_id) for row in values], pa.binary())
            ranges.append(_encoded_range(encoded, type_text) if is_there and type_text else None)
        found.append(SpecRanges(spec, groups, tuple(ranges)))
    return found


def _encoded(values: pa.DictionaryArray, type_text: str) -> pa.Array:
    distinct = values.dictionary
    if pa.types.is_timestamp(distinct.type):
        # The number that Iceberg stores, of nanoseconds too.
        distinct = distinct.view(pa.int64())
    plain = [None if value is None else encode_value(type_text, value) for value in distinct.to_pylist()]
    return pa.array(plain, pa.binary()).take(values.indices)


def build_partition_keys(
    partitions: pa.StructArray, spec_ids: Longs, specs: Mapping[int, PartitionSpec], schema: Schema
) -> list[PartitionKey | None]:
    """Build the keys that sketches by partition are found by; None where a partition field's column is gone."""
    columns: dict[tuple[str, str], list[bytes | None]] = {}
    keys: list[PartitionKey | None] = []
    for place, spec_id in enumerate(spec_ids.tolist()):
        values: list[tuple[int, bytes | None]] = []
        types = [partition_field_type(field, schema) for field in specs[spec_id].fields]
        for field, type_text in zip(specs[spec_id].fields, types, strict=True):
            if type_text is None:
                break
            if (field.name, type_text) not in columns:
                array = pc.struct_field(partitions, field.name)
                columns[field.name, type_text] = _encoded(array.dictionary_encode(), type_text).to_pylist()
            values.append((field.field_id, columns[field.name, type_text][place]))
        keys.append(None if None in types else PartitionKey(spec_id, tuple(values)))
    return keys


def explain_leaf(leaf: Leaf, ranges: Sequence[SpecRanges], groups: int, schema: IcebergSchema) -> LeafRanges:
    """Explain what a predicate says of each group.

    Parameters
    ----------
    leaf : Leaf
        The predicate.
    ranges : sequence of SpecRanges
        The groups' partition values.
    groups : int
        How many groups there are.
    schema : pyiceberg.schema.Schema
        Transforms need the type of the column.
    """
    may, must = np.ones(groups, np.bool_), np.zeros(groups, np.bool_)
    is_used, bucket_share = np.zeros(groups, np.bool_), np.ones(groups)
    for spec_ranges in ranges:
        own = spec_ranges.groups
        for field, known in zip(spec_ranges.spec.fields, spec_ranges.ranges, strict=True):
            if field.source_id != leaf.field_id or known is None or not can_project(field):
                continue
            buckets = bucket_count(field)
            inclusive, strict = project_leaf(leaf, field, schema)
            may[own] &= _may(leaf, inclusive, known)
            must[own] |= _must(leaf, strict, known)
            if buckets is None:
                is_used[own] = True
            else:
                spanned = np.where(known.has_values, known.upper - known.lower + 1.0, buckets) / buckets
                bucket_share[own] = np.minimum(bucket_share[own], spanned)
    return LeafRanges(may, must, is_used, bucket_share)


def keep_groups(predicate: Tree, leaves: Mapping[Leaf, LeafRanges], groups: int) -> Booleans:
    """Say which groups may hold matching rows, by their partition values alone."""
    if isinstance(predicate, Leaf):
        return leaves[predicate].may
    parts = [keep_groups(part, leaves, groups) for part in predicate.parts]
    if isinstance(predicate, All):
        return reduce(np.logical_and, parts, np.ones(groups, np.bool_))
    return reduce(np.logical_or, parts, np.zeros(groups, np.bool_))


def _may(leaf: Leaf, inclusive: Sequence[Interval] | None, known: PartitionRange) -> Booleans:
    meeting = ~known.is_known
    if inclusive is None:
        meeting = meeting | known.has_values
    else:
        for interval in inclusive:
            meeting = meeting | (known.has_values & meets(interval, known.lower, known.upper))
    return meeting | (known.may_be_null & leaf.values.has_null) | (known.may_be_nan & leaf.values.has_nan)


def _must(leaf: Leaf, strict: Sequence[Interval], known: PartitionRange) -> Booleans:
    covered = np.zeros(len(known.has_values), np.bool_)
    for interval in strict:
        covered |= known.has_values & covers(interval, known.lower, known.upper)
    others = (known.may_be_null & (not leaf.values.has_null)) | (known.may_be_nan & (not leaf.values.has_nan))
    if leaf.values.has_null:
        covered |= known.is_known & ~known.has_values & known.may_be_null
    return covered & ~others
