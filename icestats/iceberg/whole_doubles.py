"""PyIceberg's reader of Avro, made to keep all of a double.

PyIceberg 0.12 has a compiled decoder whose `read_double` gives a C float. Of a table that is partitioned by the values
of a double column it knows partitions near those that there are, and plans no file for `price = 0.1`.
"""

from __future__ import annotations

import struct
from typing import cast

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.reader import DoubleReader


def read_whole_doubles() -> None:
    """Let PyIceberg read doubles in manifests as they are, in this whole process.

    Notes
    -----
    To be removed once `pyiceberg.avro.decoder_fast.CythonBinaryDecoder.read_double` gives 0.1 for the bytes of 0.1.
    """
    DoubleReader.read = _read  # type: ignore[assignment]  # what is mended


def _read(_: DoubleReader, decoder: BinaryDecoder) -> float:
    return cast(float, struct.unpack("<d", decoder.read(8))[0])
