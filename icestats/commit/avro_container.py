"""Avro object container files, as bytes: encoded records -> header and blocks.

Source: Avro 1.12 specification, "Object Container Files".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from icestats.read.avro_file import MAGIC, SYNC_SIZE
from icestats.read.avro_tokens import encode_tokens

RECORDS_A_BLOCK = 256


def write_container(
    schema: Mapping[str, Any], records: Sequence[bytes], metadata: Mapping[str, str] | None = None
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
    for first in range(0, len(records), RECORDS_A_BLOCK):
        chosen = records[first : first + RECORDS_A_BLOCK]
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
    return encode_tokens(np.array([number], np.int64), np.zeros(1, np.int64), ())[0]
