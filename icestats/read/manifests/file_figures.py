"""Manifests -> what planning needs of each live file: flat columns instead of maps, and no more of them than wanted."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.storage import FileReader
from icestats.read.manifests.manifest_pool import ManifestToRead, Progress, default_threads
from icestats.read.manifests.manifests import find_partition_types


def read_file_figures(
    manifests: Sequence[ManifestToRead],
    metadata: TableMetadata,
    storage: FileReader,
    field_ids: Sequence[int] = (),
    *,
    with_paths: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
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
    threads : int, optional
        How many threads decode; by default one a processor.
    progress : callable, optional
        Called with the number of manifests that are done and of all; what it raises stops reading.

    Returns
    -------
    pyarrow.Table
        `file_figures_schema`: one row a live entry, in the order of the manifests and of their entries.

    Raises
    ------
    MetadataError
        A manifest is missing, cut or damaged, or is not one of a spec of the table.
    """
    from icestats.read.manifests.manifest_files import PlanningFields

    columns = find_partition_types(manifests, metadata, storage)
    wanted = list(dict.fromkeys(field_ids))
    files = PlanningFields(manifests, metadata, columns, wanted, with_paths=with_paths)
    return files.run(storage, threads or default_threads(), progress)
