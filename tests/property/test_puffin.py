"""Puffin files: any blobs round-trip, and no damage gives anything but the same content or a PuffinFormatError."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icestats.commit.puffin_writer import NewBlob, write_puffin
from icestats.errors import PuffinFormatError
from icestats.read.puffin.puffin import read_blob, read_puffin_footer

PATH = "a.stats"
JAVA_FILE = (Path(__file__).parent.parent / "golden" / "compute_table_stats.stats").read_bytes()
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
PAYLOADS = st.one_of(
    st.binary(max_size=300), st.builds(lambda b, n: b * n, st.binary(max_size=20), st.integers(0, 400))
)
BLOBS = st.builds(
    NewBlob,
    type=TEXTS,
    field_ids=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3).map(tuple),
    snapshot_id=LONGS,
    sequence_number=LONGS,
    payload=PAYLOADS,
    properties=st.dictionaries(TEXTS, TEXTS, max_size=3),
    compression_codec=st.sampled_from(["zstd", "lz4", None]),
)
FILES = st.lists(BLOBS, min_size=1, max_size=4)


def read_all(data: bytes):
    footer = read_puffin_footer(data, PATH)
    return footer, [read_blob(data, blob, PATH) for blob in footer.blobs]


@given(blobs=FILES, properties=st.dictionaries(TEXTS, TEXTS, max_size=3), compress=st.booleans())
def test_any_blobs_round_trip(blobs, properties, compress):
    file = write_puffin(blobs, properties=properties, compress_footer=compress)
    footer, payloads = read_all(file.data)
    in_file_order = sorted(blobs, key=lambda blob: len(blob.field_ids) != 1)
    assert payloads == [blob.payload for blob in in_file_order]
    for read, blob in zip(footer.blobs, in_file_order, strict=True):
        assert read.is_hidden == (len(blob.field_ids) != 1)
        assert (read.type, read.field_ids, read.snapshot_id) == (blob.type, blob.field_ids, blob.snapshot_id)
        assert (read.sequence_number, read.compression_codec) == (blob.sequence_number, blob.compression_codec)
        assert dict(read.properties) == dict(blob.properties)
    assert {**properties, "created-by": footer.properties["created-by"]} == footer.properties


@given(blobs=FILES, data=st.data(), compress=st.booleans())
def test_a_flipped_bit_is_refused_or_changes_no_checked_payload(blobs, data, compress):
    file = write_puffin(blobs, compress_footer=compress)
    in_file_order = sorted(blobs, key=lambda blob: len(blob.field_ids) != 1)
    bit = data.draw(st.integers(0, len(file.data) * 8 - 1))
    damaged = bytearray(file.data)
    damaged[bit // 8] ^= 1 << bit % 8
    in_blobs = bit // 8 < len(file.data) - file.footer_size_bytes
    try:
        footer = read_puffin_footer(bytes(damaged), PATH)
    except PuffinFormatError:
        return
    for index, blob in enumerate(footer.blobs):
        try:
            payload = read_blob(bytes(damaged), blob, PATH)
        except PuffinFormatError:
            continue
        if in_blobs and blob.compression_codec is not None:
            assert payload == in_file_order[index].payload


def refusal_of(data: bytes) -> PuffinFormatError | None:
    try:
        read_all(data)
    except PuffinFormatError as error:
        return error
    return None


@given(blobs=FILES, data=st.data(), compress=st.booleans())
def test_a_cut_file_is_refused(blobs, data, compress):
    file = write_puffin(blobs, compress_footer=compress)
    length = data.draw(st.integers(0, len(file.data) - 1))
    refusal = refusal_of(file.data[:length])
    assert refusal is not None
    assert refusal.path == PATH
    assert 0 <= refusal.offset <= length


@settings(max_examples=300)
@given(data=st.binary(max_size=300), size=st.integers(0, 40), flag=st.sampled_from([0, 0, 1, 2]))
def test_any_bytes_without_a_footer_are_refused(data, size, flag):
    framed = b"PFA1" + data + size.to_bytes(4, "little") + bytes([flag, 0, 0, 0]) + b"PFA1"
    for candidate in (data, framed):
        refusal = refusal_of(candidate)
        assert refusal is not None
        assert 0 <= refusal.offset <= len(candidate)


@given(data=st.data())
def test_any_change_of_a_footers_json_gives_a_footer_or_a_format_error(data):
    hidden = NewBlob("t", (), 1, 1, b"payload" * 9, {"ndv": "3"})
    file = write_puffin([NewBlob("t", (1,), 1, 1, b"payload" * 9, {"ndv": "3"}), hidden])
    start = len(file.data) - file.footer_size_bytes + 4
    place = data.draw(st.integers(start, len(file.data) - 13))
    byte = data.draw(st.sampled_from(list(b'0123456789-+.eE{}[],:"\\\x00\xff nulltrue')))
    damaged = file.data[:place] + bytes([byte]) + file.data[place + 1 :]
    try:
        _, payloads = read_all(damaged)
    except PuffinFormatError:
        return
    assert all(isinstance(payload, bytes) for payload in payloads)


def test_javas_file_cut_anywhere_is_refused():
    for length in range(len(JAVA_FILE)):
        refusal = refusal_of(JAVA_FILE[:length])
        assert refusal is not None, length
        assert 0 <= refusal.offset <= length


@pytest.mark.parametrize("compress_footer", [False, True])
def test_every_flipped_bit_of_a_file_takes_bounded_memory(compress_footer):
    """Every bit of the footer, and every one of each blob's first bytes, which say how large its content is."""
    blobs = [NewBlob("t", (1,), 1, 1, b"payload" * 500, {"ndv": "3"}, codec) for codec in ("zstd", "lz4", None)]
    file = write_puffin(blobs, compress_footer=compress_footer)
    footer_offset = len(file.data) - file.footer_size_bytes
    places = [b.offset + i for b in file.blobs for i in range(min(24, b.length))] + [
        *range(footer_offset, len(file.data))
    ]
    tracemalloc.start()
    try:
        for place in places:
            for bit in range(8):
                damaged = bytearray(file.data)
                damaged[place] ^= 1 << bit
                refusal = refusal_of(bytes(damaged))
                assert refusal is None or 0 <= refusal.offset <= len(file.data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20
