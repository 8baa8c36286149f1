"""The parts of a table's metadata that statistics need, as frozen values.

Source: Iceberg spec, "Table Metadata".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

from icestats.answers.text import render_time
from icestats.errors import ColumnNotFoundError, SnapshotNotFoundError, check_names

NAME_MAPPING = "schema.name-mapping.default"
"""The table property that tells the columns of files without field ids."""
NESTED_TYPES = frozenset({"struct", "list", "map"})
FIRST_TIME_MS, LAST_TIME_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, which Python knows."""


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
    def path(self) -> list[str]:
        """The names that lead to the field; a column's own may have full stops."""
        return [self.name] if self.top_level else self.name.split(".")

    @property
    def is_primitive(self) -> bool:
        """Whether the field itself holds values."""
        return self.type not in NESTED_TYPES

    @property
    def has_nan(self) -> bool:
        """Whether the type has NaN."""
        return self.type in ("float", "double")


@dataclass(frozen=True)
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
        field = self._by_name.get(name) if isinstance(name, str) else None
        if field is None:
            raise ColumnNotFoundError(name, tuple(f.name for f in self.fields))
        return field

    def get(self, field_id: int) -> Field | None:
        """Return the field with this id, or None."""
        return self._by_id.get(field_id)

    def select(self, field_ids: Iterable[int]) -> list[Field]:
        """Return the primitive fields with these ids, in the order of the ids; ids of other fields are left out."""
        known = {f.field_id: f for f in self.columns}
        return [known[field_id] for field_id in field_ids if field_id in known]

    def find_moved(self, names: NameMapping) -> set[int]:
        """Return the fields whose name, or that of a field that they are in, stands for another field."""
        return {field.field_id for field in self.fields if self._is_moved(field, names)}

    def _is_moved(self, field: Field, names: NameMapping) -> bool:
        for depth, name in enumerate(field.path, 1):
            own = field if field.top_level else self._by_name.get(".".join(field.path[:depth]))
            field_id, names = names.get(name, (None, {}))
            if own is None or field_id is None:
                return False
            if own.field_id != field_id:
                return True
        return False

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {f.name: f for f in reversed(self.fields)}

    @cached_property
    def _by_id(self) -> dict[int, Field]:
        return {f.field_id: f for f in reversed(self.fields)}


def match_names(asked: Collection[str], names: Sequence[str]) -> list[str]:
    """Return the columns that names and patterns ask for, in the order of the columns.

    Parameters
    ----------
    asked : collection of str
        Names, or patterns with `*`, `?` and `[...]` (as `fnmatch` has them). What is a column's name stands for this
        column alone, whatever is in it.
    names : sequence of str
        The columns that there are.

    Raises
    ------
    ColumnNotFoundError, CallError
        A name is none of them, a pattern matches none, or these are no names.

    Examples
    --------
    >>> match_names(["measure_*", "a*"], ["id", "a*", "ab", "measure_1", "measure_2"])
    ['a*', 'measure_1', 'measure_2']
    """
    check_names("columns", asked)
    found: set[str] = set()
    for one in asked:
        own = {one} if one in names else {name for name in names if fnmatchcase(name, one)}
        if not own:
            raise ColumnNotFoundError(one, tuple(names))
        found |= own
    return [name for name in names if name in found]


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec."""

    field_id: int
    source_id: int
    """The column; `NO_COLUMN` for a field of several columns."""
    name: str
    transform: str


NO_COLUMN = -1


def split_transform(transform: str) -> tuple[str, int]:
    """Return a transform's word, and its number: 0 where it has none.

    Examples
    --------
    >>> split_transform("bucket[16]"), split_transform("day")
    (('bucket', 16), ('day', 0))
    """
    word, _, number = transform.rstrip("]").partition("[")
    return word, int(number) if number.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How rows were laid out in partitions when a manifest was written."""

    spec_id: int
    fields: tuple[PartitionField, ...]

    @property
    def is_partitioned(self) -> bool:
        """Whether any field is not void: else equality deletes of this spec are about all data files."""
        return any(field.transform != "void" for field in self.fields)


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
    key_metadata: str | None = None
    """Of an encrypted file, in base64: what an engine gets its key by."""


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

    @property
    def name_mapping(self) -> str | None:
        """By which columns go of files that have no field ids, as `add_files` takes in: JSON, which may be anything."""
        return self.properties.get(NAME_MAPPING)

    def find_moved(self) -> frozenset[int]:
        """Return the columns an earlier name of which the name mapping gives to another column.

        Iceberg does so where a column is renamed and a new one gets its old name. In files without field ids readers
        then find its values in the new column, and what manifests say of it is not what is read.
        """
        names = parse_name_mapping(self.name_mapping)
        return frozenset().union(*(schema.find_moved(names) for schema in self.schemas.values() if names))

    @property
    def schemas_by_age(self) -> tuple[Schema, ...]:
        """The current schema, then all, the newest first: where to look up a column that may be gone."""
        return (self.schema, *reversed(tuple(self.schemas.values())))

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
            asked, log = render_time(timestamp_ms), self.snapshot_log
            known = (
                f"its history begins at {render_time(log[0][0])}, ask for then or later" if log else "it has no history"
            )
            raise SnapshotNotFoundError(f"no snapshot was current at {asked}: {known}")
        if current[-1] not in self.snapshots:
            expired = f"snapshot {current[-1]}, current at {render_time(timestamp_ms)}, has been expired"
            raise SnapshotNotFoundError(f"{expired}: ask for a later moment")
        return self.snapshots[current[-1]]

    def first_partition_statistics(self) -> dict[int, PartitionStatisticsFile]:
        """Return the partition statistics file of each snapshot that has some: the first of several, as commits do."""
        return {file.snapshot_id: file for file in reversed(self.partition_statistics)}

    def ancestors(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors that are not expired, newest first."""
        return walk_ancestors(self.snapshots, snapshot)

    @property
    def has_partition_fields(self) -> bool:
        """Whether any spec of the table divides it."""
        return any(spec.is_partitioned for spec in self.specs.values())


class _Child(Protocol):
    @property
    def snapshot_id(self) -> int: ...
    @property
    def parent_snapshot_id(self) -> int | None: ...


_Snapshot = TypeVar("_Snapshot", bound=_Child)


def walk_ancestors(snapshots: Mapping[int, _Snapshot], snapshot: _Snapshot | None) -> Iterator[_Snapshot]:
    """Yield a snapshot and its ancestors among these, newest first; each once, whatever a table says of its parents."""
    seen: set[int] = set()
    while snapshot is not None and snapshot.snapshot_id not in seen:
        seen.add(snapshot.snapshot_id)
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else snapshots.get(parent)


NameMapping: TypeAlias = "Mapping[str, tuple[int | None, NameMapping]]"
"""By name the ids of fields, and the names in them; None where nothing is known: two fields have the name."""


def parse_name_mapping(name_mapping: str | None) -> NameMapping:
    """Read which fields names stand for in files without field ids; nothing of a mapping that cannot be read."""
    try:
        return _read_names(json.loads(name_mapping or "[]"))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}


def _read_names(mapped: Sequence[Mapping[str, Any]]) -> NameMapping:
    found: dict[str, tuple[int | None, NameMapping]] = {}
    for one in mapped:
        inside = _read_names(one.get("fields") or [])
        for name in one["names"] if isinstance(one.get("names"), list) else ():
            found[name] = (None, {}) if name in found else (one.get("field-id"), inside)
    return found
