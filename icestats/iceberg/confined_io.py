"""PyIceberg's tables, opened so that what is written in a table chooses neither code nor endpoints nor credentials.

PyIceberg 0.12 adds a table's properties to those that a FileIO is made of: `py-io-impl` imports any class,
`s3.endpoint` sends signed requests anywhere (https://github.com/apache/iceberg-python, `Catalog._load_file_io` and
`StaticTable.from_metadata`).
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import logging
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, uuid5

import pyiceberg.catalog
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, load_file_io
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.serializers import Compressor, FromInputFile, GzipCompressor
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import TableMetadata as IcebergMetadata
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.types import NestedField, StructType
from pyiceberg.utils.config import Config, merge_config
from pyiceberg.utils.properties import property_as_int

from icestats.answers.text import printable
from icestats.errors import CatalogError, CommitError, MetadataError
from icestats.iceberg.any_blob_type import accept_any_blob_type
from icestats.iceberg.checked_avro import read_avro_as_written
from icestats.iceberg.configuration import check_configuration, find_catalog_type, find_sqlite_path
from icestats.iceberg.metadata_json import GZIP_MAGIC, build_metadata, inflate, parse_document, read_document
from icestats.iceberg.reach import LOCAL, check_reach, check_writes, folder_of, is_whole, store_of
from icestats.iceberg.storage import Storage, check_local, limit_retries, local_path, open_input, read_range
from icestats.iceberg.whole_doubles import read_whole_doubles

_LOCATION_PROVIDER = "write.py-location-provider.impl"
_DELETES = "write.metadata.delete-after-commit.enabled"
_GLUES_OWN = ("metadata_location", "previous_metadata_location", "table_type")
"""Parameters by which a table's entry in Glue says what it is, and where its metadata is."""
_VERSIONS = (".metadata.json", ".metadata.json.gz")
_MOST_DELETED = 1_000
"""How many earlier versions one commit deletes: a metadata log may name any number, each a request to the storage."""
_RETRIES = {"num-retries": 4, "min-wait-ms": 100, "max-wait-ms": 60_000, "total-timeout-ms": 1_800_000}
"""Properties `commit.retry.*`, and what goes where a table has none."""
_LONGEST_WAIT_MS = 86_400_000
_TIME_LIMIT_OF_HIVE = ("hive.metastore.client.socket.timeout", 600)
"""How long a Hive metastore may take between two bytes, in seconds: Hive's own property, and what goes without it."""
_SIGNS_IN = ("auth", "ssl", "rest.sigv4-enabled")
"""How a client says who it is: by classes, by the certificates of a file, by signing with what AWS knows him by."""
_SENDS_SECRETS = "oauth2-server-uri"
"""Where a client's secret is sent."""


def _make_printable(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), ()
    return True


# Whatever opens PyIceberg's tables imports this module first.
logging.getLogger("pyiceberg.catalog").addFilter(_make_printable)  # It names metadata files that it has not deleted.
accept_any_blob_type()
read_whole_doubles()
read_avro_as_written()


class ConfinedFileIO(FileIO):
    """A FileIO that opens what a table's metadata may name, and deletes nothing but files beside its metadata.json.

    What it has given to write is deleted wherever it is.

    Parameters
    ----------
    io : pyiceberg.io.FileIO
        What opens files.
    home : str
        Where the table's metadata.json is.
    """

    def __init__(self, io: FileIO, home: str) -> None:
        super().__init__(io.properties)
        self._io = limit_retries(io)
        self._home = home
        self.written: dict[str, None] = {}
        """The files that it has given to write, in their order."""

    def new_input(self, location: str) -> InputFile:
        """Give a file to read; the table's metadata.json only where it is within the limits."""
        self._check(location)
        check_local(location)
        found = open_input(self._io, location)
        return _read_metadata(found) if location == self._home else found

    def new_output(self, location: str) -> OutputFile:
        """Give a file to write."""
        self._check(location, writes=True)
        self.written[location] = None
        return self._io.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file.

        Raises
        ------
        PermissionError
            It is not beside the table's metadata.json, and was not given to write.
        """
        path = location if isinstance(location, str) else location.location
        if folder_of(path) != folder_of(self._home) and path not in self.written:
            raise PermissionError(f"{path} is not deleted: it is not beside {self._home}")
        self._check(path, writes=True)
        self._io.delete(path)

    def _check(self, location: str, *, writes: bool = False) -> None:
        (check_writes if writes else check_reach)(location, self._home, self.properties)
        if (writes or store_of(location) == LOCAL) and not is_whole(location):
            raise MetadataError("it has `?`, `#` or a control character, where another file would be opened", location)


def open_static_table(location: str, storage: Storage) -> StaticTable:
    """Return PyIceberg's read-only table of a metadata.json, without columns of types that PyIceberg does not know."""
    io = ConfinedFileIO(load_file_io(dict(storage.properties), location), location)
    try:
        metadata = FromInputFile.table_metadata(io.new_input(location))
    except UNREAD_SCHEMA:
        document = read_document(storage, location)
        schemas = [leave_out_unknown(schema) for schema in document.get("schemas") or ()]
        metadata = TableMetadataUtil.parse_obj({**document, "schemas": schemas})
    return StaticTable((location,), metadata, location, io, NoopCatalog("static-table"))


