"""What must hold of the table, whatever has happened: each rule with the words in which its violation is reported."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyiceberg.manifest import ManifestEntryStatus

import icestats
from icestats.errors import CommitError, IcestatsError
from icestats.iceberg.types import decode_value, encode_value
from icestats.read.puffin.puffin import read_blob, read_puffin_footer
from icestats.read.puffin.statistics_files import COLUMN_STATISTICS, FREQUENT_ITEMS, KLL, MANIFEST_STATISTICS, THETA
from icestats.read.rollups.manifest_statistics import ManifestStatistics
from icestats.stats.frequent_items import FrequentValues, read_frequent_values
from icestats.stats.kll import KllSketch
from icestats.stats.table_statistics import read_column_statistics
from icestats.stats.theta import ThetaSketch
from tests.simulation.model import Rows, Version
from tests.simulation.operations import NAME, ORPHANS, READ, REMOVAL, ROWS, STATISTICS, Operation
from tests.simulation.storage import local_path
from tests.simulation.turns import DAY_MS

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

COLUMNS = {1: "id", 2: "part", 3: "v"}


class Files:
    """What files hold, each read once: they never change."""

    def __init__(self, io: Any) -> None:
        self._io = io
        self._rows: dict[str, Rows] = {}
        self._entries: dict[str, list[Any]] = {}

    def manifests(self, metadata: Any, snapshot_id: int) -> dict[str, list[Any]]:
        """Return the live entries of a snapshot's manifests, by path."""
        found = {}
        for manifest in metadata.snapshot_by_id(snapshot_id).manifests(self._io):
            path = manifest.manifest_path
            if path not in self._entries:
                entries = manifest.fetch_manifest_entry(self._io, discard_deleted=False)
                self._entries[path] = [e.data_file for e in entries if e.status != ManifestEntryStatus.DELETED]
            found[path] = self._entries[path]
        return found

    def rows_of(self, metadata: Any, snapshot_id: int) -> Rows:
        """Return the rows of a snapshot."""
        found = self.manifests(metadata, snapshot_id)
        return tuple(row for files in found.values() for file in files for row in self.rows(file.file_path))

    def rows(self, path: str) -> Rows:
        """Return the rows of a data file."""
        if path not in self._rows:
            table = pq.read_table(local_path(path), partitioning=None, use_threads=False)
            self._rows[path] = tuple(zip(*(table[name].to_pylist() for name in COLUMNS.values()), strict=True))
        return self._rows[path]


def check_commit(
    sim: Simulation, operation: Operation | None, before: Version, after: Version, made: list[int]
) -> None:
    """Check a new version of the metadata, made by an operation of an actor."""
    log = after.metadata.metadata_log
    if not log or log[-1].metadata_file != before.location:
        sim.violated(f"lost update: {after.location} does not follow {before.location}")
    if operation is not None:
        if operation.kind in (READ, ORPHANS):
            sim.violated(f"{operation.name} has changed the table")
        for lost in _find_lost(operation, before, after):
            sim.violated(f"lost by {operation.name}: {lost}")
    for snapshot_id in made:
        _check_rows(sim, after, snapshot_id)
    _check_new_entries(sim, operation, before, after)


def check_base(sim: Simulation, operation: Operation, base: Any, before: Any, after: Any) -> None:
    """Check that the kit has replaced no statistics but those that it had looked at."""
    for kind in ("statistics", "partition_statistics"):
        looked_at, old, new = (
            {e.snapshot_id: e.statistics_path for e in getattr(m, kind)} for m in (base, before, after)
        )
        for key in old.keys() | new.keys():
            if old.get(key) != new.get(key) and looked_at.get(key) != old.get(key):
                sim.violated(f"{operation.name} has replaced the {kind} of {key} unseen: {old.get(key)}")


def _find_lost(operation: Operation, before: Version, after: Version) -> Iterator[str]:
    """Say what was in the metadata, is no more, and was not this operation's to change."""
    mine = operation.may_change
    pairs: dict[str, tuple[dict[Any, Any], dict[Any, Any]]] = {
        "snapshot": tuple({s.snapshot_id: s.manifest_list for s in v.metadata.snapshots} for v in (before, after)),  # type: ignore[dict-item]
        "property": tuple(dict(v.metadata.properties) for v in (before, after)),  # type: ignore[dict-item]
        "statistics": tuple({s.snapshot_id: s for s in v.metadata.statistics} for v in (before, after)),  # type: ignore[dict-item]
        "partition statistics": tuple(
            {s.snapshot_id: s for s in v.metadata.partition_statistics} for v in (before, after)
        ),  # type: ignore[dict-item]
    }
    for what, (old, new) in pairs.items():
        for key, value in old.items():
            if key not in mine and new.get(key) != value and not (operation.kind == ROWS and _own(operation, key, new)):
                yield f"{what} {key}"
    if operation.kind != ROWS and after.metadata.current_snapshot_id != before.metadata.current_snapshot_id:
        yield f"the current snapshot {before.metadata.current_snapshot_id}"


