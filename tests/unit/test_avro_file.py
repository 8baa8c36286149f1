"""Avro container files: headers, blocks, codecs, and what is wrong with them."""

from __future__ import annotations

import io
from collections.abc import Callable

import fastavro
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from icestats.errors import MetadataError
from icestats.iceberg.avro_codecs import find_codec
from icestats.read.avro import avro_file, block_inflater
from icestats.read.avro.avro_file import parse_schema, read_batches, read_header
from icestats.read.avro.block_inflater import BlockInflater
from tests.avro_bytes import CODECS, deflate, snappy, varint, zstandard_stream

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
SYNC = b"0123456789abcdef"


COMPRESS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    **{codec: (codec, compress) for codec, compress in CODECS.items()},
    "zstandard without its size": ("zstandard", zstandard_stream),
    "zstandard": ("zstandard", zstandard.ZstdCompressor().compress),
}


def container(codec: str = "null", *blocks: tuple[int, bytes]) -> bytes:
    meta = {b"avro.schema": b'"long"', b"avro.codec": codec.encode()}
    pairs = b"".join(varint(len(a)) + a + varint(len(b)) + b for a, b in meta.items())
    body = b"".join(varint(count) + varint(len(data)) + data + SYNC for count, data in blocks)
    return b"Obj\x01" + varint(len(meta)) + pairs + b"\x00" + SYNC + body


def inflated(data: bytes, inflater: BlockInflater | None = None) -> list[tuple[int, int, bytes]]:
    """Where each block begins, its number of entries, its bytes."""
    header = read_header(data, "f.avro")
    return [
        (int(offset), int(n), batch.data[a:b].tobytes())
        for batch in read_batches(data, header, inflater)
        for (a, b, n), offset in zip(batch.blocks, batch.offsets, strict=True)
    ]


def error_of(data: bytes) -> MetadataError:
    """The error, the same with and without an inflater."""
    errors = []
    for inflater in (None, BlockInflater()):
        with pytest.raises(MetadataError) as caught:
            inflated(data, inflater)
        errors.append(caught.value)
    assert (str(errors[0]), errors[0].offset) == (str(errors[1]), errors[1].offset)
    assert errors[0].path == "f.avro"
    return errors[0]


def test_header_of_fastavro() -> None:
    """Schema, codec, metadata and sync marker are what another writer put there."""
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, [{"n": 1}], codec="deflate", metadata={"content": "data"}, sync_marker=SYNC)
    header = read_header(out.getvalue(), "f.avro")
    assert (header.codec, header.sync, header.metadata["content"]) == ("deflate", SYNC, b"data")
    assert parse_schema(header)["fields"][0]["type"] == "long"


@pytest.mark.parametrize("name", COMPRESS)
def test_blocks_are_inflated(name: str) -> None:
    """Every codec gives the bytes back, block by block, small and large ones."""
    codec, compress = COMPRESS[name]
    blocks = [(3, b"abc"), (1, b"x" * 3_000_000), (700, bytes(range(256)) * 3)]
    data = container(codec, *((n, compress(data)) for n, data in blocks))
    for inflater in (None, BlockInflater(), BlockInflater(room_size=1000)):
        assert [(n, block) for _, n, block in inflated(data, inflater)] == blocks


def test_no_blocks() -> None:
    """A file without blocks, as writers leave it for no rows, is empty and not damaged."""
    assert inflated(container()) == []
    assert [(n, data) for _, n, data in inflated(container("null", (0, b"")))] == [(0, b"")]
    assert inflated(container("deflate"), BlockInflater()) == []


@pytest.mark.parametrize("inflater", [None, BlockInflater()])
def test_blocks_come_in_batches(monkeypatch: pytest.MonkeyPatch, inflater: BlockInflater | None) -> None:
    """No batch goes on after it has reached its size, so that memory is bounded."""
    monkeypatch.setattr(avro_file, "BATCH_SIZE", 100)
    data = container("deflate", *((1, deflate(bytes(60))) for _ in range(5)))
    header = read_header(data, "f.avro")
    sizes = [len(batch.data) for batch in read_batches(data, header, inflater)]
    assert sizes == [120, 120, 60]


@given(
    blocks=st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=40), st.booleans()), max_size=12),
    room_size=st.integers(1, 200),
)
def test_an_inflater_changes_nothing(blocks, room_size):
    """Whatever its memory holds, and wherever a block is damaged or says that it has more entries than bytes."""
    data = container("deflate", *((n, deflate(block)[is_damaged:]) for n, block, is_damaged in blocks))
    found = []
    for inflater in (None, BlockInflater(room_size)):
        try:
            found.append(inflated(data, inflater))
        except MetadataError as error:
            found.append((str(error), error.offset))
    assert found[0] == found[1]


