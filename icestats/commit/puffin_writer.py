"""Puffin files, as bytes: new blobs, and those of others carried over as they are; which of them engines see.

Source: Iceberg's Puffin spec. Nothing here touches storage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Literal

import lz4.frame
import zstandard

from icestats.errors import CallError
from icestats.iceberg.metadata import BlobMetadata
from icestats.read.puffin.puffin import (
    COMPRESSED_FOOTER_FLAG,
    HIDDEN_BLOBS,
    MAGIC,
    MAX_HIDDEN_BLOBS_LENGTH,
    PuffinBlob,
)
from icestats.read.puffin.statistics_files import KLL

MAX_LISTED_BLOB_SIZE_BYTES = 256 * 2**10
"""Largest blob, before compression, that the footer lists: 8 times the Theta sketch of a column as Iceberg writes it.
Presto reads and inflates every listed blob when it plans."""
_ZSTD_LEVEL = 3

Codec = Literal["zstd", "lz4"]


@dataclass(frozen=True, slots=True)
class NewBlob:
    """A blob that is to be written."""

    type: str
    field_ids: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    payload: bytes = field(repr=False)
    """Before compression."""
    properties: Mapping[str, str] = field(default_factory=dict)
    compression_codec: Codec | None = "zstd"


@dataclass(frozen=True, slots=True)
class CarriedBlob:
    """A blob of an earlier file, to be copied byte for byte; its offset there does not matter."""

    blob: PuffinBlob
    stored: bytes = field(repr=False)
    """As `read_stored_blob` returns it: compressed with the blob's own codec."""


@dataclass(frozen=True, slots=True)
class PuffinBytes:
    """A whole Puffin file."""

    data: bytes = field(repr=False)
    footer_size_bytes: int
    """The footer with both magics: metadata.json's `file-footer-size-in-bytes`."""
    blobs: tuple[PuffinBlob, ...]


def created_by() -> str:
    """Return what a file says of its writer.

    Examples
    --------
    >>> created_by().split()[0]
    'icestats'
    """
    return f"icestats {version('icestats')}"


def write_puffin(
    blobs: Sequence[NewBlob | CarriedBlob],
    *,
    properties: Mapping[str, str] | None = None,
    compress_footer: bool = False,
) -> PuffinBytes:
    """Build a Puffin file.

    Parameters
    ----------
    blobs : sequence of NewBlob or CarriedBlob
        Carried blobs keep their bytes, codec, properties, snapshot and sequence number.
    properties : mapping of str to str, optional
        The file's properties; `created-by` is always this package and its version.
    compress_footer : bool
        LZ4 for the footer's payload. Iceberg's Java and PyIceberg read plain footers only.

    Returns
    -------
    PuffinBytes
        The file's bytes, the size of its footer, and its blobs with their offsets and lengths in bytes, in file order:
        those that the footer lists, as they were given, then those that are hidden from engines.

    Raises
    ------
    CallError
        A blob has a codec other than none, zstd and lz4; or what describes the hidden ones is too long.

    Notes
    -----
    Presto wants exactly one field in every blob that the footer lists, and plans without any statistics of the table
    otherwise (`TableStatisticsMaker.loadStatisticsFile`). Trino lists in metadata.json whatever the footer lists
    (`TableStatisticsWriter.copyRetainedStatistics`), where PyIceberg 0.12 refuses all types but Theta. So a blob of no
    field or several, one of more than `MAX_LISTED_BLOB_SIZE_BYTES`, and all of kinds that only this package writes are
    hidden: their bytes are in the file, and the file's property `HIDDEN_BLOBS` describes them. Blobs that others wrote
    stay where they were: their readers look there.
    zstd and LZ4 frames say their content size, as the spec asks, and have a checksum.
    Source: Puffin spec, "File structure", "Footer payload" and "Compression codecs".

    Examples
    --------
    >>> from icestats.read.puffin.puffin import read_blob, read_puffin_footer
    >>> file = write_puffin([NewBlob("note", (1,), 7, 1, b"hello")])
    >>> footer = read_puffin_footer(file.data, "note.puffin")
    >>> read_blob(file.data, footer.blobs[0], "note.puffin")
    b'hello'
    """
    data = bytearray(MAGIC)
    written: list[PuffinBlob] = []
    for blob in sorted(blobs, key=hides):
        described, stored = _store(blob)
        written.append(replace(described, offset=len(data), length=len(stored), is_hidden=hides(blob)))
        data += stored
    footer = _footer(written, {**(properties or {}), "created-by": created_by()}, compress=compress_footer)
    data += footer
    return PuffinBytes(bytes(data), len(footer), tuple(written))


def hides(blob: NewBlob | CarriedBlob) -> bool:
    """Whether a blob is hidden from engines."""
    if isinstance(blob, CarriedBlob):
        return blob.blob.is_hidden or is_own(blob.blob)
    return is_own(blob) or len(blob.field_ids) != 1 or len(blob.payload) > MAX_LISTED_BLOB_SIZE_BYTES


def is_own(blob: NewBlob | PuffinBlob | BlobMetadata) -> bool:
    """Whether a blob is of a kind that only this package writes, and never lists in metadata.json."""
    return blob.type.startswith("icestats-") or (blob.type == KLL and "item-type" in blob.properties)


def _store(blob: NewBlob | CarriedBlob) -> tuple[PuffinBlob, bytes]:
    if isinstance(blob, CarriedBlob):
        return blob.blob, blob.stored
    codec = blob.compression_codec
    described = PuffinBlob(
        blob.type, tuple(blob.field_ids), blob.snapshot_id, blob.sequence_number, 0, 0, codec, dict(blob.properties)
    )
    if codec is None:
        return described, blob.payload
    if codec == "zstd":
        return described, zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compress(blob.payload)
    if codec == "lz4":
        return described, _compress_lz4(blob.payload)
    raise CallError(f"blob {blob.type!r} asks for the codec {codec!r}: expected 'zstd', 'lz4' or None")


def _compress_lz4(payload: bytes) -> bytes:
    frame: bytes = lz4.frame.compress(payload, store_size=True, content_checksum=True)
    return frame


def _footer(blobs: Sequence[PuffinBlob], properties: Mapping[str, str], *, compress: bool) -> bytes:
    listed = [_document(blob) for blob in blobs if not blob.is_hidden]
    hidden = _to_json([_document(blob) for blob in blobs if blob.is_hidden])
    if len(hidden) > MAX_HIDDEN_BLOBS_LENGTH:
        raise CallError(
            f"what describes the blobs that engines do not see has {len(hidden):,} characters, expected "
            f"{MAX_HIDDEN_BLOBS_LENGTH:,} at most: commit fewer columns, perhaps with keep_earlier=False"
        )
    document: dict[str, object] = {"blobs": listed, "properties": dict(properties)}
    if hidden != "[]":
        document["properties"] = {**properties, HIDDEN_BLOBS: hidden}
    payload = _to_json(document).encode()
    if compress:
        payload = _compress_lz4(payload)
    flags = bytes([COMPRESSED_FOOTER_FLAG if compress else 0, 0, 0, 0])
    return MAGIC + payload + len(payload).to_bytes(4, "little") + flags + MAGIC


def _to_json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def _document(blob: PuffinBlob) -> dict[str, object]:
    document: dict[str, object] = {
        "type": blob.type,
        "fields": list(blob.field_ids),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.compression_codec is not None:
        document["compression-codec"] = blob.compression_codec
    if blob.properties:
        document["properties"] = dict(blob.properties)
    return document
