"""The layout of a snapshot: what is read for it, and for a rewrite of its manifests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from icestats.iceberg.catalog import reopen_source
from icestats.iceberg.filters.row_filter import RowFilter
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics
from icestats.snapshot.layout.clustering import build_field_layouts, build_spread, find_late_data
from icestats.snapshot.layout.file_set import FileSet, build_file_set, choose_columns
from icestats.snapshot.layout.layout import Layout
from icestats.snapshot.layout.maintenance import NEXT, Maintenance, build_findings
from icestats.snapshot.layout.what_if import ManifestRewrite, build_outcomes, compare, regroup_files
from icestats.snapshot.pruning.funnel import select_live_data
from icestats.snapshot.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import SparkSession


def read_layout(
    reader: SnapshotReader, bind: Callable[[str | BooleanExpression], RowFilter], columns: Sequence[str] | None
) -> Layout:
    """Measure the layout of a snapshot; the columns are those of `Table.layout`, `bind` gives its bound filters."""
    metadata, schema = reader.source.metadata, reader.schema
    chosen = [field.field_id for field in choose_columns(metadata, schema, columns)]
    files = _read_file_set(reader, chosen)
    maintenance, spec = _build_maintenance(reader), metadata.specs[metadata.default_spec_id]
    fields = build_field_layouts(files, schema)
    spread = build_spread(files, maintenance.file_size_bytes)
    late = find_late_data(files)
    deletes = reader.manifest_files.filter(pc.equal(reader.manifest_files["content"], "deletes"))
    counts = pc.sum(pc.add(deletes["added_files_count"], deletes["existing_files_count"])).as_py() or 0

    def read(workload: Sequence[str | BooleanExpression], more: Sequence[int]) -> tuple[list[RowFilter], FileSet]:
        filters = [bind(one) for one in workload]
        wanted = dict.fromkeys([*more, *(field_id for found in filters for field_id in found.field_ids)])
        primitive = [column.field_id for column in schema.select(wanted)]
        known = set(primitive) <= set(files.column_metrics)
        return filters, files if known else _read_file_set(reader, primitive)

    return Layout(
        table=reader.source.name,
        snapshot_id=None if reader.snapshot is None else reader.snapshot.snapshot_id,
        fields=fields,
        spread=spread,
        late=late,
        findings=build_findings(files, fields, spread, late, counts, maintenance, spec),
        _files=files,
        _schema=schema,
        _spec=spec,
        _maintenance=maintenance,
        _read=read,
    )


def rewrite_manifests(
    reader: SnapshotReader,
    filters: Sequence[RowFilter],
    *,
    sort_by: str | None,
    manifest_size_bytes: int | None,
    dry_run: bool,
    spark: SparkSession | None,
) -> ManifestRewrite:
    """Preview a rewrite of manifests, or run it; the parameters are those of `Table.rewrite_manifests`."""
    maintenance = _build_maintenance(reader)
    wanted = list(dict.fromkeys(field_id for found in filters for field_id in found.field_ids))
    before = _read_file_set(reader, wanted)
    metadata = reader.source.metadata
    spec, size = metadata.specs[metadata.default_spec_id], manifest_size_bytes or maintenance.manifest_size_bytes
    predicted = regroup_files(before, size, sort_by, spec)
    statements = tuple(maintenance.rewrite_manifests(sort_by, manifest_size_bytes).split(NEXT))
    count = len(before.partition_fields)
    fields = [build_field_layouts(found, reader.schema)[:count] for found in (before, predicted)]
    counts: tuple[int | None, int | None] = (None, None)
    after = None
    if not dry_run:
        from icestats.spark.table_writes import run_rewrite_manifests

        counts = run_rewrite_manifests(reader.source, statements, spark)
        source = reopen_source(reader.source)
        now = SnapshotReader(source, source.metadata.find_snapshot(), source.metadata.schema)
        # Others may have written since: filters know the specs of then, and there are fields of live files alone.
        if (now.schema, source.metadata.specs) == (reader.schema, metadata.specs):
            files = _read_file_set(now, wanted)
            ids = [field.field_id for field in files.partition_fields]
            by_id = dict(zip(ids, build_field_layouts(files, now.schema), strict=False))  # behind them are columns
            after = compare(filters, files, files), [by_id.get(field.field_id) for field in before.partition_fields]
    return ManifestRewrite(
        table=reader.source.name,
        statements=statements,
        is_done=not dry_run,
        rewritten_manifest_count=counts[0],
        added_manifest_count=counts[1],
        outcomes=build_outcomes(compare(filters, before, predicted), list(zip(*fields, strict=True)), after),
    )


def _read_file_set(reader: SnapshotReader, field_ids: Sequence[int]) -> FileSet:
    """Read all live data files of a snapshot, with the statistics of some columns."""
    manifests = select_live_data(reader.manifest_files)
    metadata, storage = reader.source.metadata, reader.source.storage
    files = read_file_metrics(manifests_to_read(manifests), metadata, storage, field_ids, with_paths=False)
    return build_file_set(files, manifests, metadata, reader.schema, reader.partition_columns)


def _build_maintenance(reader: SnapshotReader) -> Maintenance:
    """Build what statements about the table are made of; a bare metadata.json gets names to fill in."""
    source = reader.source
    identifier = source.identifier or ("<namespace>", "<table>")
    is_current = reader.snapshot == source.metadata.find_snapshot()
    return Maintenance(source.catalog_name or "<catalog>", identifier, source.metadata.properties, is_current)
