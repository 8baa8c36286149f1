"""PyIceberg's reader of Avro, made to keep all of a double, and to give one NaN.

PyIceberg 0.12 has a compiled decoder whose `read_double` gives a C float. Of a table that is partitioned by the values
of a double column it knows partitions near those that there are, and plans no file for `price = 0.1`.

It finds the delete files of a data file by their partition, in a dict, where one NaN is another key than the next: rows
of the partition NaN came back.
"""

from __future__ import annotations

import math
import struct

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.reader import DoubleReader, FloatReader


def read_whole_doubles() -> None:
    """Let PyIceberg read doubles in manifests as they are, and NaN as one object, in this whole process.

    Notes
    -----
    To be removed once `pyiceberg.avro.decoder_fast.CythonBinaryDecoder.read_double` gives 0.1 for the bytes of 0.1, and
    `pyiceberg.table.delete_file_index.DeleteFileIndex` finds the deletes of the partition NaN.
    """
    DoubleReader.read = _read_double  # type: ignore[assignment]  # what is mended
    FloatReader.read = _read_float  # type: ignore[assignment]  # what is mended


def _read_double(_: DoubleReader, decoder: BinaryDecoder) -> float:
    return _with_one_nan("<d", decoder.read(8))


def _read_float(_: FloatReader, decoder: BinaryDecoder) -> float:
    return _with_one_nan("<f", decoder.read(4))


def _with_one_nan(layout: str, raw: bytes) -> float:
    (value,) = struct.unpack(layout, raw)
    return math.nan if math.isnan(value) else value
