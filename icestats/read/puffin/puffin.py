"""Puffin files: the footer, and each blob's bytes.

Every length is checked against the file before anything is read or allocated. Source: Iceberg's Puffin spec.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import lz4.frame
import zstandard

from icestats.answers.text import one_line
from icestats.errors import PuffinFormatError
from icestats.iceberg.storage import FileReader, check_value_count, expanded_limit

MAGIC = b"PFA1"
COMPRESSED_FOOTER_FLAG = 1
"""Bit 0 of the first flag byte: the footer's payload is one LZ4 frame."""
MAX_FOOTER_SIZE_BYTES = 64 * 2**20
"""Largest footer payload that is read, compressed or not."""
MAX_BLOBS = 100_000
"""Most blobs of a file that are read."""
MAX_FOOTER_VALUES = 1 << 22
"""Most values of a footer's JSON."""
MAX_BLOB_SIZE_BYTES = 2**31 - 1
"""Largest blob that is read, stored or decompressed."""
HIDDEN_BLOBS = "icestats.blobs"
"""Property of a file that describes the blobs which engines do not see: a JSON array in the shape of the footer's own
`blobs`. Their bytes lie between those of the listed blobs and the footer."""
MAX_HIDDEN_BLOBS_LENGTH = 4 * 2**20
"""Longest text of this property, in characters. Java's JSON reader (Jackson 2.15) refuses a text of 5,000,000."""

# Footer: magic, payload, payload size (4 bytes), flags (4 bytes), magic.
_FOOTER_TRAILER_SIZE_BYTES = 12
_FOOTER_FRAME_SIZE_BYTES = 16
_SMALLEST_FILE_SIZE_BYTES = len(MAGIC) + _FOOTER_FRAME_SIZE_BYTES
_TAIL_SIZE_BYTES = 64 * 2**10


@dataclass(frozen=True, slots=True)
class PuffinBlob:
    """A blob, as the footer describes it."""

    type: str
    field_ids: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    """Bytes from the beginning of the file."""
    length: int
    """Bytes as stored, that is after compression."""
    compression_codec: str | None
    properties: Mapping[str, str]
    is_hidden: bool = False
    """Whether the property `HIDDEN_BLOBS` describes it, and not the footer's list, which engines read."""

    @property
    def label(self) -> str:
        """The blob's type and fields, for messages."""
        return f"the blob {self.type[:80]!r} of fields {list(self.field_ids[:5])}"


@dataclass(frozen=True, slots=True)
class PuffinFooter:
    """What a Puffin file says of itself."""

    blobs: tuple[PuffinBlob, ...]
    properties: Mapping[str, str]
    file_size_bytes: int
    footer_size_bytes: int
    """The footer with both magics: metadata.json's `file-footer-size-in-bytes`."""
    payload_size_bytes: int
    """The footer's JSON, inflated."""


