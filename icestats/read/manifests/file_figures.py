"""Manifests -> what planning needs of each live file: flat columns instead of maps, and no more of them than wanted."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from icestats.answers.schemas import FILE_FIGURES, PLANNING_STATISTICS, file_figures_schema
from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.partition_columns import struct_type
from icestats.iceberg.storage import FileReader
from icestats.read.kernel import kernel_layout as k
from icestats.read.manifests.captured_columns import build_binary
from icestats.read.manifests.group_tables import struct_array
from icestats.read.manifests.manifest_files import ManifestFiles, build_contents
from icestats.read.manifests.manifest_pool import ManifestToRead, Progress, default_threads
from icestats.read.manifests.manifests import find_partition_types
from icestats.read.manifests.row_store import RowStore

_METRICS = {"value_count": 1, "null_value_count": 2, "nan_value_count": 3, "lower_bound": 4, "upper_bound": 5}


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
    columns = find_partition_types(manifests, metadata, storage)
    wanted = list(dict.fromkeys(field_ids))
    run = _FileFigures(manifests, metadata.specs, columns, wanted, with_paths=with_paths)
    run.schema = file_figures_schema(struct_type(columns), wanted)
    return run.run(storage, threads or default_threads(), progress)


class _FileFigures(ManifestFiles):
    def _build(self, store: RowStore) -> pa.RecordBatch:
        manifests = store.slot(k.MANIFEST)[0]
        count = len(store)
        columns = {
            "manifest_index": pa.array(manifests).cast(pa.int32()),
            "content": build_contents(store),
            "spec_id": pa.array(self._spec_ids[manifests]),
            "partition": struct_array(self._columns, store.values(), count),
            "record_count": store.array("long", k.RECORD_COUNT),
            "file_size_in_bytes": store.array("long", k.FILE_SIZE),
            "sequence_number": self._inherited(store, manifests)["sequence_number"],
        }
        if self._with_paths:
            columns["file_path"] = store.array("string", k.FILE_PATH)
            columns["file_format"] = store.array("string", k.FILE_FORMAT)
            columns["referenced_data_file"] = store.array("string", k.REFERENCED_DATA_FILE)
        arrays = [columns.get(name, pa.nulls(count, self.schema.field(name).type)) for name in FILE_FIGURES.names]
        for place in range(len(self._field_ids)):
            arrays += [_flat(store, _METRICS[name], place) for name in PLANNING_STATISTICS]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _flat(store: RowStore, metric: int, place: int) -> pa.Array:
    count = len(store)
    sizes = store.rows.sizes[:count, metric, place]
    values = store.rows.values[:count, metric, place].copy()
    if metric < 4:
        return pa.array(values, mask=sizes < 0)
    return build_binary(pa.binary(), values, sizes.copy(), store.rows.arena)
