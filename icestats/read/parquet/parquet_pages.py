"""What the pages of a column take in memory once they are read, found without reading them.

A page of a few bytes may stand for values without end: compressed, as a run of one entry of a dictionary, or each as a
change of the one before. Source: Parquet format, "Data Pages", "Encodings" and "Compression".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from icestats.read.parquet.compact_thrift import ThriftReader, Wanted
from icestats.read.parquet.parquet_footer import ColumnChunk, ParquetColumn

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_PAGE: Wanted = {1: int, 2: int, 3: int, 5: {1: int, 2: int}, 8: {1: int, 4: int}}
_HEADERS = {_DATA: (5, 2), _DATA_V2: (8, 4)}
"""Of pages of values: the field of their own header, and in it that of their encoding."""
_PLAIN, _DELTA_LENGTH, _DELTA, _SPLIT = 0, 6, 7, 9
LEVEL_SIZE_BYTES = 8
"""Bytes that a value takes beside its own: two levels of 2 bytes, and the place of its bytes."""
_MANY, _LEAST = 2, 1 << 16
"""After the first pages of a chunk each counts as so many bytes at least: its header takes as long to read."""
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


def measure_chunk(
    data: bytes, chunk: ColumnChunk, column: ParquetColumn, limit: int, *, keeps_dictionary: bool = False
) -> int:
    """Return the bytes that the values of a column chunk take in memory at most, with the pages that hold them.

    Parameters
    ----------
    data : bytes
        The file.
    chunk : ColumnChunk
        Of its footer.
    column : ParquetColumn
        The chunk's column.
    limit : int
        How many bytes are allowed.
    keeps_dictionary : bool
        Whether values that are entries of a dictionary are read as that.

    Raises
    ------
    ValueError
        They take more than the limit, or the pages are cut or damaged.

    Notes
    -----
    Many small pages count as larger ones. A dictionary is inflated only where each value could not be as long as all of
    it. Of strings as changes of the one before (DELTA_BYTE_ARRAY) each counts as the whole page.
    """
    total, dictionary, longest = 0, b"", None
    entries = 0
    for number, (page, stored) in enumerate(_read_pages(data, chunk)):
        size = page[2]
        total += size if number < _MANY else max(size, _LEAST)
        if total > limit:
            raise _too_much(limit)
        if page[1] == _DICTIONARY:
            dictionary, entries, longest = stored, size, None
        if page[1] not in _HEADERS:
            continue
        field_id, encoding_id = _HEADERS[page[1]]
        count, encoding = page[field_id][1], page[field_id].get(encoding_id, _PLAIN)
        total += count * LEVEL_SIZE_BYTES
        if column.width is not None:
            total += count * column.width
        elif encoding == _DELTA:
            total += count * size
        elif not keeps_dictionary and encoding not in (_PLAIN, _DELTA_LENGTH, _SPLIT):
            if total + count * max(entries, size) > limit and longest is None and dictionary:
                longest = _find_longest(dictionary, entries, chunk.codec)
            total += count * (entries if longest is None else longest)
        if total > limit:
            raise _too_much(limit)
    return total


def _too_much(limit: int) -> ValueError:
    return ValueError(f"the values of its columns take more than {limit:,} bytes")


def _read_pages(data: bytes, chunk: ColumnChunk) -> Iterator[tuple[Mapping[int, Any], bytes]]:
    """Yield the header of each page that a reader comes to, and the page as it is stored."""
    position, end = chunk.offset, chunk.offset + chunk.compressed_size
    if end > len(data):
        raise ValueError(f"the pages of a column end at byte {end:,}, the file has {len(data):,}")
    view = memoryview(data)[:end]
    count = 0
    while count < chunk.value_count:
        reader = ThriftReader(view, position)
        page = reader.read_struct(_PAGE)
        position = reader.position + page.get(3, -1)
        header = page.get(_HEADERS.get(page.get(1, -1), (0, 0))[0])
        if min(page.get(1, -1), page.get(2, -1), page.get(3, -1)) < 0 or position > end:
            raise ValueError("the header of a page is damaged")
        if header is not None:
            if header.get(1, -1) < 0:
                raise ValueError("a page has no number of values, or a negative one")
            count += header[1]
        elif page[1] in _HEADERS:
            raise ValueError("the header of a page is damaged")
        yield page, bytes(view[reader.position : position])


def _find_longest(stored: bytes, size: int, codec: int) -> int:
    """Return the length of the longest entry of a dictionary of byte arrays."""
    if codec in _CODECS:
        inflated = pa.Codec(_CODECS[codec]).decompress(stored, size, asbytes=True)
    elif codec == 0:
        inflated = stored
    else:
        return size
    position = longest = 0
    while position + 4 <= len(inflated):
        length = int.from_bytes(inflated[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
    return longest