UNREAD_SCHEMA = (ValidationError, ValueError, TypeError, ArithmeticError, AttributeError, NotImplementedError)
"""What PyIceberg raises over a column or a transform that it does not know: pydantic passes on what a default's
conversion raises."""


def leave_out_unknown(
    document: Mapping[str, Any], kind: type[NestedField | PartitionField] = NestedField
) -> dict[str, Any]:
    """Return the JSON of a schema or a partition spec without fields that PyIceberg does not know: variant columns."""
    known = []
    for field in document["fields"]:
        with contextlib.suppress(*UNREAD_SCHEMA):
            kind.model_validate(field)
            known.append(field)
    return {**document, "fields": known}


def leave_out_defaults(document: Any) -> Any:
    """Return a schema's JSON without defaults, which filters do not need: PyIceberg knows none of nanoseconds."""
    if isinstance(document, list):
        return [leave_out_defaults(one) for one in document]
    if not isinstance(document, dict):
        return document
    kept = (name for name in document if name not in ("initial-default", "write-default"))
    return {name: leave_out_defaults(document[name]) for name in kept}


def allow_null_structs(schema: IcebergSchema) -> IcebergSchema:
    """Return a schema in which what is inside of an optional struct is optional: it is null where the struct is.

    PyIceberg 0.12 takes such a field, where it is required in its struct, for one that is never null; Iceberg's Java
    library does not (`Accessor.hasOptionalFieldInPath`).
    """

    def allow(field: NestedField, optional: bool) -> NestedField:
        optional |= not field.required
        kind = field.field_type
        if isinstance(kind, StructType):
            kind = StructType(*(allow(one, optional) for one in kind.fields))
        return field.model_copy(update={"field_type": kind, "required": not optional})

    fields = (allow(field, False) for field in schema.fields)
    return IcebergSchema(*fields, schema_id=schema.schema_id, identifier_field_ids=schema.identifier_field_ids)


