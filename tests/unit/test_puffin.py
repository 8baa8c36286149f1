"""Puffin files are read whole, refused where they are cut or damaged, and written as other readers want them."""

from __future__ import annotations

import json
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from pyiceberg.table.puffin import PuffinFile

from icestats.commit.puffin_writer import MAX_LISTED_BLOB_SIZE_BYTES, CarriedBlob, NewBlob, write_puffin
from icestats.errors import CallError, PuffinFormatError
from icestats.iceberg.storage import Storage
from icestats.read.puffin.puffin import (
    HIDDEN_BLOBS,
    MAX_BLOBS,
    MAX_HIDDEN_BLOBS_LENGTH,
    PuffinBlob,
    read_blob,
    read_puffin_footer,
    read_stored_blob,
)

GOLDEN = Path(__file__).parent.parent / "golden"
PATH = "a.stats"
BLOBS = [
    NewBlob("apache-datasketches-theta-v1", (1,), 2**62, 5, b"theta" * 40, {"ndv": "12"}),
    NewBlob("nothing", (3,), 7, 1, b""),
    NewBlob("nothing", (3,), 7, 1, b"", {}, "lz4"),
    NewBlob("apache-datasketches-kll-v1", (1, 2), -3, 0, b"kll" * 1000, {"k": "200"}, "lz4"),
    NewBlob("of-no-field", (), 7, 1, bytes(range(256)), {"name": "Grüße \u2028"}, None),
]


def frame(payload: bytes, flags: bytes = bytes(4), blobs: bytes = b"") -> bytes:
    return b"PFA1" + blobs + b"PFA1" + payload + len(payload).to_bytes(4, "little") + flags + b"PFA1"


def blob_document(**changes):
    document = {"type": "t", "fields": [1], "snapshot-id": 1, "sequence-number": 1, "offset": 4, "length": 3}
    return {**document, **changes}


def footer_of(*blobs, **members) -> bytes:
    return frame(json.dumps({"blobs": list(blobs), **members}).encode(), blobs=b"abc")


def hide(*blobs) -> bytes:
    """A file that lists the blob `abc`, and hides what describes these."""
    return footer_of(blob_document(), properties={HIDDEN_BLOBS: json.dumps(blobs)})


def only_blob(stored: bytes, codec: str | None) -> PuffinBlob:
    return PuffinBlob("t", (1,), 1, 1, 4, len(stored), codec, {})


@pytest.mark.parametrize("compress_footer", [False, True])
def test_what_is_written_is_read_back_whole(compress_footer):
    file = write_puffin(BLOBS, properties={"who": "me", "created-by": "not me"}, compress_footer=compress_footer)
    footer = read_puffin_footer(file.data, PATH)
    assert footer.blobs == file.blobs
    assert [read_blob(file.data, blob, PATH) for blob in footer.blobs] == [blob.payload for blob in BLOBS]
    described = [(b.type, b.field_ids, b.snapshot_id, b.sequence_number, b.compression_codec) for b in footer.blobs]
    assert described == [(b.type, b.field_ids, b.snapshot_id, b.sequence_number, b.compression_codec) for b in BLOBS]
    assert [dict(b.properties) for b in footer.blobs] == [dict(b.properties) for b in BLOBS]
    assert footer.properties["who"] == "me"
    assert footer.properties["created-by"].startswith("icestats ")
    assert (footer.file_size_bytes, footer.footer_size_bytes) == (len(file.data), file.footer_size_bytes)


def test_a_footer_of_too_many_values_is_not_parsed():
    """A quarter of a megabyte may expand to sixty, whose values take a hundred times their length."""
    packed = lz4.frame.compress(b'{"blobs":[' + b"{}," * (1 << 21) + b"{}]}", store_size=True)
    assert len(packed) < 100_000
    with pytest.raises(PuffinFormatError, match=r"some 4,194,307 values of JSON, expected 4,194,304 at most"):
        read_puffin_footer(frame(packed, bytes([1, 0, 0, 0])), PATH)


