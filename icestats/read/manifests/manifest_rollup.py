"""Manifests -> accumulators, several threads at a time, each with a manifest of its own.

One thread adds to the table's accumulators, the others to their own, which are merged into the table's when they are
full, and at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from queue import SimpleQueue

import numpy as np

from icestats.errors import MetadataError, UnsupportedError
from icestats.iceberg.metadata import Field, TableMetadata
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.storage import FileReader
from icestats.read.avro.avro_file import Batch, read_batches
from icestats.read.avro.block_inflater import BlockInflater
from icestats.read.avro.decoding_program import ERRORS, kernel_error
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Frame, Job
from icestats.read.manifests.group_store import GroupStore, build_frame, build_kinds, manifest_tag, partition_tag
from icestats.read.manifests.manifest_pool import ManifestRoom, ManifestToRead, Progress, read_manifest, run_tasks
from icestats.read.manifests.manifest_programs import ManifestProgram, ManifestPrograms

_TASKS = 160
"""How many portions manifests are handed out in, at most; a manifest at a time where there are fewer."""
MOST_CELLS = 1 << 38
"""Entries by columns and partition fields: a second takes some 2**30 of them, and an entry may be a few bits."""


class ManifestRollup:
    """Rolls manifests up into groups.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        What to read.
    metadata : TableMetadata
        The partition specs, and the times of snapshots.
    columns : sequence of Field
        The columns to roll up.
    partition_columns : sequence of PartitionColumn
        Of `find_partition_columns`, with all types known.
    by_partition : bool
        Whether to roll up by partition too.
    statuses : int
        Which entries count: `kernel.LIVE` or `DELETED`.
    """

    def __init__(
        self,
        manifests: Sequence[ManifestToRead],
        metadata: TableMetadata,
        columns: Sequence[Field],
        partition_columns: Sequence[PartitionColumn],
        *,
        by_partition: bool,
        statuses: int,
    ) -> None:
        self.programs = ManifestPrograms(metadata.specs, partition_columns, details=False)
        self._room = ManifestRoom(manifests)
        self.store = GroupStore.whole(build_kinds(columns), len(manifests), self._room.most_group_bytes)
        self._manifests = manifests
        self._statuses = statuses
        self._field_ids = [column.field_id for column in columns]
        self._slot_count = k.PARTITION_FIELDS + len(partition_columns)
        self._by_partition = by_partition
        self._cell_count = 0
        times = sorted((snapshot.snapshot_id, snapshot.timestamp_ms) for snapshot in metadata.snapshots.values())
        self._snapshot_ids = np.array([snapshot_id for snapshot_id, _ in times], np.int64)
        self._timestamps_ms = np.array([ms for _, ms in times], np.int64)
        self._lock = threading.Lock()
        self._decoders: SimpleQueue[tuple[GroupStore, Frame, BlockInflater]] = SimpleQueue()

    def run(self, storage: FileReader, threads: int, progress: Progress | None) -> None:
        """Read and roll up all manifests."""
        self.store.make_groups([manifest_tag(index) for index in range(len(self._manifests))])
        own = [GroupStore.local(self.store.groups.kinds) for _ in range(threads - 1)]
        for store in (self.store, *own):
            self._decoders.put((store, build_frame(self._field_ids, self._slot_count), BlockInflater()))

        def read(task: Sequence[int]) -> None:
            for index in task:
                self._read(storage, index)

        step = 1 + len(self._manifests) // _TASKS
        tasks = [range(i, min(i + step, len(self._manifests))) for i in range(0, len(self._manifests), step)]
        run_tasks(tasks, read, self._manifests, threads, progress)
        for store in own:
            self._absorb(store, "the table's manifests")

    def _read(self, storage: FileReader, index: int) -> None:
        manifest = self._manifests[index]
        data = read_manifest(storage, manifest)
        header, program = self.programs.read(data, manifest.path, manifest.spec_id)
        store, frame, inflater = self._decoders.get()
        try:
            for batch in read_batches(data, header, inflater):
                self._room.take(batch, manifest.path)
                self._add(batch, program, store, frame, index)
        finally:
            self._decoders.put((store, frame, inflater))

    def _add(self, batch: Batch, program: ManifestProgram, store: GroupStore, frame: Frame, index: int) -> None:
        manifest = self._manifests[index]
        job = Job(
            partition_tag=partition_tag(program.variant) if self._by_partition else -1,
            added_snapshot_id=manifest.added_snapshot_id or 0,
            has_snapshot_id=manifest.added_snapshot_id is not None,
            snapshot_ids=self._snapshot_ids,
            timestamps_ms=self._timestamps_ms,
            statuses=self._statuses,
        )
        self._cell_count += int(batch.blocks[:, 2].sum()) * (len(self._field_ids) + self._slot_count)
        if self._cell_count > MOST_CELLS:
            raise UnsupportedError(
                f"{manifest.path}: the entries of manifests by {len(self._field_ids):,} columns and "
                f"{self._slot_count - k.PARTITION_FIELDS:,} partition fields are more than {MOST_CELLS:,}"
            )
        size, is_shared = len(batch.data), store is self.store
        if not is_shared:
            store.reserve_bytes(size)
        frame.state[:] = 0
        while True:
            with self._lock if is_shared else nullcontext():
                result = k.roll_up_blocks(
                    batch.data, batch.blocks, program.code, frame, store.groups, job, manifest_tag(index)
                )
                if result == k.FULL and is_shared:
                    store.reserve(1, size, size)
            if result == k.DONE:
                break
            if result == k.FAILED:
                raise kernel_error(frame, manifest.path, batch)
            if not is_shared:
                self._absorb(store, manifest.path)
                store.clear()
        if store.has_more_text(self._room.most_text_bytes):
            raise self._room.refusal(manifest.path, "have too long bounds or partitions")

    def _absorb(self, store: GroupStore, path: str) -> None:
        with self._lock:
            fits = self.store.absorb(store)
            is_long = self.store.has_more_text(self._room.most_text_bytes)
        if is_long:
            raise self._room.refusal(path, "have too long bounds or partitions")
        if not fits:
            raise MetadataError(ERRORS[k.OVERFLOW], path)
