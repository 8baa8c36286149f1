"""Which rows of data files are deleted by position, from the delete files that are about each of them.

PyIceberg 0.12 applies what a delete file says of a data file also where the data file is newer, if the delete file is
read for another one; and it makes a number of each position of a deletion vector, and an empty bitmap of each key that
is left out, so that sixty bytes take all memory. Of a Parquet file it looks among all rows for each path that is there,
and for each batch of rows that it reads it makes a hash table of all positions (`arrow_files.py` asks
`DeletedPositions`).

Source: Iceberg spec, "Scan Planning"; Puffin spec, "deletion-vector-v1 blob type"; Roaring's format, "Extension for
64-bit implementations".
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icestats.answers.arrays import to_numpy
from icestats.errors import MetadataError
from icestats.iceberg.storage import MAX_FILE_SIZE_BYTES, expanded_limit
from icestats.read.parquet.parquet_footer import check_places, parse_footer
from icestats.read.parquet.parquet_pages import LEVEL_SIZE_BYTES, measure_chunk
from icestats.read.puffin.puffin import read_puffin_footer
from icestats.read.rollups.stored_table import damage_in

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask

_MAGIC = bytes.fromhex("d1d33964")
_OWN_BYTES = 4
"""The length in front of a deletion vector, and the checksum behind it."""
MOST_POSITIONS = 1 << 27
"""Of all delete files that are read together: 1 GiB as numbers."""
_MOST_KEYS = 64
"""Of 2^32 rows each."""
_COLUMNS = ["file_path", "pos"]
_UNCODED = frozenset({"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"})
"""Arrow makes no dictionary of strings that are stored so: Presto's, and those of Parquet's pages of version 2."""
_ROW_BYTES = 12
"""What a row of a position delete file takes in memory: the place of its path, and its position."""


class Allowance:
    """How many more deleted positions may be read: delete files that are read together share one."""

    def __init__(self) -> None:
        self._left = MOST_POSITIONS
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Take so many positions before they are read; raise ValueError where there are too many."""
        with self._lock:
            self._left -= count
            if self._left < 0:
                raise ValueError(
                    f"its {count:,} deleted rows make more than {MOST_POSITIONS:,} in all delete files of the scan: "
                    "compact the table, or read less of it"
                )


class DeletedPositions(list[pa.ChunkedArray]):
    """The deleted positions of a data file, as PyIceberg's scans take them, and in their order.

    Parameters
    ----------
    found : sequence of pyarrow.ChunkedArray
        What delete files and deletion vectors say.

    Examples
    --------
    >>> DeletedPositions([pa.chunked_array([[7, 2]]), pa.chunked_array([[5]])]).find_left(4, 9).to_pylist()
    [0, 2, 4]
    """

    def __init__(self, found: Sequence[pa.ChunkedArray]) -> None:
        chunks = [chunk for positions in found for chunk in positions.chunks]
        self._ordered = np.concatenate([np.empty(0, np.int64), *map(to_numpy, chunks)])
        self._ordered.sort()
        super().__init__([pa.chunked_array([self._ordered])])

    def find_left(self, start: int, end: int) -> pa.Array:
        """Return which rows of a batch are not deleted, counted from its first one; it ends in front of `end`."""
        first, behind = np.searchsorted(self._ordered, (start, end))
        is_left = np.ones(end - start, bool)
        is_left[self._ordered[first:behind] - start] = False
        return pa.array(np.flatnonzero(is_left))