def test_pyiceberg_reads_what_is_written():
    file = write_puffin([blob for blob in BLOBS if blob.compression_codec != "lz4"])
    blobs, puffin = BLOBS[:2], PuffinFile(file.data)
    assert [puffin.get_blob_payload(blob) for blob in puffin.footer.blobs] == [blob.payload for blob in blobs]
    assert [tuple(blob.fields) for blob in puffin.footer.blobs] == [blob.field_ids for blob in blobs]
    assert puffin.footer.blobs[0].properties == {"ndv": "12"}


def test_engines_see_small_blobs_of_one_field_and_nothing_else():
    """PyIceberg's reader sees what Java's does: the footer's list. The kit's sees all, each marked."""
    small = NewBlob("new", (1,), 1, 1, bytes(MAX_LISTED_BLOB_SIZE_BYTES))
    large = NewBlob("new", (2,), 1, 1, bytes(MAX_LISTED_BLOB_SIZE_BYTES + 1))
    several, none = NewBlob("new", (1, 2), 1, 1, b"ab"), NewBlob("new", (), 1, 1, b"")
    own = [
        NewBlob("icestats-new", (3,), 1, 1, b"a"),
        NewBlob("apache-datasketches-kll-v1", (3,), 1, 1, b"a", {"item-type": "double"}),
    ]
    file = write_puffin([large, *own, several, small, none])
    assert [(b.type, b.fields) for b in PuffinFile(file.data).footer.blobs] == [("new", [1])]
    footer = read_puffin_footer(file.data, PATH)
    assert [(b.field_ids, b.is_hidden) for b in footer.blobs] == [
        ((1,), False),
        ((2,), True),
        ((3,), True),
        ((3,), True),
        ((1, 2), True),
        ((), True),
    ]
    assert [read_blob(file.data, b, PATH) for b in footer.blobs] == [
        b.payload for b in (small, large, *own, several, none)
    ]
    assert HIDDEN_BLOBS not in footer.properties


@pytest.mark.parametrize(
    ("kind", "field_ids", "payload", "hidden"),
    [
        ("icestats-manifest-stats-v1", (), b"", True),
        ("icestats-partition-sketches-v1", (1,), b"x", True),
        ("icestats-column-stats-v1", (1,), bytes(MAX_LISTED_BLOB_SIZE_BYTES + 1), True),
        ("icestats-column-stats-v1", (1,), b"{}", True),
        ("of-others", (1, 2), b"x", False),
        ("of-others", (), b"x", False),
        ("of-others", (1,), bytes(MAX_LISTED_BLOB_SIZE_BYTES + 1), False),
    ],
)
def test_of_what_is_carried_over_the_kits_own_is_hidden_and_others_find_theirs(kind, field_ids, payload, hidden):
    """Earlier versions of the kit listed all blobs; a blob that is hidden stays so, whoever wrote it."""
    for was_hidden in (False, True):
        old = PuffinBlob(kind, field_ids, 1, 1, 4, len(payload), None, {"a": "b"}, was_hidden)
        file = write_puffin([CarriedBlob(old, payload)])
        (found,) = read_puffin_footer(file.data, PATH).blobs
        assert found == PuffinBlob(kind, field_ids, 1, 1, 4, len(payload), None, {"a": "b"}, was_hidden or hidden)
        assert read_stored_blob(file.data, found, PATH) == payload


