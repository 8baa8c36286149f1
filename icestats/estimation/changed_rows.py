"""How many rows a table may have got and lost since an earlier snapshot, as its manifests prove.

Data files and delete files that only one of both snapshots has are compared. A commit of the operation `replace`, such
as a compaction, changes no row; it counts only where it may move rows from one partition spec to another, or to the
partition of a spec that today's writers put them into.
Source: Iceberg spec, "Snapshots", "Row-level Deletes", "Scan Planning".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestats.answers.arrays import combine_chunks, to_numpy
from icestats.answers.text import counted
from icestats.estimation.row_level_deletes import find_named_files
from icestats.iceberg.metadata import Snapshot
from icestats.iceberg.value_order import Floats, Mask
from icestats.read.manifests.manifest_list import read_manifest_list
from icestats.read.manifests.manifests import manifests_to_read, read_file_metrics
from icestats.snapshot.evaluation.partition_groups import build_partition_keys
from icestats.snapshot.evaluation.partition_projection import is_disputed
from icestats.snapshot.pruning.delete_index import PATH_FIELD_ID
from icestats.snapshot.snapshot_reader import SnapshotReader
from icestats.stats.table_statistics import PartitionKey

_MOST_REPLACES = 100
_IDENTITY = ("content", "file_path", "sequence_number", "referenced_data_file", "record_count")


@dataclass(frozen=True)
class ChangedRows:
    """Rows that are live in only one of two snapshots, at most. Infinite: any number."""

    reader: SnapshotReader
    files: pa.Table
    """One row a file that only one of the snapshots has: `content`, `spec_id`, `partition`."""
    added: Floats
    """By file: rows that it may have added."""
    removed: Floats
    is_rewritten: bool
    """Whether a `replace` is among the commits: rows that are not where today's writers put them may have moved."""

    @property
    def total(self) -> tuple[float, float]:
        """Rows added and removed in the whole table."""
        return float(self.added.sum()), float(self.removed.sum())

    def of_partition(self, key: PartitionKey | None) -> tuple[float, float]:
        """Rows added and removed in one partition."""
        if self.is_rewritten and key is not None and is_disputed(key, self.reader.source.metadata.specs[key.spec_id]):
            return math.inf, math.inf
        if key is None or None in self._by_partition:
            return self.total
        (added, removed), (added_anywhere, removed_anywhere) = self._by_partition.get(key, (0.0, 0.0)), self._anywhere
        return added + added_anywhere, removed + removed_anywhere

    @cached_property
    def _is_anywhere(self) -> Mask:
        """Which files are about all partitions: equality deletes of a spec without partition fields."""
        specs = self.reader.source.metadata.specs
        without = [spec_id for spec_id, spec in specs.items() if not spec.is_partitioned]
        found: Mask = to_numpy(pc.equal(self.files["content"], "equality_deletes"))
        return found & np.isin(to_numpy(self.files["spec_id"]), without)

    @cached_property
    def _anywhere(self) -> tuple[float, float]:
        return float(self.added[self._is_anywhere].sum()), float(self.removed[self._is_anywhere].sum())

    @cached_property
    def _by_partition(self) -> Mapping[PartitionKey | None, tuple[float, float]]:
        own, reader = np.flatnonzero(~self._is_anywhere), self.reader
        files = self.files.take(pa.array(own))
        keys = build_partition_keys(files, reader.source.metadata, reader.schema)
        found: dict[PartitionKey | None, tuple[float, float]] = {}
        for key, added, removed in zip(keys, self.added[own].tolist(), self.removed[own].tolist(), strict=True):
            before = found.get(key, (0.0, 0.0))
            found[key] = before[0] + added, before[1] + removed
        return found


@dataclass(frozen=True, slots=True)
class SketchAge:
    """Which snapshot a sketch describes, and what has changed since."""

    snapshot_id: int
    commits: int
    """From that snapshot to the one that is asked about."""
    added: float
    """Rows that have come since, at most; infinite: unknown."""
    removed: float
    """Rows that have gone since, at most."""

    def describe(self, column: str) -> tuple[str, ...]:
        """Return what a reader of estimates must know of a column's sketch; nothing of one of this snapshot."""
        if not self.commits:
            return ()
        changed = " and ".join(
            f"{'any number of' if math.isinf(rows) else f'up to {rows:,.0f}'} rows {how}"
            for rows, how in ((self.added, "added"), (self.removed, "removed"))
        )
        return (
            f"the sketch of {column} is of the earlier snapshot {self.snapshot_id}, {counted(self.commits, 'commit')} "
            f"behind ({changed} since); its shares are taken for today's",
        )