def load_confined(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open a catalog that gives tables whose FileIO is of the catalog's own properties, and is confined to them.

    Which classes that takes is said by the user's properties and configuration, not by a REST catalog's server.
    """
    check_configuration()
    # PyIceberg has read it when it was imported, in a folder that may have been a stranger's.
    pyiceberg.catalog._ENV_CONFIG = config = Config()
    known: dict[str, Any] = merge_config(config.get_catalog_config(name) or {}, dict(properties))
    kind = "" if "py-catalog-impl" in properties else find_catalog_type(known)
    if kind == "rest" and known.get("uri"):
        from pyiceberg.catalog.rest import RestCatalog

        # It makes objects of classes while it is opened.
        return _confined_class(RestCatalog)(name, **known)
    if kind == "sql":
        _refuse_missing_file(name, str(known.get("uri", "")))
        properties = {"init_catalog_tables": "false", **known}
    catalog = load_catalog(name, **properties)
    catalog.__class__ = _confined_class(type(catalog))
    if isinstance(catalog, _ConfinedMetastore):
        catalog.limit_waits()
    return catalog


def _refuse_missing_file(name: str, uri: str) -> None:
    """Refuse a catalog of a SQLite file that is not there: SQLite would make it anew."""
    path = None if "?" in uri else find_sqlite_path(uri)
    if path is not None and not path.startswith("file:") and not Path(path).exists():
        raise CatalogError(f"catalog {name!r} has no file {path}: expected the SQLite file that it is kept in")


def find_unsafe_write(table: Table) -> CommitError | None:
    """Return why nothing is written to a table, for what its own properties say of how; None: nothing is wrong."""
    name, metadata = ".".join(table.name()), table.metadata
    if _LOCATION_PROVIDER in metadata.properties:
        return CommitError(
            f"{name} names code to run in its property {_LOCATION_PROVIDER}: nothing is committed; remove "
            "the property if you may, or commit with the engine that has this class"
        )
    own = [(key, metadata.properties[key].upper()) for key in _GLUES_OWN if key in metadata.properties]
    odd = [key for key, value in own if (key, value) != ("table_type", "ICEBERG")]
    if odd and hasattr(table.catalog, "_update_glue_table"):
        return CommitError(
            f"{name} has a property {odd[0]}, which PyIceberg would put in the place of Glue's own: nothing is "
            "committed; remove the property if you may"
        )
    if is_at_home(metadata, table.metadata_location):
        return None
    # Where its metadata.json is, is where files may be deleted: no location of its own moves it elsewhere.
    return CommitError(
        f"{name} keeps its metadata at {metadata_folder(metadata)}, by its location or its write.metadata.path, "
        f"which is not where its metadata.json is ({table.metadata_location}): nothing is committed"
    )


def find_unsafe_deletes(table: Table) -> CommitError | None:
    """Return why Java commits nothing to a table, for the metadata files that it would delete then; None: it may."""
    deletes = is_true(table.metadata.properties, _DELETES, default=False)
    home = folder_of(table.metadata_location)
    elsewhere = [e.metadata_file for e in table.metadata.metadata_log if folder_of(e.metadata_file) != home]
    if not deletes or not elsewhere:
        return None
    return CommitError(
        f"{'.'.join(table.name())} has {elsewhere[0]} in its metadata log, which is not beside its metadata.json, and "
        "Spark would delete it (write.metadata.delete-after-commit.enabled): nothing is committed"
    )


def find_long_wait(table: Table) -> CommitError | None:
    """Return why no rows are written to a table, where a commit that meets another would wait for more than a day.

    PyIceberg and Iceberg's Java library wait as the table's own properties say. None: it would not.
    """
    given = table.metadata.properties
    try:
        waits = [max(0, int(given.get(f"commit.retry.{name}", default))) for name, default in _RETRIES.items()]
    except ValueError:
        # Who reads the properties for a commit refuses them.
        return None
    retries, least, most, total = waits
    longest = min(least << min(retries, 60), most)
    if min(retries * longest, total + longest) <= _LONGEST_WAIT_MS:
        return None
    return CommitError(
        f"{'.'.join(table.name())} would have a write wait for days where others commit too (commit.retry.min-wait-ms, "
        "max-wait-ms, num-retries and total-timeout-ms): nothing is written; remove these properties if you may"
    )


def is_true(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Whether a table's property is true as Iceberg's Java library reads it: all text but `true` is false."""
    return properties.get(name, str(default)).lower() == "true"


def metadata_folder(metadata: IcebergMetadata) -> str:
    """Return where a table says that it keeps its metadata."""
    path = metadata.properties.get("write.metadata.path") or f"{metadata.location.rstrip('/')}/metadata"
    return path.rstrip("/")


def is_at_home(metadata: IcebergMetadata, metadata_location: str) -> bool:
    """Whether a metadata.json is in the folder in which the table says that it keeps its metadata."""
    return folder_of(f"{metadata_folder(metadata)}/file") == folder_of(metadata_location)


def is_beside(location: str, metadata_location: str) -> bool:
    """Whether a file is in the folder of a metadata.json, and no symbolic link."""
    path = local_path(location)
    return folder_of(location) == folder_of(metadata_location) and not (path is not None and path.is_symlink())


class _ReadFile(InputFile):
    """A file that has been read, so that what is used of it is what was looked at."""

    def __init__(self, location: str, data: bytes) -> None:
        super().__init__(location)
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002 - PyIceberg's signature
        return BytesIO(self._data)


def _read_metadata(file: InputFile) -> InputFile:
    """Read a metadata.json; raise MetadataError where it is more than the kit's own reader takes."""
    with file.open() as stream:
        data = read_range(stream, file.location, 0, None)
    data = inflate(data, file.location) if data.startswith(GZIP_MAGIC) else data
    document = parse_document(data, file.location)
    if not build_metadata(document, file.location).table_uuid:
        # Of format version 1. PyIceberg makes one up at each reading, and takes it for another table then.
        data = json.dumps(document | {"table-uuid": str(uuid5(NAMESPACE_URL, file.location))}).encode()
    # Iceberg's Java library reads `*.metadata.json.gz` too, of which PyIceberg does not know that it is compressed.
    is_gzip = isinstance(Compressor.get_compressor(file.location), GzipCompressor)
    return _ReadFile(file.location, gzip.compress(data, 1) if is_gzip else data)


class _Confined(Catalog):
    _is_server: ClassVar[bool] = False
    """Whether the properties that come with a table are the catalog's, not those of the table's metadata."""

    def _load_file_io(self, properties: Mapping[str, str] | None = None, location: str | None = None) -> FileIO:
        given = (properties or {}) if self._is_server else {}
        io = super()._load_file_io({k: v for k, v in given.items() if not _is_the_users(k)}, location)
        return io if location is None else ConfinedFileIO(io, location)

    def _convert_orm_to_iceberg(self, row: Any) -> Table:
        # A SQL catalog opens the metadata.json by itself, with a FileIO that is confined to nothing.
        location = row.metadata_location
        if not location:
            raise MetadataError("the catalog does not say where the metadata is", row.table_name)
        io = self._load_file_io(location=location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        identifier = (*self.identifier_to_tuple(row.table_namespace), row.table_name)
        return Table(identifier, metadata, location, io, self)

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: IcebergMetadata, metadata: IcebergMetadata) -> None:
        # PyIceberg takes `yes` for true too.
        if is_true(metadata.properties, _DELETES, default=False):
            # A log may name any file beside the metadata.json.
            versions = [entry for entry in base.metadata_log if entry.metadata_file.endswith(_VERSIONS)]
            own = base.model_copy(update={"metadata_log": versions[:_MOST_DELETED]})
            Catalog._delete_old_metadata(io, own, metadata)

    def _update_and_stage_table(self, current_table: Table | None, *arguments: Any) -> Any:
        if current_table is not None and (refusal := find_unsafe_write(current_table)) is not None:
            raise refusal
        staged = super()._update_and_stage_table(current_table, *arguments)  # type: ignore[misc]  # of catalogs that write metadata themselves
        if current_table is not None:
            staged.metadata = _keep_times_in_order(staged.metadata, current_table.metadata)
        return staged


class _ConfinedServer(_Confined):
    """Of a REST catalog: its server gives endpoints and credentials for each table, apart from the metadata."""

    _is_server = True

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: IcebergMetadata, metadata: IcebergMetadata) -> None:
        """The server deletes what the table's properties say; the log of its answer need not be all of the log."""

    def _fetch_config(self) -> None:
        # Where the user says who signs him in, the server gets no secret sent elsewhere.
        own = {name: value for name, value in self.properties.items() if _is_the_users(name) or name == _SENDS_SECRETS}
        super()._fetch_config()  # type: ignore[misc]  # of REST catalogs
        self.properties = {name: value for name, value in self.properties.items() if not _is_the_users(name)} | own

    def _config_headers(self, session: Any) -> None:
        from icestats.iceberg.rest_session import limit_answers

        # The first that is done to a session, before it asks anything.
        super()._config_headers(session)  # type: ignore[misc]  # of REST catalogs
        limit_answers(session, self.properties)

    def load_table(self, identifier: Any) -> Table:
        # With `refs` the snapshots that no branch has are not in the answer, as if they had expired.
        self.properties.pop("snapshot-loading-mode", None)
        return super().load_table(identifier)  # type: ignore[safe-super]  # of REST catalogs

    def _response_to_table(self, identifier: tuple[str, ...], response: Any) -> Table:
        if not response.metadata_location:
            # As of a table that is being created. Without it nothing says which files the metadata may name.
            raise MetadataError("the catalog does not say where the metadata is", ".".join(identifier))
        bare = response.metadata.model_copy(update={"properties": {}})
        table: Table = super()._response_to_table(identifier, response.model_copy(update={"metadata": bare}))  # type: ignore[misc]  # of REST catalogs
        table.metadata = response.metadata
        return table


