"""PyIceberg's reader of data files, made to keep the timestamps that Hive, Impala and early Spark store in INT96.

Arrow gives these as nanoseconds, in which 9999-12-31 is a day of 1816, without a word.

A table's name mapping is parsed once, not again for each of its files, and columns of a file without field ids that the
mapping does not name are left unread, as in Iceberg's Java library: PyIceberg refuses such a file.

A column without a type, as pandas writes one of nulls alone, is read as nulls of the table's type.

What is deleted by position is looked for in the order of positions, not among all of them for each batch.

Lists and maps of structs that are null are null: PyIceberg reads, and writes, them as empty
(https://github.com/apache/iceberg-python/issues/3833).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyiceberg.exceptions import ResolveError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import pyarrow as reader
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.schema import visit_with_partner
from pyiceberg.table.name_mapping import (
    MappedField,
    NameMapping,
    NameMappingAccessor,
    NameMappingProjectionVisitor,
)
from pyiceberg.types import StructType

from icestats.answers.arrays import to_numpy
from icestats.answers.text import one_line
from icestats.iceberg.metadata import NAME_MAPPING
from icestats.scan.position_deletes import DeletedPositions

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata

_find_format = reader._get_file_format


def _find_whole_format(file_format: FileFormat, **options: Any) -> Any:
    if file_format == FileFormat.PARQUET:
        options["coerce_int96_timestamp_unit"] = "us"
    return _find_format(file_format, **options)


reader._get_file_format = _find_whole_format  # type: ignore[assignment]  # what is mended


class _FilesMapping(NameMapping):
    """A table's name mapping, by which files are read here: what it does not name is left unread.

    Elsewhere PyIceberg goes on refusing what a mapping does not name, as rows to append that have a further column.
    """


class _NamedAlone(NameMappingProjectionVisitor):
    """Gives ids to the columns of a file that a name mapping names, and None for all others."""

    def struct(self, struct: Any, struct_partner: Any, field_results: list[Any]) -> Any:
        return super().struct(struct, struct_partner, [field for field in field_results if field is not None])

    def field(self, field: Any, field_partner: Any, field_result: Any) -> Any:
        # As for Java, a struct is null where none of its fields is named.
        is_known = field_result is not None and field_result != StructType()
        is_named = field_partner is not None and field_partner.field_id is not None
        return super().field(field, field_partner, field_result) if is_known and is_named else None

    def list(self, list_type: Any, list_partner: Any, element_result: Any) -> Any:
        is_named = element_result is not None and _names(list_partner, "element")
        return super().list(list_type, list_partner, element_result) if is_named else None

    def map(self, map_type: Any, map_partner: Any, key_result: Any, value_result: Any) -> Any:
        is_named = key_result is not None and value_result is not None and _names(map_partner, "key", "value")
        return super().map(map_type, map_partner, key_result, value_result) if is_named else None

    def primitive(self, primitive: Any, _partner: Any) -> Any:
        return primitive


def _names(mapped: MappedField | None, *parts: str) -> bool:
    return mapped is not None and set(parts) <= {name for field in mapped.fields for name in field.names}


_apply_mapping = reader.apply_name_mapping  # type: ignore[attr-defined]


def _apply_files_mapping(schema: IcebergSchema, name_mapping: Any) -> Any:
    if not isinstance(name_mapping, _FilesMapping):
        return _apply_mapping(schema, name_mapping)
    mapping: Any = name_mapping
    return visit_with_partner(schema, mapping, _NamedAlone(), NameMappingAccessor())


reader.apply_name_mapping = _apply_files_mapping  # type: ignore[assignment, attr-defined]  # what is mended

_read_schema = reader.pyarrow_to_schema


def _read_files_schema(schema: pa.Schema, name_mapping: Any = None, **options: Any) -> IcebergSchema:
    if isinstance(name_mapping, _FilesMapping):
        # PyIceberg knows a column of nulls alone, to which pandas gives no type, of tables of version 3 only.
        options["format_version"] = 3
    return _read_schema(schema, name_mapping, **options)


reader.pyarrow_to_schema = _read_files_schema  # type: ignore[assignment]  # what is mended


def _keep_nulls(project: Callable[..., pa.Array | None]) -> Callable[..., pa.Array | None]:
    """Return a projection of lists or maps after which those that were null still are."""

    @functools.wraps(project)
    def projected(visitor: Any, kind: Any, stored: pa.Array | None, *parts: pa.Array | None) -> pa.Array | None:
        found = project(visitor, kind, stored, *parts)
        if found is None or stored is None or stored.null_count == found.null_count:
            return found
        # `if_else` knows no uuids.
        return found.take(pa.array(np.arange(len(found)), mask=to_numpy(stored.is_null())))

    return projected


for _name in ("list", "map"):
    setattr(reader.ArrowProjectionVisitor, _name, _keep_nulls(getattr(reader.ArrowProjectionVisitor, _name)))


_find_left = reader._combine_positional_deletes


def _find_left_of(positional_deletes: list[pa.ChunkedArray], start_index: int, end_index: int) -> pa.Array:
    if isinstance(positional_deletes, DeletedPositions):
        return positional_deletes.find_left(start_index, end_index)
    return _find_left(positional_deletes, start_index, end_index)


reader._combine_positional_deletes = _find_left_of


class UnreadFileError(ValueError):
    """PyIceberg does not know the type of a column in a file, or it does not fit the schema; Spark may read it."""


def read_live_batches(
    metadata: IcebergMetadata,
    io: FileIO,
    schema: IcebergSchema,
    tasks: Sequence[FileScanTask],
    deletes: Mapping[str, DeletedPositions],
    dictionary_columns: tuple[str, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, less those that are deleted.

    Raises
    ------
    UnreadFileError
        A file has a column of a type that PyIceberg does not know, or that does not fit the schema.
    """
    scan = reader.ArrowScan(metadata, io, schema, AlwaysTrue(), dictionary_columns=dictionary_columns)
    scan._table_metadata = _WithMapping(metadata)  # type: ignore[assignment]  # all that the scan asks of metadata
    try:
        # ArrowScan.to_record_batches holds whole files in memory; its inner generator streams them.
        yield from scan._record_batches_from_scan_tasks_and_deletes(tasks, dict(deletes))
    except pa.ArrowException:
        raise
    except (reader.UnsupportedPyArrowTypeException, ResolveError, ValueError) as error:
        raise UnreadFileError(one_line(error)) from None  # Spark says of a cause alone


class _WithMapping:
    """A table's metadata, whose name mapping, which may be of any length, is not parsed again for each file."""

    def __init__(self, metadata: IcebergMetadata) -> None:
        self._metadata = metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)

    def name_mapping(self) -> _FilesMapping | None:
        text = self._metadata.properties.get(NAME_MAPPING)
        return _parse_mapping(text) if text else None


@functools.lru_cache(4)
def _parse_mapping(text: str) -> _FilesMapping:
    # For reading alone: PyIceberg changes a mapping in place where it changes a schema.
    return _FilesMapping.model_validate_json(text)
