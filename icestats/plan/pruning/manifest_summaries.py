"""Partition summaries of the manifest list, and roll-ups of manifests, as figures of columns.

Source: Iceberg spec, "Manifest Lists", `field_summary`; the manifest-level statistics proposal, "During Scan Planning".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.iceberg.metadata import Field, PartitionSpec, Schema
from icestats.iceberg.partition_values import partition_field_type
from icestats.plan.pruning.figures import ColumnFigures, rollup_figures, summary_figures
from icestats.plan.pruning.keys import Longs
from icestats.read.manifests.manifests import RollUps


def build_summary_figures(
    partitions: pa.ListArray, spec: PartitionSpec, schema: Schema, field_ids: Sequence[int]
) -> dict[int, ColumnFigures]:
    """Build the figures of some partition fields in each manifest of one spec, by partition field id.

    Parameters
    ----------
    partitions : pyarrow.ListArray
        `partitions` of `schemas.MANIFEST_FILES`, of manifests of the spec.
    spec : PartitionSpec
        Names the fields, in the order of the summaries.
    schema : Schema
        The columns that partition fields get their types from.
    field_ids : sequence of int
        The partition fields that are wanted.
    """
    offsets = to_numpy(partitions.offsets).astype(np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    lengths = np.where(to_numpy(pc.is_null(partitions)), 0, lengths)
    found = {}
    for place, field in enumerate(spec.fields):
        type_text = partition_field_type(field, schema)
        if field.field_id not in field_ids or type_text is None:
            continue
        there = lengths > place
        rows = pa.array(np.where(there, starts + place, 0), mask=~there)
        found[field.field_id] = summary_figures(partitions.values.take(rows), type_text)
    return found


def build_rollup_figures(
    rollups: RollUps, columns: Sequence[Field], paths: pa.Array, field_ids: Sequence[int]
) -> tuple[Longs, dict[int, ColumnFigures]]:
    """Build the figures of some columns in those manifests that a roll-up knows.

    Parameters
    ----------
    rollups : RollUps
        Of some manifests, these or others.
    columns : sequence of Field
        The columns that were rolled up, in their order.
    paths : pyarrow.StringArray
        The manifests that are asked for.
    field_ids : sequence of int
        The columns that are wanted.

    Returns
    -------
    places : numpy.ndarray of int64
        The manifests, as places in `paths`, that the roll-up knows.
    figures : dict of int to ColumnFigures
        By field id, a row for each of `places`.
    """
    where = pc.index_in(paths, combine_chunks(rollups.manifests["manifest_path"]))
    known = ~to_numpy(pc.is_null(where))
    rows = to_numpy(where, null=0).astype(np.int64)[known]
    found = {
        field.field_id: rollup_figures(rollups, place, len(columns), field.type).take(rows)
        for place, field in enumerate(columns)
        if field.field_id in field_ids
    }
    return np.flatnonzero(known), found


def select_live_data(manifest_files: pa.Table) -> pa.Table:
    """Return the manifests of data, those without a live file among them, which engines need not open, left out."""
    data = manifest_files.filter(pc.equal(manifest_files["content"], "data"))
    live = pc.add(data["added_files_count"], data["existing_files_count"])
    return data.filter(pc.fill_null(pc.greater(live, 0), True))


def specs_of(manifest_files: pa.Table) -> Mapping[int, Longs]:
    """Return for each partition spec the places of its manifests."""
    spec_ids = to_numpy(manifest_files["partition_spec_id"])
    return {int(spec_id): np.flatnonzero(spec_ids == spec_id) for spec_id in np.unique(spec_ids)}