class _ConfinedMetastore(_Confined):
    """Of Hive: PyIceberg takes the names of classes out of a table's entry by which Hive and Impala read it.

    https://github.com/apache/iceberg/issues/2686, https://github.com/apache/iceberg/pull/1751. And it puts those that a
    table's own properties name (`storage_handler`) into it. What is committed here changes neither columns nor location
    nor properties, so all of the entry stays as it is but where the metadata is; and what it says of rows, once others
    are there: Java's `HiveTableOperations` says that anew.
    """

    def _get_hive_table(self, *arguments: Any) -> Any:
        found = super()._get_hive_table(*arguments)  # type: ignore[misc]  # of Hive's catalogs
        found.__class__ = _keeping_entry(type(found))
        return found

    def _convert_hive_into_iceberg(self, table: Any) -> Table:
        found: Table = super()._convert_hive_into_iceberg(table)  # type: ignore[misc]  # of Hive's catalogs
        found._entry = table  # type: ignore[attr-defined]  # for the commit that reads it
        return found

    def _update_and_stage_table(self, current_table: Table | None, *arguments: Any) -> Any:
        staged = super()._update_and_stage_table(current_table, *arguments)
        if current_table is not None:
            snapshot, entry = staged.metadata.current_snapshot(), current_table._entry.parameters  # type: ignore[attr-defined]  # as above
            if snapshot != current_table.metadata.current_snapshot():
                said = {} if snapshot is None or snapshot.summary is None else snapshot.summary
                figures = {name: total and said.get(total) for name, total in _OF_ROWS.items() if entry.pop(name, None)}
                entry |= {name: figure for name, figure in figures.items() if figure}
        return staged

    def limit_waits(self) -> None:
        """Have the client end where the metastore does not answer: PyIceberg waits for ever."""
        client: Any = self._client  # type: ignore[attr-defined]  # of Hive's catalogs
        make, limit_s = client._init_thrift_transport, property_as_int(self.properties, *_TIME_LIMIT_OF_HIVE)

        def make_limited() -> Any:
            transport = make()
            for part in vars(transport).values():
                if hasattr(part, "setTimeout"):
                    part.setTimeout((limit_s or 0) * 1000 or None)
            return transport

        client._init_thrift_transport, client._transport = make_limited, make_limited()