def read_position_deletes(io: FileIO, tasks: Sequence[FileScanTask]) -> dict[str, DeletedPositions]:
    """Return the deleted positions of data files, by path.

    Parameters
    ----------
    io : pyiceberg.io.FileIO
        What opens delete files.
    tasks : sequence of pyiceberg.table.FileScanTask
        Data files, each with the delete files that apply to it: Parquet and Puffin, as `find_unreadable` sees to.

    Raises
    ------
    MetadataError
        A deletion vector is damaged, is not the only one of its data file, as the specification says, or deletes rows
        that this does not have; or the delete files have more than `MOST_POSITIONS` together.
    """
    from pyiceberg.manifest import FileFormat
    from pyiceberg.utils.concurrent import ExecutorFactory

    wanted: defaultdict[DataFile, dict[str, int]] = defaultdict(dict)
    for task in tasks:
        for file in task.delete_files:
            wanted[file][task.file.file_path] = task.file.record_count
    found: defaultdict[str, list[pa.ChunkedArray]] = defaultdict(list)
    allowance, with_vector = Allowance(), set()
    for file, deletes in zip(
        wanted,
        ExecutorFactory.get_or_create().map(lambda one: _read_deletes(io, one[0], one[1], allowance), wanted.items()),
        strict=True,
    ):
        for path, positions in deletes:
            if file.file_format == FileFormat.PUFFIN:
                if path in with_vector:
                    raise MetadataError(f"a second deletion vector of {path}, which may have one", file.file_path)
                with_vector.add(path)
            found[path].append(positions)
    return {path: DeletedPositions(found.pop(path)) for path in list(found)}


def _read_deletes(
    io: FileIO, file: DataFile, row_counts: Mapping[str, int], allowance: Allowance
) -> list[tuple[str, pa.ChunkedArray]]:
    from pyiceberg.manifest import FileFormat

    source = io.new_input(file.file_path)
    if (size := len(source)) > MAX_FILE_SIZE_BYTES:
        raise MetadataError(f"{size:,} bytes, expected {MAX_FILE_SIZE_BYTES:,} at most", file.file_path)
    with source.open() as stream:
        data = stream.read()
    read = read_vectors if file.file_format == FileFormat.PUFFIN else read_positions
    return list(read(data, file.file_path, row_counts, allowance))


