"""PyIceberg's reader of data files, made to keep the timestamps that Hive, Impala and early Spark store in INT96.

Arrow gives these as nanoseconds, in which 9999-12-31 is a day of 1816, without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import pyarrow as reader
from pyiceberg.manifest import FileFormat

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
    try:
        # ArrowScan.to_record_batches holds whole files in memory; its inner generator streams them.
        yield from scan._record_batches_from_scan_tasks_and_deletes(tasks, deletes)
    except reader.UnsupportedPyArrowTypeException as error:
        raise ValueError(str(error)) from error
