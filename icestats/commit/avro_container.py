"""Avro object container files, as bytes: encoded records -> header and blocks.

Source: Avro 1.12 specification, "Object Container Files".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from icestats.read.avro.avro_file import MAGIC, SYNC_SIZE

RECORDS_A_BLOCK = 256


def write_container(
    schema: Mapping[str, Any],
    records: Sequence[bytes | memoryview],
    metadata: Mapping[str, str] | None = None,
    *,
    records_a_block: int = RECORDS_A_BLOCK,
) -> bytes:
    r"""Return the bytes of a file of records, not compressed.

    Parameters
    ----------
    schema : mapping
        Their Avro schema.
    records : sequence of bytes
        Each record, encoded.
    metadata : mapping of str to str, optional
        More of the header's metadata.
    records_a_block : int, optional
        A reader finds where each block begins without decoding what is before it.

    Notes
    -----
    Equal content gives equal bytes: the sync marker is made from it.

    Examples
    --------
    >>> write_container({"type": "long"}, [b"\x02"])[:4]
    b'Obj\x01'
    """
    described = {"avro.schema": json.dumps(schema, separators=(",", ":")), "avro.codec": "null", **(metadata or {})}
    sync = hashlib.blake2b(b"".join(records[:RECORDS_A_BLOCK]), digest_size=SYNC_SIZE).digest()
    out = bytearray(MAGIC + encode_long(len(described)))
    for text in (part.encode() for pair in described.items() for part in pair):
        out += encode_long(len(text)) + text
    out += encode_long(0) + sync
    for first in range(0, len(records), records_a_block):
        chosen = records[first : first + records_a_block]
        block = b"".join(chosen)
        out += encode_long(len(chosen)) + encode_long(len(block)) + block + sync
    return bytes(out)


def encode_long(number: int) -> bytes:
    r"""Return a number of variable length.

    Examples
    --------
    >>> encode_long(-1)
    b'\x01'
    """
    word = (number << 1) ^ (number >> 63)
    out = bytearray()
    while word > 0x7F:
        out.append(0x80 | (word & 0x7F))
        word >>= 7
    return bytes([*out, word])
