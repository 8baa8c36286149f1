"""Manifests -> rows of live files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.schemas import BOUNDS, COUNTS, files_schema
from icestats.errors import MetadataError
from icestats.iceberg.metadata import PartitionSpec
from icestats.iceberg.partition_columns import PartitionColumn, struct_type
from icestats.iceberg.storage import FileReader
from icestats.read.avro.avro_file import read_batches
from icestats.read.avro.block_inflater import BlockInflater
from icestats.read.kernel import kernel_layout as k
from icestats.read.kernel.kernel_layout import Words
from icestats.read.manifests.captured_columns import build_binary
from icestats.read.manifests.group_tables import struct_array
from icestats.read.manifests.manifest_pool import ManifestToRead, Progress, read_manifest, run_tasks
from icestats.read.manifests.manifest_programs import ManifestPrograms
from icestats.read.manifests.row_store import RowStore

TASK_SIZE = 8 << 20
"""Manifests are read one after the other, into the same arrays, up to this many bytes of them."""
_CONTENTS = ("data", "position_deletes", "equality_deletes")
_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_ADDED = 1
_INT32, _INT64 = pa.int32(), pa.int64()


class ManifestFiles:
    """Reads manifests into tables of files.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        What to read.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    columns : sequence of PartitionColumn
        Of `find_partition_columns`, with all types known.
    field_ids : sequence of int
        The columns whose metrics are wanted.
    with_paths : bool, optional
        Whether paths, offsets and the like are read.
    """

    def __init__(
        self,
        manifests: Sequence[ManifestToRead],
        specs: Mapping[int, PartitionSpec],
        columns: Sequence[PartitionColumn],
        field_ids: Sequence[int],
        *,
        with_paths: bool = True,
    ) -> None:
        self.schema = files_schema(struct_type(columns))
        self._manifests = manifests
        self._columns = columns
        self._field_ids = np.array(field_ids, np.int32)
        self._with_paths = with_paths
        self._programs = ManifestPrograms(specs, columns, details=True, with_paths=with_paths)
        self._stores: SimpleQueue[tuple[RowStore, BlockInflater]] = SimpleQueue()
        self._paths = pa.array([m.path for m in manifests], pa.string())
        self._spec_ids = np.array([m.spec_id for m in manifests], np.int32)
        self._sequence_numbers = np.array([m.sequence_number for m in manifests], np.int64)
        self._snapshot_ids = np.array([m.added_snapshot_id or 0 for m in manifests], np.int64)
        self._snapshot_lengths = np.array([-1 if m.added_snapshot_id is None else 0 for m in manifests], np.int64)

    def run(self, storage: FileReader, threads: int, progress: Progress | None) -> pa.Table:
        """Read all manifests."""
        types = [column.type for column in self._columns]
        for _ in range(threads):
            self._stores.put((RowStore(types, self._field_ids.tolist()), BlockInflater()))

        def read(task: Sequence[int]) -> list[pa.RecordBatch]:
            return self._read(storage, task)

        results = run_tasks(self._tasks(), read, self._manifests, threads, progress)
        return pa.Table.from_batches([batch for batches in results for batch in batches], self.schema)

    def _tasks(self) -> Iterator[list[int]]:
        task: list[int] = []
        size = 0
        for index, manifest in enumerate(self._manifests):
            task.append(index)
            size += max(manifest.length, 1 << 12)
            if size >= TASK_SIZE or index + 1 == len(self._manifests):
                yield task
                task, size = [], 0

    def _read(self, storage: FileReader, task: Sequence[int]) -> list[pa.RecordBatch]:
        store, inflater = self._stores.get()
        try:
            batches = list(self._capture(storage, task, store, inflater))
            if len(store):
                batches.append(self._take(store))
            return batches
        finally:
            store.clear()
            self._stores.put((store, inflater))

    def _capture(
        self, storage: FileReader, task: Sequence[int], store: RowStore, inflater: BlockInflater
    ) -> Iterator[pa.RecordBatch]:
        for index in task:
            manifest = self._manifests[index]
            data = read_manifest(storage, manifest)
            header, program = self._programs.read(data, manifest.path, manifest.spec_id)
            store.inherit_row_ids(manifest.first_row_id)
            for batch in read_batches(data, header, inflater):
                store.frame.state[:] = 0
                while not store.capture(batch, program.code, index, manifest.path):
                    yield self._take(store)

    def _take(self, store: RowStore) -> pa.RecordBatch:
        try:
            batch = self._build(store)
        except ValueError as error:
            indices = store.slot(k.MANIFEST)[0]
            paths = sorted({self._manifests[i].path for i in indices.tolist()})
            where = paths[0] if len(paths) == 1 else f"{paths[0]} or one of {len(paths) - 1} other manifests"
            raise MetadataError(str(error), where) from error
        store.clear()
        return batch

    def _build(self, store: RowStore) -> pa.RecordBatch:
        manifests = store.slot(k.MANIFEST)[0]
        columns = {
            "content": build_contents(store),
            "file_path": store.array("string", k.FILE_PATH),
            "file_format": pc.utf8_upper(store.array("string", k.FILE_FORMAT)),
            "spec_id": pa.array(self._spec_ids[manifests]),
            "partition": struct_array(self._columns, store.values(), len(store)),
            "record_count": store.array("long", k.RECORD_COUNT),
            "file_size_in_bytes": store.array("long", k.FILE_SIZE),
            "key_metadata": store.array("binary", k.KEY_METADATA),
            "split_offsets": store.lists(_INT64, k.SPLIT_OFFSETS),
            "equality_ids": store.lists(_INT32, k.EQUALITY_IDS),
            "sort_order_id": store.array("int", k.SORT_ORDER_ID),
            "first_row_id": store.array("long", k.FIRST_ROW_ID),
            "referenced_data_file": store.array("string", k.REFERENCED_DATA_FILE),
            "content_offset": store.array("long", k.CONTENT_OFFSET),
            "content_size_in_bytes": store.array("long", k.CONTENT_SIZE),
            "status": store.array("int", k.STATUS),
            "manifest_path": self._paths.take(pa.array(manifests)),
            **self._inherited(store, manifests),
            **{name: self._map(store, metric) for metric, name in enumerate(_MAPS)},
        }
        arrays = [columns[name] for name in self.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _inherited(self, store: RowStore, manifests: Words) -> dict[str, pa.Array]:
        snapshot_ids, lengths = store.slot(k.SNAPSHOT_ID)
        null = lengths < 0
        snapshot_ids = np.where(null, self._snapshot_ids[manifests], snapshot_ids)
        lengths = np.where(null, self._snapshot_lengths[manifests], lengths)
        out = {"snapshot_id": pa.array(snapshot_ids, mask=lengths < 0)}
        # Sequence numbers are inherited by added files only; v1 manifests have none, theirs are 0.
        sequence_numbers = self._sequence_numbers[manifests]
        inherits = (store.slot(k.STATUS)[0] == _ADDED) | (sequence_numbers == 0)
        slots = {"sequence_number": k.SEQUENCE_NUMBER, "file_sequence_number": k.FILE_SEQUENCE_NUMBER}
        for name, slot in slots.items():
            numbers, lengths = store.slot(slot)
            null = lengths < 0
            out[name] = pa.array(np.where(null, sequence_numbers, numbers), mask=null & ~inherits)
        return out

    def _map(self, store: RowStore, metric: int) -> pa.Array:
        count = len(store)
        nulls = store.slot(metric)[1] < 0
        kind = COUNTS if metric < 4 else BOUNDS
        if not len(self._field_ids):
            offsets = pa.array(np.zeros(count + 1, np.int32), mask=np.append(nulls, False))
            empty = (pa.array([], kind.key_type), pa.array([], kind.item_type))
            return pa.MapArray.from_arrays(offsets, *empty, type=kind)
        sizes = store.rows.sizes[:count, metric, :]
        present = sizes >= 0
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(present.sum(axis=1), out=offsets[1:])
        keys = pa.array(np.broadcast_to(self._field_ids, present.shape)[present])
        values = store.rows.values[:count, metric, :][present]
        items = pa.array(values) if metric < 4 else build_binary(pa.binary(), values, sizes[present], store.rows.arena)
        places = pa.array(offsets, mask=np.append(nulls, False))
        return pa.MapArray.from_arrays(places, keys, items, type=kind)


def build_contents(store: RowStore) -> pa.Array:
    """Return the content of all rows as text."""
    return pa.array(_CONTENTS, pa.string()).take(pa.array(store.slot(k.CONTENT)[0]))
