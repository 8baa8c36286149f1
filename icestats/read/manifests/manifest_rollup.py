"""Manifests -> accumulators: one thread a manifest.

One decoder adds to the table's accumulators, the others to their own, which are merged into the table's when they are
full and at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from queue import SimpleQueue

import numpy as np

from icestats.errors import MetadataError
from icestats.iceberg.metadata import Field, PartitionSpec
from icestats.iceberg.partition_columns import PartitionColumn
from icestats.iceberg.storage import FileReader
from icestats.read.avro.avro_file import Batch, read_batches
from icestats.read.avro.block_inflater import BlockInflater
from icestats.read.avro.decoding_program import ERRORS, kernel_error
from icestats.read.kernel import kernel as k
from icestats.read.kernel.kernel import Frame, Job
from icestats.read.manifests.group_store import GroupStore, build_frame, build_kinds
from icestats.read.manifests.manifest_pool import ManifestToRead, Progress, read_manifest, run_tasks
from icestats.read.manifests.manifest_programs import ManifestProgram, ManifestPrograms

TASKS = 160
"""Manifests are handed to threads one at a time, or in so many parts where there are more."""
_NO_BYTES = np.zeros(0, np.uint8)


def manifest_tag(index: int) -> int:
    """Return the tag of a manifest's group."""
    return 2 * index + 1


def partition_tag(variant: int) -> int:
    """Return the tag of the groups of a layout of partition values; their keys are these values."""
    return 2 * variant


class ManifestRollup:
    """Rolls manifests up into groups.

    Parameters
    ----------
    manifests : sequence of ManifestToRead
        What to read.
    columns : sequence of Field
        The columns to roll up.
    specs : mapping of int to PartitionSpec
        The table's partition specs.
    partition_columns : sequence of PartitionColumn
        Of `find_partition_columns`, with all types known.
    timestamps_ms : mapping of int to int
        Snapshot id to its time in milliseconds since 1970.
    by_partition : bool
        Whether to roll up by partition too.
    statuses : int
        Which entries count: `kernel.LIVE` or `DELETED`.
    """

    def __init__(
        self,
        manifests: Sequence[ManifestToRead],
        columns: Sequence[Field],
        specs: Mapping[int, PartitionSpec],
        partition_columns: Sequence[PartitionColumn],
        timestamps_ms: Mapping[int, int],
        *,
        by_partition: bool,
        statuses: int = k.LIVE,
    ) -> None:
        self.manifests = manifests
        self._statuses = statuses
        self.programs = ManifestPrograms(specs, partition_columns, details=False)
        self.kinds = build_kinds(columns)
        self.store = GroupStore.whole(self.kinds, len(manifests))
        self._field_ids = [column.field_id for column in columns]
        self._slot_count = k.PARTITION_FIELDS + len(partition_columns)
        self._by_partition = by_partition
        ids = sorted(timestamps_ms)
        self._snapshot_ids = np.array(ids, np.int64)
        self._timestamps_ms = np.array([timestamps_ms[i] for i in ids], np.int64)
        self._lock = threading.Lock()
        self._decoders: SimpleQueue[tuple[GroupStore, Frame, BlockInflater]] = SimpleQueue()

    def run(self, storage: FileReader, threads: int, progress: Progress | None) -> None:
        """Read and roll up all manifests."""
        k.make_groups(
            self.store.groups, manifest_tag(0), manifest_tag(1) - manifest_tag(0), len(self.manifests), _NO_BYTES
        )
        own = [GroupStore.local(self.kinds) for _ in range(threads - 1)]
        for store in (self.store, *own):
            self._decoders.put((store, self._frame(), BlockInflater()))

        def read(task: Sequence[int]) -> None:
            for index in task:
                self._read(storage, index)

        step = 1 + len(self.manifests) // TASKS
        tasks = [range(i, min(i + step, len(self.manifests))) for i in range(0, len(self.manifests), step)]
        run_tasks(tasks, read, self.manifests, threads, progress)
        for store in own:
            self._absorb(store, "the table's manifests")

    def _frame(self) -> Frame:
        return build_frame(self._field_ids, self._slot_count)

    def _read(self, storage: FileReader, index: int) -> None:
        manifest = self.manifests[index]
        data = read_manifest(storage, manifest)
        header, program = self.programs.read(data, manifest.path, manifest.spec_id)
        store, frame, inflater = self._decoders.get()
        try:
            for batch in read_batches(data, header, inflater):
                self._add(batch, program, store, frame, index)
        finally:
            self._decoders.put((store, frame, inflater))

    def _add(self, batch: Batch, program: ManifestProgram, store: GroupStore, frame: Frame, index: int) -> None:
        manifest = self.manifests[index]
        job = Job(
            partition_tag=partition_tag(program.variant) if self._by_partition else -1,
            added_snapshot_id=manifest.added_snapshot_id or 0,
            has_snapshot_id=manifest.added_snapshot_id is not None,
            snapshot_ids=self._snapshot_ids,
            timestamps_ms=self._timestamps_ms,
            statuses=self._statuses,
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
                return
            if result == k.FAILED:
                raise kernel_error(frame, manifest.path, batch)
            if not is_shared:
                self._absorb(store, manifest.path)
                store.clear()

    def _absorb(self, store: GroupStore, path: str) -> None:
        with self._lock:
            fits = self.store.absorb(store)
        if not fits:
            raise MetadataError(ERRORS[k.OVERFLOW], path)