def test_what_describes_hidden_blobs_has_a_limit():
    """Java's JSON reader refuses longer texts, and with them the whole footer."""
    text = {"text": "x" * (MAX_HIDDEN_BLOBS_LENGTH // 4)}
    blobs = [NewBlob("icestats-new", (), 1, 1, b"", text) for _ in range(4)]
    assert len(read_puffin_footer(write_puffin(blobs[1:]).data, PATH).blobs) == 3
    with pytest.raises(CallError, match="expected 4,194,304 at most"):
        write_puffin(blobs)


def test_a_file_that_iceberg_for_java_wrote_is_read():
    path = str(GOLDEN / "compute_table_stats.stats")
    footer = read_puffin_footer(Storage(), path)
    assert [(b.type, b.field_ids) for b in footer.blobs] == [
        ("apache-datasketches-theta-v1", (i,)) for i in (1, 2, 3, 4)
    ]
    assert [b.properties["ndv"] for b in footer.blobs] == ["100", "20", "100", "30"]
    assert {b.compression_codec for b in footer.blobs} == {"zstd"}
    assert "Apache Iceberg" in footer.properties["created-by"]
    # Theta: serial version 3, family 3 (compact), 8 bytes a hash after 16 or 24 bytes.
    assert [read_blob(Storage(), b, path)[1:3] for b in footer.blobs] == [b"\x03\x03"] * 4


def test_blobs_of_others_are_carried_over_byte_for_byte():
    path = str(GOLDEN / "compute_table_stats.stats")
    data = Path(path).read_bytes()
    footer = read_puffin_footer(data, path)
    carried = [CarriedBlob(blob, read_stored_blob(data, blob, path)) for blob in footer.blobs]
    file = write_puffin([NewBlob("new", (1,), 1, 1, b"x" * 100), *carried])
    again = read_puffin_footer(file.data, PATH)
    assert [read_stored_blob(file.data, blob, PATH) for blob in again.blobs[1:]] == [c.stored for c in carried]
    for old, new in zip(footer.blobs, again.blobs[1:], strict=True):
        assert (new.snapshot_id, new.sequence_number, new.compression_codec) == (
            old.snapshot_id,
            old.sequence_number,
            old.compression_codec,
        )
        assert new.properties == old.properties
        assert read_blob(file.data, new, PATH) == read_blob(data, old, path)


def test_only_the_tail_is_read_for_the_footer(tmp_path):
    class Counting(Storage):
        read_bytes = 0

        def read(self, location, offset=0, length=None):
            data = super().read(location, offset, length)
            self.read_bytes += len(data)
            return data

    file = write_puffin([NewBlob("big", (1,), 1, 1, bytes(3_000_000), {}, None), *BLOBS])
    path = tmp_path / PATH
    path.write_bytes(file.data)
    storage = Counting()
    footer = read_puffin_footer(storage, str(path))
    assert storage.read_bytes <= 64 * 1024
    assert read_blob(storage, footer.blobs[0], str(path)) == BLOBS[0].payload
    assert storage.read_bytes <= 65 * 1024


def test_a_footer_longer_than_the_tail_is_read():
    blobs = [NewBlob("t", (i,), i, i, b"x" * i, {"text": "y" * 500}) for i in range(400)]
    file = write_puffin(blobs)
    assert file.footer_size_bytes > 200_000
    footer = read_puffin_footer(file.data, PATH)
    assert [read_blob(file.data, blob, PATH) for blob in footer.blobs] == [blob.payload for blob in blobs]


def test_members_that_the_spec_does_not_know_are_ignored():
    data = footer_of(blob_document(later={"deep": [1]}), encrypted=False, properties={"a": "b"})
    footer = read_puffin_footer(data, PATH)
    assert footer.properties == {"a": "b"}
    assert read_blob(data, footer.blobs[0], PATH) == b"abc"


def test_zstd_frames_say_their_size_and_have_a_checksum():
    file = write_puffin(BLOBS[:1])
    stored = read_stored_blob(file.data, file.blobs[0], PATH)
    parameters = zstandard.get_frame_parameters(stored)
    assert parameters.content_size == len(BLOBS[0].payload)
    assert parameters.has_checksum


def test_a_codec_that_the_spec_does_not_know_is_not_written():
    with pytest.raises(CallError, match="gzip"):
        write_puffin([NewBlob("t", (1,), 1, 1, b"", {}, "gzip")])


@pytest.mark.parametrize(
    ("data", "offset", "words"),
    [
        (b"", 0, "0 bytes"),
        (b"PFA1" * 4, 0, "16 bytes"),
        (b"PAR1" + frame(b"{}")[4:], 0, "not a Puffin file"),
        (frame(b'{"blobs":[]}')[:-1] + b"2", 28, "not a Puffin file"),
        (frame(b'{"blobs":[]}', flags=b"\x02\0\0\0"), 24, "02000000"),
        (frame(b'{"blobs":[]}', flags=b"\0\0\0\1"), 24, "00000001"),
        (frame(b'{"blobs":[]}', flags=b"\1\0\0\0"), 8, "LZ4"),
        (frame(b"["), 8, "not as the spec says"),
        (frame(b"[]"), 8, "expected an object"),
        (frame(b"{}"), 8, "no 'blobs'"),
        (frame(b"\xff\xfe"), 8, "utf-8"),
        (frame(b'{"blobs":' + b"[" * 100_000 + b"}"), 8, "recursion"),
        (frame(b'{"blobs":[NaN]}'), 8, "NaN"),
        (frame(b'{"blobs":[1]}'), 8, "not as the spec says"),
        (frame(b'{"blobs":[],"properties":[1]}'), 8, "not as the spec says"),
        (footer_of(blob_document(offset=3)), 11, "lies from 3"),
        (footer_of(blob_document(length=4)), 11, "to 8"),
        (footer_of(blob_document(length=-1)), 11, "to 3"),
        (footer_of(blob_document(), blob_document()), 11, "its blobs have 6 bytes, more than the file"),
        (footer_of(*[blob_document(length=1)] * 3, blob_document(length=1)), 11, "its blobs have 4 bytes"),
        (footer_of(blob_document(length=2**63)), 11, "64 bits"),
        (footer_of(blob_document(length=3.0)), 11, "3.0"),
        (footer_of(blob_document(length=True)), 11, "True"),
        (footer_of(blob_document(fields=[2**31])), 11, "32 bits"),
        (footer_of(blob_document(type=None)), 11, "None"),
        (footer_of(blob_document(type="\ud800")), 11, "surrogates"),
        (footer_of(blob_document(properties={"ndv": 1})), 11, "text"),
        (footer_of(properties={HIDDEN_BLOBS: "["}), 11, f"{HIDDEN_BLOBS} should be: Expecting value"),
        (footer_of(properties={HIDDEN_BLOBS: "{}"}), 11, f"{HIDDEN_BLOBS} should be: a JSON dict, expected an array"),
        (footer_of(properties={HIDDEN_BLOBS: "[NaN]"}), 11, f"{HIDDEN_BLOBS} should be: NaN"),
        (footer_of(properties={HIDDEN_BLOBS: "[" * 100_000}), 11, f"{HIDDEN_BLOBS} should be: .*recursion"),
        (footer_of(properties={HIDDEN_BLOBS: " " * MAX_HIDDEN_BLOBS_LENGTH + "[]"}), 11, "characters, expected"),
        (footer_of(properties={HIDDEN_BLOBS: json.dumps([{}] * (MAX_BLOBS + 1))}), 11, "100,001 blobs"),
        (footer_of(properties={HIDDEN_BLOBS: [blob_document()]}), 11, "where text belongs"),
        (hide(1), 11, f"{HIDDEN_BLOBS} should be"),
        (hide(blob_document(offset=7, length=0.0)), 11, f"{HIDDEN_BLOBS} should be: 0.0"),
        (hide(blob_document(offset=7, length=0, type="\ud800")), 11, "surrogates"),
        (hide({"type": "t"}), 11, f"{HIDDEN_BLOBS} should be: no 'fields'"),
        (hide(blob_document(offset=6, length=0)), 11, "from 6 to 6, expected a place between 7 and 7"),
        (hide(blob_document(offset=7, length=1)), 11, "from 7 to 8"),
        (hide(blob_document(offset=7, length=-1)), 11, "from 7 to 6"),
        (hide(blob_document(offset=2**62, length=2**62)), 11, "lies from"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(data, offset, words):
    with pytest.raises(PuffinFormatError, match=words) as caught:
        read_puffin_footer(data, PATH)
    assert (caught.value.path, caught.value.offset) == (PATH, offset)
    assert "\n" not in str(caught.value)


def test_a_footer_size_beyond_the_file_is_refused():
    data = bytearray(frame(b'{"blobs":[]}'))
    for size in (2**31 - 1, 2**31, 2**32 - 1, 0, 13):
        data[-12:-8] = size.to_bytes(4, "little")
        with pytest.raises(PuffinFormatError) as caught:
            read_puffin_footer(bytes(data), PATH)
        assert caught.value.offset in (len(data) - 12, len(data) - 16 - size)


def test_an_unknown_codec_of_others_is_kept_in_the_footer_and_refused_only_when_read():
    data = footer_of(blob_document(**{"compression-codec": "brotli"}))
    blob = read_puffin_footer(data, PATH).blobs[0]
    assert read_stored_blob(data, blob, PATH) == b"abc"
    with pytest.raises(PuffinFormatError, match="brotli"):
        read_blob(data, blob, PATH)


ZSTD = zstandard.ZstdCompressor(write_checksum=True).compress(b"payload " * 100)
LZ4 = lz4.frame.compress(b"payload " * 100, store_size=True, content_checksum=True)


@pytest.mark.parametrize(
    ("stored", "codec"),
    [
        (b"", "zstd"),
        (ZSTD[:-1], "zstd"),
        (ZSTD + b"\0", "zstd"),
        (ZSTD + ZSTD, "zstd"),
        (ZSTD[:-1] + bytes([ZSTD[-1] ^ 1]), "zstd"),
        (zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 50), "zstd"),
        (LZ4, "zstd"),
        # A frame that says it holds 0 bytes, and has a raw block of 1.
        (b"\x28\xb5\x2f\xfd\x20\x00\x09\x00\x00x", "zstd"),
        (b"", "lz4"),
        (LZ4[:-1], "lz4"),
        (LZ4 + b"\0", "lz4"),
        (LZ4[:-1] + bytes([LZ4[-1] ^ 1]), "lz4"),
        (lz4.frame.compress(b"x" * 50, store_size=False), "lz4"),
        (ZSTD, "lz4"),
    ],
)
def test_a_frame_that_is_not_whole_is_refused(stored, codec):
    data = frame(b'{"blobs":[]}', blobs=stored)
    with pytest.raises(PuffinFormatError) as caught:
        read_blob(data, only_blob(stored, codec), PATH)
    assert caught.value.offset == 4


def test_a_bomb_is_refused_before_it_takes_memory():
    bomb = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    assert len(bomb) < 10_000
    data = frame(b'{"blobs":[]}', blobs=bomb)
    with pytest.raises(PuffinFormatError, match="1000000 at most"):
        read_blob(data, only_blob(bomb, "zstd"), PATH, max_size_bytes=1_000_000)
    # A header that claims 2^60 bytes: 4 bytes magic, a descriptor with 8 bytes of size, the size.
    lie = b"\x28\xb5\x2f\xfd" + b"\xe0" + (2**60).to_bytes(8, "little") + b"\1\0\0"
    with pytest.raises(PuffinFormatError, match=str(2**60)):
        read_blob(frame(b"{}", blobs=lie), only_blob(lie, "zstd"), PATH)
    lie = bytearray(LZ4)
    lie[6:14] = (2**50).to_bytes(8, "little")
    with pytest.raises(PuffinFormatError):
        read_blob(frame(b"{}", blobs=bytes(lie)), only_blob(lie, "lz4"), PATH)


def test_a_blob_beyond_the_file_or_the_limit_is_refused():
    data = frame(b'{"blobs":[]}', blobs=b"abc")
    for blob in (
        PuffinBlob("t", (1,), 1, 1, 0, 3, None, {}),
        PuffinBlob("t", (1,), 1, 1, 4, len(data), None, {}),
        PuffinBlob("t", (1,), 1, 1, 4, -1, None, {}),
        PuffinBlob("t", (1,), 1, 1, 2**62, 3, None, {}),
    ):
        with pytest.raises(PuffinFormatError):
            read_stored_blob(data, blob, PATH)
    with pytest.raises(PuffinFormatError, match="limit is 2"):
        read_blob(data, PuffinBlob("t", (1,), 1, 1, 4, 3, None, {}), PATH, max_size_bytes=2)


def test_a_file_that_shrinks_while_it_is_read_is_refused():
    class Shrinking:
        def size(self, location):
            return 200

        def read(self, location, offset=0, length=None):
            return b"PFA1"

    with pytest.raises(PuffinFormatError, match="cut off: 4 of 200 bytes"):
        read_puffin_footer(Shrinking(), PATH)