def read_puffin_footer(data: bytes | FileReader, path: str) -> PuffinFooter:
    """Read a Puffin file's footer.

    Reads the last 64 KiB, and the rest of the footer where it is longer.

    Parameters
    ----------
    data : bytes or FileReader
        The file's bytes, or what reads ranges of it.
    path : str
        The file's location, for the reader and for messages.

    Returns
    -------
    PuffinFooter
        Blobs of every type, the listed ones first, then the hidden ones; members of the JSON that the spec does not
        name are left out.

    Raises
    ------
    PuffinFormatError
        The file is cut or damaged, or its footer is longer than `MAX_FOOTER_SIZE_BYTES`; `offset` says where.

    Notes
    -----
    Source: Puffin spec, "File structure", "Footer structure" and "Footer payload". The spec has no checksum over the
    footer: a damaged figure that is still possible cannot be told from a true one.

    Examples
    --------
    >>> payload = b'{"blobs":[]}'
    >>> file = b"PFA1" + b"PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1"
    >>> read_puffin_footer(file, "empty.puffin").blobs
    ()
    """
    reader = _reader(data)
    size = reader.size(path)
    if size < _SMALLEST_FILE_SIZE_BYTES:
        raise PuffinFormatError(
            f"cut off: {size} bytes, a Puffin file has {_SMALLEST_FILE_SIZE_BYTES} at least", path, 0
        )
    tail_offset = max(0, size - _TAIL_SIZE_BYTES)
    tail = _read_range(reader, tail_offset, size - tail_offset, path)
    if tail_offset == 0:
        _expect_magic(tail[:4], path, 0)
    _expect_magic(tail[-4:], path, size - 4)
    payload_size = int.from_bytes(tail[-12:-8], "little", signed=True)
    footer_size = payload_size + _FOOTER_FRAME_SIZE_BYTES
    if not 0 < payload_size <= min(MAX_FOOTER_SIZE_BYTES, size - _SMALLEST_FILE_SIZE_BYTES):
        raise PuffinFormatError(
            f"the footer's payload says {payload_size} bytes, expected 1 to {size - _SMALLEST_FILE_SIZE_BYTES} "
            f"in a file of {size} bytes and {MAX_FOOTER_SIZE_BYTES} at most",
            path,
            size - _FOOTER_TRAILER_SIZE_BYTES,
        )
    footer_offset = size - footer_size
    footer = tail[-footer_size:] if footer_size <= len(tail) else _read_range(reader, footer_offset, footer_size, path)
    _expect_magic(footer[:4], path, footer_offset)
    payload = _footer_payload(footer[4:-_FOOTER_TRAILER_SIZE_BYTES], footer[-8:-4], path, footer_offset + 4)
    blobs, properties = _parse_footer_payload(payload, path, footer_offset)
    return PuffinFooter(blobs, properties, size, footer_size, len(payload))


def read_blob(
    data: bytes | FileReader, blob: PuffinBlob, path: str, *, max_size_bytes: int = MAX_BLOB_SIZE_BYTES
) -> bytes:
    """Read one blob and decompress it.

    Parameters
    ----------
    data : bytes or FileReader
        The file's bytes, or what reads ranges of it.
    blob : PuffinBlob
        Of that file's footer.
    path : str
        The file's location, for the reader and for messages.
    max_size_bytes : int
        Largest blob to accept, stored or decompressed.

    Returns
    -------
    bytes
        The payload.

    Raises
    ------
    PuffinFormatError
        The blob is cut or damaged, its codec is none of none, zstd and lz4, its frame does not say its content size
        (as the spec asks), or it is larger than the limit.

    Notes
    -----
    Source: Puffin spec, "Compression codecs". Memory is at most the stored and the stated size, which is checked
    against the `expanded_limit` of the stored bytes.

    Examples
    --------
    >>> read_blob(b"PFA1hello", PuffinBlob("note", (1,), 1, 1, 4, 5, None, {}), "note.puffin")
    b'hello'
    """
    stored = read_stored_blob(data, blob, path, max_size_bytes=max_size_bytes)
    if blob.compression_codec is None:
        return stored
    if blob.compression_codec == "zstd":
        return _decompress_zstd(stored, path, blob.offset, max_size_bytes)
    if blob.compression_codec == "lz4":
        return _decompress_lz4(stored, path, blob.offset, max_size_bytes)
    codec = blob.compression_codec
    raise PuffinFormatError(f"{blob.label} has the codec {codec!r:.40}, expected none, zstd or lz4", path, blob.offset)


def read_stored_blob(
    data: bytes | FileReader, blob: PuffinBlob, path: str, *, max_size_bytes: int = MAX_BLOB_SIZE_BYTES
) -> bytes:
    """Read one blob as it is stored, compressed or not.

    Parameters
    ----------
    data, blob, path, max_size_bytes
        As for `read_blob`.

    Returns
    -------
    bytes
        `blob.length` bytes.

    Raises
    ------
    PuffinFormatError
        The file ends before the blob does, or the blob is larger than the limit.

    Examples
    --------
    >>> read_stored_blob(b"PFA1hello", PuffinBlob("note", (1,), 1, 1, 4, 2, "zstd", {}), "note.puffin")
    b'he'
    """
    reader = _reader(data)
    size = reader.size(path)
    if not (0 <= blob.length <= max_size_bytes and len(MAGIC) <= blob.offset <= size - blob.length):
        raise PuffinFormatError(
            f"{blob.label} has {blob.length} bytes, the file ends at {size} and the limit is {max_size_bytes}",
            path,
            blob.offset,
        )
    return _read_range(reader, blob.offset, blob.length, path)


