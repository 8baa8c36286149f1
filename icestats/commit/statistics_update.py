"""PyIceberg's update of a table's statistics, with the requirement that it lacks.

PyIceberg's `update_statistics` carries no requirement of its own, so the last writer wins in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, cast

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Transaction
from pyiceberg.table.statistics import StatisticsFile as IcebergStatisticsFile
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

from icestats.commit.table_state import checks_requirements
from icestats.iceberg.metadata import PartitionStatisticsFile, StatisticsFile

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


class _AssertFile(ValidatableTableRequirement):
    """The snapshot must exist, and its file of one kind must be the one that was read."""

    what: ClassVar[str]
    snapshot_id: int
    statistics_path: str | None

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override] # PyIceberg's name for it
        """Check the requirement.

        Raises
        ------
        CommitFailedException
            It is not met.
        """
        if base_metadata is None or base_metadata.snapshot_by_id(self.snapshot_id) is None:
            raise CommitFailedException(f"Requirement failed: snapshot {self.snapshot_id} is gone")
        found = self.find_path(base_metadata)
        if found != self.statistics_path:
            raise CommitFailedException(
                f"Requirement failed: the {self.what} of snapshot {self.snapshot_id} have changed: "
                f"expected {self.statistics_path}, found {found}"
            )

    def find_path(self, metadata: TableMetadata) -> str | None:
        """Return where the metadata says that the snapshot's file is."""
        raise NotImplementedError


class AssertStatistics(_AssertFile):
    """The snapshot must exist, and its statistics must be those that were read.

    Catalogs that PyIceberg itself commits to (SQL, Hive, Glue) check it against the very metadata that they then swap,
    so there it is exact. A REST catalog's server does not know it.
    """

    what = "statistics"
    type: Literal["icestats-assert-statistics"] = "icestats-assert-statistics"

    def find_path(self, metadata: TableMetadata) -> str | None:
        """Return where the snapshot's statistics are."""
        return find_statistics_path(metadata, self.snapshot_id)


class AssertPartitionStatistics(_AssertFile):
    """As `AssertStatistics`, of the snapshot's partition statistics."""

    what = "partition statistics"
    type: Literal["icestats-assert-partition-statistics"] = "icestats-assert-partition-statistics"

    def find_path(self, metadata: TableMetadata) -> str | None:
        """Return where the snapshot's partition statistics are."""
        return find_partition_statistics_path(metadata, self.snapshot_id)


def find_partition_statistics_path(metadata: TableMetadata, snapshot_id: int) -> str | None:
    """Return where PyIceberg's metadata says that a snapshot's partition statistics are."""
    return next((s.statistics_path for s in metadata.partition_statistics if s.snapshot_id == snapshot_id), None)


def set_partition_statistics(table: Table, file: PartitionStatisticsFile, expected_path: str | None) -> None:
    """Commit a partition statistics file, on the condition that the snapshot has what it had when it was read.

    The condition is checked only where PyIceberg writes the metadata.
    """
    update = SetPartitionStatisticsUpdate.model_validate(
        {
            "partition-statistics": {
                "snapshot-id": file.snapshot_id,
                "statistics-path": file.statistics_path,
                "file-size-in-bytes": file.file_size_in_bytes,
            }
        }
    )
    _GuardedUpdate(table, update, _partition_requirements(table, file.snapshot_id, expected_path)).commit()


def unset_partition_statistics(table: Table, snapshot_id: int, expected_path: str | None) -> None:
    """Commit the removal of a snapshot's partition statistics; on the same condition."""
    update = RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": snapshot_id})
    _GuardedUpdate(table, update, _partition_requirements(table, snapshot_id, expected_path)).commit()


def _partition_requirements(
    table: Table, snapshot_id: int, expected_path: str | None
) -> tuple[ValidatableTableRequirement, ...]:
    if not checks_requirements(table):
        return ()
    return (AssertPartitionStatistics(snapshot_id=snapshot_id, statistics_path=expected_path),)


def find_statistics_path(metadata: TableMetadata, snapshot_id: int) -> str | None:
    """Return where PyIceberg's metadata says that a snapshot's statistics are."""
    return next((s.statistics_path for s in metadata.statistics if s.snapshot_id == snapshot_id), None)


def set_statistics(table: Table, file: StatisticsFile, expected_path: str | None, schema_id: int) -> None:
    """Commit a statistics file, on the condition that the snapshot's statistics and the schema are as they were read.

    Parameters
    ----------
    table : pyiceberg.table.Table
        As it was just loaded.
    file : StatisticsFile
        The entry to set.
    expected_path : str or None
        Where the snapshot's present statistics are. Checked only where PyIceberg writes the metadata.
    schema_id : int
        The current schema's id. Checked by every catalog.
    """
    requirements: tuple[ValidatableTableRequirement, ...] = (
        AssertCurrentSchemaId.model_validate({"current-schema-id": schema_id}),
    )
    if checks_requirements(table):
        requirements += (AssertStatistics(snapshot_id=file.snapshot_id, statistics_path=expected_path),)
    _GuardedUpdate(
        table, SetStatisticsUpdate.model_validate({"statistics": _iceberg_file(file)}), requirements
    ).commit()


def unset_statistics(table: Table, snapshot_id: int, expected_path: str | None) -> None:
    """Commit the removal of a snapshot's statistics; on the same condition, where PyIceberg writes the metadata."""
    requirement = AssertStatistics(snapshot_id=snapshot_id, statistics_path=expected_path)
    requirements = (requirement,) if checks_requirements(table) else ()
    _GuardedUpdate(table, RemoveStatisticsUpdate.model_validate({"snapshot-id": snapshot_id}), requirements).commit()


class _GuardedUpdate(UpdateStatistics):
    """One update of statistics and its requirements."""

    def __init__(
        self, table: Table, update: TableUpdate, requirements: tuple[ValidatableTableRequirement, ...]
    ) -> None:
        super().__init__(Transaction(table, autocommit=True))
        self._updates = (update,)
        self._requirements = requirements

    def _commit(self) -> UpdatesAndRequirements:
        # The union of requirements is closed, what catalogs do with one is only to call validate().
        return self._updates, cast(tuple[TableRequirement, ...], self._requirements)


def _iceberg_file(file: StatisticsFile) -> IcebergStatisticsFile:
    return IcebergStatisticsFile.model_validate(
        {
            "snapshot-id": file.snapshot_id,
            "statistics-path": file.statistics_path,
            "file-size-in-bytes": file.file_size_in_bytes,
            "file-footer-size-in-bytes": file.file_footer_size_in_bytes,
            "blob-metadata": [
                {
                    "type": blob.type,
                    "snapshot-id": blob.snapshot_id,
                    "sequence-number": blob.sequence_number,
                    "fields": list(blob.field_ids),
                    "properties": dict(blob.properties),
                }
                for blob in file.blobs
            ],
        }
    )