class _ConfinedGlue(_Confined):
    """Of Glue: PyIceberg makes the table's entry anew, without what it does not know.

    What is committed here changes where the metadata is, alone. Glue refuses an entry of another version than was read.
    """

    def _update_glue_table(self, database_name: str, table_name: str, table_input: Any, version_id: str) -> None:
        present = self._get_glue_table(database_name, table_name)  # type: ignore[attr-defined]  # of Glue's catalogs
        kept = {name: present[name] for name in _KEPT_BY_GLUE if name in present}
        kept["Parameters"] = _move(present.get("Parameters"), table_input["Parameters"])
        super()._update_glue_table(database_name, table_name, {**table_input, **kept}, version_id)  # type: ignore[misc]  # of Glue's catalogs


_OF_ROWS = {
    "numRows": "total-records",
    "numFiles": "total-data-files",
    "totalSize": "total-files-size",
    **dict.fromkeys(("COLUMN_STATS_ACCURATE", "rawDataSize", "snapshot-count"), ""),
    **dict.fromkeys(("current-snapshot-id", "current-snapshot-timestamp-ms", "current-snapshot-summary"), ""),
}
"""What a table's entry in a Hive metastore says of the rows of a snapshot, and what of its summary, if any."""

_KEPT_BY_GLUE = (
    "Description",
    "Owner",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TargetTable",
)
"""The parts of a table's entry that its update takes, but its name, type and parameters."""


def _keeping_entry(kind: type[Any]) -> type[Any]:
    def keep(table: Any, name: str, value: Any) -> None:
        if name != "sd":
            object.__setattr__(table, name, _move(table.parameters, value) if name == "parameters" else value)

    return type(kind.__name__, (kind,), {"__setattr__": keep})


def _move(parameters: Mapping[str, str] | None, new: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a table's entry as they are, but with its new metadata."""
    names = ("metadata_location", "previous_metadata_location")
    return {**(parameters or {}), **{name: new[name] for name in names if name in new}}


def _keep_times_in_order(metadata: IcebergMetadata, before: IcebergMetadata) -> IcebergMetadata:
    """Return the next version with no time before that of the last: Java loads no table whose times go back a minute.

    A machine's clock may be behind those of other writers (`TableMetadata`'s constructor).
    """
    least = before.last_updated_ms
    if metadata.last_updated_ms >= least:
        return metadata
    count = len(before.snapshot_log)
    added = [entry.model_copy(update={"timestamp_ms": least}) for entry in metadata.snapshot_log[count:]]
    return metadata.model_copy(
        update={"last_updated_ms": least, "snapshot_log": [*metadata.snapshot_log[:count], *added]}
    )


def _is_the_users(name: str) -> bool:
    """Whether no server says a property: which class to import (`py-io-impl`), or how to sign in."""
    return name.endswith("impl") or name in _SIGNS_IN


@functools.cache
def _confined_class(kind: type[Catalog]) -> type[Catalog]:
    marks = {
        "_response_to_table": _ConfinedServer,
        "_get_hive_table": _ConfinedMetastore,
        "_update_glue_table": _ConfinedGlue,
    }
    base = next((marks[mark] for mark in marks if hasattr(kind, mark)), _Confined)
    return type(kind.__name__, (base, kind), {})