def _own(operation: Operation, key: Any, new: dict[Any, Any]) -> bool:
    """Whether it is an entry of the snapshot that the operation itself has made."""
    return any(key == version.metadata.current_snapshot_id for version in operation.commits) and key in new


def _check_rows(sim: Simulation, version: Version, snapshot_id: int) -> None:
    expected, counted = (
        Counter(rows) for rows in (sim.model.rows[snapshot_id], sim.files.rows_of(version.metadata, snapshot_id))
    )
    if expected != counted:
        sim.violated(f"rows of {snapshot_id}: missing {list(expected - counted)}, too many {list(counted - expected)}")


def _check_new_entries(sim: Simulation, operation: Operation | None, before: Version, after: Version) -> None:
    known = {s.snapshot_id for s in after.metadata.snapshots}
    for kind in ("statistics", "partition_statistics"):
        old = {entry.snapshot_id: entry for entry in getattr(before.metadata, kind)}
        for entry in getattr(after.metadata, kind):
            if old.get(entry.snapshot_id) == entry:
                continue
            if entry.snapshot_id not in known:
                sim.violated(f"{kind} of the unknown snapshot {entry.snapshot_id} are registered")
                continue
            path = local_path(entry.statistics_path)
            if not path.exists():
                sim.violated(f"the registered {entry.statistics_path} does not exist")
            elif path.stat().st_size != entry.file_size_in_bytes:
                sim.violated(f"the registered {entry.statistics_path} is cut")
            elif kind == "statistics":
                _check_puffin(sim, after, entry)
                if operation is not None and operation.kind in (STATISTICS, ROWS):
                    _check_carried(sim, old.get(entry.snapshot_id), entry)
            else:
                _check_partitions(sim, after, entry.snapshot_id)


def _check_puffin(sim: Simulation, version: Version, entry: Any) -> None:
    """Check the figures of a Puffin file with the rows of the snapshots that its blobs are of."""
    path, storage = entry.statistics_path, sim.storage
    try:
        footer = read_puffin_footer(storage, path)
        for blob in footer.blobs:
            if blob.snapshot_id not in sim.model.rows:
                sim.violated(f"{path} has a blob of the unknown snapshot {blob.snapshot_id}")
                continue
            if blob.sequence_number != sim.model.sequence_numbers[blob.snapshot_id]:
                sim.violated(f"{path}: a blob has the sequence number {blob.sequence_number}")
            if blob.properties.get("by") is None:
                if len(blob.field_ids) != 1 and not blob.is_hidden:
                    sim.violated(f"{path}: engines see {blob.label}")
                wrong = _find_wrong(sim, version, blob, read_blob(storage, blob, path))
                if wrong:
                    sim.violated(f"wrong figure in {path}: {blob.type} of {blob.field_ids}: {wrong}")
    except IcestatsError as error:
        sim.violated(f"a registered file cannot be read: {error}")
        return
    stored = {(b.type, b.field_ids, b.snapshot_id): b.properties.get("ndv") for b in footer.blobs}
    for listed in entry.blob_metadata:
        key = (listed.type, tuple(listed.fields), listed.snapshot_id)
        if stored.get(key) != (listed.properties or {}).get("ndv"):
            sim.violated(f"{path}: metadata.json lists {key}, the file has {stored.get(key)}")