def find_changed_rows(reader: SnapshotReader, snapshot_id: int) -> ChangedRows:
    """Find how many rows have come and gone since an ancestor of a snapshot.

    Parameters
    ----------
    reader : SnapshotReader
        The later snapshot.
    snapshot_id : int
        The ancestor.

    Raises
    ------
    MetadataError
        A manifest list or a manifest of either is missing or damaged.
    """
    chain = _find_chain(reader, snapshot_id)
    compared = [_compare(reader, *lists) for lists in _find_steps(reader, chain)]
    files, added, removed = zip(*compared, strict=True)
    kept = [one.select(["content", "spec_id", "partition"]) for one in files]
    is_rewritten = any(one.operation == "replace" for one in chain[1:])
    return ChangedRows(reader, pa.concat_tables(kept), np.concatenate(added), np.concatenate(removed), is_rewritten)


def _find_chain(reader: SnapshotReader, snapshot_id: int) -> list[Snapshot]:
    chain: list[Snapshot] = []
    for ancestor in () if reader.snapshot is None else reader.source.metadata.ancestors(reader.snapshot):
        chain.append(ancestor)
        if ancestor.snapshot_id == snapshot_id:
            break
    return chain[::-1]


def _find_steps(reader: SnapshotReader, chain: Sequence[Snapshot]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the manifest lists to compare, each pair before and behind commits that may have changed rows."""
    storage = reader.source.storage
    start, behind = read_manifest_list(storage, chain[0]), 0
    if sum(one.operation == "replace" for one in chain[1:]) > _MOST_REPLACES:
        yield start, reader.manifest_files
        return
    for place, (parent, child) in enumerate(pairwise(chain)):
        if child.operation != "replace":
            continue
        before, after = (read_manifest_list(storage, one) for one in (parent, child))
        if place > behind:
            yield start, before
        if len(pc.unique(_only_in_one(before, after)["partition_spec_id"])) > 1:
            yield before, after
        start, behind = after, place + 1
    yield start, reader.manifest_files


def _only_in_one(before: pa.Table, after: pa.Table) -> pa.Table:
    gone, came = (
        own.filter(pc.invert(pc.is_in(own["manifest_path"], other["manifest_path"])))
        for own, other in ((before, after), (after, before))
    )
    signs = [-1] * len(gone) + [1] * len(came)
    return pa.concat_tables([gone, came]).append_column("sign", pa.array(signs, pa.int64()))


def _compare(reader: SnapshotReader, before: pa.Table, after: pa.Table) -> tuple[pa.Table, Floats, Floats]:
    """Return the files that only one of two manifest lists has, and the rows that each may have added and removed."""
    manifests = _only_in_one(before, after)
    source = reader.source
    files = read_file_metrics(manifests_to_read(manifests), source.metadata, source.storage, [PATH_FIELD_ID])
    signed = files.select(_IDENTITY).append_column("sign", manifests["sign"].take(files["manifest_index"]))
    signed = signed.append_column("row", pa.array(np.arange(len(files))))
    # Deletes are about files that are not newer: the same file with another sequence number has other live rows.
    counted = signed.group_by(list(_IDENTITY)).aggregate([("sign", "sum"), ("row", "min")])
    counted = counted.filter(pc.not_equal(counted["sign_sum"], 0))
    files, times = files.take(counted["row_min"]), to_numpy(counted["sign_sum"]).astype(np.float64)
    rows = to_numpy(files["record_count"]).astype(np.float64) * np.abs(times)
    is_data, is_equality = (to_numpy(pc.equal(files["content"], kind)) for kind in ("data", "equality_deletes"))
    rows[is_equality & (rows > 0)] = np.inf
    came, gone = np.where(times > 0, rows, 0.0), np.where(times < 0, rows, 0.0)
    # A delete whose data file has gone too brings no row back.
    gone_files = combine_chunks(files["file_path"]).cast(pa.binary()).filter(pa.array(is_data & (times < 0)))
    is_idle = ~is_data & to_numpy(pc.is_in(find_named_files(files), gone_files))
    return files, np.where(is_data, came, np.where(is_idle, 0.0, gone)), np.where(is_data, gone, came)
