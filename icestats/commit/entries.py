"""Entries of metadata.json's `statistics` and `partition-statistics`: setting and removing one through PyIceberg.

PyIceberg's `update_statistics` carries no requirement of its own, so the last writer wins in silence. Here an entry is
changed only while the snapshot exists and has the file that was read, wherever PyIceberg itself writes the metadata.
"""

from __future__ import annotations

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

from icestats.iceberg.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata

Entry = StatisticsFile | PartitionStatisticsFile


def find_path(metadata: IcebergMetadata | TableMetadata, entry: Entry) -> str | None:
    """Return where a snapshot's file of an entry's kind is, as the metadata says."""
    is_table = isinstance(entry, StatisticsFile)
    return _find_path(metadata, entry.snapshot_id, "statistics" if is_table else "partition statistics")


def checks_requirements(table: Table) -> bool:
    """Whether the catalog checks this package's own commit requirements: where PyIceberg writes the metadata."""
    return isinstance(table.catalog, MetastoreCatalog)


def set_entry(table: Table, entry: Entry, expected_path: str | None, schema_id: int | None = None) -> None:
    """Commit an entry, on the condition that the table is as it was when it was read.

    Parameters
    ----------
    table : pyiceberg.table.Table
        As it was just loaded.
    entry : StatisticsFile or PartitionStatisticsFile
        The entry to set.
    expected_path : str or None
        Where the snapshot's present file is. Checked only where PyIceberg writes the metadata.
    schema_id : int, optional
        The current schema's id. Checked by every catalog.
    """
    document: dict[str, Any] = {
        "snapshot-id": entry.snapshot_id,
        "statistics-path": entry.statistics_path,
        "file-size-in-bytes": entry.file_size_in_bytes,
    }
    update: TableUpdate
    if isinstance(entry, PartitionStatisticsFile):
        update = SetPartitionStatisticsUpdate.model_validate({"partition-statistics": document})
    else:
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
        update = SetStatisticsUpdate.model_validate({"statistics": document})
    _commit(table, update, entry, expected_path, schema_id)


def unset_entry(table: Table, entry: Entry) -> None:
    """Commit the removal of an entry, as long as it is the one that the snapshot has."""
    kind = RemoveStatisticsUpdate if isinstance(entry, StatisticsFile) else RemovePartitionStatisticsUpdate
    _commit(table, kind.model_validate({"snapshot-id": entry.snapshot_id}), entry, entry.statistics_path, None)


_What = Literal["statistics", "partition statistics"]


def _find_path(metadata: IcebergMetadata | TableMetadata, snapshot_id: int, what: _What) -> str | None:
    entries: Any = metadata.statistics if what == "statistics" else metadata.partition_statistics
    return next((entry.statistics_path for entry in entries if entry.snapshot_id == snapshot_id), None)


class _AssertEntry(ValidatableTableRequirement):
    """The snapshot must exist, and its file must be the one that was read.

    Catalogs that PyIceberg itself commits to (SQL, Hive, Glue) check it against the very metadata that they then swap,
    so there it is exact. A REST catalog's server does not know it.
    """

    type: Literal["icestats-assert-entry"] = "icestats-assert-entry"
    what: _What
    snapshot_id: int
    statistics_path: str | None

    def validate(self, base_metadata: IcebergMetadata | None) -> None:  # type: ignore[override] # PyIceberg's name for it
        if base_metadata is None or base_metadata.snapshot_by_id(self.snapshot_id) is None:
            raise CommitFailedException(f"Requirement failed: snapshot {self.snapshot_id} is gone")
        found = _find_path(base_metadata, self.snapshot_id, self.what)
        if found != self.statistics_path:
            raise CommitFailedException(
                f"Requirement failed: the {self.what} of snapshot {self.snapshot_id} have changed: "
                f"expected {self.statistics_path}, found {found}"
            )


class _GuardedUpdate(UpdateStatistics):
    """One update of statistics and its requirements."""

    def __init__(self, table: Table, update: TableUpdate, requirements: list[ValidatableTableRequirement]) -> None:
        super().__init__(Transaction(table, autocommit=True))
        self._updates = (update,)
        self._requirements = requirements

    def _commit(self) -> UpdatesAndRequirements:
        # The union of requirements is closed, what catalogs do with one is only to call validate().
        return self._updates, cast(tuple[TableRequirement, ...], tuple(self._requirements))


def _commit(table: Table, update: TableUpdate, entry: Entry, expected_path: str | None, schema_id: int | None) -> None:
    requirements: list[ValidatableTableRequirement] = []
    if schema_id is not None:
        requirements.append(AssertCurrentSchemaId.model_validate({"current-schema-id": schema_id}))
    if checks_requirements(table):
        what: _What = "statistics" if isinstance(entry, StatisticsFile) else "partition statistics"
        requirements.append(_AssertEntry(what=what, snapshot_id=entry.snapshot_id, statistics_path=expected_path))
    _GuardedUpdate(table, update, requirements).commit()