def _find_wrong(sim: Simulation, version: Version, blob: Any, payload: bytes) -> str | None:
    rows = sim.model.rows[blob.snapshot_id]
    if blob.type == MANIFEST_STATISTICS:
        return _find_wrong_manifest(sim, version, blob, payload)
    values = [row[blob.field_ids[0] - 1] for row in rows]
    known: Any = [value for value in values if value is not None]
    if blob.type == THETA:
        ndv, expected = (int(ThetaSketch.from_bytes(payload).estimate()), blob.properties["ndv"]), len(set(known))
        return None if ndv == (expected, str(expected)) else f"{ndv} distinct values, expected {expected}"
    if blob.type == KLL:
        sketch = KllSketch.from_bytes(blob.properties["item-type"], payload)
        found = (sketch.n, blob.properties["n"], blob.properties["null-count"])
        counts = (len(known), str(len(known)), str(len(values) - len(known)))
        return None if found == counts else f"counts {found}, expected {counts}"
    if blob.type == FREQUENT_ITEMS:
        return _find_wrong_items(read_frequent_values(payload), known)
    if blob.type == COLUMN_STATISTICS:
        column = read_column_statistics(payload)[blob.field_ids[0]]
        decoded = [None if b is None else decode_value(column.type, b) for b in (column.min_value, column.max_value)]
        found = (column.value_count, column.null_value_count, *decoded)
        limits = (min(known), max(known)) if known else (None, None)
        wanted = (len(values), len(values) - len(known), *limits)
        return None if found == wanted else f"{found}, expected {wanted}"
    return f"unexpected blob {blob.type}"


def _find_wrong_items(found: FrequentValues, known: list[Any]) -> str | None:
    truth = Counter(encode_value(found.type, value) for value in known)
    if found.value_count != len(known):
        return f"common values of {found.value_count} values, expected {len(known)}"
    wrong = [item for item in found.items if not item.lower <= truth[item.value] <= item.upper]
    kept = {item.value for item in found.items}
    others = max((rows for value, rows in truth.items() if value not in kept), default=0)
    if wrong or others > found.others_at_most:
        return f"{wrong[:1]}, {others} rows of another value, at most {found.others_at_most}"
    return None


def _find_wrong_manifest(sim: Simulation, version: Version, blob: Any, payload: bytes) -> str | None:
    if version.metadata.snapshot_by_id(blob.snapshot_id) is None:
        return None
    files = sim.files.manifests(version.metadata, blob.snapshot_id)
    found = {
        row["manifest_path"]: (row["live_file_count"], row["record_count"])
        for row in ManifestStatistics(payload, "").manifests.to_pylist()
    }
    expected = {path: (len(live), sum(f.record_count for f in live)) for path, live in files.items()}
    return None if found == expected else f"{found}, expected {expected}"


def _check_carried(sim: Simulation, old: Any, new: Any) -> None:
    """Check that blobs of the file before, other than those made anew, are in the file after it."""
    if old is None or not local_path(old.statistics_path).exists():
        return
    kept = {(b.type, b.field_ids) for b in read_puffin_footer(sim.storage, new.statistics_path).blobs}
    for blob in read_puffin_footer(sim.storage, old.statistics_path).blobs:
        if (blob.type, blob.field_ids) not in kept:
            sim.violated(f"{new.statistics_path} has lost {blob.type} of {blob.field_ids}")


def _check_partitions(sim: Simulation, version: Version, snapshot_id: int) -> None:
    table = icestats.load(NAME, catalog=sim.catalog_properties, snapshot=snapshot_id)
    try:
        rows = table.partition_statistics().to_pylist()
    except IcestatsError as error:
        sim.violated(f"the partition statistics of {snapshot_id} cannot be read: {error}")
        return
    found = {
        row["partition"]["part"]: (row["data_record_count"], row["data_file_count"])
        for row in rows
        if row["data_file_count"]
    }
    counts = Counter(part for _, part, _ in sim.model.rows[snapshot_id])
    live = [file for files in sim.files.manifests(version.metadata, snapshot_id).values() for file in files]
    files = Counter(file.partition[0] for file in live if file.record_count)
    expected = {part: (count, files[part]) for part, count in counts.items()}
    if found != expected:
        sim.violated(f"wrong partition statistics of {snapshot_id}: {found}, expected {expected}")


def check_deletion(sim: Simulation, operation: Operation, location: str) -> None:
    """Check a file that is about to be deleted: by whom, and whether somebody needs it."""
    name, current = posixpath.basename(location), sim.model.current
    if name in current.referred():
        sim.violated(f"{operation.name} deletes {name}, which the table refers to")
    if operation.kind == READ:
        sim.violated(f"{operation.name} deletes {name}")
    if not operation.by_kit or location in operation.created:
        return
    if not is_statistics(name):
        if operation.kind != ROWS:
            sim.violated(f"{operation.name} deletes {name}, which is no statistics file")
        return
    if operation.kind != ORPHANS:
        sim.violated(f"{operation.name} deletes {name}, which it has not made")
    if any(location in other.created for other in sim.under_way() if other is not operation):
        sim.violated(f"{operation.name} deletes {name}, which is being committed")
    oldest = sim.turns.now_ms - DAY_MS
    for version, following in zip(sim.model.versions, sim.model.versions[1:], strict=False):
        if following.since_ms > oldest and name in version.referred():
            sim.violated(f"{operation.name} deletes {name}, which the table referred to less than a day ago")


