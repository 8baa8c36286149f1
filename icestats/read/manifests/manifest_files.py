"""Manifests -> rows of live files: with all their fields, or with what planning needs of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.schemas import BOUNDS, COUNTS, PLANNING_STATISTICS
from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.metadata import TableMetadata
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.storage import FileReader
from icestats.read.avro.avro_file import read_batches
from icestats.read.avro.block_inflater import BlockInflater
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Words
from icestats.read.manifests.group_tables import struct_array
from icestats.read.manifests.manifest_pool import ManifestRoom, ManifestToRead, Progress, read_manifest, run_tasks
from icestats.read.manifests.manifest_programs import ManifestPrograms
from icestats.read.manifests.row_store import RowStore

_TASK_SIZE = 8 << 20
"""Manifests are read one after the other, into the same arrays, up to this many bytes of them."""
_ARENA_SIZE = 32 << 20
"""So many bytes of paths, bounds and the like become Arrow arrays before more are captured."""
MOST_CELLS = 1 << 29
"""Files by partition fields: each has all of them, whatever its spec."""
_CONTENTS = ("data", "position_deletes", "equality_deletes")
_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_METRICS = {name.removesuffix("s"): metric for metric, name in enumerate(_MAPS)}
_PATHS = {"file_path": k.FILE_PATH, "file_format": k.FILE_FORMAT, "referenced_data_file": k.REFERENCED_DATA_FILE}
_FIRST_BOUND = _MAPS.index("lower_bounds")
_ADDED = 1
_INT32, _INT64 = pa.int32(), pa.int64()


class _ManifestFiles(ABC):
    """Reads manifests into a table of their live files.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        What to read.
    metadata : TableMetadata
        The table's partition specs.
    columns : sequence of PartitionColumn
        Of `find_partition_columns`, with all types known.
    field_ids : sequence of int
        The columns whose metrics are wanted.
    schema : pyarrow.Schema
        Of the table.
    with_paths : bool
        Whether paths, offsets and the like are read.
    """

    def __init__(
        self,
        manifests: Sequence[ManifestToRead],
        metadata: TableMetadata,
        columns: Sequence[PartitionColumn],
        field_ids: Sequence[int],
        schema: pa.Schema,
        *,
        with_paths: bool,
    ) -> None:
        self._manifests = manifests
        self._columns = columns
        self._field_ids = field_ids
        self._schema = schema
        self._with_paths = with_paths
        self._cell_count = 0
        self._room = ManifestRoom(manifests)
        self._programs = ManifestPrograms(metadata.specs, columns, details=True, with_paths=with_paths)
        self._stores: SimpleQueue[tuple[RowStore, BlockInflater]] = SimpleQueue()
        self._paths = pa.array([m.path for m in manifests], pa.string())
        self._spec_ids = np.array([m.spec_id for m in manifests], np.int32)
        self._sequence_numbers = np.array([m.sequence_number for m in manifests], np.int64)
        self._snapshot_ids = np.array([m.added_snapshot_id or 0 for m in manifests], np.int64)
        self._has_snapshot_id = np.array([m.added_snapshot_id is not None for m in manifests], np.bool_)

    def run(self, storage: FileReader, threads: int, progress: Progress | None) -> pa.Table:
        """Read all manifests."""
        types = [column.type for column in self._columns]
        for _ in range(threads):
            self._stores.put((RowStore(types, self._field_ids), BlockInflater()))

        def read(task: Sequence[int]) -> list[pa.RecordBatch]:
            return self._read(storage, task)

        results = run_tasks(self._tasks(), read, self._manifests, threads, progress)
        return pa.Table.from_batches([batch for batches in results for batch in batches], self._schema)

    def _tasks(self) -> Iterator[list[int]]:
        task: list[int] = []
        size = 0
        for index, manifest in enumerate(self._manifests):
            task.append(index)
            size += max(manifest.length, 1 << 12)
            if size >= _TASK_SIZE or index + 1 == len(self._manifests):
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
                self._room.take(batch, manifest.path)
                if store.arena_used > _ARENA_SIZE:
                    yield self._take(store)
                store.frame.state[:] = 0
                while not store.capture(batch, program.code, index, manifest.path):
                    yield self._take(store)

    def _take(self, store: RowStore) -> pa.RecordBatch:
        manifests = store.slot(k.MANIFEST)[0]
        self._cell_count += len(store) * len(self._columns)
        if self._cell_count > MOST_CELLS:
            raise UnsupportedError(f"files by {len(self._columns):,} partition fields are more than {MOST_CELLS:,}")
        try:
            columns = self._build_common(store, manifests) | self._build_columns(store, manifests)
        except ValueError as error:
            paths = sorted({self._manifests[i].path for i in manifests.tolist()})
            where = paths[0] if len(paths) == 1 else f"{paths[0]} or one of {len(paths) - 1} other manifests"
            raise MetadataError(str(error), where) from error
        arrays = [_fit(columns[field.name], field.type) for field in self._schema]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._room.keep(store.arena_used, batch.nbytes, self._manifests[int(manifests[0])].path)
        store.clear()
        return batch

    def _build_common(self, store: RowStore, manifests: Words) -> dict[str, pa.Array]:
        if self._with_paths and (store.slot(k.FILE_PATH)[1] < 0).any():
            raise ValueError("the path of a file is null")
        # Sequence numbers are inherited by added files only; v1 manifests have none, theirs are 0.
        inherited = self._sequence_numbers[manifests]
        inherits = (store.slot(k.STATUS)[0] == _ADDED) | (inherited == 0)
        numbers = {"sequence_number": k.SEQUENCE_NUMBER, "file_sequence_number": k.FILE_SEQUENCE_NUMBER}
        return {
            "content": pa.array(_CONTENTS, pa.string()).take(pa.array(store.slot(k.CONTENT)[0])),
            "spec_id": pa.array(self._spec_ids[manifests]),
            "partition": struct_array(self._columns, store.partition_values(), len(store)),
            "record_count": store.array("long", k.RECORD_COUNT),
            "file_size_in_bytes": store.array("long", k.FILE_SIZE),
            **{name: _inherit(store, slot, inherited, inherits) for name, slot in numbers.items()},
        }

    @abstractmethod
    def _build_columns(self, store: RowStore, manifests: Words) -> dict[str, pa.Array]:
        """Build the columns that are not common, for the rows of a store, each of the manifest of that number."""


class AllFields(_ManifestFiles):
    """Reads manifests into `schemas.files_schema`; see `read_files`."""

    def _build_columns(self, store: RowStore, manifests: Words) -> dict[str, pa.Array]:
        known = self._has_snapshot_id[manifests]
        return {
            "file_path": store.array("string", k.FILE_PATH),
            "file_format": pc.utf8_upper(store.array("string", k.FILE_FORMAT)),
            "key_metadata": store.array("binary", k.KEY_METADATA),
            "split_offsets": store.lists(_INT64, k.SPLIT_OFFSETS),
            "equality_ids": store.lists(_INT32, k.EQUALITY_IDS),
            "sort_order_id": store.array("int", k.SORT_ORDER_ID),
            "first_row_id": store.array("long", k.FIRST_ROW_ID),
            "referenced_data_file": store.array("string", k.REFERENCED_DATA_FILE),
            "content_offset": store.array("long", k.CONTENT_OFFSET),
            "content_size_in_bytes": store.array("long", k.CONTENT_SIZE),
            "status": store.array("int", k.STATUS),
            "snapshot_id": _inherit(store, k.SNAPSHOT_ID, self._snapshot_ids[manifests], known),
            "manifest_path": self._paths.take(pa.array(manifests)),
            **{name: self._build_map(store, metric) for metric, name in enumerate(_MAPS)},
        }

    def _build_map(self, store: RowStore, metric: int) -> pa.Array:
        count = len(store)
        nulls = store.slot(metric)[1] < 0
        kind = COUNTS if metric < _FIRST_BOUND else BOUNDS
        sizes = store.rows.sizes[:count, metric, :]
        present = sizes >= 0
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(present.sum(axis=1), out=offsets[1:])
        keys = pa.array(np.broadcast_to(np.array(self._field_ids, np.int32), present.shape)[present])
        values = store.rows.values[:count, metric, :][present]
        items = pa.array(values) if metric < _FIRST_BOUND else store.binary(pa.binary(), values, sizes[present])
        places = pa.array(offsets, mask=np.append(nulls, False))
        return pa.MapArray.from_arrays(places, keys, items, type=kind)


class PlanningFields(_ManifestFiles):
    """Reads manifests into `file_metrics_schema`; see `read_file_metrics`."""

    def _build_columns(self, store: RowStore, manifests: Words) -> dict[str, pa.Array]:
        no_path = pa.nulls(len(store), pa.string())
        return {
            "manifest_index": pa.array(manifests).cast(_INT32),
            **{
                name: store.array("string", slot) if self._with_paths else no_path
                for name, slot in _PATHS.items()
                if name in self._schema.names
            },
            **(store.split_paths(k.FILE_PATH) if "folder" in self._schema.names else {}),
            **{
                f"{name}_{field_id}": _build_metric(store, _METRICS[name], place)
                for place, field_id in enumerate(self._field_ids)
                for name in PLANNING_STATISTICS
            },
        }


def _build_metric(store: RowStore, metric: int, place: int) -> pa.Array:
    count = len(store)
    values = store.rows.values[:count, metric, place].copy()
    sizes = store.rows.sizes[:count, metric, place].copy()
    if metric < _FIRST_BOUND:
        return pa.array(values, mask=sizes < 0)
    return store.binary(pa.binary(), values, sizes)


def _fit(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.dictionary_encode(array) if pa.types.is_dictionary(kind) else array


def _inherit(store: RowStore, slot: int, inherited: Words, inherits: np.ndarray) -> pa.Array:
    """Return a slot of all rows, where it is null with what the manifest has, as far as the row inherits that."""
    numbers, lengths = store.slot(slot)
    nulls = lengths < 0
    return pa.array(np.where(nulls, inherited, numbers), mask=nulls & ~inherits)