@contextmanager
def damage_at(path: str, offset: int, what: str) -> Iterator[None]:
    """Raise a ValueError, KeyError or TypeError as a PuffinFormatError of this place that begins with `what`."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise PuffinFormatError(f"{what}: {said}", path, offset) from error


class _BytesReader:
    """A file that is in memory already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self, location: str) -> int:  # noqa: ARG002 - there is only one file
        return len(self._data)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:  # noqa: ARG002 - as above
        return self._data[offset : None if length is None else offset + length]


def _reader(data: bytes | FileReader) -> FileReader:
    return _BytesReader(data) if isinstance(data, bytes) else data


def _read_range(reader: FileReader, offset: int, length: int, path: str) -> bytes:
    data = reader.read(path, offset, length)
    if len(data) != length:
        raise PuffinFormatError(f"cut off: {len(data)} of {length} bytes", path, offset)
    return data


def _expect_magic(found: bytes, path: str, offset: int) -> None:
    if found != MAGIC:
        raise PuffinFormatError(f"no magic {MAGIC!r} here: not a Puffin file, cut, or encrypted", path, offset)


def _footer_payload(payload: bytes, flags: bytes, path: str, offset: int) -> bytes:
    if flags == bytes(4):
        return payload
    if flags == bytes([COMPRESSED_FOOTER_FLAG, 0, 0, 0]):
        return _decompress_lz4(payload, path, offset, MAX_FOOTER_SIZE_BYTES)
    raise PuffinFormatError(
        f"the footer has flags {flags.hex()}, expected 00000000 or 01000000", path, offset + len(payload) + 4
    )


def _parse_footer_payload(
    payload: bytes, path: str, footer_offset: int
) -> tuple[tuple[PuffinBlob, ...], dict[str, str]]:
    try:
        check_value_count(payload, MAX_FOOTER_VALUES)
        document = json.loads(payload.decode("utf-8"), parse_constant=_no_constant)
        if not isinstance(document, dict):
            raise TypeError(f"a JSON {type(document).__name__}, expected an object")
        listed = _build_blobs(_typed(document, "blobs", list))
        properties = _texts(document.get("properties"))
    except _NOT_AS_EXPECTED as error:
        raise _not_as("the spec says", error, path, footer_offset) from error
    try:
        hidden = _build_blobs(_parse_hidden(properties.pop(HIDDEN_BLOBS, "[]")), is_hidden=True)
    except _NOT_AS_EXPECTED as error:
        raise _not_as(f"its property {HIDDEN_BLOBS} should be", error, path, footer_offset) from error
    _check_places(listed, len(MAGIC), path, footer_offset)
    _check_places(hidden, max((b.offset + b.length for b in listed), default=len(MAGIC)), path, footer_offset)
    if (size := sum(blob.length for blob in listed + hidden)) > footer_offset - len(MAGIC):
        # Each is read on its own: a few bytes would be read as often as blobs name them.
        raise PuffinFormatError(f"its blobs have {size:,} bytes, more than the file", path, footer_offset + 4)
    return listed + hidden, properties


_NOT_AS_EXPECTED = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def _not_as(expected: str, error: Exception, path: str, footer_offset: int) -> PuffinFormatError:
    what = f"no {error}" if isinstance(error, KeyError) else one_line(error)
    return PuffinFormatError(f"the footer's payload is not as {expected}: {what}", path, footer_offset + 4)


def _parse_hidden(text: str) -> list[Any]:
    if len(text) > MAX_HIDDEN_BLOBS_LENGTH:
        raise ValueError(f"{len(text):,} characters, expected {MAX_HIDDEN_BLOBS_LENGTH:,} at most")
    described = json.loads(text, parse_constant=_no_constant)
    if not isinstance(described, list):
        raise TypeError(f"a JSON {type(described).__name__}, expected an array")
    return described


