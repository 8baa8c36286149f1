"""The JSON in a Puffin file's footer.

Source: Puffin spec, "Footer payload", "FileMetadata" and "BlobMetadata".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from icestats.answers.text import one_line
from icestats.errors import PuffinFormatError

MAGIC = b"PFA1"


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

    @property
    def label(self) -> str:
        """The blob's type and fields, for messages."""
        return f"the blob {self.type[:80]!r} of fields {list(self.field_ids[:5])}"


def parse_footer_payload(
    payload: bytes, path: str, footer_offset: int
) -> tuple[tuple[PuffinBlob, ...], dict[str, str]]:
    """Return the blobs and properties of a footer that begins at `footer_offset` of the file."""
    try:
        document = json.loads(payload.decode("utf-8"), parse_constant=_no_constant)
        if not isinstance(document, dict):
            raise TypeError(f"a JSON {type(document).__name__}, expected an object")
        blobs = tuple(_build_blob(blob) for blob in _typed(document, "blobs", list))
        properties = _texts(document.get("properties"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else one_line(error)
        raise PuffinFormatError(
            f"the footer's payload is not as the spec says: {what}", path, footer_offset + 4
        ) from error
    for blob in blobs:
        if blob.offset < len(MAGIC) or blob.length < 0 or blob.offset + blob.length > footer_offset:
            raise PuffinFormatError(
                f"{blob.label} lies from {blob.offset} to {blob.offset + blob.length}, "
                f"expected a place between 4 and {footer_offset}",
                path,
                footer_offset + 4,
            )
    return blobs, properties


def _build_blob(document: Mapping[str, Any]) -> PuffinBlob:
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