def test_libdeflate_is_used_where_the_package_exports_it() -> None:
    """As it does on Linux; elsewhere blocks are inflated one by one."""
    data, blocks = BlockInflater().inflate(deflate(b"abc"), [(0, 0, len(deflate(b"abc")), 1)], 1)
    assert (data.tobytes(), blocks.tolist()) == (b"abc", [[0, 3, 1]])


def test_without_libdeflate_no_block_is_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_inflater, "_find_library", lambda: None)
    assert not len(BlockInflater().inflate(deflate(b"abc"), [(0, 0, 5, 1)], 1)[1])
    data = container("deflate", (1, deflate(b"abc")))
    assert inflated(data, BlockInflater()) == inflated(data)


@pytest.mark.parametrize(
    ("data", "offset", "what"),
    [
        (b"", 0, "not an Avro file"),
        (b"PAR1" + bytes(50), 0, "not an Avro file"),
        (b"AGS1\0\0\x10\0" + bytes(50), 0, "it is encrypted, and encrypted metadata is not read"),
        (container()[:30], None, "header is cut"),
        (b"Obj\x01" + varint(2**60), None, "header is cut"),
        (b"Obj\x01\x00" + SYNC, 21 - 16, "no avro.schema"),
        (container("lzo", (1, b"a")), 0, "unknown codec 'lzo', expected one of bzip2, deflate"),
        (container("null", (-1, b"a")), len(container()), "a length is negative"),
        (container("null", (2, b"a")), len(container()), "a block has 2 entries, but only 1 bytes"),
        (container("null", (2**60, b"a")), len(container()), "entries, but only 1 bytes"),
        (container() + varint(1) + varint(-5), len(container()) + 1, "a length is negative"),
        (container() + varint(1) + varint(2**60), len(container()) + 1, "past the end"),
        (container() + b"\xff" * 20, len(container()), "longer than 64 bits"),
        (container() + b"\xff" * 3, len(container()), "past the end"),
        (container("null", (1, b"abc"))[:-1], len(container()) + 5, "past the end"),
        (container("null", (1, b"abc"))[:-1] + b"?", len(container()) + 5, "sync marker"),
    ],
)
def test_damage_is_named_with_its_place(data: bytes, offset: int | None, what: str) -> None:
    """The error says what is wrong and at which byte of the file."""
    error = error_of(data)
    assert what in str(error)
    assert offset is None or error.offset == offset


@pytest.mark.parametrize("name", [name for name in COMPRESS if name != "null"])
def test_damaged_and_cut_blocks(name: str) -> None:
    """A block that does not inflate is an error at the place of the block."""
    codec, compress = COMPRESS[name]
    packed = compress(bytes(range(256)) * 40)
    for damaged in (b"", packed[: len(packed) // 2], b"\xff" * 40, packed[:4]):
        assert error_of(container(codec, (1, damaged))).offset == len(container(codec))


def test_snappy_checks_the_crc() -> None:
    """A wrong CRC-32 is noticed even though the block inflates."""
    packed = snappy(b"abc" * 50)
    assert "CRC-32" in str(error_of(container("snappy", (1, packed[:-1] + b"\x00"))))


@pytest.mark.parametrize("name", [name for name in COMPRESS if name not in ("null", "snappy")])
def test_bombs_are_defused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that inflates to more than its limit is an error, and is not inflated any further."""
    monkeypatch.setattr(avro_file, "MAX_BLOCK_SIZE", 1 << 20)
    codec, compress = COMPRESS[name]
    bomb = compress(bytes(50 << 20))
    assert "more than 1,048,576 bytes" in str(error_of(container(codec, (1, bomb))))


@pytest.mark.parametrize(("block_mib", "count", "left"), [(3, 22, "1,048,576"), (1, 65, "0")])
def test_many_blocks_are_no_way_around_the_limit(block_mib: int, count: int, left: str) -> None:
    """A file may inflate to a multiple of its length only, all blocks together."""
    block = (1, deflate(bytes(block_mib << 20)))
    assert f"inflates to more than {left} bytes" in str(error_of(container("deflate", *[block] * count)))


def test_a_snappy_block_may_not_claim_to_be_huge() -> None:
    """The length that a snappy block states is checked before anything is reserved."""
    claim = b"\xff\xff\xff\xff\x0f" + bytes(20)
    assert "more than" in str(error_of(container("snappy", (1, claim))))


def test_find_codec_names_the_codecs() -> None:
    """An unknown codec is a ValueError that lists the known ones."""
    with pytest.raises(ValueError, match="bzip2, deflate, null, snappy, xz, zstandard"):
        find_codec("lz4")


def test_numbers_of_every_length() -> None:
    """Block lengths of one to five bytes are read alike."""
    for size in (0, 63, 64, 8191, 8192, 1_048_575, 1_048_576, 134_217_728):
        data = np.zeros(size, np.uint8).tobytes()
        assert [len(block) for _, _, block in inflated(container("null", (0, data)))] == [size]
