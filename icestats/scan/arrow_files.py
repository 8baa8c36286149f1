"""PyIceberg's reader of data files, made to keep the timestamps that Hive, Impala and early Spark store in INT96.

Arrow gives these as nanoseconds, in which 9999-12-31 is a day of 1816, without a word.

A table's name mapping is parsed once, not again for each of its files.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import pyarrow as reader
from pyiceberg.manifest import FileFormat
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata as IcebergMetadata

_find_format = reader._get_file_format


def _find_whole_format(file_format: FileFormat, **options: Any) -> Any:
    if file_format == FileFormat.PARQUET:
        options["coerce_int96_timestamp_unit"] = "us"
    return _find_format(file_format, **options)


reader._get_file_format = _find_whole_format  # type: ignore[assignment]  # what is mended


def read_live_batches(
    metadata: IcebergMetadata,
    io: FileIO,
    schema: IcebergSchema,
    tasks: Sequence[FileScanTask],
    deletes: dict[str, list[pa.ChunkedArray]],
    dictionary_columns: tuple[str, ...] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, less those that are deleted.

    Raises
    ------
    ValueError
        A file has a column of a type that PyIceberg does not know, or that does not fit the schema.
    """
    scan = reader.ArrowScan(metadata, io, schema, AlwaysTrue(), dictionary_columns=dictionary_columns)
    scan._table_metadata = _WithMapping(metadata)  # type: ignore[assignment]  # all that the scan asks of metadata
    try:
        # ArrowScan.to_record_batches holds whole files in memory; its inner generator streams them.
        yield from scan._record_batches_from_scan_tasks_and_deletes(tasks, deletes)
    except reader.UnsupportedPyArrowTypeException as error:
        raise ValueError(str(error)) from error


class _WithMapping:
    """A table's metadata, whose name mapping, which may be of any length, is not parsed again for each file."""

    def __init__(self, metadata: IcebergMetadata) -> None:
        self._metadata = metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)

    def name_mapping(self) -> NameMapping | None:
        text = self._metadata.properties.get("schema.name-mapping.default")
        return _parse_mapping(text) if text else None


# For reading alone: PyIceberg changes a mapping in place where it changes a schema.
_parse_mapping = functools.lru_cache(4)(parse_mapping_from_json)