def is_statistics(name: str) -> bool:
    return name.endswith(".stats") or name.startswith("partition-stats-")


def check_end(sim: Simulation, operation: Operation) -> None:
    """Check what an operation says of itself, once it has ended; None is known of one whose actor has died."""
    registered = [v for v in operation.commits if v.metadata.current_snapshot_id is not None]
    if operation.kind in (STATISTICS, REMOVAL) and len(registered) > 1:
        sim.violated(f"{operation.name} is {len(registered)} commits")
    if operation.kind == READ and operation.result is not None:
        _check_answer(sim, operation)
    error = operation.error
    if error is None or not operation.by_kit or not isinstance(error, Exception):
        return
    if not isinstance(error, IcestatsError):
        sim.violated(f"{operation.name} raised {type(error).__name__}: {error}")
        return
    _check_left(sim, operation, str(error))
    if operation.commits and operation.kind != ROWS and "no answer" not in str(error):
        sim.violated(f"{operation.name} is committed and said: {error}")
    if operation.commits and operation.kind == ROWS and "took no rows" in str(error):
        sim.violated(f"{operation.name} has written its rows and said: {error}")


def _check_left(sim: Simulation, operation: Operation, message: str) -> None:
    referred = sim.model.current.referred()
    once = {name for version in operation.commits for name in version.referred()}
    for location in operation.created:
        name = posixpath.basename(location)
        if not is_statistics(name) or name in referred | once or not local_path(location).exists():
            continue
        if not (isinstance(operation.error, CommitError) and name in message):
            sim.violated(f"{operation.name} leaves {name} and does not say so: {message}")


def check_table(sim: Simulation) -> None:
    """Check the table as it is, and that looking at it with the kit changes nothing."""
    before = sim.list_files()
    version = sim.model.current
    for entry in (*version.metadata.statistics, *version.metadata.partition_statistics):
        if not local_path(entry.statistics_path).exists():
            sim.violated(f"the registered {entry.statistics_path} is gone")
    _check_rows(sim, version, version.metadata.current_snapshot_id)
    table = icestats.load(NAME, catalog=sim.catalog_properties)
    if sim.load().metadata_location != version.location:
        sim.violated(f"the catalog's table is not {version.location}")
    _check_orphans(sim, version)
    try:
        _check_answers(sim, table)
    except IcestatsError as error:
        sim.violated(f"the table cannot be read: {error}")
    if sim.list_files() != before or sim.model.current is not version:
        sim.violated("reading has changed the table")


def _check_orphans(sim: Simulation, version: Version) -> None:
    found = set(icestats.load(NAME, catalog=sim.catalog_properties).orphans()["path"].to_pylist())
    left = [path for path in sim.list_files() if is_statistics(posixpath.basename(path))]
    expected = {path for path in left if posixpath.basename(path) not in version.referred()}
    if found != expected:
        sim.violated(f"orphans reported {sorted(found)}, there are {sorted(expected)}")


def _check_answers(sim: Simulation, table: icestats.Table) -> None:
    rows = sim.model.rows[sim.model.current.metadata.current_snapshot_id]
    table.sketches()
    counted = sum(row["total_record_count"] for row in table.manifests().to_pylist())
    if counted != len(rows):
        sim.violated(f"manifests() counts {counted} rows, there are {len(rows)}")
    table.columns()


def _check_answer(sim: Simulation, operation: Operation) -> None:
    """Check what a reader was told while others worked and calls failed."""
    snapshot_id, what, found = operation.result
    rows = sim.model.rows[snapshot_id]
    if what == "manifests":
        counted = sum(found["total_record_count"].to_pylist())
        if counted != len(rows):
            sim.violated(f"manifests() counts {counted} rows, there are {len(rows)}")
    if what == "partitions":
        counted = sum(found["data_record_count"].to_pylist())
        if counted != len(rows):
            sim.violated(f"partitions() counts {counted} rows, there are {len(rows)}")
