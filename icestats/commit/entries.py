"""Entries of metadata.json's `statistics` and `partition-statistics`: changing some in one commit through PyIceberg.

PyIceberg's `update_statistics` carries no requirement of its own, so the last writer wins in silence. Here an entry is
changed only while the snapshot has the file that was read, and exists, wherever PyIceberg itself writes the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Transaction
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    RemovePartitionStatisticsUpdate,
    RemoveStatisticsUpdate,
    SetPartitionStatisticsUpdate,
    SetStatisticsUpdate,
    TableRequirement,
    TableUpdate,
    UpdatesAndRequirements,
    ValidatableTableRequirement,
)
from pyiceberg.table.update.statistics import UpdateStatistics

from icestats.iceberg.foreign_catalog import ForeignCatalog
from icestats.iceberg.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata

Entry = StatisticsFile | PartitionStatisticsFile
Kind = Literal["statistics", "partition statistics"]


@dataclass(frozen=True, slots=True)
class EntryChange:
    """An entry of a snapshot that a commit sets, replaces or takes out."""

    snapshot_id: int
    kind: Kind
    before_path: str | None
    """Where the snapshot's present file is. Checked only where PyIceberg writes the metadata."""
    after: Entry | None
    """The entry to set; None takes the present one out."""


def find_path(metadata: IcebergMetadata | TableMetadata, of: Entry | EntryChange) -> str | None:
    """Return where a snapshot's file of the same kind is, as the metadata says."""
    return _find_path(metadata, of.snapshot_id, of.kind if isinstance(of, EntryChange) else _kind(of))


def set_entry(metadata: IcebergMetadata | TableMetadata, entry: Entry) -> EntryChange:
    """Return the change that sets an entry in place of the one that the metadata has."""
    return EntryChange(entry.snapshot_id, _kind(entry), find_path(metadata, entry), entry)


def unset_entry(entry: Entry) -> EntryChange:
    """Return the change that takes an entry out, as long as it is the one that the snapshot has."""
    return EntryChange(entry.snapshot_id, _kind(entry), entry.statistics_path, None)


def checks_requirements(table: Table) -> bool:
    """Whether the catalog checks this package's own commit requirements: where no server writes the metadata."""
    catalog = table.catalog
    return catalog.swaps_metadata if isinstance(catalog, ForeignCatalog) else isinstance(catalog, MetastoreCatalog)


def commit_changes(table: Table, changes: Sequence[EntryChange], schema_id: int | None = None) -> None:
    """Commit changes of entries together, on the condition that the table is as it was when it was read.

    Parameters
    ----------
    table : pyiceberg.table.Table
        As it was just loaded.
    changes : sequence of EntryChange
        At most one of a kind and snapshot. All are committed, or none.
    schema_id : int, optional
        The current schema's id. Checked by every catalog.
    """
    requirements: list[ValidatableTableRequirement] = []
    if schema_id is not None:
        requirements.append(AssertCurrentSchemaId.model_validate({"current-schema-id": schema_id}))
    if checks_requirements(table):
        requirements.append(
            _AssertEntries(
                expected=tuple((one.kind, one.snapshot_id, one.before_path, one.after is not None) for one in changes)
            )
        )
    _GuardedUpdate(table, tuple(_build_update(change) for change in changes), requirements).commit()


def _build_update(change: EntryChange) -> TableUpdate:
    entry = change.after
    if entry is None:
        removal = RemoveStatisticsUpdate if change.kind == "statistics" else RemovePartitionStatisticsUpdate
        return removal.model_validate({"snapshot-id": change.snapshot_id})
    document: dict[str, Any] = {
        "snapshot-id": entry.snapshot_id,
        "statistics-path": entry.statistics_path,
        "file-size-in-bytes": entry.file_size_in_bytes,
    }
    if isinstance(entry, PartitionStatisticsFile):
        return SetPartitionStatisticsUpdate.model_validate({"partition-statistics": document})
    document["file-footer-size-in-bytes"] = entry.file_footer_size_in_bytes
    document["blob-metadata"] = [
        {
            "type": blob.type,
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "fields": list(blob.field_ids),
            "properties": dict(blob.properties),
        }
        for blob in entry.blobs
    ]
    if entry.key_metadata is not None:
        document["key-metadata"] = entry.key_metadata
    return SetStatisticsUpdate.model_validate({"statistics": document})


def _kind(entry: Entry) -> Kind:
    return "statistics" if isinstance(entry, StatisticsFile) else "partition statistics"


def find_listed(metadata: IcebergMetadata | TableMetadata, snapshot_id: int, what: Kind) -> Any:
    """Return a snapshot's entry as the metadata has it; None: there is none."""
    entries: Any = metadata.statistics if what == "statistics" else metadata.partition_statistics
    return next((entry for entry in entries if entry.snapshot_id == snapshot_id), None)


def _find_path(metadata: IcebergMetadata | TableMetadata, snapshot_id: int, what: Kind) -> str | None:
    entry = find_listed(metadata, snapshot_id, what)
    return None if entry is None else entry.statistics_path


class _AssertEntries(ValidatableTableRequirement):
    """Snapshots must exist, unless their entry is taken out, and their files must be the ones that were read.

    Catalogs that PyIceberg itself commits to (SQL, Hive, Glue) check it against the very metadata that they then swap,
    so there it is exact. A REST catalog's server does not know it. One for all entries: PyIceberg copies the whole
    metadata for each requirement.
    """

    type: Literal["icestats-assert-entries"] = "icestats-assert-entries"
    expected: tuple[tuple[Kind, int, str | None, bool], ...]
    """Kind, snapshot, path, and whether the snapshot must exist."""

    def validate(self, base_metadata: IcebergMetadata | None) -> None:  # type: ignore[override] # PyIceberg's name for it
        snapshots = () if base_metadata is None else base_metadata.snapshots
        known = {snapshot.snapshot_id for snapshot in snapshots}
        paths = {} if base_metadata is None else _list_paths(base_metadata)
        for what, snapshot_id, path, needs_snapshot in self.expected:
            if base_metadata is None or (needs_snapshot and snapshot_id not in known):
                raise CommitFailedException(f"Requirement failed: snapshot {snapshot_id} is gone")
            found = paths.get((what, snapshot_id))
            if found != path:
                raise CommitFailedException(
                    f"Requirement failed: the {what} of snapshot {snapshot_id} have changed: expected {path}, "
                    f"found {found}"
                )


def _list_paths(metadata: IcebergMetadata) -> dict[tuple[Kind, int], str]:
    """Return where the files of all snapshots are, of several of a snapshot the first."""
    paths: dict[tuple[Kind, int], str] = {}
    for one in metadata.statistics:
        paths.setdefault(("statistics", one.snapshot_id), one.statistics_path)
    for other in metadata.partition_statistics:
        paths.setdefault(("partition statistics", other.snapshot_id), other.statistics_path)
    return paths


class _GuardedUpdate(UpdateStatistics):
    """Updates of statistics and their requirements."""

    def __init__(
        self, table: Table, updates: tuple[TableUpdate, ...], requirements: list[ValidatableTableRequirement]
    ) -> None:
        super().__init__(Transaction(table, autocommit=True))
        self._updates = updates
        self._requirements = requirements

    def _commit(self) -> UpdatesAndRequirements:
        # The union of requirements is closed, what catalogs do with one is only to call validate().
        return self._updates, cast(tuple[TableRequirement, ...], tuple(self._requirements))