def read_positions(
    data: bytes, path: str, row_counts: Mapping[str, int], allowance: Allowance
) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the positions of some data files in a Parquet file of position deletes, as `read_vectors` does.

    Raises
    ------
    MetadataError
        The file is damaged, or its rows take too much memory for its length.
    """
    with damage_in(path, "position deletes cannot be read"):
        footer = parse_footer(data)
        check_places(footer, len(data))
        rows, limit = sum(group.row_count for group in footer.row_groups), expanded_limit(len(data))
        if rows > limit // _ROW_BYTES:
            raise ValueError(f"{rows:,} deleted positions in {len(data):,} bytes, at most {limit // _ROW_BYTES:,}")
        allowance.take(rows)
        limit += rows * (2 * LEVEL_SIZE_BYTES + _ROW_BYTES)
        metadata = pq.read_metadata(pa.BufferReader(data))
        is_coded = _is_coded(metadata)
        for group in footer.row_groups:
            for column, chunk in zip(footer.columns, group.chunks, strict=True):
                if column.path in _COLUMNS:
                    limit -= measure_chunk(data, chunk, column, limit, keeps_dictionary=is_coded)
        as_dictionary = _COLUMNS[:1] if is_coded else None
        file = pq.ParquetFile(pa.BufferReader(data), metadata=metadata, read_dictionary=as_dictionary)
        kinds = [file.schema_arrow.field(name).type for name in _COLUMNS]
        has_paths = pa.types.is_dictionary(kinds[0]) if is_coded else pa.types.is_string(kinds[0])
        if not has_paths or kinds[1] != pa.int64():
            raise ValueError(f"its columns are of type {kinds[0]} and {kinds[1]}")
        table = file.read(_COLUMNS, use_threads=False).unify_dictionaries()
        paths, positions = (table[name].combine_chunks() for name in _COLUMNS)
        paths = paths if is_coded else paths.dictionary_encode()
        for wanted, places in _find_places(paths, list(row_counts)):
            # A position may be there any number of times.
            yield wanted, pa.chunked_array([positions.take(places).unique().drop_null()])


def _is_coded(footer: pq.FileMetaData) -> bool:
    """Whether Arrow can read the paths as a dictionary."""
    groups = map(footer.row_group, range(footer.num_row_groups))
    chunks = (group.column(place) for group in groups for place in range(footer.num_columns))
    return not any(_UNCODED.intersection(chunk.encodings) for chunk in chunks if chunk.path_in_schema == _COLUMNS[0])


def _find_places(paths: pa.DictionaryArray, wanted: Sequence[str]) -> Iterator[tuple[str, pa.Array]]:
    """Yield each wanted path that is there, and its places, in one pass over all."""
    entries = pc.index_in(paths.dictionary, pa.array(wanted, paths.dictionary.type))
    numbers = to_numpy(entries.take(paths.indices), null=len(wanted))
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(len(wanted) + 1))
    for number, path in enumerate(wanted):
        if starts[number] < starts[number + 1]:
            yield path, pa.array(order[starts[number] : starts[number + 1]])


def read_vectors(
    data: bytes, path: str, row_counts: Mapping[str, int], allowance: Allowance
) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the deletion vectors of some data files in a Puffin file: the data file's path, and its deleted positions.

    Parameters
    ----------
    data : bytes
        The Puffin file.
    path : str
        Its location, for messages.
    row_counts : mapping of str to int
        The rows of each data file that is asked for, by path.
    allowance : Allowance
        How many positions may still be read.

    Raises
    ------
    MetadataError
        A vector is damaged, deletes rows that its data file does not have, or more than are allowed.
    """
    for blob in read_puffin_footer(data, path).blobs:
        referenced = blob.properties.get("referenced-data-file", "")
        if blob.type != "deletion-vector-v1" or referenced not in row_counts:
            continue
        stored = data[blob.offset : blob.offset + blob.length]
        if blob.compression_codec is not None or stored[_OWN_BYTES : 2 * _OWN_BYTES] != _MAGIC:
            raise MetadataError("not a deletion vector", path, blob.offset)
        try:
            content = stored[_OWN_BYTES:-_OWN_BYTES]
            stated = stored[:_OWN_BYTES] + stored[-_OWN_BYTES:]
            if stated != len(content).to_bytes(_OWN_BYTES, "big") + crc32(content).to_bytes(_OWN_BYTES, "big"):
                raise ValueError("its length or its CRC-32 is wrong")
            positions = _read_positions(content[_OWN_BYTES:], row_counts[referenced], allowance)
        except (ValueError, IndexError) as error:
            # pyroaring raises IndexError where nothing is left to read.
            raise MetadataError(f"the deletion vector of {referenced}: {error}", path, blob.offset) from error
        yield referenced, pa.chunked_array(positions, pa.int64())


def _read_positions(vector: bytes, row_count: int, allowance: Allowance) -> list[Any]:
    from pyroaring import BitMap

    count, at, last = int.from_bytes(vector[:8], "little"), 8, -1
    if count > _MOST_KEYS:
        raise ValueError(f"it has {count:,} keys, expected {_MOST_KEYS} at most")
    bitmaps = []
    for _ in range(count):
        key = int.from_bytes(vector[at : at + 4], "little")
        if key <= last or key << 32 >= max(row_count, 1):
            raise ValueError("its keys are out of order, or beyond the rows of the file")
        bitmap = BitMap.deserialize(vector[at + 4 :])
        if bitmap and (key << 32) + bitmap.max() >= row_count:
            raise ValueError(f"it deletes {len(bitmap):,} rows, some beyond the {row_count:,} of the file")
        allowance.take(len(bitmap))
        bitmaps.append((key << 32, bitmap))
        at, last = at + 4 + len(bitmap.serialize()), key
    return [_add(bitmap.to_array(), first) for first, bitmap in bitmaps]


def _add(positions: Any, first: int) -> Any:
    numbers = np.array(positions, np.int64)
    numbers += first
    return pa.array(numbers)
