"""Manifests: the roll-ups and the live files of a snapshot, at about the speed of inflating its manifests.

Source: Iceberg spec, "Manifests", "Scan Planning" (inheritance) and "Partition Statistics".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, join_paths
from icestats.answers.findings import Finding
from icestats.answers.schemas import file_metrics_schema, files_schema
from icestats.answers.text import counted
from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field, Schema, TableMetadata
from icestats.iceberg.partition_columns import (
    PartitionColumn,
    avro_value_type,
    find_family,
    find_partition_columns,
    find_retyped_fields,
    struct_type,
)
from icestats.iceberg.storage import FileReader, check_distinct
from icestats.iceberg.types import parse_type
from icestats.read.avro.avro_file import parse_schema, read_header
from icestats.read.manifests.manifest_pool import ManifestToRead, Progress, default_threads, read_manifest
from icestats.stats.hashing import hash_values

if TYPE_CHECKING:
    from icestats.read.manifests.manifest_rollup import ManifestRollup

__all__ = [
    "ManifestToRead",
    "RollUps",
    "find_partition_types",
    "find_repeated_files",
    "manifests_to_read",
    "read_file_metrics",
    "read_files",
    "read_rollups",
]

Grouping = Literal["manifest", "partition"]
_HASHED_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class RollUps:
    """The statistics of live files, rolled up.

    The tables of cells have every column of the schema (`Schema.columns`, in its order) for each group in turn: the
    cell of group g and column c is row g x number of columns + c. Groups without data files, manifests of deletes among
    them, have cells that no file contributes to.
    """

    manifests: pa.Table
    """`schemas.MANIFEST_GROUPS`: one row a manifest, in the order given."""
    manifest_cells: pa.Table
    """`schemas.ROLLUP_CELLS`: the cells of `manifests`."""
    partitions: pa.Table
    """`schemas.partition_groups_schema`: one row a partition of a spec that has live files, sorted, nulls first."""
    partition_cells: pa.Table
    """`schemas.ROLLUP_CELLS`: the cells of `partitions`."""
    table_cells: pa.Table
    """`schemas.ROLLUP_CELLS`: one group, all manifests together."""


def manifests_to_read(manifest_files: pa.Table) -> list[ManifestToRead]:
    """Return what to read for `schemas.MANIFEST_FILES`, in its order; raise MetadataError where two are one file."""
    names = ("manifest_path", "manifest_length", "partition_spec_id", "content", "sequence_number", "added_snapshot_id")
    columns = [manifest_files[name].to_pylist() for name in (*names, "first_row_id")]
    check_distinct(columns[0])
    return [ManifestToRead(*row) for row in zip(*columns, strict=True)]


def find_repeated_files(files: pa.Table) -> tuple[Finding, ...]:
    """Return what is wrong with live entries, with their paths, of which several name one data file."""
    if not _may_repeat(files):
        return ()
    paths = join_paths(files.filter(pc.equal(files["content"], "data")))["file_path"]
    repeated = len(paths) - pc.count_distinct(paths, mode="all").as_py()
    if not repeated:
        return ()
    counts = pc.value_counts(paths)
    first = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0].as_py()
    what = f"{counted(repeated, 'live entry', 'live entries')} beside the first of its data file, such as {first:.1000}"
    return (
        Finding(
            "error", "data files are in the table twice: every reader reads their rows as often", what, subject="files"
        ),
    )


def _may_repeat(files: pa.Table) -> bool:
    """Return whether two paths have one hash, or one has none, as an empty path; hashes take a tenth of the memory."""
    hashes, count = [np.zeros(0, np.uint64)], 0
    for start in range(0, files.num_rows, _HASHED_AT_ONCE):
        part = files.slice(start, _HASHED_AT_ONCE)
        paths = combine_chunks(join_paths(part.filter(pc.equal(part["content"], "data")))["file_path"])
        hashes.append(hash_values(paths, "string"))
        count += len(paths)
    found = np.sort(np.concatenate(hashes))
    return len(found) < count or bool((found[1:] == found[:-1]).any())


def read_rollups(
    manifests: Sequence[ManifestToRead],
    metadata: TableMetadata,
    storage: FileReader,
    schema: Schema | None = None,
    *,
    by: tuple[Grouping, ...] = ("manifest", "partition"),
    deleted: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RollUps:
    """Roll up the statistics of all live files by manifest, by partition and over the table, in one pass.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        Manifests of data and of deletes. Only data files contribute to cells.
    metadata : TableMetadata
        Partition specs, schemas and the times of snapshots.
    storage : FileReader
        Where to read from.
    schema : Schema, optional
        Its columns are rolled up, by field id; bounds are compared in its types. By default the current schema.
    by : tuple of str, optional
        Which of "manifest" and "partition" are wanted; the others' tables are empty.
    deleted : bool, optional
        Whether to roll up the entries of status DELETED instead of the live ones: what a snapshot has removed.
    threads : int, optional
        How many threads decode; by default one a processor.
    progress : callable, optional
        Called with the number of manifests that are done and of all; what it raises stops reading.

    Returns
    -------
    RollUps
        See there. `lower_bound` and `upper_bound` are single values of the column's current type, whatever older type a
        file has them in, and null where no file has one. `last_updated_at` and `last_updated_snapshot_id` are of the
        latest known snapshot that added a live file; `total_record_count` is null, as it takes more than manifests.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged, or is not one of a spec of the table.
    UnsupportedError
        Two specs use one partition field id for different things.

    Notes
    -----
    A statistic counts as lacking in a file where its map has no entry of the column, where a count is negative, where
    there are fewer values than nulls and NaN, and where a bound is NaN or has a length that the column's type and those
    promoted to it do not have. Of a key that is in a map twice, the last counts. Floating-point bounds are ordered as
    Java orders them, -0.0 before 0.0. Types without order (geometry, geography, variant) have no bounds.
    """
    from icestats.read.kernel.kernel import DELETED, LIVE
    from icestats.read.manifests.manifest_rollup import ManifestRollup

    columns = (schema or metadata.schema).columns
    fields = find_partition_types(manifests, metadata, storage)
    by_partition, statuses = "partition" in by, DELETED if deleted else LIVE
    run = ManifestRollup(manifests, metadata, columns, fields, by_partition=by_partition, statuses=statuses)
    run.run(storage, threads or default_threads(), progress)
    try:
        return _build_rollups(run, manifests, columns, fields, by)
    except (ValueError, OverflowError) as error:
        # Partition values carry no path any more: the manifest that has the wrong one is looked for.
        for manifest in manifests:
            read_files([manifest], metadata, storage)
        raise MetadataError(str(error), metadata.location) from error


def _build_rollups(
    run: ManifestRollup,
    manifests: Sequence[ManifestToRead],
    columns: Sequence[Field],
    fields: Sequence[PartitionColumn],
    by: tuple[Grouping, ...],
) -> RollUps:
    from icestats.read.manifests.group_tables import (
        build_cells,
        build_manifest_groups,
        build_partition_groups,
        merge_all,
        merge_repeated_partitions,
        struct_array,
    )

    store, every = run.store, np.arange(len(manifests), dtype=np.int64)
    wanted = manifests if "manifest" in by else ()
    variants = run.programs.variants if "partition" in by else ()
    places, arrays, spec_ids = merge_repeated_partitions(store, variants, fields)
    partitions = struct_array(fields, arrays, len(places))
    return RollUps(
        manifests=build_manifest_groups(store, wanted),
        manifest_cells=build_cells(store, every[: len(wanted)], columns),
        partitions=build_partition_groups(store, places, partitions, spec_ids),
        partition_cells=build_cells(store, places, columns),
        table_cells=build_cells(merge_all(store, every), np.zeros(1, np.int64), columns),
    )


def read_files(
    manifests: Sequence[ManifestToRead],
    metadata: TableMetadata,
    storage: FileReader,
    columns: Collection[int] = (),
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """Read the live files, data and delete files alike.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        Manifests of data and of deletes.
    metadata : TableMetadata
        Partition specs and schemas.
    storage : FileReader
        Where to read from.
    columns : collection of int, optional
        Field ids of the columns whose metrics are wanted.
    threads : int, optional
        How many threads decode; by default one a processor.
    progress : callable, optional
        Called with the number of manifests that are done and of all; what it raises stops reading.

    Returns
    -------
    pyarrow.Table
        `schemas.files_schema`: one row a live entry, in the order of the manifests and of their entries.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged, or is not one of a spec of the table.
    UnsupportedError
        Two specs use one partition field id for different things.
    """
    from icestats.read.manifests.manifest_files import AllFields

    fields = find_partition_types(manifests, metadata, storage)
    schema = files_schema(struct_type(fields))
    files = AllFields(manifests, metadata, fields, list(dict.fromkeys(columns)), schema, with_paths=True)
    return files.run(storage, threads or default_threads(), progress)


def read_file_metrics(
    manifests: Sequence[ManifestToRead],
    metadata: TableMetadata,
    storage: FileReader,
    field_ids: Sequence[int] = (),
    *,
    with_paths: bool = True,
    splits_paths: bool = False,
) -> pa.Table:
    """Read the live files as planning needs them, at about twice the speed of `read_files`.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        Manifests of data and of deletes.
    metadata : TableMetadata
        Partition specs and schemas.
    storage : FileReader
        Where to read from.
    field_ids : sequence of int, optional
        The columns whose statistics are wanted.
    with_paths : bool, optional
        Whether paths are wanted; without them they are null, and reading is faster.
    splits_paths : bool, optional
        Whether paths come as folders and names, which takes less memory.

    Returns
    -------
    pyarrow.Table
        `file_metrics_schema`: one row a live entry, in the order of the manifests and of their entries.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged, or is not one of a spec of the table.
    """
    from icestats.read.manifests.manifest_files import PlanningFields

    columns = find_partition_types(manifests, metadata, storage)
    wanted = list(dict.fromkeys(field_ids))
    schema = file_metrics_schema(struct_type(columns), wanted, splits_paths=splits_paths)
    files = PlanningFields(manifests, metadata, columns, wanted, schema, with_paths=with_paths)
    return files.run(storage, default_threads(), None)


def find_partition_types(
    manifests: Iterable[ManifestToRead], metadata: TableMetadata, storage: FileReader
) -> tuple[PartitionColumn, ...]:
    """Return the partition fields of all specs with their types; the manifests tell those that schemas leave open."""
    columns = find_partition_columns(metadata.specs, metadata.schemas_by_age)
    retyped = find_retyped_fields(metadata.specs, metadata.schemas_by_age)
    missing = {column.field_id for column in columns if column.type is None} | retyped.keys()
    if not missing:
        return columns
    # The source column has been dropped, and the schemas that had it are gone, or another type has taken its place: a
    # manifest's own schema tells.
    types: dict[int, str] = {}
    seen: set[int] = set()
    for manifest in manifests:
        spec = metadata.specs.get(manifest.spec_id)
        if spec is not None and spec.spec_id not in seen and missing & {field.field_id for field in spec.fields}:
            seen.add(manifest.spec_id)
            types |= _avro_partition_types(storage, manifest)
    return tuple(
        replace(c, type=_choose_type(c.type, types.get(c.field_id), retyped.get(c.field_id, ()))) for c in columns
    )


def _choose_type(known: str | None, stored: str | None, retyped: Sequence[str]) -> str | None:
    """Return the first of the types that a manifest's values may have been promoted to; else what is known of it."""
    if known is None or stored is None:
        return known or stored
    return next((kind for kind in retyped if find_family(kind) == find_family(stored)), known)


def _avro_partition_types(storage: FileReader, manifest: ManifestToRead) -> dict[int, str]:
    from icestats.read.avro.decoding_program import find_field_type
    from icestats.read.avro.type_names import record_fields
    from icestats.read.manifests.manifest_programs import PARTITION_IDS

    header = read_header(read_manifest(storage, manifest), manifest.path)
    try:
        fields = record_fields(find_field_type(parse_schema(header), PARTITION_IDS))
        types = {i: avro_value_type(field["type"]) for field in fields if isinstance(i := field.get("field-id"), int)}
        known = {field_id: found for field_id, found in types.items() if found is not None}
        for found in known.values():
            parse_type(found)
    except ValueError as error:
        raise MetadataError(f"the Avro schema is not a manifest's: {error}", manifest.path, 0) from error
    return known