def _check_places(blobs: Sequence[PuffinBlob], begin: int, path: str, footer_offset: int) -> None:
    for blob in blobs:
        if blob.offset < begin or blob.length < 0 or blob.offset + blob.length > footer_offset:
            raise PuffinFormatError(
                f"{blob.label} lies from {blob.offset} to {blob.offset + blob.length}, "
                f"expected a place between {begin} and {footer_offset}",
                path,
                footer_offset + 4,
            )


def _build_blobs(described: list[Any], *, is_hidden: bool = False) -> tuple[PuffinBlob, ...]:
    if len(described) > MAX_BLOBS:
        raise ValueError(f"{len(described):,} blobs, expected {MAX_BLOBS:,} at most")
    return tuple(_build_blob(blob, is_hidden=is_hidden) for blob in described)


def _build_blob(document: Mapping[str, Any], *, is_hidden: bool) -> PuffinBlob:
    codec = document.get("compression-codec")
    return PuffinBlob(
        type=_text(document["type"]),
        field_ids=tuple(_integer(field_id, 31) for field_id in _typed(document, "fields", list)),
        snapshot_id=_integer(document["snapshot-id"], 63),
        sequence_number=_integer(document["sequence-number"], 63),
        offset=_integer(document["offset"], 63),
        length=_integer(document["length"], 63),
        compression_codec=None if codec is None else _text(codec),
        properties=_texts(document.get("properties")),
        is_hidden=is_hidden,
    )


def _typed(document: Mapping[str, Any], name: str, kind: type) -> Any:
    value = document[name]
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r:.60}, expected a {kind.__name__}")
    return value


def _integer(value: Any, bits: int) -> int:
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise TypeError(f"{value!r:.60} where an integer of {bits + 1} bits belongs")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} where text belongs")
    value.encode()
    return value


def _texts(value: Any) -> dict[str, str]:
    return {_text(k): _text(v) for k, v in ({} if value is None else value).items()}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _decompress_zstd(stored: bytes, path: str, offset: int, max_size_bytes: int) -> bytes:
    try:
        content_size = zstandard.frame_content_size(stored)
        _check_content_size(content_size, len(stored), max_size_bytes, path, offset)
        content = zstandard.ZstdDecompressor().decompress(stored, allow_extra_data=False)
        # Where the frame says 0 bytes, decompress() returns them without a look at the rest.
        if content_size == 0 and zstandard.ZstdDecompressor().stream_reader(stored).read(1):
            raise zstandard.ZstdError("a frame that says it is empty has content")
    except (zstandard.ZstdError, MemoryError, ValueError) as error:
        raise PuffinFormatError(f"not one whole zstd frame: {one_line(error)}", path, offset) from error
    return content


def _decompress_lz4(stored: bytes, path: str, offset: int, max_size_bytes: int) -> bytes:
    try:
        content_size: int = lz4.frame.get_frame_info(stored)["content_size"]
        _check_content_size(content_size, len(stored), max_size_bytes, path, offset)
        decompressor = lz4.frame.LZ4FrameDecompressor()
        content: bytes = decompressor.decompress(stored, max_length=content_size + 1)
    except (RuntimeError, MemoryError, ValueError, EOFError) as error:
        raise PuffinFormatError(f"not one whole LZ4 frame: {one_line(error)}", path, offset) from error
    if len(content) != content_size or not decompressor.eof or decompressor.unused_data:
        raise PuffinFormatError(
            f"not one whole LZ4 frame with its content size: it says {content_size} bytes and holds {len(content)}",
            path,
            offset,
        )
    return content


def _check_content_size(content_size: int, stored_size: int, max_size_bytes: int, path: str, offset: int) -> None:
    if content_size < 0:
        raise PuffinFormatError("the compressed frame does not say its content size, as the spec asks", path, offset)
    limit = min(max_size_bytes, expanded_limit(stored_size))
    if content_size > limit:
        raise PuffinFormatError(
            f"the compressed frame says {content_size} bytes of content, expected {limit} at most", path, offset
        )
