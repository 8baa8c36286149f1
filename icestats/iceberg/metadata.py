"""The parts of a table's metadata that statistics need, as frozen values.

Source: Iceberg spec, "Table Metadata". Readers of a table see only these values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from icestats.errors import ColumnNotFoundError, SnapshotNotFoundError

NESTED_TYPES = frozenset({"struct", "list", "map"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a schema: a column, or a part of a nested one."""

    field_id: int
    name: str
    """Full name: `address.street`, `tags.element`, `prices.key`."""
    type: str
    """Iceberg's own name, with parameters: `long`, `decimal(9, 2)`, `fixed[16]`; or `struct`, `list`, `map`."""
    required: bool
    top_level: bool
    repeated: bool = False
    """Whether the field is inside a list or a map, so counts of values differ from counts of rows."""

    @property
    def is_primitive(self) -> bool:
        """Whether the field itself holds values."""
        return self.type not in NESTED_TYPES

    @property
    def has_nan(self) -> bool:
        """Whether the type has NaN."""
        return self.type in ("float", "double")


@dataclass(frozen=True, slots=True)
class Schema:
    """A table schema, flattened: every field, nested ones included, depth first."""

    schema_id: int
    fields: tuple[Field, ...]

    @property
    def columns(self) -> tuple[Field, ...]:
        """The fields that hold values: primitive, at any depth."""
        return tuple(f for f in self.fields if f.is_primitive)

    @property
    def top_level(self) -> tuple[Field, ...]:
        """The top-level columns."""
        return tuple(f for f in self.fields if f.top_level)

    def find(self, name: str) -> Field:
        """Return the field with this full name.

        Raises
        ------
        ColumnNotFoundError
            The schema has no such field.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise ColumnNotFoundError(name, tuple(f.name for f in self.fields))

    def get(self, field_id: int) -> Field | None:
        """Return the field with this id, or None."""
        return next((f for f in self.fields if f.field_id == field_id), None)


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec."""

    field_id: int
    source_id: int
    name: str
    transform: str


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How rows were laid out in partitions when a manifest was written."""

    spec_id: int
    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The table at one point in time."""

    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str | None
    manifests: tuple[str, ...]
    """Manifest paths of a v1 snapshot that has no manifest list."""
    schema_id: int | None
    summary: Mapping[str, str]

    @property
    def operation(self) -> str:
        """What made the snapshot: append, replace, overwrite or delete."""
        return self.summary.get("operation", "unknown")


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or a tag."""

    snapshot_id: int
    type: str
    """`branch` or `tag`."""


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """A blob of a statistics file, as metadata.json lists it."""

    type: str
    snapshot_id: int
    sequence_number: int
    field_ids: tuple[int, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A Puffin file registered in metadata.json for a snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blobs: tuple[BlobMetadata, ...]


@dataclass(frozen=True, slots=True)
class PartitionStatisticsFile:
    """A partition statistics file registered in metadata.json for a snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """One version of a table's metadata."""

    format_version: int
    table_uuid: str
    location: str
    last_updated_ms: int
    schemas: Mapping[int, Schema]
    current_schema_id: int
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    snapshots: Mapping[int, Snapshot]
    current_snapshot_id: int | None
    snapshot_log: tuple[tuple[int, int], ...]
    """When each snapshot became current, in that order: milliseconds since 1970 and snapshot id. Times may repeat or go
    back, because writers' clocks differ."""
    refs: Mapping[str, SnapshotRef]
    properties: Mapping[str, str]
    statistics: tuple[StatisticsFile, ...]
    partition_statistics: tuple[PartitionStatisticsFile, ...]
    metadata_log: tuple[tuple[int, str], ...] = ()
    """Earlier versions of the metadata, oldest first: milliseconds since 1970 when each was written, and its file."""

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schemas[self.current_schema_id]

    def find_schema(self, snapshot_id: int | None = None, ref: str | None = None) -> Schema:
        """Return the schema to read the result of `find_snapshot` with, by Iceberg's rules.

        Parameters
        ----------
        snapshot_id : int, optional
            A snapshot, read with its own schema, even if it is the current one.
        ref : str, optional
            A tag, read with its snapshot's schema, or a branch, read with the table's current schema.

        Returns
        -------
        Schema
            The current one if neither is given, or if the snapshot's own is unknown: early writers did not record it.

        Raises
        ------
        SnapshotNotFoundError
            As `find_snapshot`.

        Notes
        -----
        As `SnapshotUtil.schemaFor` of Iceberg's Java library. PyIceberg 0.12 reads a branch with its snapshot's schema.
        """
        snapshot = self.find_snapshot(snapshot_id, ref)
        follows_table = self.refs[ref].type == "branch" if ref is not None else snapshot_id is None
        if follows_table or snapshot is None or snapshot.schema_id is None:
            return self.schema
        return self.schemas.get(snapshot.schema_id, self.schema)

    def find_snapshot(self, snapshot_id: int | None = None, ref: str | None = None) -> Snapshot | None:
        """Return a snapshot by id, by branch or tag, or the current one; None if the table has none.

        Raises
        ------
        SnapshotNotFoundError
            The table has no such snapshot, branch or tag.
        """
        if ref is not None:
            if ref not in self.refs:
                known = ", ".join(sorted(self.refs)) or "none"
                raise SnapshotNotFoundError(f"no branch or tag {ref!r}: the table has {known}")
            snapshot_id = self.refs[ref].snapshot_id
        if snapshot_id is None:
            snapshot_id = self.current_snapshot_id
        if snapshot_id is None:
            return None
        if snapshot_id not in self.snapshots:
            known = ", ".join(str(s) for s in list(self.snapshots)[-5:]) or "none"
            raise SnapshotNotFoundError(f"no snapshot {snapshot_id}: the table has {known} (the newest 5 at most)")
        return self.snapshots[snapshot_id]

    def find_snapshot_as_of(self, timestamp_ms: int) -> Snapshot:
        """Return the snapshot that was current at a point in time: as in Iceberg, the last one up to then.

        Parameters
        ----------
        timestamp_ms : int
            Milliseconds since 1970-01-01 UTC.

        Raises
        ------
        SnapshotNotFoundError
            The table had none then, or it is expired.
        """
        current = [snapshot_id for changed_ms, snapshot_id in self.snapshot_log if changed_ms <= timestamp_ms]
        if not current:
            first = f"its history begins at {self.snapshot_log[0][0]} ms" if self.snapshot_log else "it has no history"
            raise SnapshotNotFoundError(f"no snapshot was current at {timestamp_ms} ms since 1970: {first}")
        if current[-1] not in self.snapshots:
            raise SnapshotNotFoundError(f"snapshot {current[-1]}, current at {timestamp_ms} ms, has been expired")
        return self.snapshots[current[-1]]

    def ancestors(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors that are not expired, newest first."""
        seen: set[int] = set()
        current: Snapshot | None = snapshot
        while current is not None and current.snapshot_id not in seen:
            seen.add(current.snapshot_id)
            yield current
            parent = current.parent_snapshot_id
            current = None if parent is None else self.snapshots.get(parent)
