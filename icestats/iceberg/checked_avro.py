"""PyIceberg's reader of Avro, made to take each value for what the file's schema says that it is.

PyIceberg 0.12 has a compiled decoder that reads on behind the end of its bytes, and leaps before their beginning. So
the process ends, or shows its memory, where values are longer or shorter in a file than PyIceberg takes them for:
decimals of any number of bytes, uuids as text, enums, times that are no longs, and blocks of arrays that state another
length than they have. All else is as the kit has read it before, by the same schema.

Blocks are inflated as the kit does: PyIceberg has no limit, goes on behind the end of a stream with what follows it,
and needs another package for snappy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyiceberg.avro import reader
from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.types import IcebergType
from pyiceberg.utils.decimal import decimal_required_bytes
from pyiceberg.utils.schema_conversion import PRIMITIVE_FIELD_TYPE_MAPPING, AvroSchemaConversion

from icestats.iceberg.avro_codecs import find_codec
from icestats.iceberg.storage import expanded_limit

_convert = AvroSchemaConversion._convert_logical_type
_BASES = {"map": "array", "timestamp-micros": "long"}


def read_avro_as_written() -> None:
    """Let PyIceberg refuse schemas that it misreads, pass over arrays by their items and inflate blocks with a limit.

    In this whole process.

    Notes
    -----
    To be removed once `pyiceberg.avro.decoder_fast.CythonBinaryDecoder` reads no bytes but its own.
    """
    PRIMITIVE_FIELD_TYPE_MAPPING.pop("enum", None)
    AvroSchemaConversion._convert_logical_type = _convert_checked  # type: ignore[assignment,method-assign]  # mended
    reader._skip_map_array = _skip_items  # type: ignore[assignment]  # mended
    for name, codec in KNOWN_CODECS.items():
        if codec is not None:
            codec.decompress = _inflate(name)  # type: ignore[assignment,method-assign]  # mended


def _inflate(name: str) -> Callable[[bytes], bytes]:
    return lambda data: bytes(find_codec(name)(memoryview(data), expanded_limit(len(data))))


def _convert_checked(conversion: AvroSchemaConversion, avro: dict[str, Any]) -> IcebergType:
    logical, base = avro["logicalType"], avro["type"]
    if logical in ("decimal", "uuid"):
        size = 16 if logical == "uuid" else decimal_required_bytes(avro["precision"])
        is_read = base == "fixed" and avro.get("size") == size
    else:
        is_read = base == _BASES.get(logical, base)
    if not is_read:
        raise ValueError(f"a manifest has a {logical} as {base!s:.80}, in a way that PyIceberg does not read")
    return _convert(conversion, avro)


def _skip_items(decoder: BinaryDecoder, skip_item: Callable[[], None]) -> None:
    while (count := decoder.read_int()) != 0:
        if count < 0:
            decoder.read_int()
        for _ in range(abs(count)):
            skip_item()
